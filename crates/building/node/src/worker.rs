//! A worker: one thread that carries one or more nodes.

use crate::control::{Detail, Instruction, Notice, Order};
use crate::error::NodeError;
use crate::core_binding::CoreBinding;
use crate::heap;
use crate::idle_ladder::{IdleAction, IdleLadder};
use crate::link::{Arrived, Link};
use crate::outbox::BATCH;
use bytes::Bytes;
use evb_core::{NodeId, Span, Time, Transmit};
use evb_protocol::Message;
use evb_transport::{Transport, Yielder};
use evb_unit::{DriverReport, Report};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, TryRecvError},
    },
    time::{Duration, Instant},
};

/// Longest sleep of a worker without work: the longest wait of orders and heartbeats.
const LONGEST_REST: Duration = Duration::from_millis(20);
/// Number of yields of a worker without work before it sleeps.
const YIELDS: u32 = 64;
/// Time between two attempts to close a node when no other work is left.
const CLOSE_AGAIN: Duration = Duration::from_millis(1);
/// Number of yields before a sleep while a node waits for a thread of its own, which needs a core.
const FEW_YIELDS: u32 = 4;
/// Time before the deadline of a punctual node at which its worker does not sleep any more: what a sleep may last too long.
const PUNCTUAL: Duration = Duration::from_millis(1);
/// Interval between two reports of a node.
const REPORT_INTERVAL: Span = Span::from_millis(100);

/// Real time of the machines: picoseconds since the worker began.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Time {
        self.at(Instant::now())
    }

    fn at(self, instant: Instant) -> Time {
        Time(instant.saturating_duration_since(self.0).as_nanos() as u64 * 1000)
    }
}

/// The work of a node beside the exchange with its peers: one of the three roles.
pub(crate) trait Role: Send {
    /// Takes a message of a peer.
    fn message(&mut self, now: Time, from: NodeId, message: Message<Bytes>);
    /// Takes the loss of a peer.
    fn lost(&mut self, now: Time, peer: NodeId);
    /// Takes an order of run control.
    fn order(&mut self, now: Time, order: Order);
    /// Serves timers, sources and files that are due; returns true if there were any. `calm` means that no message
    /// waits: otherwise the end of a timer does not prove that a message is missing.
    fn work(&mut self, now: Time, calm: bool) -> Result<bool, NodeError>;
    /// Hands over all messages that are ready. `send` returns false when some of them wait for the transport; it takes
    /// all the same.
    fn transmit(&mut self, now: Time, send: &mut dyn FnMut(Transmit<Message<Bytes>>) -> bool);
    /// The latest time of the next call of `work`.
    fn deadline(&self) -> Option<Time>;
    /// True if the deadlines are to be met to the microsecond.
    fn is_punctual(&self) -> bool {
        false
    }
    /// True while a thread of its own works for the node and will wake it. No worker may then spin on a core that this
    /// thread may need.
    fn is_helped(&self) -> bool {
        false
    }
    /// The next notice for run control.
    fn notice(&mut self) -> Option<Notice> {
        None
    }
    fn report(&self, now: Time) -> Report;
    /// Begins the account and opens the files of the run with this number, which follows without a stop. All events have
    /// ended, and [`finish`](Self::finish) has closed the files.
    fn next_run(&mut self, now: Time, run: u64) -> Result<(), NodeError>;
    /// Closes open files; returns true when the last report can follow. Until then the node goes on working, and this
    /// is called again.
    fn finish(&mut self) -> Result<bool, NodeError> {
        Ok(true)
    }
}

/// A node in its worker, from one run to the next.
pub(crate) struct Node<T> {
    id: NodeId,
    /// The part of the node in the current run.
    part: Option<Part>,
    pub(crate) link: Link<T>,
    /// The core of the worker, if it is bound.
    seat: Option<Arc<CoreBinding>>,
}

/// The part of a node in one run.
struct Part {
    role: Box<dyn Role>,
    /// The node was told to finish. The loss of a peer is then ignored: all nodes leave at the end.
    finished: bool,
    /// The node was told to finish, and has files open.
    closing: bool,
    /// The run that follows without a stop, when the files are closed.
    next: Option<u64>,
}

