//! Errors of joining, the same for all transports that find their peers by addresses.

use crate::Refusal;
use evb_core::NodeId;
use std::{error::Error, time::Duration};

/// The reason why a node cannot join its peers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// Some peers did not appear in time.
    #[error("no connection with {} within {timeout:?}{}", list(.missing), last(.last_error))]
    Timeout {
        /// The peers that are missing, in ascending order.
        missing: Vec<NodeId>,
        /// The limit.
        timeout: Duration,
        /// The last error of one of them.
        last_error: Option<String>,
    },
    /// This process may not open more files, which a connection needs.
    #[error("no connection with the peers: too many open files (`ulimit -n N` raises the limit)")]
    OpenFiles,
    /// The flag `stop` is set.
    #[error("stopped before all peers were there")]
    Stopped,
    /// A peer refuses this node.
    #[error("{peer} at {address} refuses this node: {refusal}")]
    Refused {
        /// The peer.
        peer: NodeId,
        /// Its address, as text.
        address: String,
        /// The reason.
        refusal: Refusal,
    },
    /// A peer failed while it was joined.
    #[error("{peer} is gone: {reason}")]
    Lost {
        /// The peer.
        peer: NodeId,
        /// The reason.
        reason: String,
    },
    /// A text is not an address.
    #[error("{text:?} is not an address of {peer}: {reason}")]
    Address {
        /// The peer.
        peer: NodeId,
        /// The text.
        text: String,
        /// The reason.
        reason: String,
    },
    /// The list of peers names a node that is not a peer of this one, or one twice.
    #[error("{0} in the list of peers is this node itself, not a node of the run, or there already")]
    Peer(NodeId),
}

/// An error of joining the peers, whatever the transport. Its source is that of the transport's own error.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct JoinError(Box<dyn Error + Send + Sync>);

impl JoinError {
    /// Wraps the error of a transport, or a message.
    pub fn new<E: Into<Box<dyn Error + Send + Sync>>>(error: E) -> Self {
        Self(error.into())
    }
}

fn list(nodes: &[NodeId]) -> String {
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn last(error: &Option<String>) -> String {
    error.as_ref().map(|error| format!("; the last error was: {error}")).unwrap_or_default()
}
