//! A process of a launch: one node, which executes measurements on command.

use crate::{
    cores,
    driver::measure,
    kind::LayerKind,
    measurement::CONTROL_BYTES,
    protocol::{Answer, Hello, Order, Report},
};
use evb_core::NodeId;
use evb_node::{
    Token,
    limits::MORE_THREADS,
    lines::{Lines, write},
};
use evb_transport::{
    Connect, MessageLayer, OverTransport, WithMulticast,
    shm::{Shm, ShmOptions},
    tcp::{Tcp, TcpOptions},
};
use evb_transport_mpi::{Mpi, MpiOptions, Threads};
use evb_transport_ofi::{OfiLayer, OfiOptions};
use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

/// Longest message that a benchmark sends in bytes.
pub const LONGEST_BYTES: usize = 16 << 20;

/// Time after a measurement in which flushed messages may still be under way, so that the layer is polled often.
const BUSY_TIME: Duration = Duration::from_millis(200);
const BUSY_PAUSE: Duration = Duration::from_micros(500);
/// Interval of polls of the layer after that time.
const IDLE_PAUSE: Duration = Duration::from_millis(100);

/// Options of a process of a launch.
#[derive(Clone, Debug)]
pub struct MemberOptions {
    /// The message layer.
    pub layer: LayerKind,
    /// The node; with MPI the rank decides.
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
/// A message if the launch cannot be reached, or the layer does not work here.
pub fn join(options: &MemberOptions) -> Result<(), String> {
    match &options.layer {
        LayerKind::Tcp => {
            let mut end = bind_tcp(options)?;
            serve(options, &mut end)
        }
        LayerKind::Shm => serve(options, &mut bind_shm(options)?),
        LayerKind::Udp => {
            let tcp = bind_tcp(options)?;
            let multicast = WithMulticast::new(tcp, Ipv4Addr::LOCALHOST);
            serve(options, &mut multicast.map_err(|error| format!("no multicast on this machine: {error}"))?)
        }
        LayerKind::Mpi => {
            let mpi = Mpi::init(Threads::One).map_err(|error| error.to_string())?;
            let result = serve(options, &mut rank(options, &mpi)?);
            if result.is_ok() {
                mpi.finish();
            }
            result
        }
        LayerKind::Ofi(provider) => serve(options, &mut open_ofi(options, provider)?),
        LayerKind::Threads | LayerKind::VeloRtl(_) => Err("threads are no processes".into()),
    }
}

fn node(options: &MemberOptions) -> Result<NodeId, String> {
    options.node.map(NodeId).ok_or_else(|| "the node has no number".into())
}

fn bind_tcp(options: &MemberOptions) -> Result<OverTransport<Tcp>, String> {
    let tcp = TcpOptions { max_body: LONGEST_BYTES, ..TcpOptions::new(options.nodes, options.token) };
    let tcp = Tcp::bind(node(options)?, tcp).map_err(|error| error.to_string())?;
    Ok(OverTransport::new(tcp, LONGEST_BYTES))
}

fn bind_shm(options: &MemberOptions) -> Result<Shm, String> {
    let shm = ShmOptions::new(options.nodes, options.token);
    // A message takes at most 3/8 of a ring. A ring that is larger than it must be fits the caches less well.
    let ring_bytes = (options.longest * 8 / 3 + CONTROL_BYTES).next_power_of_two().max(shm.ring_bytes);
    Shm::bind(node(options)?, ShmOptions { ring_bytes, ..shm }).map_err(|error| error.to_string())
}

/// The node of this rank.
fn rank(options: &MemberOptions, mpi: &Mpi) -> Result<evb_transport_mpi::Layer, String> {
    if mpi.size() != usize::from(options.nodes) {
        return Err(format!("{} ranks for {} nodes", mpi.size(), options.nodes));
    }
    let placement: Vec<_> = (0..mpi.size()).collect();
    let layers = mpi.layers(&placement, &MpiOptions { max_body: LONGEST_BYTES }).map_err(|error| error.to_string())?;
    layers.into_iter().next().ok_or_else(|| "this rank has no node".into())
}

fn open_ofi(options: &MemberOptions, provider: &str) -> Result<OfiLayer, String> {
    let ofi = OfiOptions {
        provider: provider.into(),
        max_bytes: LONGEST_BYTES,
        ..OfiOptions::new(options.nodes, options.token)
    };
    OfiLayer::open(node(options)?, ofi).map_err(|error| error.to_string())
}

/// Joins the others and measures until it is told to end.
fn serve<L: MessageLayer + Connect>(options: &MemberOptions, layer: &mut L) -> Result<(), String> {
    if let Some(core) = crate::launch::core_of(&options.cores, layer.local().0) {
        cores::pin(core).map_err(|error| format!("cannot pin to core {core}: {error}"))?;
    }
    let broken = |error: std::io::Error| format!("the launch at {}: {error}", options.control);
    let stream = TcpStream::connect(options.control).map_err(broken)?;
    stream.set_nodelay(true).map_err(broken)?;
    let mut lines = Lines::new(&stream).map_err(broken)?;
    lines.trust();
    let hello = Hello { token: options.token.to_hex(), node: layer.local().0, address: layer.address() };
    write(&stream, &hello).map_err(broken)?;
    let Some(Answer::Welcome { peers }) = lines.read().map_err(broken)? else { return Ok(()) };
    let others: Vec<_> = peers.into_iter().filter(|(node, _)| *node != layer.local()).collect();
    let joined = match layer.connect(&others) {
        Ok(()) => Report::Joined,
        Err(why) => Report::Failed { why },
    };
    write(&stream, &joined).map_err(broken)?;
    let orders = hear(lines)?;
    loop {
        let Some(Order::Measure { measurement, setting }) = next_order(&orders, layer) else { return Ok(()) };
        let notice = match measure(layer, &measurement, setting) {
            Ok(result) => Report::Measured(result),
            Err(why) => Report::Failed { why },
        };
        write(&stream, &notice).map_err(broken)?;
    }
}

/// Receives the orders in a thread of its own, so that this one can poll the layer meanwhile.
fn hear(mut lines: Lines) -> Result<Receiver<Order>, String> {
    let (sender, orders) = mpsc::channel();
    let hear = move || {
        while let Ok(Some(order)) = lines.read() {
            if sender.send(order).is_err() {
                return;
            }
        }
    };
    let spawned = thread::Builder::new().spawn(hear);
    spawned.map_err(|error| format!("cannot start a thread: {error}; {MORE_THREADS}"))?;
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
