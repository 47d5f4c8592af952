//! A worker: one thread that carries one or more nodes.
//!
//! A node that cannot continue reports it to run control and closes its endpoint, so its peers treat it as dead: other
//! builders take its events, or the run ends. With the report alone, a full disk of the only builder held the run for
//! twice `run.drain_timeout`.

use crate::control::{Detail, Instruction, Notice, Order};
use crate::error::NodeError;
use crate::heap;
use crate::idle_ladder::{IdleAction, IdleLadder};
use crate::node::{CLOSE_AGAIN, Clock, ControlChannel, Node, NodeRun, OpenRole, close};
use crate::run_info::{HostClock, RunStart};
use evb_core::{NodeId, Span, Time};
use evb_os::timers;
use evb_transport::{Transport, Yielder};
use evb_unit::WORKER_YIELDS;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{atomic::Ordering, mpsc::TryRecvError},
    time::{Duration, Instant},
};

/// Longest sleep of a worker without work: the longest wait of orders and heartbeats.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
/// Number of yields before a sleep while a node waits for its helper thread, which needs a core.
const FEW_YIELDS: u32 = 5;
/// Time before the deadline of a punctual node at which its worker does not sleep any more: what a sleep may last too long.
const PUNCTUAL: Duration = Duration::from_millis(1);
/// Interval between two reports of a node.
const REPORT_INTERVAL: Span = Span::from_millis(100);

/// The reason why a worker has no nodes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerEnd {
    /// The nodes are to be opened anew.
    Reset,
    /// The nodes are to end, or run control is gone.
    Exit,
}

/// Carries `nodes` through all runs until they are dismissed. `open` makes their roles. A worker without work polls
/// `spins` times before it yields; then `sleep` returns until there may be work, at most for the given time.
pub(crate) fn carry<T: Transport>(
    nodes: Vec<Node<T>>,
    channel: ControlChannel<'_>,
    open: &OpenRole<'_, T>,
    spins: u32,
    sleep: impl FnMut(&mut [Node<T>], Duration),
) -> WorkerEnd {
    timers::sleep_punctually();
    let ids: Vec<_> = nodes.iter().map(|node| node.id).collect();
    let worker = Worker { clock: Clock::start(), nodes, channel, open, next_report: Time::ZERO, left: WorkerEnd::Exit };
    catch_unwind(AssertUnwindSafe(|| worker.run(spins, sleep))).unwrap_or_else(|_| {
        // A bug in one worker must not take the record of the whole run with it.
        for id in ids {
            let error = NodeError::new("its worker panicked: this is a bug in evb")
                .hint("please report it, with the text above");
            channel.notify(id, Notice::Failed(error));
        }
        WorkerEnd::Exit
    })
}

struct Worker<'a, T> {
    clock: Clock,
    nodes: Vec<Node<T>>,
    channel: ControlChannel<'a>,
    open: &'a OpenRole<'a, T>,
    next_report: Time,
    left: WorkerEnd,
}

