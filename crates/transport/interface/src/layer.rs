//! The message layer of the communication benchmarks (ATLAS DAQ note 77, section 3): bytes to a node, bytes from a
//! node, and nothing else.
//!
//! A [`Transport`](crate::Transport) owns its messages and shares their bodies; a layer borrows bytes for one call.
//! Nothing is allocated or counted on the way, so a layer shows the best performance of a message system.

use crate::{JoinError, VirtualTime};
use evb_core::{NodeId, NodeRange, Span};
use std::time::Duration;

/// The reason why a layer did not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no room: call [`receive`](MessageLayer::receive) or [`flush`](MessageLayer::flush), then try again.
    #[error("the queue to the peer is full")]
    Full,
    /// The peer is gone or never existed.
    #[error("the peer is gone")]
    Lost,
    /// The message is above [`MessageLayer::max_bytes`].
    #[error("the message is above the limit of {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

/// A receiver of messages: gets the sender and the bytes, which are valid during the call only.
pub type Take<'a> = dyn FnMut(NodeId, &[u8]) + 'a;

/// One node's access to all others, by bytes. Only [`wait`](MessageLayer::wait) blocks. Messages of a pair arrive once
/// each and in order.
///
/// [`OverTransport`](crate::OverTransport) is the layer that any transport gives.
pub trait MessageLayer: Send {
    /// The node that this endpoint belongs to.
    fn local(&self) -> NodeId;

    /// Longest message in bytes.
    fn max_bytes(&self) -> usize;

    /// Sends a copy of `bytes`, from 1 byte to [`max_bytes`](MessageLayer::max_bytes). It may stay here until the next
    /// [`flush`](MessageLayer::flush).
    ///
    /// # Errors
    /// [`Refused`]; no part of the message is sent then.
    fn send(&mut self, to: NodeId, bytes: &[u8]) -> Result<(), Refused>;

    /// Returns true if the message system has an operation for [`broadcast`](MessageLayer::broadcast). If false, a
    /// broadcast is a message to each node.
    fn has_broadcast(&self) -> bool {
        false
    }

    /// Announces broadcasts of this length from `from` to `to`, on all nodes and before the first broadcast; `from` is
    /// not in `to`. Only systems whose receivers take part in a broadcast need it.
    fn expect_broadcasts(&mut self, from: NodeId, to: NodeRange, length: usize) {
        let _ = (from, to, length);
    }

    /// Sends the same bytes to all nodes of `to`. A layer [without broadcasts](MessageLayer::has_broadcast) returns
    /// [`Refused::Lost`].
    ///
    /// # Errors
    /// [`Refused`]; the message is not sent then.
    fn broadcast(&mut self, to: NodeRange, bytes: &[u8]) -> Result<(), Refused> {
        let _ = (to, bytes);
        Err(Refused::Lost)
    }

    /// Moves messages on as far as the peers take them now. Returns true if nothing is left in this node.
    fn flush(&mut self) -> bool;

    /// Calls `take` with at most `limit` messages that have arrived; returns their number.
    fn receive(&mut self, limit: usize, take: &mut Take<'_>) -> usize;

    /// A peer that has gone since the last call, if any.
    fn lost(&mut self) -> Option<NodeId> {
        None
    }

    /// Sleeps until something may have arrived, messages may move again, or `timeout` is over.
    fn wait(&mut self, timeout: Duration);

    /// The time of a layer whose network is simulated. It advances with each call of
    /// [`receive`](MessageLayer::receive), unless a [`wait`](MessageLayer::wait) was just before it, with each wait,
    /// and with each message that finds no room; never by itself. Timeouts are in this time.
    fn virtual_time(&self) -> Option<VirtualTime> {
        None
    }

    /// Lets simulated time pass without a look at messages, as a processor that computes. Layers without a [virtual
    /// time](MessageLayer::virtual_time) do nothing.
    fn pass(&mut self, span: Span) {
        let _ = span;
    }
}

/// An endpoint that finds its peers by their addresses, which the nodes exchange by other means.
pub trait Connect {
    /// The address of this node for its peers, as text without line breaks.
    fn address(&self) -> String;

    /// Joins these peers, all of which must name this node, too. Each peer occurs once, with its
    /// [`address`](Connect::address); this node is not in the list.
    ///
    /// # Errors
    /// A message that names the peer that is missing or refuses this node.
    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError>;
}

impl<T: Connect + ?Sized> Connect for Box<T> {
    fn address(&self) -> String {
        (**self).address()
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        (**self).connect(peers)
    }
}
