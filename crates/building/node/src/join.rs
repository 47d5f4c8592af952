//! One node in a separate process: it joins run control and takes part in its runs.

use crate::control::{Detail, Instruction, Notice, Order, Setup, ToNode};
use crate::control_lane::{ControlEndpoint, ControlLane};
use crate::core_binding::{CoreBinding, CoreBindings};
use crate::endpoint::{self, UseEndpoints};
use crate::error::NodeError;
use crate::join_options::JoinOptions;
use crate::limits;
use crate::lines::{self, Lines, Writer, pump};
use crate::link::NodeLink;
use crate::machine::Machine;
use crate::node::{ControlChannel, Node};
use crate::roles::open_role;
use crate::run_info::RunStart;
use crate::wire_control::{Answer, Hello};
use crate::worker::{WorkerEnd, carry};
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_transport::{Connect, Transport, Waker};
use evb_transport_secure::{DialError, Purpose, Refusal};
use evb_unit::VERSION;
use std::{
    io::ErrorKind,
    net::TcpStream,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

/// Time between two checks for a stop while a node waits.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Longest wait for a connection, and least wait for the answer of run control.
const DIAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait until run control has proved itself, before it is dialed again.
const PROOF_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a node until run control dismisses it. The plan comes from run control.
///
/// # Errors
/// Run control cannot be reached or refuses the node, or the node could not do its work.
pub fn join(options: &JoinOptions) -> Result<(), NodeError> {
    let (writer, mut lines) = reach(options)?;
    let (order_sender, orders) = mpsc::channel();
    let (notice_sender, notices) = mpsc::channel();
    // An endpoint that connects is interrupted by orders; a node that waits for nothing but orders, by its user.
    let (interrupt, waker) = (Arc::new(AtomicBool::new(false)), Mutex::new(None));
    let checker = Mutex::new(Some(Checker { options, notices: notice_sender.clone() }));
    thread::scope(|scope| {
        let (interrupt_too, waker_too, checker_too) = (interrupt.clone(), &waker, &checker);
        limits::spawn_in(scope, move || read_orders(&mut lines, order_sender, &interrupt_too, waker_too, checker_too))?;
        limits::spawn_in(scope, move || write_notices(writer, notices))?;
        let mut node =
            Joined { options, orders: &orders, notices: &notice_sender, interrupt, waker: &waker, error: None };
        node.serve();
        let error = node.error.filter(|_| !options.quiet);
        *checker.lock().unwrap_or_else(PoisonError::into_inner) = None;
        drop(notice_sender);
        // The reader of orders ends once all notices are written.
        Ok(error)
    })
    .and_then(|error| error.map_or(Ok(()), Err))
}

/// Writes notices, and closes the connection after the last one.
fn write_notices(mut control: Writer, notices: Receiver<(NodeId, Notice)>) {
    for (_, notice) in notices {
        if control.write(&notice).is_err() {
            break;
        }
    }
    control.close();
}

/// The part of a node that answers whether it could take another experiment, whatever the node does meanwhile.
struct Checker<'a> {
    options: &'a JoinOptions,
    notices: Sender<(NodeId, Notice)>,
}

impl Checker<'_> {
    fn check(&self, setup: Setup, question: u64) {
        let name = setup.plan.building.node_name(setup.node);
        let against = self.options.fit(setup).err().map(|error| error.of(&name));
        // The connection identifies the node.
        let _run_control_is_gone = self.notices.send((NodeId(0), Notice::Checked { question, against }));
    }
}

/// Reads the orders of run control. Their end interrupts a node that waits, as do orders that it cannot carry out while
/// it waits.
fn read_orders(
    lines: &mut Lines,
    orders: Sender<(NodeId, Instruction)>,
    interrupt: &AtomicBool,
    waker: &Mutex<Option<Waker>>,
    checker: &Mutex<Option<Checker<'_>>>,
) {
    let wake = || {
        if let Some(waker) = waker.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            waker();
        }
    };
    let mut node = NodeId(0);
    pump(lines, |message| {
        let instruction = match message {
            ToNode::Order(instruction) => instruction,
            ToNode::Check { check, question } => {
                if let Some(checker) = checker.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
                    checker.check(*check, question);
                }
                return true;
            }
        };
        if let Detail::Setup(setup) = &instruction.detail {
            node = setup.node;
        }
        let order = instruction.order;
        let is_taken = orders.send((node, instruction)).is_ok();
        if matches!(order, Order::Reset | Order::Exit | Order::Die) {
            interrupt.store(true, Ordering::Relaxed);
        }
        wake();
        is_taken && order != Order::Exit
    });
    // Without run control the worker closes its files and ends.
    drop(orders);
    interrupt.store(true, Ordering::Relaxed);
    wake();
}

