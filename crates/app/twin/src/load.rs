//! Runs at a part of their full rate against their simulation.

use crate::{
    Runs, TwinError,
    comparison::{figures, fit_of, hertz, moved},
};
use evb::Trigger;
use evb_experiment::{CpuFit, Experiment, Plan};
use evb_record::{Agreement, Record, TwinFigure, TwinLoad};

/// The least part of the trigger rate with which runs still keep up.
const KEEPS_UP: f64 = 0.95;

/// A plan, given with its text, whose triggers come at a part of its full event rate, in hertz. With a number of events it runs as
/// long as at the full rate.
///
/// # Errors
/// Its triggers do not come as fast as builders take them.
pub fn at_load(plan: &Plan, text: &str, load: f64, full_hz: f64) -> Result<Experiment, TwinError> {
    if plan.building.trigger != Trigger::FreeRunning {
        return Err(TwinError::NoFullRate);
    }
    let events = plan.events().map(|events| (events as f64 * load).ceil());
    let mut changes = vec!["trigger.type=rate".to_owned(), format!("trigger.rate={:.3} Hz", load * full_hz)];
    changes.extend(events.map(|events| format!("trigger.events={events}")));
    Ok(Experiment::parse(text, &plan.name, &changes)?)
}

/// Holds runs of a plan of [`at_load`] against its simulation.
///
/// # Errors
/// The plan's network has no fitted costs, or those of another transport.
pub fn compare_at_load(plan: &Plan, load: f64, runs: &Runs, simulated: &Record) -> Result<TwinLoad, TwinError> {
    let CpuFit { error_percent, reference } = fit_of(plan)?;
    let rate_hz = plan.trigger.rate.map_or(0.0, hertz);
    let figures = figures(runs, simulated, error_percent / 100.0);
    let unfit = moved(&runs.reference_hz, hertz(reference)).or_else(|| behind(&figures, rate_hz));
    let (agreement, explanation) = unfit.map_or_else(|| judge(&figures), |why| (Agreement::NotComparable, why));
    let reference_hz = runs.reference_hz.clone();
    Ok(TwinLoad { load, rate_hz, reference_hz, figures, agreement, explanation })
}

/// The reason why latencies are those of a queue that only grows, if so.
fn behind(figures: &[TwinFigure], rate_hz: f64) -> Option<String> {
    let part = figures[0].median() / rate_hz;
    (part < KEEPS_UP).then(|| format!("the runs built {:.0} % of the events that were triggered", part * 100.0))
}

/// Whether the latencies agree, and by how much.
fn judge(figures: &[TwinFigure]) -> (Agreement, String) {
    let latencies = || figures.iter().filter(|figure| figure.figure.starts_with("latency"));
    let ratios = latencies().map(|figure| figure.ratio().map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}")));
    let explanation = format!("the simulated median and 99th percentile are {} of the real ones", and(ratios));
    let agrees = latencies().all(|figure| figure.agrees);
    (if agrees { Agreement::Agree } else { Agreement::Differ }, explanation)
}

fn and(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE_RUNNING: &str = r#"
trigger = { events = 1000 }
readout = { units = 2, source = { type = "fixed", size = "1 kB" } }
builder = { units = 2 }
storage = { keep = "none" }
"#;

    fn experiment(text: &str) -> Experiment {
        Experiment::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error:#?}"))
    }

    #[test]
    fn a_load_is_a_rate_and_lasts_as_long() {
        let full = experiment(FREE_RUNNING);
        let text = full.resolved_at(0).unwrap_or_default();
        let part = at_load(&full.plans()[0], &text, 0.2, 1e6).unwrap_or_else(|error| panic!("{error}"));
        let plan = &part.plans()[0];
        assert_eq!((plan.trigger.rate.map(hertz), plan.events()), (Some(2e5), Some(200)));
        let again = at_load(plan, &part.resolved_at(0).unwrap_or_default(), 0.2, 1e6);
        assert!(matches!(again, Err(TwinError::NoFullRate)), "a rate has no full rate");
    }

    fn figures(rate: f64, median: f64, p99: f64) -> Vec<TwinFigure> {
        let figure = |name: &str, real: f64, simulated: f64| TwinFigure {
            figure: name.into(),
            real: vec![real],
            simulated,
            simulated_range: None,
            agrees: (0.5..=2.0).contains(&(simulated / real)),
        };
        let latency = [figure("latency median, us", 100.0, median), figure("latency p99, us", 200.0, p99)];
        [figure("event rate, Hz", rate, 1000.0)].into_iter().chain(latency).collect()
    }

    #[test]
    fn latencies_agree_within_a_factor_of_two() {
        let agreement = |median, p99| judge(&figures(1000.0, median, p99)).0;
        assert_eq!(agreement(190.0, 110.0), Agreement::Agree);
        assert_eq!(agreement(210.0, 200.0), Agreement::Differ);
        assert_eq!(agreement(100.0, 90.0), Agreement::Differ);
    }

    #[test]
    fn runs_that_do_not_keep_up_say_nothing_about_latency() {
        assert_eq!(behind(&figures(960.0, 100.0, 200.0), 1000.0), None);
        let told = behind(&figures(900.0, 100.0, 200.0), 1000.0);
        assert_eq!(told.as_deref(), Some("the runs built 90 % of the events that were triggered"));
    }
}
