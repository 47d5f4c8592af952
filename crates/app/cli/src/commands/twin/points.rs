//! The points of a file, each run and simulated.

use super::{Runner, TwinArgs};
use crate::{
    ExperimentArgs,
    failure::Failure,
    nodes::NodeArgs,
    output,
    progress::{Line, suspend},
    results::write_twins,
    signals::Signals,
    terminal::{show, width},
};
use evb::{OpenSession, Plan, Record};
use evb_record::{Outcome, RecordKind, Twin};
use evb_twin::{FitPoint, Runs, TwinError, compare, reference, simulate};
use std::path::Path;

/// Runs of a point, by default.
const RUNS: u64 = 5;

/// A point of a file.
struct Point<'a> {
    plan: &'a Plan,
    text: String,
    state: State,
}

/// What is there of a point.
enum State {
    Known(Box<Twin>),
    Open { simulated: Box<Record>, reference: FitPoint },
}

impl State {
    fn new(plan: &Plan, known: Option<Twin>) -> Result<Self, TwinError> {
        Ok(match known {
            Some(twin) => Self::Known(Box::new(twin)),
            None => {
                Self::Open { simulated: Box::new(simulate(plan)?), reference: reference(plan.transport.info().name)? }
            }
        })
    }
}

/// Runs and simulates each point of a file, and shows how both agree.
pub(super) fn hold(args: &TwinArgs, file: &Path, network: &Path, signals: &Signals) -> Result<Outcome, Failure> {
    let experiment = ExperimentArgs { file: file.to_owned(), set: args.set.clone(), seed: None }.load_on(network)?;
    let plans = experiment.plans();
    evb::check_runnable(plans)?;
    args.plots.check(plans)?;
    let (mut folder, known) = args.folder.open(&experiment, RecordKind::Twin)?;
    // All simulations first: one of them may be refused.
    let point = |(index, (plan, known))| {
        let text = experiment.resolved_at(index).unwrap_or_default();
        State::new(plan, known).map(|state| Point { plan, text, state })
    };
    let points = plans.iter().zip(known).enumerate().map(point).collect::<Result<Vec<_>, _>>()?;
    let turns = args.turns.unwrap_or(RUNS);
    let open = points.iter().filter(|point| matches!(point.state, State::Open { .. })).count() as u64;
    let mut runner = Runner { signals, line: Line::new(Some(2 * turns * open), args.progress), begun: 0 };
    let mut twins = Vec::new();
    NodeArgs::default().with_sessions(plans, &mut |session| {
        for (index, point) in points.iter().enumerate() {
            let twin = match &point.state {
                State::Known(twin) => (**twin).clone(),
                State::Open { simulated, reference } => {
                    let runs = match runner.in_turns(session, point, reference, turns) {
                        // Somebody has ended it: what is there is shown.
                        Err(_) if signals.any() && !twins.is_empty() => break,
                        runs => runs?,
                    };
                    let twin = compare(point.plan, &runs, simulated)?;
                    folder.as_mut().map_or(Ok(()), |folder| folder.keep(index, &twin))?;
                    twin
                }
            };
            if args.json {
                print(&twin)?;
            }
            twins.push(twin);
        }
        Ok(())
    })?;
    drop(runner);
    match twins.as_slice() {
        _ if args.json => {}
        [twin] if plans.len() == 1 => show(&evb_report::twin_summary(twin, width())),
        twins => show(&evb_report::twin_table(twins, width())),
    }
    if let (Some(path), Some(folder)) = (&args.folder.out, folder) {
        folder.finish()?;
        write_twins(path, &twins, &args.plots)?;
    }
    let is_whole = twins.len() == plans.len();
    if !is_whole {
        let resume = if args.folder.out.is_some() { "; go on with --resume" } else { "" };
        eprintln!("evb: stopped after {} of {} points{resume}", twins.len(), plans.len());
    }
    Ok(Outcome::worst(twins.iter().map(|twin| twin.agreement.outcome()).chain([is_whole.into()])))
}

impl Runner<'_> {
    /// Runs a point, each time after the reference run.
    fn in_turns(
        &mut self,
        open: &OpenSession<'_>,
        point: &Point<'_>,
        reference: &FitPoint,
        turns: u64,
    ) -> Result<Runs, Failure> {
        let mut runs = Runs::default();
        for _ in 0..turns {
            let (known, known_text) = reference.plan();
            runs.reference_hz.push(self.run(open, known, &known_text, "reference")?.event_rate_hz);
            runs.records.push(self.run(open, point.plan, &point.text, &point.plan.name)?);
        }
        Ok(runs)
    }
}

fn print(twin: &Twin) -> Result<(), Failure> {
    let line = serde_json::to_string(twin).map_err(Failure::new)?;
    suspend(|| println!("{line}"));
    output::check()
}