impl<T: Transport> Worker<'_, T> {
    fn run(mut self, spins: u32, mut sleep: impl FnMut(&mut [Node<T>], Duration)) -> WorkerEnd {
        let clock = self.clock;
        let mut ladder = IdleLadder::new(spins, WORKER_YIELDS);
        let mut yielder = Yielder::default();
        loop {
            // The clock is read once for all nodes: this costs as much as handling a fragment.
            let instant = Instant::now();
            let now = clock.at(instant);
            let is_controlled = self.take_orders(now);
            let moved = self.poll(now);
            if !is_controlled || self.nodes.is_empty() || self.is_stopped() {
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
                Some(IdleAction::Yield | IdleAction::Sleep) => match self.longest_sleep(now) {
                    Duration::ZERO => std::thread::yield_now(),
                    wait => sleep(&mut self.nodes, wait),
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
                    if node.run.as_ref().is_some_and(|run| run.closing) {
                        node.finish(now, channel);
                    }
                }
                Err(error) => node.fail(now, error, channel),
            }
        }
        moved
    }

    fn runs(&self) -> impl Iterator<Item = &NodeRun> {
        self.nodes.iter().filter_map(|node| node.run.as_ref())
    }

    /// True if the user wants the worker to end, and no run needs it.
    fn is_stopped(&self) -> bool {
        self.channel.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) && self.runs().next().is_none()
    }

    fn is_helped(&self) -> bool {
        self.runs().any(|run| run.role.is_helped())
    }

    fn longest_sleep(&self, now: Time) -> Duration {
        let due = self.runs().filter_map(|run| run.role.deadline()).min();
        let early = if self.runs().any(|run| run.role.is_punctual()) { PUNCTUAL } else { Duration::ZERO };
        // All triggers wait while files are being closed.
        let longest = if self.runs().any(|run| run.closing) { CLOSE_AGAIN } else { LONGEST_SLEEP };
        due.map_or(longest, |at| at.since(now).as_duration().saturating_sub(early).min(longest))
    }

    fn report(&mut self, now: Time) {
        if now >= self.next_report {
            self.next_report = now + REPORT_INTERVAL;
            for node in &self.nodes {
                if let Some(run) = node.run.as_ref().filter(|run| !run.finished || run.closing) {
                    self.channel
                        .notify(node.id, Notice::Progress(run.report(now, &node.link, node.binding.as_deref())));
                }
            }
        }
    }

    /// Carries out the orders of run control; returns false if run control is gone.
    fn take_orders(&mut self, now: Time) -> bool {
        // Orders that come after the last node has left are for the next opening of the nodes.
        while !self.nodes.is_empty() {
            match self.channel.orders.try_recv() {
                Ok((id, instruction)) => self.take_order(now, id, instruction),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => {
                    for run in self.nodes.iter_mut().filter_map(|node| node.run.as_mut()) {
                        close(run.role.as_mut(), now);
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
                if self.nodes.iter().all(|node| node.run.is_none()) {
                    heap::warm();
                }
                let run = RunStart { info: run, clock: HostClock::of(self.clock) };
                self.nodes[index].prepare(&run, self.open, &self.channel);
            }
            (Order::Arm, _) => {
                // A node without a run has failed, and has said so.
                if let Some(run) = &mut node.run {
                    run.role.order(now, order);
                    run.is_asked = true;
                }
            }
            (Order::Start | Order::Pause | Order::Resume | Order::Settle | Order::Stop | Order::Cut, _) => {
                if let Some(run) = &mut node.run {
                    run.role.order(now, order);
                }
            }
            (Order::Lost(peer), _) => {
                if let Some(run) = &mut node.run {
                    run.role.lost(now, peer);
                }
            }
            (Order::Next, Detail::Run(info)) => {
                if let Some(run) = &mut node.run {
                    run.next = Some(RunStart { info, clock: HostClock::of(self.clock) });
                }
                node.finish(now, &self.channel);
            }
            (Order::Finish, _) => match &mut node.run {
                Some(run) => {
                    run.next = None;
                    node.finish(now, &self.channel);
                }
                // It has failed and has reported so. Now its peers see that it is gone.
                None => self.leave(index, WorkerEnd::Reset),
            },
            (Order::Reset, _) => {
                self.leave(index, WorkerEnd::Reset);
                self.channel.notify(id, Notice::Reset);
            }
            (Order::Exit, _) => self.leave(index, WorkerEnd::Exit),
            (Order::Die, _) => {
                // Not even files are closed: that is what a crash does.
                self.leave(index, WorkerEnd::Exit);
                self.channel.notify(id, Notice::Gone { reason: "killed on purpose".into() });
            }
            // A node that is carried is open and connected.
            (Order::Open | Order::Connect | Order::Prepare | Order::Next, _) => {}
        }
    }

    fn leave(&mut self, index: usize, left: WorkerEnd) {
        drop(self.nodes.remove(index));
        self.left = left;
    }
}
