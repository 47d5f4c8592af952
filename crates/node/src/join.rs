//! One node in a process of its own: joins the run control of `evb run`, and carries its role.

use crate::control::{NodeError, Notice, Order};
use crate::endpoint::{self, Endpoint, WithEndpoint};
use crate::lines::{Lines, pump, write};
use crate::link::Link;
use crate::roles::open_role;
use crate::wire_control::{Answer, Hello};
use crate::worker::{Desk, Node, carry};
use crate::{VERSION, fingerprint};
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_transport::{Token, Transport, Waker};
use evb_transport_mpi::Mpi;
use std::{
    net::{SocketAddr, TcpStream},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

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
    /// What run control has heard, it tells people: this process need not tell it once more.
    pub quiet: bool,
    /// The MPI of this process, for a plan whose nodes talk over it.
    pub mpi: Option<Mpi>,
}

/// Is one node of a run until it ends. `text` is the resolved experiment.
///
/// # Errors
/// When run control cannot be reached or refuses the node, or the node cannot do its work.
pub fn join(plan: &Plan, text: &str, options: &JoinOptions) -> Result<(), NodeError> {
    endpoint::open(plan, options, Joining { plan, text, options })
}

/// What a node needs to join, beside its endpoint.
struct Joining<'a> {
    plan: &'a Plan,
    text: &'a str,
    options: &'a JoinOptions,
}

impl WithEndpoint for Joining<'_> {
    fn with<T: Endpoint>(self, mut transport: T) -> Result<(), NodeError> {
        let Joining { plan, text, options } = self;
        let control = dial(options)?;
        let (run, peers, mut lines) = introduce(plan, options, transport.address(), &control)?;
        let ready = open_role(plan, text, run, options.node, &transport).and_then(|role| {
            let others: Vec<_> = peers.into_iter().filter(|(node, _)| *node != options.node).collect();
            transport.connect(&others).map_err(NodeError::new)?;
            Ok(role)
        });
        let role = match ready {
            Ok(role) => role,
            Err(error) => {
                let told = write(&control, &Notice::Failed(error.clone())).is_ok();
                return if told && options.quiet { Ok(()) } else { Err(error) };
            }
        };
        let waker = transport.waker();
        let node = Node::new(options.node, role, Link::new(transport, plan.building.nodes()));
        work(node, &control, &mut lines, waker);
        Ok(())
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
        if Instant::now() >= end {
            return Err(NodeError::new(format!("cannot reach run control at {}: {error}", options.control))
                .hint("start it with `evb run FILE --listen HOST:PORT`, and give its address with --join"));
        }
        thread::sleep(Duration::from_millis(100));
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
    control.set_read_timeout(Some(options.patience)).map_err(broken)?;
    let mut lines = Lines::new(control).map_err(broken)?;
    lines.trust();
    write(control, &hello).map_err(broken)?;
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

/// Carries the node; threads of their own move orders in and notices out.
fn work<T: Transport>(node: Node<T>, control: &TcpStream, lines: &mut Lines, waker: Waker) {
    let (order_sender, orders) = mpsc::channel();
    let (notices, notice_receiver) = mpsc::channel();
    let id = node.id();
    thread::scope(|scope| {
        scope.spawn(move || {
            pump(lines, |order: Order| {
                let heard = order_sender.send((id, order)).is_ok();
                waker();
                heard && order != Order::Exit
            });
            // The sender is dropped here: without run control the worker closes its files and ends.
            drop(order_sender);
            waker();
        });
        scope.spawn(move || {
            for (_, notice) in notice_receiver {
                if write(control, &notice).is_err() {
                    return;
                }
            }
            let _already_closed = control.shutdown(std::net::Shutdown::Both);
        });
        carry(vec![node], Desk { orders, notices }, 0, |nodes, timeout| nodes[0].link.transport.wait(timeout));
    });
}