/// A node that run control has welcomed.
struct Joined<'a> {
    options: &'a JoinOptions,
    orders: &'a Receiver<(NodeId, Instruction)>,
    notices: &'a Sender<(NodeId, Notice)>,
    interrupt: Arc<AtomicBool>,
    waker: &'a Mutex<Option<Waker>>,
    /// The error that kept the node from its last run.
    error: Option<NodeError>,
}

impl Joined<'_> {
    /// Carries out orders until the last one.
    fn serve(&mut self) {
        while let Some(Instruction { order, detail }) = self.next_order() {
            match (order, detail) {
                (Order::Open, Detail::Setup(setup)) => {
                    self.error = None;
                    self.interrupt.store(false, Ordering::Relaxed);
                    match self.open(*setup) {
                        Ok(WorkerEnd::Reset) => {}
                        Ok(WorkerEnd::Exit) => return,
                        Err(error) => {
                            self.notify(Notice::Failed(error.clone()));
                            self.error = Some(error);
                        }
                    }
                    *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = None;
                }
                (Order::Exit | Order::Die, _) => return,
                (Order::Reset, _) => self.notify(Notice::Reset),
                // It has nothing that could be started or finished.
                _ => {}
            }
        }
    }

    fn notify(&self, notice: Notice) {
        // The connection identifies the node.
        let _run_control_is_gone = self.notices.send((NodeId(0), notice));
    }

    /// Waits for an order. Returns `None` if run control is gone or the user wants the node to end.
    fn next_order(&mut self) -> Option<Instruction> {
        loop {
            match self.orders.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok((_, instruction)) => return Some(instruction),
                Err(RecvTimeoutError::Timeout) if !self.options.stop.load(Ordering::Relaxed) => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.error = Some(NodeError::stopped());
                    return None;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let gone = NodeError::new(format!("run control at {} is gone", self.options.control));
                    self.error.get_or_insert(gone);
                    return None;
                }
            }
        }
    }

    /// Opens the endpoint of a plan and takes part in its runs.
    fn open(&mut self, setup: Setup) -> Result<WorkerEnd, NodeError> {
        let Setup { node, plan, text, here } = self.options.fit(setup)?;
        let binding = CoreBindings::of(&plan)?.and_then(|bindings| bindings.of_node(&plan, node, &here));
        let (options, interrupt) = (self.options, self.interrupt.clone());
        endpoint::open(
            &plan,
            node,
            options,
            interrupt,
            Opened { plan: &plan, text: &text, node, binding, joined: self },
        )
    }
}

/// A node with its endpoint.
struct Opened<'a, 'b> {
    plan: &'a Plan,
    text: &'a str,
    node: NodeId,
    /// The core of the node, if it is bound.
    binding: Option<Arc<CoreBinding>>,
    joined: &'a mut Joined<'b>,
}

