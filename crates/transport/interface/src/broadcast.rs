//! Broadcasts: one message for several nodes.

use crate::{Message, SendError, Transport};
use evb_core::NodeId;

/// A receiver of the nodes that did not take a broadcast, each with the reason.
pub type Refusals<'a> = dyn FnMut(NodeId, SendError) + 'a;

/// The way of a transport to broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastWay {
    /// Each receiver is sent a copy.
    Copies,
    /// All receivers have the same body.
    ByReference,
    /// A body that is not small is written once, into memory that all receivers read.
    SharedMemory,
    /// A datagram goes to all receivers at once, and again to those who miss it.
    Multicast,
}

impl BroadcastWay {
    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copies => "copies",
            Self::ByReference => "by reference",
            Self::SharedMemory => "shared memory",
            Self::Multicast => "multicast",
        }
    }
}

/// State of an endpoint's broadcasts since it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broadcasts {
    /// The way to broadcast.
    pub way: BroadcastWay,
    /// Copies that were not made: those that one copy for each receiver would have cost in addition.
    pub saved: u64,
    /// Messages that were sent again to receivers that had missed a broadcast.
    pub repeated: u64,
    /// True if the experiment asked for this way.
    pub was_asked: bool,
    /// The reason why copies are sent although a better way was asked for, for people.
    pub fell_back: Option<String>,
}

impl Broadcasts {
    /// The state of an endpoint that has not broadcast yet.
    #[must_use]
    pub const fn new(way: BroadcastWay) -> Self {
        Self { way, saved: 0, repeated: 0, was_asked: false, fell_back: None }
    }

    /// Returns true if receivers share all messages, so that there are no copies to count.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.way == BroadcastWay::ByReference
    }
}

/// Sends a copy to each of the nodes. Bodies are shared as far as [`Transport::send`] does.
pub fn send_copies<T: Transport + ?Sized>(
    transport: &mut T,
    to: &[NodeId],
    message: Message,
    refused: &mut Refusals<'_>,
) {
    let Some((&last, first)) = to.split_last() else { return };
    for &node in first {
        if let Err(error) = transport.send(node, message.clone()) {
            refused(node, error);
        }
    }
    if let Err(error) = transport.send(last, message) {
        refused(last, error);
    }
}
