//! `evb run`: build events, or carry out other traffic, for real.

mod traffic;

use crate::{
    ExperimentArgs,
    console::Console,
    failure::Failure,
    nodes::NodeArgs,
    output,
    progress::{ProgressArgs, RunProgress},
    results::{FolderArgs, PlotArgs, write_results},
    signals::Signals,
    terminal::{show as show_text, width},
    token,
};
use clap::Args;
use evb::{Experiment, OpenSession, Plan, Ranks, Record, Session, Workload, check_runnable, launched, run_stages};
use evb_record::{Outcome, RecordKind};
use std::process;

#[derive(Args, Clone)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    #[command(flatten)]
    nodes: NodeArgs,
    /// Build events this often, one run after the other with the same nodes
    #[arg(long, value_name = "N", conflicts_with = "out", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Take commands from standard input, one a line: configure, start, pause, resume, split, stop, abort, quit
    #[arg(long, conflicts_with_all = ["runs", "out"])]
    operator: bool,
    #[command(flatten)]
    folder: FolderArgs,
    /// Print one JSON record for each run instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

pub(crate) fn run(args: &RunArgs) -> Result<Outcome, Failure> {
    let (args, experiment) = &load(args)?;
    check_runnable(experiment.plans())?;
    if args.operator && experiment.plans().len() > 1 {
        return Err(Failure::with_hint(
            "an operator commands one experiment, and this file is a sweep of several",
            "choose one point: remove `[sweep]` and set its keys with `--set`",
        ));
    }
    refuse_for_traffic(args, experiment)?;
    if launched().is_some() {
        return run_as_rank(args, experiment);
    }
    let signals = Signals::listen()?;
    args.nodes.with_sessions(experiment.plans(), &mut |open| build(args, experiment, open, &signals))
}

/// Refuses what traffic without an event manager cannot do.
fn refuse_for_traffic(args: &RunArgs, experiment: &Experiment) -> Result<(), Failure> {
    if experiment.plans().iter().all(|plan| plan.workload == Workload::EventBuilding) {
        return Ok(());
    }
    let wrong = [
        (args.operator, "no operator commands traffic without an event manager", "leave out `--operator`"),
        (
            args.nodes.by_hand(),
            "traffic starts its own nodes",
            "leave out `--listen`, or name their machines with `--hosts`",
        ),
        (launched().is_some(), "traffic over MPI starts its own ranks", "start `evb run` without a launcher"),
    ];
    let found = wrong.into_iter().find(|(is_so, ..)| *is_so);
    found.map_or(Ok(()), |(_, message, hint)| Err(Failure::with_hint(message, hint)))
}

/// Builds the events of all points of the sweep in sessions that `open` opens.
fn build(
    args: &RunArgs,
    experiment: &Experiment,
    open: &OpenSession<'_>,
    signals: &Signals,
) -> Result<Outcome, Failure> {
    let is_plain = |plan: &Plan| plan.stages.is_none() && plan.workload == Workload::EventBuilding;
    if experiment.plans().iter().all(is_plain) {
        return build_in(args, experiment, &mut open()?, signals);
    }
    let has_stages = experiment.plans().iter().any(|plan| plan.stages.is_some());
    if has_stages && (args.operator || args.nodes.is_remote()) {
        return Err(Failure::with_hint(
            "two stages run by themselves, and on this machine",
            "leave out `--operator`, `--listen` and `--hosts`",
        ));
    }
    build_all(args, experiment, signals, &mut |plan, text, progress| match plan.stages {
        Some(_) => Ok(run_stages(plan, text, open, progress)?),
        None if plan.workload == Workload::EventBuilding => Ok(open()?.run(plan, text, progress)?),
        None => traffic::run(plan, &args.nodes, signals, args.progress),
    })
}

/// Builds the events of all points of the sweep in one session, as often as requested, or by the commands of the operator.
fn build_in(
    args: &RunArgs,
    experiment: &Experiment,
    session: &mut Session<'_>,
    signals: &Signals,
) -> Result<Outcome, Failure> {
    if !args.operator {
        return build_all(
            args,
            experiment,
            signals,
            &mut |plan, text, progress| Ok(session.run(plan, text, progress)?),
        );
    }
    let mut worst = Outcome::Good;
    for (index, plan) in experiment.plans().iter().enumerate() {
        let text = experiment.resolved_at(index).unwrap_or_default();
        let mut console = Console::new(plan, signals, args.progress)?;
        session.operate(plan, &text, &mut console, |record| {
            worst = worst.max(record.outcome());
            show(args, &record)
        })?;
    }
    Ok(worst)
}

