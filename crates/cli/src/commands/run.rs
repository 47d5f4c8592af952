//! `evb run`: build events, or carry out other traffic, for real.

mod traffic;

use crate::{
    ExperimentArgs,
    console::Console,
    failure::Failure,
    hosts::{HostArgs, Hosts},
    log, output,
    progress::{ProgressArgs, RunProgress},
    signals::Signals,
    terminal::{show as show_text, width},
    token::{self, TOKEN_VARIABLE},
};
use clap::Args;
use evb::{
    Experiment, NodeId, OpenSession, Plan, ProcessOptions, Ranks, Record, Session, Start, Token, Workload,
    check_runnable, launched, run_stages,
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::{self, Command, Stdio},
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
    /// Start no nodes, but wait at this address for those that are started with `evb node`. With --hosts: where this machine
    /// listens for the nodes that it starts
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "processes")]
    listen: Option<SocketAddr>,
    /// Longest wait for nodes that are started with `evb node`, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, requires = "listen")]
    patience: u64,
    #[command(flatten)]
    hosts: HostArgs,
    /// Build events this often, one run after the other with the same nodes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Take commands from standard input, one a line: configure, start, pause, resume, stop, abort, quit
    #[arg(long, conflicts_with = "runs")]
    operator: bool,
    /// Print one JSON record for each run instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

pub(crate) fn run(args: &RunArgs) -> Result<bool, Failure> {
    let args = &in_processes(args)?;
    let experiment = args.experiment.load()?;
    check_runnable(experiment.plans())?;
    if args.operator && experiment.plans().len() > 1 {
        return Err(Failure::with_hint(
            "an operator commands one experiment, and this file is a sweep of several",
            "choose one point: remove `[sweep]` and set its keys with `--set`",
        ));
    }
    refuse_for_traffic(args, &experiment)?;
    if launched().is_some() {
        return run_as_rank(args, &experiment);
    }
    let signals = Signals::listen()?;
    let all_in_one = |plan: &Plan| plan.transport.about().is_one_process();
    if args.processes || args.listen.is_some() || args.hosts.any() || !event_builders(&experiment).all(all_in_one) {
        refuse_threads_in_processes(&experiment)?;
        return run_processes(args, &experiment, &signals);
    }
    build(args, &experiment, &|| Ok(Session::threads()), &signals)
}

/// Refuses what traffic without an event manager cannot do.
fn refuse_for_traffic(args: &RunArgs, experiment: &Experiment) -> Result<(), Failure> {
    if experiment.plans().iter().all(|plan| plan.workload == Workload::EventBuilding) {
        return Ok(());
    }
    let wrong = [
        (args.operator, "no operator commands traffic without an event manager", "leave out `--operator`"),
        (
            args.listen.is_some() && !args.hosts.any(),
            "traffic starts its own nodes",
            "leave out `--listen`, or name their machines with `--hosts`",
        ),
        (launched().is_some(), "traffic over MPI starts its own ranks", "start `evb run` without a launcher"),
    ];
    let found = wrong.into_iter().find(|(is_so, ..)| *is_so);
    found.map_or(Ok(()), |(_, message, hint)| Err(Failure::with_hint(message, hint)))
}

/// The event builders of all points of the sweep.
fn event_builders(experiment: &Experiment) -> impl Iterator<Item = &Plan> {
    experiment.plans().iter().flat_map(Plan::event_builders)
}

/// Builds the events of all points of the sweep in sessions that `open` opens.
fn build(args: &RunArgs, experiment: &Experiment, open: &OpenSession<'_>, signals: &Signals) -> Result<bool, Failure> {
    let is_plain = |plan: &Plan| plan.stages.is_none() && plan.workload == Workload::EventBuilding;
    if experiment.plans().iter().all(is_plain) {
        return build_in(args, experiment, &mut open()?, signals);
    }
    let has_stages = experiment.plans().iter().any(|plan| plan.stages.is_some());
    if has_stages && (args.operator || args.listen.is_some() || args.hosts.any()) {
        return Err(Failure::with_hint(
            "two stages run by themselves, and on this machine",
            "leave out `--operator`, `--listen` and `--hosts`",
        ));
    }
    build_all(args, experiment, signals, &mut |plan, text, progress| match plan.stages {
        Some(_) => Ok(run_stages(plan, text, open, progress)?),
        None if plan.workload == Workload::EventBuilding => Ok(open()?.run(plan, text, progress)?),
        None => traffic::run(plan, args.hosts.hosts(args.listen)?.as_ref(), signals, args.progress),
    })
}

/// Builds the events of all points of the sweep in one session, as often as requested, or by the commands of the operator.
fn build_in(
    args: &RunArgs,
    experiment: &Experiment,
    session: &mut Session<'_>,
    signals: &Signals,
) -> Result<bool, Failure> {
    if !args.operator {
        return build_all(
            args,
            experiment,
            signals,
            &mut |plan, text, progress| Ok(session.run(plan, text, progress)?),
        );
    }
    let mut all_good = true;
    for (index, plan) in experiment.plans().iter().enumerate() {
        let text = experiment.resolved_at(index).unwrap_or_default();
        let mut console = Console::new(plan, signals, args.progress)?;
        session.operate(plan, &text, &mut console, |record| {
            all_good &= record.good;
            show(args, &record)
        })?;
    }
    Ok(all_good)
}

/// Runs a plan, described by a text, and shows its progress.
type RunPlan<'a> = dyn FnMut(&Plan, &str, &mut RunProgress<'_>) -> Result<Record, Failure> + 'a;

