//! The nodes of one launch: threads of this process, or processes that get the measurements as messages.

use crate::{
    clock::monotonic_ns,
    cores,
    driver::{NodeResult, Setting, measure},
    measurement::Measurement,
    protocol::{Answer, Hello, Order, Report},
};
use evb_core::NodeId;
use evb_node::{
    Children, Token,
    limits::MORE_THREADS,
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
    fn measure(&mut self, measurement: &Measurement) -> Result<Vec<NodeResult>, String>;
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
    ) -> Result<Self, String> {
        let transport = layer.transport();
        for nodes in nodes {
            (transport.about().prepare)(nodes, transport.settings(), notice)?;
        }
        Ok(Self { cores: if layer.is_simulated() { Vec::new() } else { cores }, layer })
    }
}

impl LaunchedNodes for Threads {
    fn measure(&mut self, measurement: &Measurement) -> Result<Vec<NodeResult>, String> {
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
    type Error = String;

    fn with<L: MessageLayer>(self, layers: Vec<L>) -> Result<Vec<NodeResult>, String> {
        in_threads(layers, self.cores, self.measurement, self.setting)
    }
}

/// Measures with a thread for each layer, pinned to the cores in turn.
fn in_threads<L: MessageLayer>(
    layers: Vec<L>,
    cores: &[u16],
    measurement: &Measurement,
    setting: Setting,
) -> Result<Vec<NodeResult>, String> {
    thread::scope(|scope| {
        let nodes: Vec<_> = (0..)
            .zip(layers)
            .map(|(node, mut layer)| {
                let core = core_of(cores, node);
                let run = move || {
                    core.map(cores::pin).transpose().map_err(|error| format!("cannot pin: {error}"))?;
                    measure(&mut layer, measurement, setting)
                };
                thread::Builder::new()
                    .spawn_scoped(scope, run)
                    .map_err(|error| format!("cannot start a thread: {error}; {MORE_THREADS}"))
            })
            .collect::<Result<_, _>>()?;
        nodes.into_iter().map(|node| node.join().map_err(|_| "a node panicked".to_owned())?).collect()
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
    pub(crate) fn start(launch: &Launch<'a>) -> Result<Self, String> {
        let listener = TcpListener::bind(launch.listen)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| format!("cannot listen on {}: {error}", launch.listen))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let children = start_all((launch.commands)(address))?;
        let mut processes = Self { stop: launch.stop, children, nodes: BTreeMap::new() };
        let addresses = processes.gather(launch, &listener)?;
        processes.tell(launch.nodes, &Answer::Welcome { peers: addresses })?;
        processes.hear(launch.nodes, START_TIMEOUT)?;
        Ok(processes)
    }

    fn gather(&mut self, launch: &Launch<'_>, listener: &TcpListener) -> Result<Vec<(NodeId, String)>, String> {
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
    fn check(&mut self, end: Instant, nodes: u16) -> Result<(), String> {
        if let Some((_, status)) = self.children.ended() {
            return Err(format!("a process of the launch ended: {status}"));
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err("stopped".into());
        }
        if Instant::now() < end {
            return Ok(());
        }
        let missing = (0..nodes).map(NodeId).filter(|node| !self.nodes.contains_key(node));
        Err(format!("nothing comes from {}", missing.map(|node| node.to_string()).collect::<Vec<_>>().join(", ")))
    }

    fn tell<T: serde::Serialize>(&mut self, nodes: u16, what: &T) -> Result<(), String> {
        for (node, (stream, _)) in self.nodes.iter().take(nodes.into()) {
            write(stream, what).map_err(|error| format!("{node}: {error}"))?;
        }
        Ok(())
    }

    /// One notice from each of the first nodes, or the reasons why some cannot go on. If one fails, others fail after
    /// it; the first reason of all is among them.
    fn hear(&mut self, nodes: u16, patience: Duration) -> Result<Vec<Report>, String> {
        let (mut end, mut heard, mut failed) = (Instant::now() + patience, Vec::new(), Vec::new());
        for (node, (_, lines)) in self.nodes.iter_mut().take(nodes.into()) {
            let left = end.saturating_duration_since(Instant::now());
            match lines.read_within(left) {
                Ok(Some(Report::Failed { why })) => failed.push(format!("{node}: {why}")),
                Ok(Some(notice)) => heard.push(notice),
                Ok(None) => failed.push(format!("{node} is gone")),
                Err(error) => failed.push(format!("{node} does not answer: {error}")),
            }
            if !failed.is_empty() {
                end = end.min(Instant::now() + FAILURE_GRACE);
            }
        }
        if failed.is_empty() { Ok(heard) } else { Err(failed.join("; ")) }
    }
}

impl LaunchedNodes for Processes<'_> {
    fn measure(&mut self, measurement: &Measurement) -> Result<Vec<NodeResult>, String> {
        if self.stop.load(Ordering::Relaxed) {
            return Err("stopped".into());
        }
        self.tell(
            measurement.nodes,
            &Order::Measure { measurement: measurement.clone(), setting: setting(measurement, false) },
        )?;
        let patience = ANSWER_TIMEOUT + measurement.warmup.as_duration() + measurement.duration.as_duration();
        let results = self.hear(measurement.nodes, patience)?.into_iter().map(|notice| match notice {
            Report::Measured(result) => Ok(result),
            Report::Joined | Report::Failed { .. } => Err("a node tells of something else than its measurement".into()),
        });
        results.collect()
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

/// Reads the hello of a new connection.
fn hear_out(stream: TcpStream) -> std::io::Result<Option<(Hello, TcpStream, Lines)>> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut lines = Lines::new(&stream)?;
    let hello = lines.read_within(HELLO_TIMEOUT)?;
    lines.trust();
    Ok(hello.map(|hello| (hello, stream, lines)))
}

fn start_all(commands: Vec<Command>) -> Result<Children, String> {
    let mut children = Children::default();
    for mut command in commands {
        children
            .start(&mut command)
            .map_err(|error| format!("cannot start {}: {error}", command.get_program().to_string_lossy()))?;
    }
    Ok(children)
}

/// Address at which the processes of one machine reach this one.
pub const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
