//! A worker: one thread that carries one or more nodes.

use crate::control::{NodeError, Notice, Order};
use crate::link::{Arrived, BATCH, Link};
use bytes::Bytes;
use evb_core::{NodeId, Span, Time, Transmit};
use evb_protocol::Message;
use evb_transport::Transport;
use evb_unit::Report;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, Sender, TryRecvError},
    time::{Duration, Instant},
};

/// Longest sleep of a worker without work: orders and heartbeats wait no longer.
const LONGEST_REST: Duration = Duration::from_millis(20);
/// Times that a worker without work lets others run before it sleeps.
const YIELDS: u32 = 64;
/// Time between two looks at whether a node has closed what it had open, when nothing else is left to do.
const CLOSE_AGAIN: Duration = Duration::from_millis(1);
/// Of these, yields when a node waits for a thread of its own, which wants a core.
const FEW_YIELDS: u32 = 4;
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
    /// A peer says something.
    fn message(&mut self, now: Time, from: NodeId, message: Message<Bytes>);
    /// A peer is gone.
    fn lost(&mut self, now: Time, peer: NodeId);
    /// Run control says something.
    fn order(&mut self, now: Time, order: Order);
    /// Timers, sources, files: everything that is due. True when there was something. `calm` says that no message waits:
    /// before that, a timer proves nothing about what has not come.
    fn work(&mut self, now: Time, calm: bool) -> Result<bool, NodeError>;
    /// Hands over all messages that are ready.
    fn transmit(&mut self, now: Time, send: &mut dyn FnMut(Transmit<Message<Bytes>>));
    /// When `work` must be called again at the latest.
    fn deadline(&self) -> Option<Time>;
    /// Whether a thread of its own works for it and will wake it: then nobody is to spin on a core which that may need.
    fn is_helped(&self) -> bool {
        false
    }
    /// The next thing that run control should know.
    fn notice(&mut self) -> Option<Notice> {
        None
    }
    fn report(&self, now: Time) -> Report;
    /// Closes what is open; the last report follows when it says true. Until then it goes on working, and is asked again.
    fn finish(&mut self) -> Result<bool, NodeError> {
        Ok(true)
    }
}

/// A node as a worker carries it.
pub(crate) struct Node<T> {
    id: NodeId,
    role: Box<dyn Role>,
    pub(crate) link: Link<T>,
    /// Peers whose loss is expected are no news: everybody leaves at the end.
    finished: bool,
    /// It has been told to finish, and has something open.
    closing: bool,
}

impl<T: Transport> Node<T> {
    pub(crate) fn new(id: NodeId, role: Box<dyn Role>, link: Link<T>) -> Self {
        Self { id, role, link, finished: false, closing: false }
    }

    /// One round: receive, work, send. True when anything moved.
    fn poll(&mut self, now: Time, desk: &Desk) -> Result<bool, NodeError> {
        let (id, finished) = (self.id, self.finished);
        let (role, link) = (&mut self.role, &mut self.link);
        let received = link.receive(|arrived| match arrived {
            Arrived::Message(from, message) => role.message(now, from, message),
            Arrived::Lost(peer, reason) => {
                role.lost(now, peer);
                // Everybody leaves at the end: then it is no news.
                if !finished {
                    desk.tell(id, Notice::Lost { peer: peer.0, reason });
                }
            }
            Arrived::Garbage => {}
        });
        let worked = role.work(now, received < BATCH)?;
        role.transmit(now, &mut |transmit| link.send(transmit));
        let sent = link.flush();
        Ok(received > 0 || worked || sent > 0)
    }

    fn finish(&mut self, now: Time, desk: &Desk) {
        (self.finished, self.closing) = (true, false);
        match self.role.finish() {
            Ok(true) => desk.tell(self.id, Notice::Finished(self.role.report(now))),
            Ok(false) => self.closing = true,
            Err(error) => self.fail(now, error, desk),
        }
    }

    /// A node that cannot go on closes what it has and says so; what it stored stays valid.
    fn fail(&mut self, now: Time, error: NodeError, desk: &Desk) {
        close(self.role.as_mut());
        desk.tell(self.id, Notice::Progress(self.role.report(now)));
        desk.tell(self.id, Notice::Failed(error));
    }
}