/// Builds the events of all points of the sweep, as often as requested.
fn build_all(
    args: &RunArgs,
    experiment: &Experiment,
    signals: &Signals,
    run: &mut RunPlan<'_>,
) -> Result<bool, Failure> {
    let mut all_good = true;
    for (index, plan) in experiment.plans().iter().enumerate() {
        let text = experiment.resolved_at(index).unwrap_or_default();
        for _ in 0..args.runs {
            let mut progress = RunProgress::new(plan, signals, args.progress);
            let record = run(plan, &text, &mut progress);
            drop(progress);
            let record = record?;
            show(args, &record)?;
            all_good &= record.good;
            if signals.any() {
                return Ok(all_good);
            }
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

/// Runs one rank of a job that a launcher has started. Rank 0 speaks to people, and must do so before it leaves: that
/// ends the job.
fn run_as_rank(args: &RunArgs, experiment: &Experiment) -> Result<bool, Failure> {
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
        false => ranks.follow().map(|()| true).map_err(Failure::from),
    };
    match result {
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

/// The arguments for nodes in processes: an experiment for threads becomes one for MPI under `mpirun`, or one for
/// shared memory with `--processes`.
fn in_processes(args: &RunArgs) -> Result<RunArgs, Failure> {
    let mut args = args.clone();
    let is_for_threads =
        |plan: &Plan| plan.transport.about().is_one_process() && plan.transport.about().only_threads().is_none();
    let transport = match launched() {
        Some(_) => "mpi",
        None if args.hosts.any() => "tcp",
        None if args.processes => "shm",
        None => return Ok(args),
    };
    if args.experiment.load()?.plans().iter().all(is_for_threads) {
        args.experiment.set.push(format!("transport.type={transport}"));
    }
    Ok(args)
}

fn refuse_local_on_hosts(experiment: &Experiment) -> Result<(), Failure> {
    let is_local = |plan: &&Plan| plan.transport.about().is_local;
    match event_builders(experiment).find(is_local).map(|plan| plan.transport.about().name) {
        Some(name) => Err(Failure::with_hint(
            format!("{name} has no --hosts: it joins processes of one machine"),
            "use a transport between machines, such as `--set transport.type=tcp`",
        )),
        None => Ok(()),
    }
}

fn refuse_threads_in_processes(experiment: &Experiment) -> Result<(), Failure> {
    match event_builders(experiment).find_map(|plan| plan.transport.about().only_threads()) {
        Some(why) => Err(Failure::with_hint(why, "leave out `--processes` and `--listen`")),
        None => Ok(()),
    }
}

/// Builds events in processes that this one starts or that join it.
fn run_processes(args: &RunArgs, experiment: &Experiment, signals: &Signals) -> Result<bool, Failure> {
    let hosts = args.hosts.hosts(args.listen)?;
    if hosts.is_some() {
        refuse_local_on_hosts(experiment)?;
    }
    let program = std::env::current_exe()?;
    let is_shared = (args.listen.is_some() && hosts.is_none()) || event_builders(experiment).any(takes_filter_units);
    let token = if is_shared { token::shared()? } else { token::fresh()? };
    let spawn = |role: &str, control: SocketAddr| match &hosts {
        Some(hosts) => node_on_host(hosts, number_of(role, experiment), role, control, &token),
        None => Ok(node_command(&program, role, control, &token)),
    };
    let timeouts = experiment.plans().iter().map(|plan| plan.run.peer_timeout.as_duration());
    let by_hand = args.listen.is_some() && hosts.is_none();
    let patience = match by_hand {
        true => Duration::from_secs(args.patience),
        false => timeouts.max().unwrap_or_default() + Duration::from_secs(10),
    };
    let local = || args.listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
    let listen = hosts.as_ref().map_or_else(local, |hosts| hosts.listen);
    let open = || {
        let start = if by_hand { Start::ByHand } else { Start::Spawn(&spawn) };
        Session::processes(ProcessOptions { listen, token, start, patience })
    };
    build(args, experiment, &open, signals)
}

/// True if filter units of other machines join builders of this plan: they have the token of people.
fn takes_filter_units(plan: &Plan) -> bool {
    plan.filter.units.as_ref().is_some_and(|units| units.listen.is_some())
}

/// The number of a node of this experiment.
fn number_of(role: &str, experiment: &Experiment) -> NodeId {
    let number = |plan: &Plan| (0..plan.building.nodes()).map(NodeId).find(|&id| plan.building.node_name(id) == role);
    experiment.plans().iter().find_map(number).unwrap_or(NodeId(0))
}

/// The command of a node on another machine, which gets the token by its standard input.
fn node_on_host(
    hosts: &Hosts,
    node: NodeId,
    role: &str,
    control: SocketAddr,
    token: &Token,
) -> std::io::Result<Command> {
    let mut command = hosts.start(node, &format!("{}\n", token.to_hex()))?;
    command.args(["node", "--role", role, "--join", &control.to_string(), "--spawned", "--quiet", "--told-by-stdin"]);
    command.stdout(Stdio::null());
    Ok(command)
}

/// The command of a node that this run starts. The plan comes to it by run control.
fn node_command(program: &Path, role: &str, control: SocketAddr, token: &Token) -> Command {
    let mut command = Command::new(program);
    command.args(["node", "--role", role, "--join", &control.to_string(), "--spawned", "--quiet"]);
    log::pass_on(&mut command);
    // In the environment, since everybody on the machine can read the arguments.
    command.env(TOKEN_VARIABLE, token.to_hex()).stdin(Stdio::null()).stdout(Stdio::null());
    command
}
