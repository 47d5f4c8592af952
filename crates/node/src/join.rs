//! One node in a process of its own: joins the run control of `evb run`, and carries its role.

use crate::control::{NodeError, Notice, Order};
use crate::endpoint;
use crate::limits;
use crate::lines::{Lines, pump, write};
use crate::link::Link;
use crate::roles::open_role;
use crate::wire_control::{Answer, Hello};
use crate::worker::{Desk, Node, carry};
use crate::{VERSION, fingerprint};
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_transport::{Connect, Token, Transport, UseEndpoint, Waker};
use std::{
    io::ErrorKind,
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, Sender, TryRecvError},
    },
    thread,
    time::{Duration, Instant},
};

/// Time between two looks at whether a node that waits is to stop.
const LOOK_UP: Duration = Duration::from_millis(100);

/// What a node needs to join a run.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// The node.
    pub node: NodeId,
    /// Where run control listens.
    pub control: SocketAddr,
    /// Where this node listens for its peers; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The secret of the run.
    pub token: Token,
    /// Longest wait for run control to listen and for all other nodes to come.
    pub patience: Duration,
    /// Run control may be started after this node. If not, a node that cannot reach it is alone.
    pub control_may_come: bool,
    /// Ends the waiting for run control and peers, when it is set. Once all nodes are there it is for run control to end
    /// the run.
    pub stop: Arc<AtomicBool>,
    /// What run control has heard, it tells people: this process need not tell it once more.
    pub quiet: bool,
}

/// Is one node of a run until it ends. `text` is the resolved experiment.
///
/// # Errors
/// When run control cannot be reached or refuses the node, or the node cannot do its work.
pub fn join(plan: &Plan, text: &str, options: &JoinOptions) -> Result<(), NodeError> {
    limits::check_for_node(plan, &plan.building.node_name(options.node))?;
    endpoint::open(plan, options, Joining { plan, text, options })
}

/// What a node needs to join, beside its endpoint.
struct Joining<'a> {
    plan: &'a Plan,
    text: &'a str,
    options: &'a JoinOptions,
}

impl UseEndpoint for Joining<'_> {
    type Output = ();
    type Error = NodeError;

    fn with<T: Transport + Connect>(self, mut transport: T) -> Result<(), NodeError> {
        let Joining { plan, text, options } = self;
        let control = dial(options)?;
        let (run, peers, mut lines) = introduce(plan, options, transport.address(), &control)?;
        let (order_sender, orders) = mpsc::channel();
        let waker = transport.waker();
        thread::scope(|scope| {
            let hears = limits::spawn_in(scope, || hear(&mut lines, options, order_sender, waker));
            let ready = hears.and_then(|_| open_role(plan, text, run, options.node, &transport)).and_then(|role| {
                let others: Vec<_> = peers.into_iter().filter(|(node, _)| *node != options.node).collect();
                transport.connect(&others).map_err(|error| why_not_connected(&orders, options, error))?;
                Ok(role)
            });
            let result = ready.and_then(|role| {
                let node = Node::new(options.node, role, Link::new(transport, plan.building.nodes()));
                work(node, &control, orders)
            });
            let told = result.as_ref().is_err_and(|error| write(&control, &Notice::Failed(error.clone())).is_ok());
            // Whoever hears orders hears their end.
            let _already_closed = control.shutdown(Shutdown::Both);
            if told && options.quiet { Ok(()) } else { result }
        })
    }
}

/// Hears the orders of run control, the end of which stops a node that waits.
fn hear(lines: &mut Lines, options: &JoinOptions, orders: Sender<(NodeId, Order)>, waker: Waker) {
    pump(lines, |order: Order| {
        let heard = orders.send((options.node, order)).is_ok();
        if order == Order::Die {
            options.stop.store(true, Ordering::Relaxed);
        }
        waker();
        heard && order != Order::Exit
    });
    // Without run control the worker closes its files and ends.
    drop(orders);
    options.stop.store(true, Ordering::Relaxed);
    waker();
}