impl Part {
    /// The report of the role, with what is known of its node.
    fn report<T: Transport>(&self, now: Time, link: &Link<T>, seat: Option<&CoreBinding>) -> Report {
        self.role.report(now).with_driver(DriverReport {
            broadcast: link.broadcasts(),
            dead_links: link.dead_links(),
            core: seat.map(CoreBinding::core),
        })
    }
}

/// Makes the role of a node for the run with this number.
pub(crate) type OpenRole<'a, T> = dyn Fn(NodeId, u64, &T) -> Result<Box<dyn Role>, NodeError> + 'a;

impl<T: Transport> Node<T> {
    /// A node with its link, and the core of its worker, if that is bound.
    pub(crate) fn new(id: NodeId, link: Link<T>, seat: Option<Arc<CoreBinding>>) -> Self {
        Self { id, part: None, link, seat }
    }

    /// One round: receive, work, send. Returns true if there was work.
    fn poll(&mut self, now: Time, channel: &ControlChannel<'_>) -> Result<bool, NodeError> {
        let Some(part) = &mut self.part else { return Ok(self.idle(channel)) };
        let (id, finished, role, link) = (self.id, part.finished, &mut part.role, &mut self.link);
        let received = link.receive(|arrived| match arrived {
            Arrived::Message(from, message) => role.message(now, from, message),
            Arrived::Lost(peer, reason) => {
                role.lost(now, peer);
                if !finished {
                    channel.tell(id, Notice::Lost { peer: peer.0, reason });
                }
            }
            Arrived::Garbage => {}
        });
        let worked = role.work(now, received < BATCH)?;
        role.transmit(now, &mut |transmit| link.send(transmit));
        let sent = link.flush();
        while let Some(notice) = role.notice() {
            channel.tell(id, notice);
        }
        Ok(received > 0 || worked || sent > 0)
    }

    /// One round between two runs: messages belong to no run and are dropped.
    fn idle(&mut self, channel: &ControlChannel<'_>) -> bool {
        let received = self.link.receive(|arrived| {
            if let Arrived::Lost(peer, reason) = arrived {
                channel.tell(self.id, Notice::Lost { peer: peer.0, reason });
            }
        });
        received > 0 || self.link.flush() > 0
    }

    /// Takes part in a run.
    fn prepare(&mut self, run: u64, open: &OpenRole<'_, T>, channel: &ControlChannel<'_>) {
        self.link.begin_run();
        match CoreBinding::after(self.seat.as_deref(), || open(self.id, run, &self.link.outbox.transport)) {
            Ok(role) => {
                self.part = Some(Part { role, finished: false, closing: false, next: None });
                channel.tell(self.id, Notice::Ready);
            }
            Err(error) => channel.tell(self.id, Notice::Failed(error)),
        }
    }

    /// Closes open files. The part in the run ends with the last report, or goes on with the next run.
    fn finish(&mut self, now: Time, channel: &ControlChannel<'_>) {
        let Some(part) = &mut self.part else { return };
        part.finished |= part.next.is_none();
        match part.role.finish() {
            Ok(true) => {
                channel.tell(self.id, Notice::Finished(part.report(now, &self.link, self.seat.as_deref())));
                match part.next.take() {
                    Some(run) => self.go_over(now, run, channel),
                    None => self.part = None,
                }
            }
            Ok(false) => part.closing = true,
            Err(error) => self.fail(now, error, channel),
        }
    }

    /// Goes on with the next run, for which the connections stay as they are.
    fn go_over(&mut self, now: Time, run: u64, channel: &ControlChannel<'_>) {
        let Some(part) = &mut self.part else { return };
        part.closing = false;
        self.link.count_anew();
        if let Err(error) = CoreBinding::after(self.seat.as_deref(), || part.role.next_run(now, run)) {
            self.fail(now, error, channel);
        }
    }

