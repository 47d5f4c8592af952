//! Message transports: how nodes of a run reach each other.
//!
//! [`Transport`] is the thin message layer of the benchmark suite and of the event builder alike. Every implementation
//! passes the same suite, which the feature `conformance` has. [`TransportFactory`] is how a registry opens it by its name. A
//! transport has a crate that depends on this one.

mod background;
mod bodies;
mod broadcast;
mod buffer;
mod chunks;
#[cfg(feature = "conformance")]
pub mod conformance;
mod connect_error;
mod dead_link;
pub mod doorbell;
mod factory;
mod info;
mod joining;
mod layer;
mod options;
mod over;
mod over_layer;
mod parker;
mod receive_buffers;
mod refusal;
mod sync;
mod token;
mod virtual_time;
mod yielder;

pub use background::finish_in_background;
pub use bodies::reusable_buffer;
pub use broadcast::{BroadcastWay, Broadcasts, Refusals, send_copies};
pub use buffer::{Buffer, Buffers, Memory};
pub use chunks::ChunkPool;
pub use connect_error::{ConnectError, JoinError};
pub use dead_link::DeadLink;
pub use factory::{
    LayerOptions, LayersOptions, NodeOptions, SharesThread, ThreadOptions, TransportFactory, UseEndpoint, UseEndpoints,
    UseLayer, UseLayers,
};
pub use info::{
    Layer, MemoryOfNode, Nodes, OpenError, Parameter, Prepare, Setting, SettingValue, Settings, TransportInfo,
};
pub use joining::{ConnectionMedium, HandshakeProgress, JoinDeadline, NewcomerError, join_peers};
pub use layer::{Connect, MessageLayer, Refused, Take};
pub use options::EndpointOptions;
pub use over::OverTransport;
pub use over_layer::OverLayer;
pub use parker::Parker;
pub use receive_buffers::ReceiveBuffers;
pub use refusal::Refusal;
pub use token::{Token, TokenError};
pub use virtual_time::VirtualTime;
pub use yielder::Yielder;

use bytes::Bytes;
use evb_core::NodeId;
use std::{os::fd::BorrowedFd, sync::Arc, time::Duration};

/// Bytes of the fixed head of every message.
pub const HEAD_BYTES: usize = 32;

/// Longest body that a transport takes by default, in bytes. It is the same for all transports, so
/// that what works between threads works between processes too.
pub const DEFAULT_MAX_BODY: usize = 64 << 20;

/// A message: a fixed head, whose meaning belongs to the user of the transport, and a body of any length up to the
/// transport's limit. Bodies are shared, not copied, where the transport can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The fixed head.
    pub head: [u8; HEAD_BYTES],
    /// The body; may be empty.
    pub body: Bytes,
}

/// An item that [`Transport::receive`] gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A message from a node. Messages of one sender arrive once each and in the order in which they were sent.
    Message {
        /// The sender.
        from: NodeId,
        /// The message.
        message: Message,
    },
    /// The peer is gone; nothing more comes from it. Everything it sent that arrived was given before this.
    Lost {
        /// The peer.
        peer: NodeId,
        /// The reason, for people.
        reason: String,
    },
}

