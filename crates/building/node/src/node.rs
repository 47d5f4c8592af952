//! A node in its worker: its role in each run, and one round of its work.

use crate::control::{Instruction, Notice, Order};
use crate::core_binding::CoreBinding;
use crate::error::NodeError;
use crate::link::{Arrived, NodeLink};
use crate::run_info::RunStart;
use bytes::Bytes;
use evb_core::{NodeId, Time, Transmit};
use evb_protocol::Message;
use evb_transport::Transport;
use evb_unit::{DriverReport, Report, TURN_MESSAGES};
use std::{
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{Receiver, Sender},
    },
    time::{Duration, Instant},
};

/// Time between two attempts to close a node when no other work is left.
pub(crate) const CLOSE_AGAIN: Duration = Duration::from_millis(1);

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

    pub(crate) fn at(self, instant: Instant) -> Time {
        Time(instant.saturating_duration_since(self.0).as_nanos() as u64 * 1000)
    }
}

/// The work of a node beside the exchange with its peers: one of the three roles.
pub(crate) trait NodeRole: Send {
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
    /// True while a separate thread works for the node and will wake it. No worker may then spin on a core that this
    /// thread may need.
    fn is_helped(&self) -> bool {
        false
    }
    /// The next notice for run control.
    fn notice(&mut self) -> Option<Notice> {
        None
    }
    /// Returns true when what the node was asked to prepare or to arm is done. It is asked in every turn until then: other
    /// nodes share the worker, so no wait for a front end may hold it.
    fn is_ready(&mut self, _now: Time) -> Result<bool, NodeError> {
        Ok(true)
    }
    /// Waits for no answers of others any more: the node is about to close in one go.
    fn hurry(&mut self) {}
    fn report(&self, now: Time) -> Report;
    /// Begins the account and opens the files of this run, which follows without a stop. All events have
    /// ended, and [`finish`](Self::finish) has closed the files.
    fn next_run(&mut self, now: Time, run: &RunStart) -> Result<(), NodeError>;
    /// Closes open files; returns true when the last report can follow. Until then the node continues its work, and this
    /// is called again. `is_last` says that no run follows without a stop.
    fn finish(&mut self, _now: Time, _is_last: bool) -> Result<bool, NodeError> {
        Ok(true)
    }
}

/// A node in its worker, from one run to the next.
pub(crate) struct Node<T> {
    pub(crate) id: NodeId,
    /// The run of the node in the current run.
    pub(crate) run: Option<NodeRun>,
    pub(crate) link: NodeLink<T>,
    /// The core of the worker, if it is bound.
    pub(crate) binding: Option<Arc<CoreBinding>>,
}

/// A node in one run.
pub(crate) struct NodeRun {
    pub(crate) role: Box<dyn NodeRole>,
    /// The node was ordered to finish. The loss of a peer is then ignored: all nodes leave at the end.
    pub(crate) finished: bool,
    /// The node was ordered to finish, and has files open.
    pub(crate) closing: bool,
    /// Run control waits for the node to be ready.
    pub(crate) is_asked: bool,
    /// The run that follows without a stop, when the files are closed.
    pub(crate) next: Option<RunStart>,
}

impl NodeRun {
    /// The report of the role, with what is known of its node.
    pub(crate) fn report<T: Transport>(&self, now: Time, link: &NodeLink<T>, binding: Option<&CoreBinding>) -> Report {
        self.role.report(now).with_driver(DriverReport {
            broadcast: link.broadcasts(),
            dead_links: link.dead_links(),
            core: binding.map(CoreBinding::core),
        })
    }
}

/// Makes the role of a node for a run.
pub(crate) type OpenRole<'a, T> = dyn Fn(NodeId, &RunStart, &T) -> Result<Box<dyn NodeRole>, NodeError> + 'a;

impl<T: Transport> Node<T> {
    /// A node with its link, and the core of its worker, if that is bound.
    pub(crate) fn new(id: NodeId, link: NodeLink<T>, binding: Option<Arc<CoreBinding>>) -> Self {
        Self { id, run: None, link, binding }
    }