    /// Closes a node that cannot go on, and reports the error. Stored events stay valid.
    fn fail(&mut self, now: Time, error: NodeError, channel: &ControlChannel<'_>) {
        if let Some(mut part) = self.part.take() {
            close(part.role.as_mut());
            channel.tell(self.id, Notice::Progress(part.report(now, &self.link, self.seat.as_deref())));
            channel.tell(self.id, Notice::Failed(error));
        }
    }
}

/// Closes a node, however long that takes. Errors are ignored: there is nobody to tell.
fn close(role: &mut dyn Role) {
    while let Ok(false) = role.finish() {
        std::thread::sleep(CLOSE_AGAIN);
    }
}

/// The connection of a worker to run control.
#[derive(Clone, Copy)]
pub(crate) struct ControlChannel<'a> {
    pub(crate) orders: &'a Receiver<(NodeId, Instruction)>,
    pub(crate) notices: &'a Sender<(NodeId, Notice)>,
    /// Ends the worker while its nodes have no part in a run.
    pub(crate) stop: Option<&'a AtomicBool>,
}

impl ControlChannel<'_> {
    pub(crate) fn tell(&self, node: NodeId, notice: Notice) {
        // Nobody listens only when run control is gone; then the orders' end stops the worker.
        let _gone = self.notices.send((node, notice));
    }
}

/// The reason why a worker has no nodes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The nodes are to be opened anew.
    Reset,
    /// The nodes are to end, or run control is gone.
    Exit,
}

/// Carries `nodes` through all runs until they are dismissed. `open` makes their roles. A worker without work polls
/// `spins` times before it yields; then `rest` sleeps until there may be work, at most for the given time.
pub(crate) fn carry<T: Transport>(
    nodes: Vec<Node<T>>,
    channel: ControlChannel<'_>,
    open: &OpenRole<'_, T>,
    spins: u32,
    rest: impl FnMut(&mut [Node<T>], Duration),
) -> Left {
    let ids: Vec<_> = nodes.iter().map(|node| node.id).collect();
    let worker = Worker { nodes, channel, open, next_report: Time::ZERO, left: Left::Exit };
    catch_unwind(AssertUnwindSafe(|| worker.run(spins, rest))).unwrap_or_else(|_| {
        // A bug in one worker must not take the record of the whole run with it.
        for id in ids {
            let error = NodeError::new("its worker panicked: this is a bug in evb")
                .hint("please report it, with the text above");
            channel.tell(id, Notice::Failed(error));
        }
        Left::Exit
    })
}

struct Worker<'a, T> {
    nodes: Vec<Node<T>>,
    channel: ControlChannel<'a>,
    open: &'a OpenRole<'a, T>,
    next_report: Time,
    left: Left,
}