/// Runs a plan, described by a text, and shows its progress.
type RunPlan<'a> = dyn FnMut(&Plan, &str, &mut RunProgress<'_>) -> Result<Record, Failure> + 'a;

/// Builds the events of all points of the sweep, as often as requested. With a folder those that it has are not built again.
fn build_all(
    args: &RunArgs,
    experiment: &Experiment,
    signals: &Signals,
    run: &mut RunPlan<'_>,
) -> Result<Outcome, Failure> {
    let (mut folder, known) = args.folder.open(experiment, RecordKind::Run)?;
    let (mut worst, mut kept, points) = (Outcome::Good, Vec::new(), experiment.plans().len());
    'points: for ((index, plan), known) in experiment.plans().iter().enumerate().zip(known) {
        if let Some(record) = known {
            show(args, &record)?;
            worst = worst.max(record.outcome());
            kept.push(record);
            continue;
        }
        let text = experiment.resolved_at(index).unwrap_or_default();
        for _ in 0..args.runs {
            let mut progress = RunProgress::new(plan, signals, args.progress);
            let record = run(plan, &text, &mut progress);
            drop(progress);
            let record = record?;
            show(args, &record)?;
            worst = worst.max(record.outcome());
            // A run that somebody has ended is not that of its point.
            if let Some(folder) = folder.as_mut().filter(|_| !signals.any()) {
                folder.keep(index, &record)?;
                kept.push(record);
            }
            if signals.any() {
                break 'points;
            }
        }
    }
    if let (Some(path), Some(folder)) = (&args.folder.out, folder) {
        folder.finish()?;
        write_results(path, &kept, &PlotArgs::default())?;
        worst = worst.max((kept.len() == points).into());
        if kept.len() < points {
            eprintln!("evb: stopped after {} of {points} points; go on with --resume", kept.len());
        }
    }
    Ok(worst)
}

fn show(args: &RunArgs, record: &Record) -> Result<(), Failure> {
    match args.json {
        true => println!("{}", serde_json::to_string(record).map_err(Failure::new)?),
        false => show_text(&evb_report::run_summary(record, width())),
    }
    // Before the next point of a sweep: its record would be lost.
    output::check()
}

/// Runs one rank of a job that a launcher has started. Rank 0 speaks to people, and must do so before it leaves: that
/// ends the job.
fn run_as_rank(args: &RunArgs, experiment: &Experiment) -> Result<Outcome, Failure> {
    let ranks = Ranks::start()?;
    let signals = if ranks.leads() { Signals::listen()? } else { Signals::ignore()? };
    if let Err(error) = experiment.plans().iter().try_for_each(|plan| ranks.check(plan)) {
        // All ranks know it: the job can end in order.
        if ranks.leads() {
            Failure::from(error).print();
        }
        ranks.finish();
        process::exit(2);
    }
    let result = match ranks.leads() {
        true => ranks
            .lead(token::fresh()?, |session| build_in(args, experiment, session, &signals))
            .map_err(Failure::from)
            .flatten(),
        false => ranks.follow().map(|()| Outcome::Good).map_err(Failure::from),
    };
    match result {
        Ok(outcome) => {
            ranks.finish();
            Ok(outcome)
        }
        Err(failure) => {
            failure.print();
            // The end of this rank ends the others, which would wait for it.
            drop(ranks);
            process::exit(2);
        }
    }
}

/// The experiment, and the arguments with the transport that nodes in processes need. The file is read once: it may be a
/// pipe.
fn load(args: &RunArgs) -> Result<(RunArgs, Experiment), Failure> {
    let mut args = args.clone();
    let text = Experiment::read(&args.experiment.file)?;
    let experiment = args.experiment.parse(&text)?;
    let Some(transport) = args.nodes.transport(experiment.plans()) else { return Ok((args, experiment)) };
    args.experiment.set.push(transport);
    let experiment = args.experiment.parse(&text)?;
    Ok((args, experiment))
}
