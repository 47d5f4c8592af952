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
use evb_record::{Outcome, RecordKind, Twin, TwinFigure};
use evb_twin::{FitPoint, Runs, TwinError, at_load, compare, compare_at_load, reference, simulate};
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
    Open { simulated: Box<Record>, reference: Box<FitPoint> },
}

impl<'a> Point<'a> {
    /// A point, its text, and what is known of it. That is enough if it has the same loads.
    fn new(plan: &'a Plan, text: String, known: Option<Twin>, loads: &[f64]) -> Result<Self, TwinError> {
        let has_loads = |twin: &Twin| twin.loads.iter().map(|load| &load.load).eq(loads);
        let state = match known.filter(has_loads) {
            Some(twin) => State::Known(Box::new(twin)),
            None => {
                // A rate that is not the one to come, to see whether it may be one.
                loads.iter().try_for_each(|&load| at_load(plan, &text, load, 1e3).map(drop))?;
                let reference = Box::new(reference(plan.transport.info().name)?);
                State::Open { simulated: Box::new(simulate(plan)?), reference }
            }
        };
        Ok(Self { plan, text, state })
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
        Point::new(plan, text, known, &args.load)
    };
    let points = plans.iter().zip(known).enumerate().map(point).collect::<Result<Vec<_>, _>>()?;
    let mut runner = Runner { signals, line: Line::new(Some(runs(args, &points)), args.progress), begun: 0 };
    let mut twins = Vec::new();
    NodeArgs::default().with_sessions(plans, &mut |session| {
        for (index, point) in points.iter().enumerate() {
            let twin = match &point.state {
                State::Known(twin) => (**twin).clone(),
                State::Open { simulated, reference } => {
                    let turns = Turns { session, reference, count: turns(args) };
                    let twin = match runner.hold(&turns, point, simulated, &args.load) {
                        // Somebody has ended it: what is there is shown.
                        Err(_) if signals.any() && !twins.is_empty() => break,
                        twin => twin?,
                    };
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
    if !args.json {
        show(&table(&twins, plans.len()));
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
    Ok(Outcome::worst(twins.iter().map(|twin| twin.worst().outcome()).chain([is_whole.into()])))
}

fn turns(args: &TwinArgs) -> u64 {
    args.turns.unwrap_or(RUNS)
}

/// Number of runs of the open points, those of the reference included.
fn runs(args: &TwinArgs, points: &[Point<'_>]) -> u64 {
    let open = points.iter().filter(|point| matches!(point.state, State::Open { .. })).count() as u64;
    2 * turns(args) * open * (1 + args.load.len() as u64)
}

/// The text for people.
fn table(twins: &[Twin], points: usize) -> String {
    match twins {
        [twin] if points == 1 => evb_report::twin_summary(twin, width()),
        twins => evb_report::twin_table(twins, width()),
    }
}

/// How runs are carried out: in sessions of nodes, each run after the reference run, this often.
struct Turns<'a, 's> {
    session: &'a OpenSession<'s>,
    reference: &'a FitPoint,
    count: u64,
}

impl Runner<'_> {
    /// Runs a point, and at loads of its full rate, and compares with simulations.
    fn hold(
        &mut self,
        turns: &Turns<'_, '_>,
        point: &Point<'_>,
        simulated: &Record,
        loads: &[f64],
    ) -> Result<Twin, Failure> {
        let runs = self.in_turns(turns, point.plan, &point.text)?;
        let mut twin = compare(point.plan, &runs, simulated)?;
        let full_hz = twin.figures.first().map_or(0.0, TwinFigure::median);
        // Without events there is no rate.
        for &load in loads.iter().filter(|_| full_hz > 0.0) {
            let part = at_load(point.plan, &point.text, load, full_hz)?;
            let plan = &part.plans()[0];
            let runs = self.in_turns(turns, plan, &part.resolved_at(0).unwrap_or_default())?;
            twin.loads.push(compare_at_load(plan, load, &runs, &simulate(plan)?)?);
        }
        Ok(twin)
    }

    /// Runs a plan, each time after the reference run.
    fn in_turns(&mut self, turns: &Turns<'_, '_>, plan: &Plan, text: &str) -> Result<Runs, Failure> {
        let (known, known_text) = turns.reference.plan();
        let mut runs = Runs::default();
        for _ in 0..turns.count {
            runs.reference_hz.push(self.run(turns.session, known, &known_text, "reference")?.event_rate_hz);
            runs.records.push(self.run(turns.session, plan, text, &plan.name)?);
        }
        Ok(runs)
    }
}

fn print(twin: &Twin) -> Result<(), Failure> {
    let line = serde_json::to_string(twin).map_err(Failure::new)?;
    suspend(|| println!("{line}"));
    output::check()
}
