//! The nodes of one launch: threads of this process, or processes that get the measurements as messages.

use crate::{
    clock::monotonic_ns,
    cores,
    counters::Counters,
    driver::{NodeResult, Setting, measure},
    error::{BenchError, NodeFailure},
    protocol::{Hello, Order, Report},
    work::Work,
};
use evb_core::{NodeId, Span};
use evb_node::{
    Children, Token,
    lines::{Lines, Writer, welcome},
};
use evb_transport::{LayersOptions, MessageLayer, UseLayers};
use evb_transport_registry::LayerChoice;
use evb_transport_secure::{AcceptResult, Acceptor, Purpose};
use std::{
    collections::BTreeMap,
    io::{self, ErrorKind},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Longest time until all processes of a launch have come, by default.
pub const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two checks for new processes.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(10);
/// Longest time that the processes may take beyond a measurement.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two checks of the request to stop.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Time for the others to report their reasons after a process has failed.
const FAILURE_GRACE: Duration = Duration::from_secs(1);
/// Most messages that a queue between two threads holds.
const QUEUE: usize = 512;
/// Fewest messages that it holds, also when they are long.
const SHORTEST_QUEUE: usize = 16;
/// Bytes that it holds between these limits: they stay in a cache, as those in shared memory do.
const QUEUE_BYTES: usize = 1 << 20;

/// A message layer, and how its nodes are started.
pub struct NodeLauncher<'a> {
    /// The layer.
    pub layer: LayerChoice,
    /// The cores that nodes are pinned to in turn; nodes are not pinned if the list is empty.
    pub cores: Vec<u16>,
    /// Ends the work of the nodes.
    pub stop: &'a AtomicBool,
    /// Starts the processes of a launch; `None` if the nodes are threads.
    pub launch: Option<&'a dyn Fn() -> Launch<'a>>,
}

impl<'a> NodeLauncher<'a> {
    /// Carries out a work with nodes that are started for it; one result for each node. `notice` takes messages about long
    /// steps.
    ///
    /// # Errors
    /// If the layer does not work here, or a node was lost.
    pub fn carry_out(&self, work: &Work, notice: &mut dyn FnMut(&str)) -> Result<Vec<NodeResult>, BenchError> {
        self.start([work.nodes()], notice)?.measure(work)
    }

    /// Starts nodes for works of these numbers of nodes.
    pub(crate) fn start(
        &self,
        nodes: impl IntoIterator<Item = u16>,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Box<dyn LaunchedNodes + 'a>, BenchError> {
        if !self.layer.is_one_process() {
            let launch = self.launch.ok_or_else(|| BenchError::NoLaunch(self.layer.to_string()))?;
            return Ok(Box::new(Processes::start(&launch(), self.stop)?));
        }
        let transport = self.layer.transport();
        for nodes in nodes {
            (transport.info().prepare)(nodes, transport.settings(), notice)?;
        }
        let cores = if self.layer.is_simulated() { Vec::new() } else { self.cores.clone() };
        Ok(Box::new(Threads { layer: self.layer.clone(), cores, stop: self.stop }))
    }
}

/// Nodes that work on request.
pub(crate) trait LaunchedNodes {
    /// Carries out a work; one result for each node that takes part, in its order.
    fn measure(&mut self, work: &Work) -> Result<Vec<NodeResult>, BenchError>;

    /// The counters of the network interfaces that each node sees.
    fn counters(&mut self) -> Result<Vec<Counters>, BenchError>;
}

/// Threads of this process: new ones, and a new network, for each work.
struct Threads<'a> {
    layer: LayerChoice,
    /// Cores to which they are pinned; simulations do not depend on them.
    cores: Vec<u16>,
    stop: &'a AtomicBool,
}

impl LaunchedNodes for Threads<'_> {
    fn measure(&mut self, work: &Work) -> Result<Vec<NodeResult>, BenchError> {
        let setting = match self.layer.is_simulated() {
            // Nothing here may depend on the machine.
            true => Setting { epoch_ns: 0, shares_process: true, shares_cores: true },
            false => setting(work, true),
        };
        let queue = (QUEUE_BYTES / work.typical()?.max(1)).clamp(SHORTEST_QUEUE, QUEUE);
        let options = LayersOptions { nodes: work.nodes(), queue };
        let working = Working { cores: &self.cores, work, setting, stop: self.stop };
        evb_transport_registry::open_layers(self.layer.transport(), options, working)
    }

    fn counters(&mut self) -> Result<Vec<Counters>, BenchError> {
        Ok(Vec::new())
    }
}

/// Instructions for the threads of a work.
#[derive(Clone, Copy)]
struct Working<'a> {
    cores: &'a [u16],
    work: &'a Work,
    setting: Setting,
    stop: &'a AtomicBool,
}