/// The reason why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The queue to that peer is full: the message comes back, try again after receiving.
    #[error("the queue to the peer is full")]
    Full(Message),
    /// The peer is gone, or was never there: the message is dropped.
    #[error("the peer is gone")]
    Lost,
    /// The body is above the transport's limit.
    #[error("a body of {length} bytes is above the limit of {limit} bytes")]
    TooLarge {
        /// The body's length in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

/// Wakes a node that waits in [`Transport::wait`]; cheap when no thread waits. Callable from any thread.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// One node's access to all others.
///
/// # Example
/// A message from one node to another:
///
/// ```
/// use evb_transport::{HEAD_BYTES, Message, Received, SendError, Transport};
/// use std::time::Duration;
///
/// fn greet(from: &mut impl Transport, to: &mut impl Transport) -> Result<(), SendError> {
///     from.send(to.local(), Message { head: [0; HEAD_BYTES], body: "hello".into() })?;
///     from.flush();
///
///     let mut sink = Vec::new();
///     while to.receive(1, &mut sink) == 0 {
///         to.wait(Duration::from_millis(1));
///     }
///     assert!(matches!(&sink[0], Received::Message { message, .. } if message.body == "hello"));
///     Ok(())
/// }
/// ```
pub trait Transport: Send {
    /// The node that this endpoint belongs to.
    fn local(&self) -> NodeId;

    /// Queues a message; it need not leave before [`flush`](Transport::flush).
    ///
    /// # Errors
    /// [`SendError::Full`] gives the message back, [`SendError::Lost`] and [`SendError::TooLarge`] do not.
    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError>;

    /// Queues a message for several nodes, each of which occurs once, in ascending order. `refused` gets the nodes that
    /// do not take it, with the errors of [`send`](Transport::send); all others get it. Messages of a pair arrive once
    /// each and in the order in which they were sent, whether they were broadcast or not.
    ///
    /// A transport may need further calls of this endpoint until all receivers have a broadcast, also when
    /// [`flush`](Transport::flush) has left nothing: a receiver may have missed it.
    fn broadcast(&mut self, to: &[NodeId], message: Message, refused: &mut Refusals<'_>) {
        broadcast::send_copies(self, to, message, refused);
    }

    /// The way of this endpoint to broadcast, and what came of it.
    fn broadcasts(&self) -> Broadcasts {
        Broadcasts::new(BroadcastWay::Copies)
    }

    /// Moves queued messages on as far as the peers take them now, without blocking. True when nothing is left.
    fn flush(&mut self) -> bool;

    /// Appends at most `limit` messages to `sink`, without blocking, and says how many there were. Fair between peers.
    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize;

    /// Sleeps until something may have arrived, queued messages may move again, the waker was called, or `timeout` is over.
    fn wait(&mut self, timeout: Duration);

    /// A handle that ends [`wait`](Transport::wait) early.
    fn waker(&self) -> Waker;

    /// Memory from which this transport sends bodies without copying them, if it has such.
    fn buffers(&self) -> Option<Buffers> {
        None
    }

    /// A file that can be read when a [`wait`](Transport::wait) would end, for those who sleep on several transports at a
    /// time: they call [`receive`](Transport::receive) and [`flush`](Transport::flush) first, and then sleep until the file
    /// can be read.
    fn file(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Links that died although their peers live, for a transport with several links to each peer.
    fn dead_links(&self) -> &[DeadLink] {
        &[]
    }
}

/// A transport behind a pointer.
macro_rules! behind {
    ($($pointer:ty),+) => {$(
        impl<T: Transport + ?Sized> Transport for $pointer {
            fn local(&self) -> NodeId {
                (**self).local()
            }

            fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
                (**self).send(to, message)
            }

            fn broadcast(&mut self, to: &[NodeId], message: Message, refused: &mut Refusals<'_>) {
                (**self).broadcast(to, message, refused);
            }

            fn broadcasts(&self) -> Broadcasts {
                (**self).broadcasts()
            }

            fn flush(&mut self) -> bool {
                (**self).flush()
            }

            fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
                (**self).receive(limit, sink)
            }

            fn wait(&mut self, timeout: Duration) {
                (**self).wait(timeout);
            }

            fn waker(&self) -> Waker {
                (**self).waker()
            }

            fn buffers(&self) -> Option<Buffers> {
                (**self).buffers()
            }

            fn file(&self) -> Option<BorrowedFd<'_>> {
                (**self).file()
            }

            fn dead_links(&self) -> &[DeadLink] {
                (**self).dead_links()
            }
        }
    )+};
}

behind!(&mut T, Box<T>);
