//! Outgoing messages, and those that wait for a slow peer.

use evb_core::{NodeId, NodeRange};
use evb_transport::{Message as Envelope, SendError, Transport};
use evb_unit::DeadLink;
use std::collections::VecDeque;

/// A transport, and the messages that it did not take yet: a slow peer delays no other. The credits of the protocol
/// bound their number.
pub(crate) struct Outbox<T> {
    /// The transport; a node sleeps in it.
    pub(crate) transport: T,
    /// Messages that a full queue gave back, by destination.
    waiting: Vec<VecDeque<Envelope>>,
    waiting_count: usize,
    /// Receivers of the current broadcast that have no waiting messages.
    receivers: Vec<NodeId>,
}

impl<T: Transport> Outbox<T> {
    pub(crate) fn new(transport: T, nodes: u16) -> Self {
        let waiting = (0..nodes).map(|_| VecDeque::new()).collect();
        Self { transport, waiting, waiting_count: 0, receivers: Vec::with_capacity(nodes.into()) }
    }

    /// Drops what waits.
    pub(crate) fn clear(&mut self) {
        self.waiting.iter_mut().for_each(VecDeque::clear);
        self.waiting_count = 0;
    }

    /// True while messages wait for the transport.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.waiting_count > 0
    }

    pub(crate) fn post(&mut self, to: NodeId, envelope: Envelope) {
        if !self.waiting[to.index()].is_empty() {
            self.waiting_count += 1;
            return self.waiting[to.index()].push_back(envelope);
        }
        if let Err(SendError::Full(envelope)) = self.transport.send(to, envelope) {
            self.waiting_count += 1;
            self.waiting[to.index()].push_back(envelope);
        }
    }

    /// Sends a message to several nodes. Those with waiting messages have it behind these.
    pub(crate) fn broadcast(&mut self, to: NodeRange, envelope: Envelope) {
        self.receivers.clear();
        for node in to.iter() {
            match self.waiting[node.index()].is_empty() {
                true => self.receivers.push(node),
                false => {
                    self.waiting_count += 1;
                    self.waiting[node.index()].push_back(envelope.clone());
                }
            }
        }
        let (waiting, count) = (&mut self.waiting, &mut self.waiting_count);
        self.transport.broadcast(&self.receivers, envelope, &mut |to, error| {
            if let SendError::Full(envelope) = error {
                *count += 1;
                waiting[to.index()].push_back(envelope);
            }
        });
    }

    /// Sends waiting and queued messages. Returns true when nothing is left.
    pub(crate) fn flush(&mut self) -> bool {
        if self.waiting_count > 0 {
            self.retry();
        }
        self.transport.flush() && self.waiting_count == 0
    }

    fn retry(&mut self) {
        for (to, queue) in self.waiting.iter_mut().enumerate() {
            while let Some(envelope) = queue.pop_front() {
                match self.transport.send(NodeId(to as u16), envelope) {
                    Err(SendError::Full(envelope)) => {
                        queue.push_front(envelope);
                        break;
                    }
                    _ => self.waiting_count -= 1,
                }
            }
        }
    }
}

/// Dead links of a transport, for a report.
pub(crate) fn report_links(links: &[evb_transport::DeadLink]) -> impl Iterator<Item = DeadLink> {
    let report = |evb_transport::DeadLink { link, peer, reason }| DeadLink { link, peer, reason };
    links.iter().cloned().map(report)
}
