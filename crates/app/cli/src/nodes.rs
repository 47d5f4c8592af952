//! Where the nodes of an event builder are: in threads, in processes of this machine, on machines of a list, or wherever
//! people start them.

use crate::{
    failure::Failure,
    hosts::{HostArgs, Hosts, address},
    log,
    token::{self, TOKEN_VARIABLE},
};
use clap::{ArgGroup, Args};
use evb::{NodeId, OpenSession, Plan, ProcessOptions, Session, Start, Token, launched};
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// Longest wait for nodes that people start, by default.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Args, Clone, Default)]
#[command(group(ArgGroup::new("remote").args(["listen", "hosts"]).multiple(true)))]
pub(crate) struct NodeArgs {
    /// Start one process per node; they talk through shared memory, unless the experiment names another transport. One that
    /// does is run in processes anyway
    #[arg(long)]
    processes: bool,
    /// Start no nodes, but wait at this address for those that are started with `evb node`. With --hosts: where this machine
    /// listens for the nodes that it starts
    #[arg(long, value_name = "HOST:PORT", value_parser = address, conflicts_with = "processes")]
    listen: Option<SocketAddr>,
    /// Longest wait for nodes on other machines, in seconds: by default 300 for those that are started with `evb node`, and
    /// 10 more than `run.peer_timeout` for those of --hosts, or 30 if they carry traffic without an event manager
    #[arg(long, value_name = "SECONDS", requires = "remote")]
    patience: Option<u64>,
    #[command(flatten)]
    hosts: HostArgs,
}

/// What opens sessions is lent to this work.
type Work<'a, T> = dyn FnMut(&OpenSession<'_>) -> Result<T, Failure> + 'a;

impl NodeArgs {
    /// True if people start the nodes.
    pub(crate) fn by_hand(&self) -> bool {
        self.listen.is_some() && !self.hosts.any()
    }

    /// True if nodes are started on other machines, or join from there.
    pub(crate) fn is_remote(&self) -> bool {
        self.listen.is_some() || self.hosts.any()
    }

    /// The machines of the nodes; `None` if they are not listed.
    pub(crate) fn machines(&self) -> Result<Option<Hosts>, Failure> {
        self.hosts.hosts(self.listen)
    }

    /// The longest wait for nodes on other machines; `None` if it is the default.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.patience.map(Duration::from_secs)
    }

    /// True if these plans run in processes.
    pub(crate) fn in_processes(&self, plans: &[Plan]) -> bool {
        self.processes || self.is_remote() || !event_builders(plans).all(|plan| plan.transport.info().is_one_process())
    }

    /// The key to set for nodes in processes: an experiment for threads becomes one for MPI under `mpirun`, for TCP with
    /// `--hosts`, and for shared memory with `--processes`.
    pub(crate) fn transport(&self, plans: &[Plan]) -> Option<String> {
        let is_for_threads =
            |plan: &Plan| plan.transport.info().is_one_process() && plan.transport.info().only_threads().is_none();
        let transport = match launched() {
            Some(_) => "mpi",
            None if self.hosts.any() => "tcp",
            None if self.processes => "shm",
            None => return None,
        };
        plans.iter().all(is_for_threads).then(|| format!("transport.type={transport}"))
    }

    /// Does work with sessions that have their nodes where these arguments say.
    pub(crate) fn with_sessions<T>(&self, plans: &[Plan], work: &mut Work<'_, T>) -> Result<T, Failure> {
        if !self.in_processes(plans) {
            return work(&|| Ok(Session::threads()));
        }
        refuse_threads_in_processes(plans)?;
        let hosts = self.machines()?;
        if hosts.is_some() {
            refuse_local_on_hosts(plans)?;
        }
        let program = std::env::current_exe()?;
        let is_shared = self.by_hand() || event_builders(plans).any(takes_filter_units);
        let token = if is_shared { token::shared()? } else { token::fresh()? };
        let spawn = |role: &str, control: SocketAddr| match &hosts {
            Some(hosts) => node_on_host(hosts, number_of(role, plans), role, control, &token),
            None => Ok(node_command(&program, role, control, &token)),
        };
        let timeouts = plans.iter().map(|plan| plan.run.peer_timeout.as_duration());
        let usual = match self.by_hand() {
            true => PATIENCE,
            false => timeouts.max().unwrap_or_default() + Duration::from_secs(10),
        };
        let patience = self.patience().unwrap_or(usual);
        let local = || self.listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
        let listen = hosts.as_ref().map_or_else(local, |hosts| hosts.listen);
        work(&|| {
            let start = if self.by_hand() { Start::ByHand } else { Start::Spawn(&spawn) };
            Session::processes(ProcessOptions { listen, token, start, patience })
        })
    }
}

/// The event builders of all points of a sweep.
fn event_builders(plans: &[Plan]) -> impl Iterator<Item = &Plan> {
    plans.iter().flat_map(Plan::event_builders)
}

fn refuse_local_on_hosts(plans: &[Plan]) -> Result<(), Failure> {
    let is_local = |plan: &&Plan| plan.transport.info().is_local;
    match event_builders(plans).find(is_local).map(|plan| plan.transport.info().name) {
        Some(name) => Err(Failure::with_hint(
            format!("{name} has no --hosts: it joins processes of one machine"),
            "use a transport between machines, such as `--set transport.type=tcp`",
        )),
        None => Ok(()),
    }
}

/// Refuses plans that run in threads only, for nodes in processes.
pub(crate) fn refuse_threads_in_processes(plans: &[Plan]) -> Result<(), Failure> {
    match event_builders(plans).find_map(|plan| plan.transport.info().only_threads()) {
        Some(why) => Err(Failure::with_hint(why, "leave out `--processes` and `--listen`")),
        None => Ok(()),
    }
}

/// True if filter units of other machines join builders of this plan: they have the token of people.
fn takes_filter_units(plan: &Plan) -> bool {
    plan.filter.units.as_ref().is_some_and(|units| units.listen.is_some())
}

/// The number of a node of these plans.
fn number_of(role: &str, plans: &[Plan]) -> NodeId {
    let number = |plan: &Plan| (0..plan.building.nodes()).map(NodeId).find(|&id| plan.building.node_name(id) == role);
    plans.iter().find_map(number).unwrap_or(NodeId(0))
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
    command.args(["node", "--role", role, "--join", &control.to_string(), "--spawned", "--quiet", "--from-stdin"]);
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