impl UseLayers for Working<'_> {
    type Output = Vec<NodeResult>;
    type Error = BenchError;

    fn with<L: MessageLayer>(self, layers: Vec<L>) -> Result<Vec<NodeResult>, BenchError> {
        in_threads(layers, self)
    }
}

/// Works with a thread for each layer, pinned to the cores in turn.
fn in_threads<L: MessageLayer>(layers: Vec<L>, working: Working<'_>) -> Result<Vec<NodeResult>, BenchError> {
    let Working { cores, work, setting, stop } = working;
    let members = work.members();
    thread::scope(|scope| {
        let nodes: Vec<_> = (0..)
            .zip(layers)
            .map(|(node, mut layer): (usize, L)| {
                let core = core_of(cores, members[node].0);
                let run = move || {
                    pin(core)?;
                    measure(&mut layer, work, setting, stop)
                };
                thread::Builder::new().spawn_scoped(scope, run).map_err(BenchError::Thread)
            })
            .collect::<Result<_, _>>()?;
        nodes.into_iter().map(|node| node.join().map_err(|_| BenchError::Panicked)?).collect()
    })
}

fn setting(work: &Work, shares_process: bool) -> Setting {
    let cores = cores::allowed().len().max(1);
    Setting { epoch_ns: monotonic_ns(), shares_process, shares_cores: usize::from(work.nodes()) > cores }
}

/// The core of a node, when nodes are pinned: they are dealt out in turn.
pub(crate) fn core_of(cores: &[u16], node: u16) -> Option<u16> {
    (!cores.is_empty()).then(|| cores[usize::from(node) % cores.len()])
}

/// Binds this thread to a core, if there is one for it.
pub(crate) fn pin(core: Option<u16>) -> Result<(), BenchError> {
    let Some(core) = core else { return Ok(()) };
    cores::pin(core).map_err(|source| BenchError::Pin { core, source: source.into() })
}

/// Options of a launch of processes.
pub struct Launch<'a> {
    /// Number of processes, one for each node.
    pub nodes: u16,
    /// Address at which this process listens for them; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The secret of the launch.
    pub token: Token,
    /// Longest wait for all processes, and then until they have joined each other.
    pub patience: Duration,
    /// Makes the commands that start the nodes, each of which may start one or all of them.
    pub commands: &'a dyn Fn(SocketAddr) -> io::Result<Vec<Command>>,
}

/// Processes, each with a connection. Dropping them ends them.
struct Processes<'a> {
    stop: &'a AtomicBool,
    children: Children,
    nodes: BTreeMap<NodeId, (Writer, Lines)>,
}

impl<'a> Processes<'a> {
    /// Starts the processes, waits until they are there and have joined each other.
    fn start(launch: &Launch<'_>, stop: &'a AtomicBool) -> Result<Self, BenchError> {
        let (acceptor, address) =
            listen(launch).map_err(|source| BenchError::Listen { address: launch.listen, source })?;
        let children = start_all((launch.commands)(address).map_err(BenchError::Commands)?)?;
        let mut processes = Self { stop, children, nodes: BTreeMap::new() };
        let addresses = processes.gather(launch, acceptor)?;
        let all: Vec<_> = (0..launch.nodes).map(NodeId).collect();
        processes.send(&all, &Order::Join { peers: addresses })?;
        processes.collect(&all, Some(launch.patience), |report| matches!(report, Report::Joined).then_some(()))?;
        Ok(processes)
    }

    /// The addresses of all nodes. Who comes later, or when another has failed, is refused.
    fn gather(&mut self, launch: &Launch<'_>, mut acceptor: Acceptor) -> Result<Vec<(NodeId, String)>, BenchError> {
        let (end, mut addresses) = (Instant::now() + launch.patience, Vec::new());
        while addresses.len() < launch.nodes.into() {
            // A peer without the token, or one that is not expected, is not a node.
            for result in acceptor.look().unwrap_or_default() {
                let AcceptResult::Arrived(arrived) = result else { continue };
                let Ok((Hello { node, address }, writer, lines)) = welcome(*arrived) else { continue };
                if node < launch.nodes && !self.nodes.contains_key(&NodeId(node)) {
                    addresses.push((NodeId(node), address));
                    self.nodes.insert(NodeId(node), (writer, lines));
                }
            }
            acceptor.wait(ACCEPT_INTERVAL);
            self.check(end, launch.nodes)?;
        }
        Ok(addresses)
    }

