//! `evb run`: build events for real.

use crate::{
    ExperimentArgs,
    failure::Failure,
    output,
    progress::{ProgressArgs, RunProgress},
    signals::{leave_signals_to_run_control, stop_on_signals},
    terminal::{show as show_text, width},
    token::{self, TOKEN_VARIABLE},
};
use clap::Args;
use evb_core::NodeId;
use evb_experiment::{Experiment, Plan, Workload};
use evb_node::{ProcessOptions, Ranks, Start, Token};
use evb_protocol::Shaping;
use evb_record::Record;
use std::{
    net::{Ipv4Addr, SocketAddr},
    process::{self, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

#[derive(Args, Clone)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Start one process per node; they talk through shared memory, unless the experiment names another transport. One that
    /// does is run in processes anyway
    #[arg(long)]
    processes: bool,
    /// Start no nodes, but wait at this address for those started by hand with `evb node`
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "processes")]
    listen: Option<SocketAddr>,
    /// Longest wait for nodes that are started by hand, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, requires = "listen")]
    patience: u64,
    /// Print one JSON record, or one per point of a sweep, instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

pub(crate) fn run(args: &RunArgs) -> Result<bool, Failure> {
    let args = &in_processes(args)?;
    let experiment = args.experiment.load()?;
    refuse_what_is_only_simulated(&experiment)?;
    if evb_node::launched().is_some() {
        return run_as_rank(args, &experiment);
    }
    let stop = stop_on_signals("the run drains")?;
    let mut all_good = true;
    for (index, plan) in experiment.plans().iter().enumerate() {
        let record = run_plan(args, &experiment, index, plan, &stop)?;
        show(args, &record)?;
        all_good &= record.good;
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(all_good)
}

fn show(args: &RunArgs, record: &Record) -> Result<(), Failure> {
    match args.json {
        true => println!("{}", serde_json::to_string(record).map_err(Failure::new)?),
        false => show_text(&evb_report::run_summary(record, width())),
    }
    // Before the next point of a sweep: nobody would get its record.
    output::check()
}

/// Is one rank of a job that a launcher has started. Rank 0 speaks to people; it must do so before it leaves, since that ends
/// the job.
fn run_as_rank(args: &RunArgs, experiment: &Experiment) -> Result<bool, Failure> {
    let ranks = Ranks::start()?;
    let stop = match ranks.leads() {
        true => stop_on_signals("the run drains")?,
        false => leave_signals_to_run_control().map(|()| Arc::default())?,
    };
    if let Err(error) = experiment.plans().iter().try_for_each(|plan| ranks.check(plan)) {
        // All ranks know it: the job can end in order.
        if ranks.leads() {
            Failure::from(error).print();
        }
        ranks.finish();
        process::exit(2);
    }
    match build_as_rank(args, experiment, &ranks, &stop) {
        Ok(all_good) => {
            ranks.finish();
            Ok(all_good)
        }
        Err(failure) => {
            failure.print();
            // The end of this rank ends the others, which would wait for it.
            drop(ranks);
            process::exit(2);
        }
    }
}

fn build_as_rank(args: &RunArgs, experiment: &Experiment, ranks: &Ranks, stop: &AtomicBool) -> Result<bool, Failure> {
    let mut all_good = true;
    // The ranks must agree on where they stop, and only one of them hears people: so there is no early end of a sweep.
    for (index, plan) in experiment.plans().iter().enumerate() {
        let text = experiment.resolved_at(index).unwrap_or_default();
        let mut progress = RunProgress::new(plan, stop, args.progress.only_if(ranks.leads()));
        let record = ranks.run(plan, &text, token::fresh()?, &mut progress);
        drop(progress);
        if let Some(record) = record? {
            show(args, &record)?;
            all_good &= record.good;
        }
    }
    Ok(all_good)
}

/// With `--processes`, an experiment for threads is one for shared memory, and under `mpirun` it is one for MPI.
fn in_processes(args: &RunArgs) -> Result<RunArgs, Failure> {
    let mut args = args.clone();
    let is_for_threads =
        |plan: &Plan| plan.transport.about().is_one_process() && plan.transport.about().only_threads().is_none();
    let transport = match evb_node::launched() {
        Some(_) => "mpi",
        None if args.processes => "shm",
        None => return Ok(args),
    };
    if args.experiment.load()?.plans().iter().all(is_for_threads) {
        args.experiment.set.push(format!("transport.type={transport}"));
    }
    Ok(args)
}

/// Refuses what only a simulation does: other work than event building, and shaping in time slots. A run that did something
/// else than its file says would be worth nothing.
pub(crate) fn refuse_what_is_only_simulated(experiment: &Experiment) -> Result<(), Failure> {
    let any = |is_such: fn(&Plan) -> bool| experiment.plans().iter().any(is_such);
    if any(|plan| matches!(plan.workload, Workload::Traffic(_))) {
        return Err(Failure::with_hint(
            "this file describes traffic, not event building",
            "use `evb simulate`, or build events with `--set workload.type=event-building`",
        ));
    }
    if any(|plan| matches!(plan.building.shaping, Shaping::BarrelShifter { .. } | Shaping::RateDivision { .. })) {
        return Err(Failure::with_hint(
            "a real run does not know the shaping of this file: barrel shifter and rate division are only simulated",
            "use `evb simulate`, or run with `--set shaping.type=none` or `--set shaping.type=grouping`",
        ));
    }
    Ok(())
}

fn run_plan(
    args: &RunArgs,
    experiment: &Experiment,
    index: usize,
    plan: &Plan,
    stop: &AtomicBool,
) -> Result<Record, Failure> {
    let text = experiment.resolved_at(index).unwrap_or_default();
    if let Some(why) = plan.transport.about().only_threads()
        && (args.processes || args.listen.is_some())
    {
        return Err(Failure::with_hint(why, "leave out `--processes` and `--listen`"));
    }
    let mut progress = RunProgress::new(plan, stop, args.progress);
    let record = if let Some(listen) = args.listen {
        let (token, patience) = (token::shared()?, Duration::from_secs(args.patience));
        evb_node::run_processes(plan, &ProcessOptions { listen, token, start: Start::ByHand, patience }, &mut progress)
    } else if args.processes || !plan.transport.about().is_one_process() {
        run_children(args, index, plan, &mut progress)?
    } else {
        evb_node::run_threads(plan, &text, &mut progress)
    };
    drop(progress);
    Ok(record?)
}

fn run_children(
    args: &RunArgs,
    index: usize,
    plan: &Plan,
    progress: &mut RunProgress<'_>,
) -> Result<Result<Record, evb_node::RunError>, Failure> {
    let program = std::env::current_exe()?;
    let token = token::fresh()?;
    let spawn = |node, control: SocketAddr| {
        let mut command = Command::new(&program);
        node_arguments(&mut command, args, index, plan, node, control, &token);
        command
    };
    let options = ProcessOptions {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        token,
        start: Start::Spawn(&spawn),
        patience: plan.run.peer_timeout.as_duration() + Duration::from_secs(10),
    };
    Ok(evb_node::run_processes(plan, &options, progress))
}

/// The arguments of a node that this run starts: the same file with the same changes.
fn node_arguments(
    command: &mut Command,
    args: &RunArgs,
    index: usize,
    plan: &Plan,
    node: NodeId,
    control: SocketAddr,
    token: &Token,
) {
    command.arg("node").arg(&args.experiment.file);
    command.args(["--role", &plan.building.node_name(node), "--join", &control.to_string()]);
    command.args(["--point", &index.to_string(), "--spawned", "--quiet"]);
    for set in args.experiment.overrides() {
        command.args(["--set", &set]);
    }
    // In the environment, since everybody on the machine can read the arguments.
    command.env(TOKEN_VARIABLE, token.to_hex()).stdin(Stdio::null()).stdout(Stdio::null());
}