    /// One round: receive, work, send. Returns true if there was work.
    pub(crate) fn poll(&mut self, now: Time, channel: &ControlChannel<'_>) -> Result<bool, NodeError> {
        let Some(run) = &mut self.run else { return Ok(self.idle(channel)) };
        let (id, finished, role, link) = (self.id, run.finished, &mut run.role, &mut self.link);
        let received = link.receive(|arrived| match arrived {
            Arrived::Message(from, message) => role.message(now, from, message),
            Arrived::Lost(peer, reason) => {
                role.lost(now, peer);
                if !finished {
                    channel.notify(id, Notice::Lost { peer: peer.0, reason });
                }
            }
            Arrived::Garbage => {}
        });
        let worked = role.work(now, received < TURN_MESSAGES)?;
        role.transmit(now, &mut |transmit| link.send(transmit));
        let sent = link.flush();
        if run.is_asked && role.is_ready(now)? {
            run.is_asked = false;
            channel.notify(id, Notice::Ready);
        }
        while let Some(notice) = role.notice() {
            channel.notify(id, notice);
        }
        Ok(received > 0 || worked || sent > 0)
    }

    /// One round between two runs: messages belong to no run and are dropped.
    fn idle(&mut self, channel: &ControlChannel<'_>) -> bool {
        let received = self.link.receive(|arrived| {
            if let Arrived::Lost(peer, reason) = arrived {
                channel.notify(self.id, Notice::Lost { peer: peer.0, reason });
            }
        });
        received > 0 || self.link.flush() > 0
    }

    /// Takes part in a run.
    pub(crate) fn prepare(&mut self, run: &RunStart, open: &OpenRole<'_, T>, channel: &ControlChannel<'_>) {
        self.link.begin_run();
        match CoreBinding::bind_after(self.binding.as_deref(), || open(self.id, run, &self.link.outbox.transport)) {
            Ok(role) => {
                self.run = Some(NodeRun { role, finished: false, closing: false, is_asked: true, next: None });
            }
            Err(error) => channel.notify(self.id, Notice::Failed(error)),
        }
    }

    /// Closes open files. The role ends with the last report, or continues with the next run.
    pub(crate) fn finish(&mut self, now: Time, channel: &ControlChannel<'_>) {
        let Some(run) = &mut self.run else { return };
        run.finished |= run.next.is_none();
        match run.role.finish(now, run.finished) {
            Ok(true) => {
                channel.notify(self.id, Notice::Finished(run.report(now, &self.link, self.binding.as_deref())));
                match run.next.take() {
                    Some(next) => self.begin_next(now, &next, channel),
                    None => self.run = None,
                }
            }
            Ok(false) => run.closing = true,
            Err(error) => self.fail(now, error, channel),
        }
    }

    /// Continues with the next run on the same connections.
    fn begin_next(&mut self, now: Time, next: &RunStart, channel: &ControlChannel<'_>) {
        let Some(run) = &mut self.run else { return };
        run.closing = false;
        self.link.count_anew();
        if let Err(error) = CoreBinding::bind_after(self.binding.as_deref(), || run.role.next_run(now, next)) {
            self.fail(now, error, channel);
        }
    }

    /// Closes a node that has failed, and reports the error. Stored events stay valid.
    pub(crate) fn fail(&mut self, now: Time, error: NodeError, channel: &ControlChannel<'_>) {
        if let Some(mut run) = self.run.take() {
            close(run.role.as_mut(), now);
            channel.notify(self.id, Notice::Progress(run.report(now, &self.link, self.binding.as_deref())));
            channel.notify(self.id, Notice::Failed(error));
        }
    }
}

/// Closes a node, however long that takes. Errors are ignored, since run control is gone.
pub(crate) fn close(role: &mut dyn NodeRole, now: Time) {
    role.hurry();
    while let Ok(false) = role.finish(now, true) {
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
    pub(crate) fn notify(&self, node: NodeId, notice: Notice) {
        // Sending fails only when run control is gone; then the end of the orders stops the worker.
        let _gone = self.notices.send((node, notice));
    }
}
