//! The errors of measurements.

use evb_core::NodeId;
use evb_node::limits::MORE_THREADS;
use evb_sources::SourceError;
use evb_transport::{JoinError, OpenError, Refused};
use std::{io, net::SocketAddr, process::ExitStatus};

/// An error of a benchmark on real nodes. Its text names the place; errors below it are its sources.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The caller has stopped the measurements.
    #[error("stopped")]
    Stopped,
    /// The layer cannot be opened, or simulated hardware cannot be built.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The nodes of the layer are threads, and cannot be processes.
    #[error("the nodes of {0} are threads of one process")]
    OneProcess(String),
    /// The nodes of the layer are processes, and nothing starts them.
    #[error("the nodes of {0} are processes, and nothing is there to start them")]
    NoLaunch(String),
    /// The launch has no address at which its processes reach it.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// A process of the launch does not start.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The system has no more threads.
    #[error("cannot start a thread: {0}; {MORE_THREADS}")]
    Thread(#[source] io::Error),
    /// A node cannot be bound to its core.
    #[error("cannot pin to core {core}: {source}")]
    Pin {
        /// The core.
        core: u16,
        /// The system's answer.
        source: io::Error,
    },
    /// The commands that start the nodes cannot be made.
    #[error("the nodes cannot be started: {0}")]
    Commands(#[source] io::Error),
    /// A node was ordered to take part in work that does not include it.
    #[error("the work is for other nodes")]
    NoMember,
    /// The thread of a node panicked.
    #[error("a node panicked")]
    Panicked,
    /// A node cannot join its peers.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The layer takes no message for a node.
    #[error("{to}: {refused}")]
    Refused {
        /// The receiver.
        to: NodeId,
        /// The reason.
        #[source]
        refused: Refused,
    },
    /// The layer has lost a peer.
    #[error("{0} went away")]
    Gone(NodeId),
    /// Some peers did not end the measurement in time.
    #[error("no end: nothing more from {}", list(.0))]
    NoEnd(Vec<NodeId>),
    /// The source of the sizes cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Some processes did not come in time.
    #[error("nothing comes from {}", list(.0))]
    Missing(Vec<NodeId>),
    /// A process ended before the measurements did.
    #[error("{} of the launch ended: {status}", .node.map_or_else(|| "a process".into(), |node| format!("the process of {node}")))]
    Ended {
        /// Its node, if it is one process for each.
        node: Option<NodeId>,
        /// How it ended.
        status: ExitStatus,
    },
    /// The connection of a node and its launch is broken.
    #[error("{peer}: {source}")]
    Control {
        /// The other end: a node, or the launch and its address.
        peer: String,
        /// The system's answer.
        source: io::Error,
    },
    /// Some nodes have failed. When one fails, others fail after it: the first reason of all is among them.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Nodes(Vec<NodeFailure>),
    /// A measurement failed.
    #[error("{benchmark} of {size} B on {nodes} nodes: {source}")]
    Measurement {
        /// Name of the benchmark.
        benchmark: &'static str,
        /// Size of its messages in bytes.
        size: usize,
        /// Number of nodes that take part.
        nodes: u16,
        /// The reason.
        source: Box<BenchError>,
    },
}

impl BenchError {
    /// Advice to the user, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Open(error) => error.hint.as_deref(),
            Self::Measurement { source, .. } => source.hint(),
            _ => None,
        }
    }
}

/// The reason why a process of a launch has failed, as far as the launch knows it.
#[derive(Debug, thiserror::Error)]
pub enum NodeFailure {
    /// The node reported the reason.
    #[error("{0}: {1}")]
    Reported(NodeId, String),
    /// The node closed its connection.
    #[error("{0} is gone")]
    Gone(NodeId),
    /// The node is silent, or its report cannot be read.
    #[error("{0} does not answer: {1}")]
    Silent(NodeId, #[source] io::Error),
    /// The node reports something else than its measurement.
    #[error("{0} reports something else than its measurement")]
    Unexpected(NodeId),
}

fn list(nodes: &[NodeId]) -> String {
    nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ")
}