/// Closes what a node has open, however long that takes: there is nobody to tell of errors.
fn close(role: &mut dyn Role) {
    while let Ok(false) = role.finish() {
        std::thread::sleep(CLOSE_AGAIN);
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

/// Carries `nodes` until all of them are told to go. A worker without work looks `spins` times before it yields; then
/// `rest` sleeps until something may have come, at most for the time it is given.
pub(crate) fn carry<T: Transport>(
    nodes: Vec<Node<T>>,
    desk: Desk,
    spins: u32,
    rest: impl FnMut(&mut [Node<T>], Duration),
) {
    let (ids, notices) = (nodes.iter().map(|node| node.id).collect::<Vec<_>>(), desk.notices.clone());
    if catch_unwind(AssertUnwindSafe(|| carry_on(nodes, desk, spins, rest))).is_err() {
        // A bug in one worker must not take the record of the whole run with it.
        for id in ids {
            let error = NodeError::new("its worker panicked: this is a bug in evb")
                .hint("please report it, with the text above");
            let _nobody_listens = notices.send((id, Notice::Failed(error)));
        }
    }
}

fn carry_on<T: Transport>(nodes: Vec<Node<T>>, desk: Desk, spins: u32, mut rest: impl FnMut(&mut [Node<T>], Duration)) {
    let clock = Clock::start();
    let mut worker = Worker { nodes, desk, next_report: Time::ZERO };
    worker.nodes.iter().for_each(|node| worker.desk.tell(node.id, Notice::Ready));
    let mut idle = 0_u32;
    loop {
        // One look at the clock for all nodes: it costs as much as handling a fragment.
        let now = clock.now();
        let heard = worker.take_orders(now);
        let moved = worker.poll(now);
        if !heard || worker.nodes.is_empty() {
            return;
        }
        worker.report(now);
        idle = match moved {
            true => 0,
            false if worker.is_helped() => idle.saturating_add(1).max(spins + YIELDS - FEW_YIELDS),
            false => idle.saturating_add(1),
        };
        match idle {
            0 => {}
            _ if idle <= spins => std::hint::spin_loop(),
            _ if idle <= spins + YIELDS => std::thread::yield_now(),
            _ => {
                let wait = worker.longest_rest(now);
                rest(&mut worker.nodes, wait);
            }
        }
    }
}

struct Worker<T> {
    nodes: Vec<Node<T>>,
    desk: Desk,
    next_report: Time,
}

impl<T: Transport> Worker<T> {
    /// One round of all nodes; true when anything moved.
    fn poll(&mut self, now: Time) -> bool {
        let (mut moved, desk) = (false, &self.desk);
        self.nodes.retain_mut(|node| {
            let polled = node.poll(now, desk);
            while let Some(notice) = node.role.notice() {
                desk.tell(node.id, notice);
            }
            match polled {
                Ok(active) => {
                    moved |= active;
                    if node.closing {
                        node.finish(now, desk);
                    }
                }
                Err(ref error) => node.fail(now, error.clone(), desk),
            }
            polled.is_ok()
        });
        moved
    }

    fn is_helped(&self) -> bool {
        self.nodes.iter().any(|node| node.role.is_helped())
    }

    fn longest_rest(&self, now: Time) -> Duration {
        let due = self.nodes.iter().filter_map(|node| node.role.deadline()).min();
        due.map_or(LONGEST_REST, |at| at.since(now).as_duration().min(LONGEST_REST))
    }

    fn report(&mut self, now: Time) {
        if now >= self.next_report {
            self.next_report = now + REPORT_INTERVAL;
            for node in self.nodes.iter().filter(|node| !node.finished || node.closing) {
                self.desk.tell(node.id, Notice::Progress(node.role.report(now)));
            }
        }
    }

    /// Carries out what run control says; false when run control is gone.
    fn take_orders(&mut self, now: Time) -> bool {
        loop {
            match self.desk.orders.try_recv() {
                Ok((id, order)) => self.take_order(now, id, order),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => {
                    for node in &mut self.nodes {
                        close(node.role.as_mut());
                    }
                    return false;
                }
            }
        }
    }

    fn take_order(&mut self, now: Time, id: NodeId, order: Order) {
        let Some(index) = self.nodes.iter().position(|node| node.id == id) else { return };
        let node = &mut self.nodes[index];
        match order {
            Order::Start | Order::Stop | Order::Cut => node.role.order(now, order),
            Order::Lost(peer) => node.role.lost(now, peer),
            Order::Finish => node.finish(now, &self.desk),
            Order::Exit => drop(self.nodes.remove(index)),
            Order::Die => {
                // Not even files are closed: that is what a crash does.
                drop(self.nodes.remove(index));
                self.desk.tell(id, Notice::Gone { reason: "killed on purpose".into() });
            }
        }
    }
}
