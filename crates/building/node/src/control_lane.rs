//! Control messages on a separate transport, beside that of the fragments.
//!
//! Messages from readout units to builders travel with the fragments, all others on the second transport. So all messages
//! from one node to another take the same lane, and keep their order. A thread serves the second transport, since a node can
//! sleep in one transport only.

use crate::outbox::{Outbox, report_links};
use evb_core::{NodeId, NodeRange};
use evb_protocol::Config;
use evb_transport::{Broadcasts, Connect, Message as Envelope, Received, Transport, Waker};
use evb_unit::{DeadLink, TURN_MESSAGES};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, Sender, TryRecvError},
    },
    thread::Scope,
    time::{Duration, Instant},
};

/// Longest sleep of the thread: it then sends again what waits.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
/// Longest time in which the thread sends what is left when the node ends.
const DRAIN_TIME: Duration = Duration::from_secs(1);
/// Time from the loss of a peer on one transport to its report, if the other one does not lose it, too. What the peer sent
/// before it died comes first.
const GRACE: Duration = Duration::from_secs(1);

/// The endpoint of control messages.
pub(crate) trait ControlEndpoint: Transport + Connect {}

impl<T: Transport + Connect> ControlEndpoint for T {}

/// The node's side of the second transport.
pub(crate) struct ControlLane {
    /// Messages for the thread; closed when the lane is dropped.
    outgoing: Sender<(NodeRange, Envelope)>,
    /// TransportStatus of the broadcasts of the second transport.
    status: Arc<Mutex<TransportStatus>>,
    incoming: Receiver<Received>,
    waker: Waker,
    /// The thread has messages that it may sleep on.
    has_posted: bool,
    /// The lane of messages to each node.
    lanes: Vec<Lane>,
    losses: Losses,
}

impl ControlLane {
    /// Starts the thread. It wakes the node when messages have arrived.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        endpoint: &'scope mut dyn ControlEndpoint,
        config: &Config,
        wake_node: Waker,
    ) -> std::io::Result<Self> {
        let (outgoing, orders) = mpsc::channel();
        let (arrivals, incoming) = mpsc::channel();
        let (waker, local, nodes) = (endpoint.waker(), endpoint.local(), config.nodes());
        let status =
            Arc::new(Mutex::new(TransportStatus { broadcasts: endpoint.broadcasts(), dead_links: Vec::new() }));
        let server =
            Server { outbox: Outbox::new(endpoint, nodes), orders, arrivals, status: status.clone(), wake_node };
        std::thread::Builder::new().name("control".into()).spawn_scoped(scope, move || server.run())?;
        let lanes = (0..nodes).map(|to| Lane::between(config, local, NodeId(to))).collect();
        Ok(Self { outgoing, status, incoming, waker, has_posted: false, lanes, losses: Losses::new(nodes) })
    }

    /// True if messages to this node take this lane.
    pub(crate) fn carries(&self, to: NodeId) -> bool {
        self.lanes[to.index()] == Lane::Control
    }

    pub(crate) fn post(&mut self, to: NodeRange, envelope: Envelope) {
        self.has_posted = true;
        // The thread ends after the lane only.
        let _sent = self.outgoing.send((to, envelope));
    }

    /// TransportStatus of the broadcasts of the second transport.
    pub(crate) fn broadcasts(&self) -> Broadcasts {
        lock(&self.status).broadcasts.clone()
    }

    /// The dead links of the transport.
    pub(crate) fn dead_links(&self) -> Vec<DeadLink> {
        lock(&self.status).dead_links.clone()
    }

    /// Lets the thread send what was posted.
    pub(crate) fn flush(&mut self) {
        if std::mem::take(&mut self.has_posted) {
            (self.waker)();
        }
    }

    /// Appends messages that have arrived, at most `limit`, to those of the other transport. Returns the number of all.
    /// The loss of a peer on one lane only is left out.
    pub(crate) fn receive(&mut self, limit: usize, inbox: &mut Vec<Received>) -> usize {
        let of_data = inbox.len();
        inbox.extend(self.incoming.try_iter().take(limit));
        let (count, losses, mut index) = (inbox.len(), &mut self.losses, 0);
        inbox.retain_mut(|received| {
            index += 1;
            let lane = if index <= of_data { Lane::Data } else { Lane::Control };
            match received {
                Received::Message { from, .. } => !losses.is_gone(*from),
                Received::Lost { peer, reason } => losses.lose(*peer, lane, reason, Instant::now()),
            }
        });
        while let Some((peer, reason)) = self.losses.next_overdue(Instant::now) {
            inbox.push(Received::Lost { peer, reason });
        }
        count
    }
}

impl Drop for ControlLane {
    fn drop(&mut self) {
        // The end of the queue is for the thread to see.
        drop(std::mem::replace(&mut self.outgoing, mpsc::channel().0));
        (self.waker)();
    }
}

/// The state of the transport, as its thread reports it.
struct TransportStatus {
    broadcasts: Broadcasts,
    dead_links: Vec<DeadLink>,
}

/// The thread of the second transport.
struct Server<'a> {
    outbox: Outbox<&'a mut dyn ControlEndpoint>,
    orders: Receiver<(NodeRange, Envelope)>,
    arrivals: Sender<Received>,
    status: Arc<Mutex<TransportStatus>>,
    wake_node: Waker,
}