impl UseEndpoints for Opened<'_, '_> {
    fn with<T: Transport + Connect>(
        self,
        mut transport: T,
        mut control: Option<&mut dyn ControlEndpoint>,
    ) -> Result<WorkerEnd, NodeError> {
        let Self { plan, text, node, binding, joined } = self;
        let channel =
            ControlChannel { orders: joined.orders, notices: joined.notices, stop: Some(&joined.options.stop) };
        *joined.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(transport.waker());
        channel.notify(node, Notice::Opened { address: endpoint::address(&transport, control.as_deref()) });
        let mut peers = match joined.next_order() {
            Some(Instruction { order: Order::Connect, detail: Detail::Peers(peers) }) => peers,
            Some(Instruction { order: Order::Reset, .. }) => {
                channel.notify(node, Notice::Reset);
                return Ok(WorkerEnd::Reset);
            }
            _ => return Ok(WorkerEnd::Exit),
        };
        peers.retain(|(peer, _)| *peer != node);
        if let Err(error) = endpoint::connect(&mut transport, &mut control, peers) {
            // An order that ends the wait for peers is not an error.
            return if joined.interrupt.load(Ordering::Relaxed) { Ok(WorkerEnd::Reset) } else { Err(error) };
        }
        let open = |node, run: &RunStart, transport: &T| open_role(plan, text, run, node, transport, None);
        thread::scope(|scope| {
            let lane = control.map(|endpoint| ControlLane::start(scope, endpoint, &plan.building, transport.waker()));
            let lane = lane.transpose().map_err(|error| limits::error("no thread for control messages", &error))?;
            channel.notify(node, Notice::Ready);
            let link = NodeLink::new(transport, plan.building.nodes()).with_control(lane);
            let nodes = vec![Node::new(node, link, binding)];
            Ok(carry(nodes, channel, &open, 0, |nodes, timeout| nodes[0].link.outbox.transport.wait(timeout)))
        })
    }
}

/// Reaches run control, which may be started after its nodes, and gets a place. A connection that ends before both sides
/// have proved themselves was one of too many there: it is dialed again.
fn reach(options: &JoinOptions) -> Result<(Writer, Lines), NodeError> {
    let end = Instant::now() + options.patience;
    loop {
        let error = match dial(options) {
            Ok((writer, lines)) => return introduced(options, writer, lines),
            Err(DialError::Refused(refusal)) => return Err(refused(options, refusal)),
            Err(DialError::Broken(error)) => error,
        };
        if options.stop.load(Ordering::Relaxed) {
            return Err(NodeError::stopped());
        }
        let is_alone = error.kind() == ErrorKind::ConnectionRefused && !options.control_may_come;
        if is_alone || Instant::now() >= end {
            return Err(NodeError::new(format!("cannot reach run control at {}: {error}", options.control))
                .hint("start it with `evb run FILE --listen HOST:PORT`, and give its address with --join"));
        }
        thread::sleep(STOP_CHECK_INTERVAL);
    }
}

/// Proves both sides to each other, and sends the identity of this node.
fn dial(options: &JoinOptions) -> Result<(Writer, Lines), DialError> {
    let stream = TcpStream::connect_timeout(&options.control, DIAL_TIMEOUT).map_err(DialError::Broken)?;
    let hello = Hello { role: options.role.clone(), version: VERSION.into(), machine: Machine::here() };
    let patience = PROOF_TIMEOUT.min(options.patience.max(DIAL_TIMEOUT));
    lines::join(stream, &options.token, Purpose::Control, &hello, patience)
}

fn refused(options: &JoinOptions, refusal: Refusal) -> NodeError {
    let JoinOptions { control, role, .. } = options;
    match refusal {
        Refusal::Token => NodeError::new(format!("run control refuses {role}: {refusal}"))
            .hint("set the same EVB_TOKEN for run control and for its nodes"),
        Refusal::Proof | Refusal::Version => {
            NodeError::new(format!("who listens at {control} is not run control: {refusal}"))
                .hint("give the address of run control with --join, and use the same evb and the same EVB_TOKEN there")
        }
        Refusal::Random => NodeError::new(refusal),
    }
}

/// Reads whether this node has a place.
fn introduced(options: &JoinOptions, writer: Writer, mut lines: Lines) -> Result<(Writer, Lines), NodeError> {
    let broken = |error| NodeError::new(format!("run control at {}: {error}", options.control));
    match lines.read_within(options.patience.max(DIAL_TIMEOUT)).map_err(broken)? {
        Some(Answer::Welcome) => {
            writer.stream().set_read_timeout(None).map_err(broken)?;
            Ok((writer, lines))
        }
        Some(Answer::Refused { reason }) => {
            Err(NodeError::new(format!("run control refuses {}: {reason}", options.role)))
        }
        None => Err(NodeError::new(format!("run control at {} closed the connection", options.control))),
    }
}