/// Peers that do not come are no news to a node that is to stop.
fn why_not_connected(orders: &Receiver<(NodeId, Order)>, options: &JoinOptions, error: String) -> NodeError {
    match orders.try_recv() {
        Ok(_) => NodeError::new("run control has ended the run before it began"),
        Err(TryRecvError::Disconnected) => NodeError::new(format!("run control at {} is gone", options.control)),
        Err(TryRecvError::Empty) if options.stop.load(Ordering::Relaxed) => NodeError::stopped(),
        Err(TryRecvError::Empty) => NodeError::new(error),
    }
}

/// Run control may be started after its nodes.
fn dial(options: &JoinOptions) -> Result<TcpStream, NodeError> {
    let end = Instant::now() + options.patience;
    loop {
        let error = match TcpStream::connect_timeout(&options.control, Duration::from_secs(2)) {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        if options.stop.load(Ordering::Relaxed) {
            return Err(NodeError::stopped());
        }
        let is_alone = error.kind() == ErrorKind::ConnectionRefused && !options.control_may_come;
        if is_alone || Instant::now() >= end {
            return Err(NodeError::new(format!("cannot reach run control at {}: {error}", options.control))
                .hint("start it with `evb run FILE --listen HOST:PORT`, and give its address with --join"));
        }
        thread::sleep(LOOK_UP);
    }
}

type Introduced = (u64, Vec<(NodeId, String)>, Lines);

fn introduce(
    plan: &Plan,
    options: &JoinOptions,
    address: String,
    control: &TcpStream,
) -> Result<Introduced, NodeError> {
    let broken = |error| NodeError::new(format!("run control at {}: {error}", options.control));
    let hello = Hello {
        token: options.token.to_hex(),
        node: options.node.0,
        version: VERSION.into(),
        experiment: fingerprint(plan),
        address,
    };
    control.set_nodelay(true).map_err(broken)?;
    let mut lines = Lines::new(control).map_err(broken)?;
    lines.trust();
    write(control, &hello).map_err(broken)?;
    wait_for_answer(options, control)?;
    control.set_read_timeout(Some(options.patience)).map_err(broken)?;
    let name = plan.building.node_name(options.node);
    match lines.read().map_err(broken)? {
        Some(Answer::Welcome { run, peers }) => {
            control.set_read_timeout(None).map_err(broken)?;
            Ok((run, peers, lines))
        }
        Some(Answer::Refused { reason }) => Err(NodeError::new(format!("run control refuses {name}: {reason}"))),
        None => Err(NodeError::new(format!("run control at {} closed the connection", options.control))),
    }
}

/// Waits until run control answers, which it does when all nodes have come.
fn wait_for_answer(options: &JoinOptions, control: &TcpStream) -> Result<(), NodeError> {
    let end = Instant::now() + options.patience;
    let broken = |error| NodeError::new(format!("run control at {}: {error}", options.control));
    control.set_read_timeout(Some(LOOK_UP)).map_err(broken)?;
    loop {
        match control.peek(&mut [0]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            answered => return answered.map(drop).map_err(broken),
        }
        if options.stop.load(Ordering::Relaxed) {
            return Err(NodeError::stopped());
        }
        if Instant::now() >= end {
            return Err(NodeError::new(format!("run control at {} does not begin the run", options.control))
                .hint("are all nodes started? `--patience` waits longer"));
        }
    }
}

/// Carries the node; a thread of its own moves notices out.
fn work<T: Transport>(node: Node<T>, control: &TcpStream, orders: Receiver<(NodeId, Order)>) -> Result<(), NodeError> {
    let (notices, notice_receiver) = mpsc::channel();
    thread::scope(|scope| {
        limits::spawn_in(scope, move || {
            for (_, notice) in notice_receiver {
                if write(control, &notice).is_err() {
                    return;
                }
            }
            let _already_closed = control.shutdown(Shutdown::Both);
        })?;
        carry(vec![node], Desk { orders, notices }, 0, |nodes, timeout| nodes[0].link.transport.wait(timeout));
        Ok(())
    })
}
