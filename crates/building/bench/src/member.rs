//! A process of a launch: one node, which executes measurements on command.

use crate::{
    counters,
    driver::{NodeResult, Setting, measure},
    error::BenchError,
    launch::{core_of, pin},
    protocol::{Hello, Order, Report},
    renumbered::Renumbered,
    wire::LONGEST_BYTES,
    work::Work,
};
use evb_core::NodeId;
use evb_node::{
    Token,
    lines::{self, Lines},
};
use evb_transport::{Connect, LayerOptions, MessageLayer, UseLayer};
use evb_transport_registry::LayerChoice;
use evb_transport_secure::{DialError, Purpose};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

/// Longest wait until the launch has proved itself.
const PROOF_TIMEOUT: Duration = Duration::from_secs(30);
/// Time after a measurement in which flushed messages may still be under way, so that the layer is polled often.
const BUSY_TIME: Duration = Duration::from_millis(200);
const BUSY_PAUSE: Duration = Duration::from_micros(500);
/// Interval of polls of the layer after that time.
const IDLE_PAUSE: Duration = Duration::from_millis(100);

/// Options of a process of a launch.
#[derive(Clone, Debug)]
pub struct MemberOptions {
    /// Layer of the node.
    pub layer: LayerChoice,
    /// Number of the node; with a launcher, that says it.
    pub node: Option<u16>,
    /// Number of nodes of the launch.
    pub nodes: u16,
    /// Longest message of the launch in bytes, for layers that allocate buffers for it.
    pub longest: usize,
    /// Address on which the launch listens.
    pub control: SocketAddr,
    /// The secret of the launch.
    pub token: Token,
    /// The cores that nodes are pinned to in turn; nodes are not pinned if the list is empty.
    pub cores: Vec<u16>,
}

/// Runs one node of a launch until the launch ends.
///
/// # Errors
/// If the launch cannot be reached, or the layer does not work here.
pub fn join(options: &MemberOptions) -> Result<(), BenchError> {
    if options.layer.is_one_process() {
        return Err(BenchError::OneProcess(options.layer.to_string()));
    }
    let broken = |source| broken(options, source);
    let layer = LayerOptions {
        layer: options.layer.info().name,
        node: options.node.map(NodeId),
        nodes: options.nodes,
        listen: address_towards(options.control).map_err(broken)?,
        token: options.token,
        longest: options.longest,
        max_bytes: LONGEST_BYTES,
    };
    evb_transport_registry::open_layer(options.layer.transport(), layer, Serving(options))
}

/// The address of this machine on the way to another: peers reach it there, too. Nothing is sent.
fn address_towards(other: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = if other.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(other)?;
    Ok(socket.local_addr()?.ip())
}

fn broken(options: &MemberOptions, source: io::Error) -> BenchError {
    BenchError::Control { peer: format!("the launch at {}", options.control), source }
}

/// A node that serves its launch.
struct Serving<'a>(&'a MemberOptions);

impl UseLayer for Serving<'_> {
    type Output = ();
    type Error = BenchError;

    fn with<L: MessageLayer + Connect>(self, mut layer: L) -> Result<(), BenchError> {
        serve(self.0, &mut layer)
    }
}

/// Joins the others and measures until the order to end.
fn serve<L: MessageLayer + Connect>(options: &MemberOptions, layer: &mut L) -> Result<(), BenchError> {
    pin(core_of(&options.cores, layer.local().0))?;
    let broken = |source| broken(options, source);
    let stream = TcpStream::connect(options.control).map_err(broken)?;
    let hello = Hello { node: layer.local().0, address: layer.address() };
    let joined = lines::join(stream, &options.token, Purpose::Launch, &hello, PROOF_TIMEOUT);
    let (mut writer, mut lines) = joined.map_err(|error| match error {
        DialError::Broken(error) => broken(error),
        DialError::Refused(refusal) => broken(io::Error::other(refusal.to_string())),
    })?;
    let Some(Order::Join { peers }) = lines.read().map_err(broken)? else { return Ok(()) };
    let others: Vec<_> = peers.into_iter().filter(|(node, _)| *node != layer.local()).collect();
    let joined = match layer.connect(&others) {
        Ok(()) => Report::Joined,
        Err(error) => Report::Failed { why: error.to_string() },
    };
    writer.write(&joined).map_err(broken)?;
    let stop = Arc::new(AtomicBool::new(false));
    let orders = read_orders(lines, Arc::clone(&stop))?;
    loop {
        let report = match next_order(&orders, layer) {
            Some(Order::Measure { work, setting }) => match take_part(layer, &work, setting, &stop) {
                Ok(result) => Report::Measured(Box::new(result)),
                Err(error) => Report::Failed { why: error.to_string() },
            },
            Some(Order::Count) => Report::Counted(counters::read()),
            Some(Order::Join { .. } | Order::Stop | Order::Exit) | None => return Ok(()),
        };
        writer.write(&report).map_err(broken)?;
    }
}

/// Takes part in a work for all nodes of the launch, or for some of them.
fn take_part<L: MessageLayer>(
    layer: &mut L,
    work: &Work,
    setting: Setting,
    stop: &AtomicBool,
) -> Result<NodeResult, BenchError> {
    if work.members.is_empty() {
        return measure(layer, work, setting, stop);
    }
    let mut members = Renumbered::new(layer, &work.members).ok_or(BenchError::NoMember)?;
    measure(&mut members, work, setting, stop)
}

/// Receives the orders in a separate thread, so that this one can poll the layer meanwhile. Work is to stop when the
/// launch orders so, or is gone.
fn read_orders(mut lines: Lines, stop: Arc<AtomicBool>) -> Result<Receiver<Order>, BenchError> {
    let (sender, orders) = mpsc::channel();
    let read = move || {
        while let Ok(Some(order)) = lines.read() {
            let is_to_stop = matches!(order, Order::Stop);
            stop.store(is_to_stop, Ordering::Relaxed);
            if !is_to_stop && sender.send(order).is_err() {
                return;
            }
        }
        stop.store(true, Ordering::Relaxed);
    };
    let spawned = thread::Builder::new().spawn(read);
    spawned.map_err(BenchError::Thread)?;
    Ok(orders)
}

/// The next order; `None` if the launch is over or gone. The layer is polled meanwhile, since it may have to send
/// flushed messages and signs of life; received messages stay there.
fn next_order<L: MessageLayer>(orders: &Receiver<Order>, layer: &mut L) -> Option<Order> {
    let start = Instant::now();
    loop {
        let pause = if start.elapsed() < BUSY_TIME { BUSY_PAUSE } else { IDLE_PAUSE };
        match orders.recv_timeout(pause) {
            Ok(order) => return Some(order),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                layer.flush();
                layer.wait(Duration::from_micros(1));
            }
        }
    }
}