impl<T: Transport> Worker<'_, T> {
    fn run(mut self, spins: u32, mut rest: impl FnMut(&mut [Node<T>], Duration)) -> Left {
        let clock = Clock::start();
        let mut ladder = IdleLadder::new(spins, YIELDS);
        let mut yielder = Yielder::default();
        loop {
            // One look at the clock for all nodes: it costs as much as handling a fragment.
            let instant = Instant::now();
            let now = clock.at(instant);
            let heard = self.take_orders(now);
            let moved = self.poll(now);
            if !heard || self.nodes.is_empty() || self.is_stopped() {
                return self.left;
            }
            self.report(now);
            if !moved && self.is_helped() {
                ladder.skip_to_last_yields(FEW_YIELDS);
            }
            match ladder.after(moved) {
                None => {}
                Some(IdleAction::Spin) => std::hint::spin_loop(),
                Some(IdleAction::Yield) if yielder.try_yield(instant) => {}
                Some(IdleAction::Yield | IdleAction::Sleep) => match self.longest_rest(now) {
                    Duration::ZERO => std::thread::yield_now(),
                    wait => rest(&mut self.nodes, wait),
                },
            }
        }
    }

    /// One round of all nodes; returns true if there was work.
    fn poll(&mut self, now: Time) -> bool {
        let (mut moved, channel) = (false, &self.channel);
        for node in &mut self.nodes {
            match node.poll(now, channel) {
                Ok(active) => {
                    moved |= active;
                    if node.part.as_ref().is_some_and(|part| part.closing) {
                        node.finish(now, channel);
                    }
                }
                Err(error) => node.fail(now, error, channel),
            }
        }
        moved
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.nodes.iter().filter_map(|node| node.part.as_ref())
    }

    /// True if the user wants the worker to end, and no run needs it.
    fn is_stopped(&self) -> bool {
        self.channel.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) && self.parts().next().is_none()
    }

    fn is_helped(&self) -> bool {
        self.parts().any(|part| part.role.is_helped())
    }

    fn longest_rest(&self, now: Time) -> Duration {
        let due = self.parts().filter_map(|part| part.role.deadline()).min();
        let early = if self.parts().any(|part| part.role.is_punctual()) { PUNCTUAL } else { Duration::ZERO };
        // Whoever waits for closed files, waits with all triggers.
        let longest = if self.parts().any(|part| part.closing) { CLOSE_AGAIN } else { LONGEST_REST };
        due.map_or(longest, |at| at.since(now).as_duration().saturating_sub(early).min(longest))
    }

    fn report(&mut self, now: Time) {
        if now >= self.next_report {
            self.next_report = now + REPORT_INTERVAL;
            for node in &self.nodes {
                if let Some(part) = node.part.as_ref().filter(|part| !part.finished || part.closing) {
                    self.channel.tell(node.id, Notice::Progress(part.report(now, &node.link, node.seat.as_deref())));
                }
            }
        }
    }

    /// Carries out the orders of run control; returns false if run control is gone.
    fn take_orders(&mut self, now: Time) -> bool {
        // Orders that come after the last node has left are for whoever opens the nodes anew.
        while !self.nodes.is_empty() {
            match self.channel.orders.try_recv() {
                Ok((id, instruction)) => self.take_order(now, id, instruction),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => {
                    for part in self.nodes.iter_mut().filter_map(|node| node.part.as_mut()) {
                        close(part.role.as_mut());
                    }
                    return false;
                }
            }
        }
        true
    }

    fn take_order(&mut self, now: Time, id: NodeId, Instruction { order, detail }: Instruction) {
        let Some(index) = self.nodes.iter().position(|node| node.id == id) else { return };
        let node = &mut self.nodes[index];
        match (order, detail) {
            (Order::Prepare, Detail::Run(run)) => {
                if self.nodes.iter().all(|node| node.part.is_none()) {
                    heap::warm();
                }
                self.nodes[index].prepare(run, self.open, &self.channel);
            }
            (Order::Start | Order::Pause | Order::Resume | Order::Settle | Order::Stop | Order::Cut, _) => {
                if let Some(part) = &mut node.part {
                    part.role.order(now, order);
                }
            }
            (Order::Lost(peer), _) => {
                if let Some(part) = &mut node.part {
                    part.role.lost(now, peer);
                }
            }
            (Order::Next, Detail::Run(run)) => {
                if let Some(part) = &mut node.part {
                    part.next = Some(run);
                }
                node.finish(now, &self.channel);
            }
            (Order::Finish, _) => match &mut node.part {
                Some(part) => {
                    part.next = None;
                    node.finish(now, &self.channel);
                }
                // It could not go on, and has said so. Now its peers hear that it is gone.
                None => self.leave(index, Left::Reset),
            },
            (Order::Reset, _) => {
                self.leave(index, Left::Reset);
                self.channel.tell(id, Notice::Reset);
            }
            (Order::Exit, _) => self.leave(index, Left::Exit),
            (Order::Die, _) => {
                // Not even files are closed: that is what a crash does.
                self.leave(index, Left::Exit);
                self.channel.tell(id, Notice::Gone { reason: "killed on purpose".into() });
            }
            // A node that is carried is open and connected.
            (Order::Open | Order::Connect | Order::Prepare | Order::Next, _) => {}
        }
    }

    fn leave(&mut self, index: usize, left: Left) {
        drop(self.nodes.remove(index));
        self.left = left;
    }
}