    /// Fails when this number of nodes cannot come any more.
    fn check(&mut self, end: Instant, nodes: u16) -> Result<(), BenchError> {
        if let Some((place, status)) = self.children.ended() {
            let node = (self.children.count() == usize::from(nodes)).then_some(NodeId(place as u16));
            return Err(BenchError::Ended { node, status });
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(BenchError::Stopped);
        }
        if Instant::now() < end {
            return Ok(());
        }
        Err(BenchError::Missing((0..nodes).map(NodeId).filter(|node| !self.nodes.contains_key(node)).collect()))
    }

    fn send<T: serde::Serialize>(&mut self, nodes: &[NodeId], what: &T) -> Result<(), BenchError> {
        for node in nodes {
            let Some((writer, _)) = self.nodes.get_mut(node) else { continue };
            writer.write(what).map_err(|source| BenchError::Control { peer: node.to_string(), source })?;
        }
        Ok(())
    }

    /// What `read` makes of the next report of each of these nodes, or the reasons why some have failed. Without
    /// patience the nodes may take any time, unless they are to stop.
    fn collect<T>(
        &mut self,
        nodes: &[NodeId],
        patience: Option<Duration>,
        read: impl Fn(Report) -> Option<T>,
    ) -> Result<Vec<T>, BenchError> {
        let mut end = patience.map(|patience| Instant::now() + patience);
        let (mut collected, mut failed, mut stopped) = (Vec::new(), Vec::new(), false);
        for &node in nodes {
            let report = loop {
                if !stopped && self.stop.load(Ordering::Relaxed) {
                    stopped = true;
                    self.send(nodes, &Order::Stop)?;
                    end = Some(Instant::now() + ANSWER_TIMEOUT);
                }
                let left = end.map_or(STOP_CHECK_INTERVAL, |end| end.saturating_duration_since(Instant::now()));
                let Some((_, lines)) = self.nodes.get_mut(&node) else { break Ok(None) };
                match lines.read_within(left.min(STOP_CHECK_INTERVAL)) {
                    Err(error) if error.kind() == ErrorKind::TimedOut && !left.is_zero() => {}
                    report => break report,
                }
            };
            match report {
                Ok(Some(Report::Failed { why })) => failed.push(NodeFailure::Reported(node, why)),
                Ok(Some(report)) => match read(report) {
                    Some(one) => collected.push(one),
                    None => failed.push(NodeFailure::Unexpected(node)),
                },
                Ok(None) => failed.push(NodeFailure::Gone(node)),
                Err(error) => failed.push(NodeFailure::Silent(node, error)),
            }
            if !failed.is_empty() {
                let grace = Instant::now() + FAILURE_GRACE;
                end = Some(end.map_or(grace, |end| end.min(grace)));
            }
        }
        if failed.is_empty() { Ok(collected) } else { Err(BenchError::Nodes(failed)) }
    }
}

impl LaunchedNodes for Processes<'_> {
    fn measure(&mut self, work: &Work) -> Result<Vec<NodeResult>, BenchError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(BenchError::Stopped);
        }
        let order = Order::Measure { work: Box::new(work.clone()), setting: setting(work, false) };
        let members = work.members();
        self.send(&members, &order)?;
        let warmup = work.plan.run.warmup.unwrap_or(Span::ZERO).as_duration();
        let patience = work.plan.trigger.duration.map(|duration| ANSWER_TIMEOUT + warmup + duration.as_duration());
        self.collect(&members, patience, |report| match report {
            Report::Measured(result) => Some(*result),
            Report::Joined | Report::Counted(_) | Report::Failed { .. } => None,
        })
    }

    fn counters(&mut self) -> Result<Vec<Counters>, BenchError> {
        let all: Vec<_> = self.nodes.keys().copied().collect();
        self.send(&all, &Order::Count)?;
        self.collect(&all, Some(ANSWER_TIMEOUT), |report| match report {
            Report::Counted(counters) => Some(counters),
            Report::Joined | Report::Measured(_) | Report::Failed { .. } => None,
        })
    }
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        for (writer, _) in self.nodes.values_mut() {
            let _gone_already = writer.write(&Order::Exit);
        }
        self.nodes.clear();
    }
}

/// The acceptor for the processes of a launch, and its address.
fn listen(launch: &Launch<'_>) -> io::Result<(Acceptor, SocketAddr)> {
    let listener = TcpListener::bind(launch.listen)?;
    let address = listener.local_addr()?;
    Ok((Acceptor::new(listener, launch.token, Purpose::Launch)?, address))
}

fn start_all(commands: Vec<Command>) -> Result<Children, BenchError> {
    let mut children = Children::default();
    for mut command in commands {
        children.start(&mut command).map_err(|source| BenchError::Start {
            program: command.get_program().to_string_lossy().into_owned(),
            source,
        })?;
    }
    Ok(children)
}

/// Address at which the processes of one machine reach this one.
pub const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
