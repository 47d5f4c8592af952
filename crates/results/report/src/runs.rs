//! A list of runs as a table.

use crate::{
    table::{Column, Table},
    text::metric,
};
use evb_record::Outcome;

/// A run in a list.
#[derive(Clone, Debug)]
pub struct RunLine<'a> {
    /// Number of the run.
    pub number: u64,
    /// Time of the start, as people write it.
    pub started: String,
    /// Length in seconds; `None` while it goes on.
    pub seconds: Option<f64>,
    /// Name of the experiment.
    pub experiment: &'a str,
    /// Type of the run.
    pub run_type: &'a str,
    /// `running`, `stopped`, `failed` or `interrupted`.
    pub state: &'a str,
    /// Events that ended.
    pub events: u64,
    /// Events per second.
    pub event_rate_hz: f64,
    /// The verdict; `None` while it goes on.
    pub verdict: Option<Outcome>,
    /// Comment of the operator.
    pub comment: &'a str,
}

/// A table of runs.
#[must_use]
pub fn run_list(runs: &[RunLine<'_>], width: usize) -> String {
    let mut table = Table::new([
        Column::number("run", crate::table::ALWAYS),
        Column::word("started"),
        Column::number("seconds", 5),
        Column::word("experiment"),
        Column::number("type", 3),
        Column::number("events", 6),
        Column::number("rate", 7),
        Column::word("state"),
        Column::word("verdict"),
        Column::sentence("comment"),
    ]);
    for run in runs {
        table.row([
            run.number.to_string(),
            run.started.clone(),
            run.seconds.map(|seconds| format!("{seconds:.0}")).unwrap_or_default(),
            run.experiment.into(),
            run.run_type.into(),
            run.events.to_string(),
            format!("{}Hz", metric(run.event_rate_hz)),
            run.state.into(),
            run.verdict.map_or("", Outcome::name).into(),
            run.comment.into(),
        ]);
    }
    table.draw(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_goes_on_has_no_verdict() {
        let run = |number, verdict: Option<Outcome>| RunLine {
            number,
            started: "2026-01-02 03:04:05".into(),
            seconds: verdict.map(|_| 12.4),
            experiment: "pull-2x2",
            run_type: "physics",
            state: if verdict.is_some() { "stopped" } else { "running" },
            events: 1234,
            event_rate_hz: 98765.0,
            verdict,
            comment: "first light",
        };
        let verdicts = [None, Some(Outcome::Good), Some(Outcome::NotGood), Some(Outcome::CannotTell)];
        let runs: Vec<_> = (5..9).rev().zip(verdicts).map(|(number, verdict)| run(number, verdict)).collect();
        insta::assert_snapshot!(run_list(&runs, 120));
    }
}