fn lock(status: &Mutex<TransportStatus>) -> MutexGuard<'_, TransportStatus> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server<'_> {
    fn run(mut self) {
        let mut inbox = Vec::with_capacity(TURN_MESSAGES);
        loop {
            let is_open = self.send();
            let count = self.outbox.transport.receive(TURN_MESSAGES, &mut inbox);
            for received in inbox.drain(..) {
                let _node_is_gone = self.arrivals.send(received);
            }
            if count > 0 {
                (self.wake_node)();
            }
            if !is_open {
                return self.send_remaining();
            }
            if count == 0 {
                self.outbox.transport.wait(LONGEST_SLEEP);
            }
        }
    }

    /// Sends what the node has posted. Returns false after the last message.
    fn send(&mut self) -> bool {
        let is_open = loop {
            match self.orders.try_recv() {
                Ok((to, envelope)) if to.count == 1 => self.outbox.post(to.first, envelope),
                Ok((to, envelope)) => self.outbox.broadcast(to, envelope),
                Err(TryRecvError::Empty) => break true,
                Err(TryRecvError::Disconnected) => break false,
            }
        };
        self.outbox.flush();
        let (mut status, transport) = (lock(&self.status), &self.outbox.transport);
        status.broadcasts = transport.broadcasts();
        if status.dead_links.len() < transport.dead_links().len() {
            status.dead_links = report_links(transport.dead_links()).collect();
        }
        drop(status);
        is_open
    }

    /// Sends what is left.
    fn send_remaining(&mut self) {
        let end = Instant::now() + DRAIN_TIME;
        while !self.outbox.flush() && Instant::now() < end {
            self.outbox.transport.wait(Duration::from_millis(1));
        }
    }
}

/// The transport of the messages between a node and its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Data,
    Control,
}

impl Lane {
    /// The lane of messages from one node to another.
    const fn between(config: &Config, from: NodeId, to: NodeId) -> Self {
        match config.readout_nodes().contains(from) && config.builder_nodes().contains(to) {
            true => Self::Data,
            false => Self::Control,
        }
    }
}

/// The peers that one of two transports has lost, or both.
struct Losses {
    peers: Vec<Loss>,
    /// Number of peers that one transport only has lost.
    pending: usize,
}

#[derive(Clone)]
enum Loss {
    None,
    /// One transport has lost the peer.
    Half {
        lane: Lane,
        since: Instant,
        reason: String,
    },
    /// The node knows that the peer is gone.
    Whole,
}

impl Losses {
    fn new(nodes: u16) -> Self {
        Self { peers: vec![Loss::None; nodes.into()], pending: 0 }
    }

    /// True if the node knows that the peer is gone: what still comes from it is too late.
    fn is_gone(&self, peer: NodeId) -> bool {
        matches!(self.peers[peer.index()], Loss::Whole)
    }

    /// Takes the loss of a peer on one lane. Returns true if the node is to know now.
    fn lose(&mut self, peer: NodeId, lane: Lane, reason: &str, now: Instant) -> bool {
        match &self.peers[peer.index()] {
            Loss::None => {
                self.pending += 1;
                self.peers[peer.index()] = Loss::Half { lane, since: now, reason: reason.to_owned() };
                false
            }
            Loss::Half { lane: first, .. } if *first != lane => {
                self.pending -= 1;
                self.peers[peer.index()] = Loss::Whole;
                true
            }
            Loss::Half { .. } | Loss::Whole => false,
        }
    }

    /// The next peer that one transport has lost for so long that the node is to know.
    fn next_overdue(&mut self, now: impl FnOnce() -> Instant) -> Option<(NodeId, String)> {
        if self.pending == 0 {
            return None;
        }
        let now = now();
        let overdue = self.peers.iter_mut().enumerate().find_map(|(index, loss)| match loss {
            Loss::Half { lane, since, reason } if now >= *since + GRACE => {
                let of = match lane {
                    Lane::Data => "of fragments",
                    Lane::Control => "of control messages",
                };
                let reason = format!("on the network {of}: {reason}");
                *loss = Loss::Whole;
                Some((NodeId(index as u16), reason))
            }
            Loss::None | Loss::Half { .. } | Loss::Whole => None,
        });
        self.pending -= usize::from(overdue.is_some());
        overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_lost_when_both_transports_have_lost_it_or_one_for_long() {
        let (mut losses, start) = (Losses::new(3), Instant::now());
        let (one, two) = (NodeId(1), NodeId(2));
        assert!(!losses.lose(one, Lane::Control, "closed", start));
        assert!(!losses.lose(one, Lane::Control, "closed", start));
        assert!(!losses.is_gone(one));
        assert!(losses.lose(one, Lane::Data, "reset", start));
        assert!(losses.is_gone(one));
        assert_eq!(losses.next_overdue(|| start + 2 * GRACE), None);
        assert!(!losses.lose(two, Lane::Data, "silent", start));
        assert_eq!(losses.next_overdue(|| start + GRACE / 2), None);
        let overdue = losses.next_overdue(|| start + GRACE);
        assert_eq!(overdue, Some((two, "on the network of fragments: silent".into())));
        assert!(!losses.lose(two, Lane::Control, "closed", start));
        assert_eq!(losses.next_overdue(|| start + 2 * GRACE), None);
    }
}
