//! The nodes of one launch: threads of this process, or processes that get the measurements as messages.

use crate::{
    clock::monotonic_ns,
    cores,
    driver::{NodeResult, Setting, measure},
    error::{BenchError, NodeFailure},
    measurement::Measurement,
    protocol::{Answer, Hello, Order, Report},
};
use evb_core::NodeId;
use evb_node::{
    Children, Token,
    lines::{Lines, write},
};
use evb_transport::{LayersOptions, MessageLayer, UseLayers};
use evb_transports::LayerChoice;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Longest time until all processes of a launch have come.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time that a connection may take to say who it is.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time that the processes may take beyond a measurement.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Time in which the others may say why, when a process has failed.
const FAILURE_GRACE: Duration = Duration::from_secs(1);
/// Most messages that a queue between two threads holds.
const QUEUE: usize = 512;
/// Fewest messages that it holds, also when they are long.
const SHORTEST_QUEUE: usize = 16;
/// Bytes that it holds between these limits: they stay in a cache, as those in shared memory do.
const QUEUE_BYTES: usize = 1 << 20;

/// Nodes that measure on request.
pub(crate) trait LaunchedNodes {
    /// Measures; one result for each node that takes part.
    fn measure(&mut self, measurement: &Measurement) -> Result<Vec<NodeResult>, BenchError>;
}

/// Threads of this process: new ones, and a new network, for each measurement.
pub(crate) struct Threads {
    layer: LayerChoice,
    /// Cores to which they are pinned; simulations do not depend on them.
    cores: Vec<u16>,
}

impl Threads {
    /// Prepares this number of nodes. `notice` takes messages about long steps.
    pub(crate) fn prepare(
        layer: LayerChoice,
        cores: Vec<u16>,
        nodes: impl IntoIterator<Item = u16>,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Self, BenchError> {
        let transport = layer.transport();
        for nodes in nodes {
            (transport.about().prepare)(nodes, transport.settings(), notice)?;
        }
        Ok(Self { cores: if layer.is_simulated() { Vec::new() } else { cores }, layer })
    }
}

impl LaunchedNodes for Threads {
    fn measure(&mut self, measurement: &Measurement) -> Result<Vec<NodeResult>, BenchError> {
        let setting = match self.layer.is_simulated() {
            // Nothing here may depend on the machine.
            true => Setting { epoch_ns: 0, shares_process: true, shares_cores: true },
            false => setting(measurement, true),
        };
        let queue = (QUEUE_BYTES / measurement.size.max(1)).clamp(SHORTEST_QUEUE, QUEUE);
        let options = LayersOptions { nodes: measurement.nodes, queue };
        evb_transports::open_layers(
            self.layer.transport(),
            options,
            Measuring { cores: &self.cores, measurement, setting },
        )
    }
}

/// Instructions for the threads of a measurement.
struct Measuring<'a> {
    cores: &'a [u16],
    measurement: &'a Measurement,
    setting: Setting,
}

impl UseLayers for Measuring<'_> {
    type Output = Vec<NodeResult>;
    type Error = BenchError;

    fn with<L: MessageLayer>(self, layers: Vec<L>) -> Result<Vec<NodeResult>, BenchError> {
        in_threads(layers, self.cores, self.measurement, self.setting)
    }
}

/// Measures with a thread for each layer, pinned to the cores in turn.
fn in_threads<L: MessageLayer>(
    layers: Vec<L>,
    cores: &[u16],
    measurement: &Measurement,
    setting: Setting,
) -> Result<Vec<NodeResult>, BenchError> {
    thread::scope(|scope| {
        let nodes: Vec<_> = (0..)
            .zip(layers)
            .map(|(node, mut layer)| {
                let core = core_of(cores, node);
                let run = move || {
                    pin(core)?;
                    measure(&mut layer, measurement, setting)
                };
                thread::Builder::new().spawn_scoped(scope, run).map_err(BenchError::Thread)
            })
            .collect::<Result<_, _>>()?;
        nodes.into_iter().map(|node| node.join().map_err(|_| BenchError::Panicked)?).collect()
    })
}

fn setting(measurement: &Measurement, shares_process: bool) -> Setting {
    let cores = cores::allowed().len().max(1);
    Setting { epoch_ns: monotonic_ns(), shares_process, shares_cores: usize::from(measurement.nodes) > cores }
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
    /// Makes the commands that start the nodes, each of which may start one or all of them.
    pub commands: &'a dyn Fn(SocketAddr) -> Vec<Command>,
    /// Ends the launch.
    pub stop: &'a AtomicBool,
}

/// Processes, each with a connection. Dropping them ends them.
pub(crate) struct Processes<'a> {
    stop: &'a AtomicBool,
    children: Children,
    nodes: BTreeMap<NodeId, (TcpStream, Lines)>,
}

