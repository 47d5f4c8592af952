//! A worker: one thread that carries one or more nodes.

use crate::control::{NodeError, Notice, Order, Report};
use crate::link::{Arrived, Link};
use bytes::Bytes;
use evb_core::{NodeId, Span, Time, Transmit};
use evb_protocol::Message;
use evb_transport::Transport;
use std::{
    sync::mpsc::{Receiver, Sender, TryRecvError},
    time::{Duration, Instant},
};

/// Longest sleep of a worker without work: orders and heartbeats wait no longer.
const LONGEST_REST: Duration = Duration::from_millis(20);
/// How often nodes report.
const REPORT_INTERVAL: Span = Span::from_millis(100);

/// Real time as the machines see it: picoseconds since the worker began.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Time {
        Time(self.0.elapsed().as_nanos() as u64 * 1000)
    }
}

/// What a node does beside talking to its peers: one of the three roles.
pub(crate) trait Role: Send {
    /// Something came from a peer.
    fn arrived(&mut self, now: Time, arrived: Arrived);
    /// Run control says something.
    fn order(&mut self, now: Time, order: Order);
    /// Timers, sources, files: everything that is due. True when there was something.
    fn work(&mut self, now: Time) -> Result<bool, NodeError>;
    /// Hands over all messages that are ready.
    fn transmit(&mut self, now: Time, send: &mut dyn FnMut(Transmit<Message<Bytes>>));
    /// When `work` must be called again at the latest.
    fn deadline(&self) -> Option<Time>;
    /// The next thing that run control should know.
    fn notice(&mut self) -> Option<Notice>;
    fn report(&self) -> Report;
    /// Closes what is open; the last report follows.
    fn finish(&mut self) -> Result<(), NodeError>;
}

/// A node as a worker carries it.
pub(crate) struct Node<T> {
    id: NodeId,
    role: Box<dyn Role>,
    pub(crate) link: Link<T>,
    /// Peers whose loss is expected are no news: everybody leaves at the end.
    finished: bool,
}

impl<T: Transport> Node<T> {
    pub(crate) fn new(id: NodeId, role: Box<dyn Role>, link: Link<T>) -> Self {
        Self { id, role, link, finished: false }
    }

    pub(crate) const fn id(&self) -> NodeId {
        self.id
    }

    /// One round: receive, work, send. True when anything moved.
    fn poll(&mut self, now: Time) -> Result<bool, NodeError> {
        let (role, link) = (&mut self.role, &mut self.link);
        let received = link.receive(|arrived| role.arrived(now, arrived));
        let worked = role.work(now)?;
        role.transmit(now, &mut |transmit| link.send(transmit));
        let sent = link.flush();
        Ok(received > 0 || worked || sent > 0)
    }
}

/// How a worker hears and speaks to run control.
pub(crate) struct Desk {
    pub(crate) orders: Receiver<(NodeId, Order)>,
    pub(crate) notices: Sender<(NodeId, Notice)>,
}

impl Desk {
    fn tell(&self, node: NodeId, notice: Notice) {
        // Nobody listens only when run control is gone; then the orders' end stops the worker.
        let _gone = self.notices.send((node, notice));
    }
}

/// Carries `nodes` until all of them are told to go. `rest` sleeps until something may have come, at most so long.
pub(crate) fn carry<T: Transport>(
    mut nodes: Vec<Node<T>>,
    desk: Desk,
    spins: u32,
    mut rest: impl FnMut(&mut [Node<T>], Duration),
) {
    let clock = Clock::start();
    for node in &nodes {
        desk.tell(node.id, Notice::Ready);
    }
    let mut idle = 0_u32;
    let mut next_report = Time::ZERO;
    while !nodes.is_empty() {
        // One look at the clock for all nodes: it costs as much as handling a fragment.
        let now = clock.now();
        if !take_orders(&mut nodes, &desk, now) {
            return;
        }
        let mut moved = false;
        nodes.retain_mut(|node| {
            let polled = node.poll(now);
            while let Some(notice) = node.role.notice() {
                if !(node.finished && matches!(notice, Notice::Lost { .. })) {
                    desk.tell(node.id, notice);
                }
            }
            match polled {
                Ok(active) => {
                    moved |= active;
                    true
                }
                Err(error) => {
                    fail(node, error, &desk);
                    false
                }
            }
        });
        idle = if moved { 0 } else { idle + 1 };
        if idle > spins + 4 {
            let due = nodes.iter().filter_map(|node| node.role.deadline()).min();
            let wait = due.map_or(LONGEST_REST, |at| at.since(now).as_duration().min(LONGEST_REST));
            rest(&mut nodes, wait);
        } else if idle > spins {
            std::thread::yield_now();
        } else if idle > 0 {
            std::hint::spin_loop();
        }
        if now >= next_report {
            next_report = now + REPORT_INTERVAL;
            for node in nodes.iter().filter(|node| !node.finished) {
                desk.tell(node.id, Notice::Progress(node.role.report()));
            }
        }
    }
}

/// A node that cannot go on closes what it has and says so; what it stored stays valid.
fn fail<T: Transport>(node: &mut Node<T>, error: NodeError, desk: &Desk) {
    let _already_failing = node.role.finish();
    desk.tell(node.id, Notice::Progress(node.role.report()));
    desk.tell(node.id, Notice::Failed(error));
}

/// Carries out what run control says; false when run control is gone.
fn take_orders<T: Transport>(nodes: &mut Vec<Node<T>>, desk: &Desk, now: Time) -> bool {
    loop {
        let (id, order) = match desk.orders.try_recv() {
            Ok(order) => order,
            Err(TryRecvError::Empty) => return true,
            Err(TryRecvError::Disconnected) => {
                for node in nodes {
                    let _nobody_to_tell = node.role.finish();
                }
                return false;
            }
        };
        let Some(index) = nodes.iter().position(|node| node.id == id) else { continue };
        match order {
            Order::Exit => drop(nodes.remove(index)),
            Order::Die => {
                // Not even files are closed: that is what a crash does.
                drop(nodes.remove(index));
                desk.tell(id, Notice::Gone { reason: "killed on purpose".into() });
            }
            Order::Finish => {
                let node = &mut nodes[index];
                node.finished = true;
                match node.role.finish() {
                    Ok(()) => desk.tell(id, Notice::Finished(node.role.report())),
                    Err(error) => {
                        desk.tell(id, Notice::Progress(node.role.report()));
                        desk.tell(id, Notice::Failed(error));
                    }
                }
            }
            Order::Start | Order::Stop => nodes[index].role.order(now, order),
        }
    }
}
