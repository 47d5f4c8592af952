//! The thin message layer of the communication benchmarks (ATLAS DAQ note 77, section 3): bytes to a node, bytes from a
//! node, and nothing else.
//!
//! A [`Transport`](crate::Transport) owns its messages and shares their bodies; a layer borrows bytes for one call. What
//! a message system can do at its best shows here, where nothing is allocated or counted on the way.

use crate::VirtualTime;
use evb_core::{NodeId, NodeRange, Span};
use std::time::Duration;

/// Why a layer did not take a message now or at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no room: call [`receive`](MessageLayer::receive) or [`flush`](MessageLayer::flush), then try again.
    #[error("the queue to the peer is full")]
    Full,
    /// The peer is gone, or was never there.
    #[error("the peer is gone")]
    Lost,
    /// The message is above [`MessageLayer::max_bytes`].
    #[error("the message is above the limit of {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

/// What a layer gives for what has arrived: the sender and the bytes, which are gone after the call.
pub type Take<'a> = dyn FnMut(NodeId, &[u8]) + 'a;

/// One node's access to all others, by bytes. Nothing blocks but [`wait`](MessageLayer::wait). Messages of a pair arrive
/// once each and in order.
pub trait MessageLayer: Send {
    /// The node that this endpoint belongs to.
    fn local(&self) -> NodeId;

    /// Longest message in bytes.
    fn max_bytes(&self) -> usize;

    /// Sends a copy of `bytes`, from 1 byte to [`max_bytes`](MessageLayer::max_bytes). It need not leave before
    /// [`flush`](MessageLayer::flush).
    ///
    /// # Errors
    /// [`Refused`]; the message is not sent then, not even in part.
    fn send(&mut self, to: NodeId, bytes: &[u8]) -> Result<(), Refused>;

    /// Whether [`broadcast`](MessageLayer::broadcast) is an operation of the message system itself, instead of a message
    /// to each node.
    fn has_broadcast(&self) -> bool {
        false
    }

    /// Tells, on all nodes and before the first of them, that broadcasts of this length will come from `from` to `to`;
    /// `from` is not in `to`. Only systems whose receivers take part in a broadcast need it.
    fn expect_broadcasts(&mut self, from: NodeId, to: NodeRange, length: usize) {
        let _ = (from, to, length);
    }

    /// Sends the same bytes to all nodes of `to`. Only for layers that [have it](MessageLayer::has_broadcast): whoever
    /// calls it for another layer gets [`Refused::Lost`].
    ///
    /// # Errors
    /// [`Refused`]; the message is sent to nobody then.
    fn broadcast(&mut self, to: NodeRange, bytes: &[u8]) -> Result<(), Refused> {
        let _ = (to, bytes);
        Err(Refused::Lost)
    }

    /// Moves messages on as far as the peers take them now. True when nothing is left in this node.
    fn flush(&mut self) -> bool;

    /// Gives `take` at most `limit` messages that have arrived; how many there were.
    fn receive(&mut self, limit: usize, take: &mut Take<'_>) -> usize;

    /// A peer that has gone since the last call, if any.
    fn lost(&mut self) -> Option<NodeId> {
        None
    }

    /// Sleeps until something may have arrived, messages may move again, or `timeout` is over.
    fn wait(&mut self, timeout: Duration);

    /// The time of a layer whose network is simulated. It goes on with each call of [`receive`](MessageLayer::receive),
    /// unless a [`wait`](MessageLayer::wait) was just before it, with each wait, and with each message that finds no
    /// room; never by itself. Timeouts are of this time.
    fn virtual_time(&self) -> Option<VirtualTime> {
        None
    }

    /// Lets so much simulated time pass without a look at messages, as a processor that computes. Only layers with a
    /// [virtual time](MessageLayer::virtual_time) do anything here.
    fn pass(&mut self, span: Span) {
        let _ = span;
    }
}

/// An endpoint that finds its peers by their addresses, which the nodes exchange by other means.
pub trait Connect {
    /// Where the peers find this node, as text without line breaks.
    fn address(&self) -> String;

    /// Joins these peers, all of which must name this node too. Each is there once, with its
    /// [`address`](Connect::address), and this node is not.
    ///
    /// # Errors
    /// A text for people, which names the peer that is missing or refuses this node.
    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), String>;
}