impl<'a> Processes<'a> {
    /// Starts the processes, waits until they are there and have joined each other.
    pub(crate) fn start(launch: &Launch<'a>) -> Result<Self, BenchError> {
        let (listener, address) =
            listen(launch.listen).map_err(|source| BenchError::Listen { address: launch.listen, source })?;
        let children = start_all((launch.commands)(address))?;
        let mut processes = Self { stop: launch.stop, children, nodes: BTreeMap::new() };
        let addresses = processes.gather(launch, &listener)?;
        processes.tell(launch.nodes, &Answer::Welcome { peers: addresses })?;
        processes.hear(launch.nodes, START_TIMEOUT, |report| matches!(report, Report::Joined).then_some(()))?;
        Ok(processes)
    }

    fn gather(&mut self, launch: &Launch<'_>, listener: &TcpListener) -> Result<Vec<(NodeId, String)>, BenchError> {
        let (end, mut addresses) = (Instant::now() + START_TIMEOUT, Vec::new());
        while addresses.len() < launch.nodes.into() {
            match listener.accept() {
                // A connection without an introduction, or that is not expected, is no node.
                Ok((stream, _)) => {
                    let Ok(Some((hello, stream, lines))) = hear_out(stream) else { continue };
                    let node = NodeId(hello.node);
                    let known = hello.token.parse::<Token>().is_ok_and(|token| token == launch.token);
                    if known && hello.node < launch.nodes && !self.nodes.contains_key(&node) {
                        addresses.push((node, hello.address));
                        self.nodes.insert(node, (stream, lines));
                    }
                }
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
            self.check(end, launch.nodes)?;
        }
        Ok(addresses)
    }

    /// Fails when this number of nodes cannot come any more.
    fn check(&mut self, end: Instant, nodes: u16) -> Result<(), BenchError> {
        if let Some((_, status)) = self.children.ended() {
            return Err(BenchError::Ended(status));
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(BenchError::Stopped);
        }
        if Instant::now() < end {
            return Ok(());
        }
        Err(BenchError::Missing((0..nodes).map(NodeId).filter(|node| !self.nodes.contains_key(node)).collect()))
    }

    fn tell<T: serde::Serialize>(&mut self, nodes: u16, what: &T) -> Result<(), BenchError> {
        for (node, (stream, _)) in self.nodes.iter().take(nodes.into()) {
            write(stream, what).map_err(|source| BenchError::Control { peer: node.to_string(), source })?;
        }
        Ok(())
    }

    /// What `read` makes of the next report of each of the first nodes, or the reasons why some cannot go on.
    fn hear<T>(
        &mut self,
        nodes: u16,
        patience: Duration,
        read: impl Fn(Report) -> Option<T>,
    ) -> Result<Vec<T>, BenchError> {
        let (mut end, mut heard, mut failed) = (Instant::now() + patience, Vec::new(), Vec::new());
        for (&node, (_, lines)) in self.nodes.iter_mut().take(nodes.into()) {
            let left = end.saturating_duration_since(Instant::now());
            match lines.read_within(left) {
                Ok(Some(Report::Failed { why })) => failed.push(NodeFailure::Told(node, why)),
                Ok(Some(report)) => match read(report) {
                    Some(one) => heard.push(one),
                    None => failed.push(NodeFailure::Unexpected(node)),
                },
                Ok(None) => failed.push(NodeFailure::Gone(node)),
                Err(error) => failed.push(NodeFailure::Silent(node, error)),
            }
            if !failed.is_empty() {
                end = end.min(Instant::now() + FAILURE_GRACE);
            }
        }
        if failed.is_empty() { Ok(heard) } else { Err(BenchError::Nodes(failed)) }
    }
}

impl LaunchedNodes for Processes<'_> {
    fn measure(&mut self, measurement: &Measurement) -> Result<Vec<NodeResult>, BenchError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(BenchError::Stopped);
        }
        self.tell(
            measurement.nodes,
            &Order::Measure { measurement: measurement.clone(), setting: setting(measurement, false) },
        )?;
        let patience = ANSWER_TIMEOUT + measurement.warmup.as_duration() + measurement.duration.as_duration();
        self.hear(measurement.nodes, patience, |report| match report {
            Report::Measured(result) => Some(result),
            Report::Joined | Report::Failed { .. } => None,
        })
    }
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        for (stream, _) in self.nodes.values() {
            let _gone_already = write(stream, &Order::Exit);
        }
        self.nodes.clear();
    }
}

/// A listener that does not block, and its address.
fn listen(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Reads the hello of a new connection.
fn hear_out(stream: TcpStream) -> std::io::Result<Option<(Hello, TcpStream, Lines)>> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut lines = Lines::new(&stream)?;
    let hello = lines.read_within(HELLO_TIMEOUT)?;
    lines.trust();
    Ok(hello.map(|hello| (hello, stream, lines)))
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
