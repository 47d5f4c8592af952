//! The endpoint of a node in a process of its own, as its plan says.

use crate::control::NodeError;
use crate::join::JoinOptions;
use evb_experiment::{Plan, TransportKind};
use evb_transport::{
    Connect, Transport,
    shm::{Shm, ShmOptions},
    tcp::{Tcp, TcpOptions},
};

/// An endpoint that finds its peers by their addresses.
pub(crate) trait Endpoint: Transport + Connect {}

impl<T: Transport + Connect> Endpoint for T {}

/// What is done with an endpoint, of whichever kind it is.
pub(crate) trait WithEndpoint {
    fn with<T: Endpoint>(self, endpoint: T) -> Result<(), NodeError>;
}

/// Opens the endpoint of a node. The nodes of a plan for threads talk over TCP when they are started one by one.
pub(crate) fn open(plan: &Plan, options: &JoinOptions, use_it: impl WithEndpoint) -> Result<(), NodeError> {
    match &plan.transport {
        TransportKind::InProcess | TransportKind::Tcp => use_it.with(tcp(plan, options)?),
        TransportKind::Shm => use_it.with(shm(plan, options)?),
        other => Err(NodeError::new(format!("nodes cannot join one by one over {}", other.name()))),
    }
}

/// Longest body that a node takes: room for what a faulty source might send, so that it is counted and not taken for a
/// broken connection.
fn longest_body(plan: &Plan) -> usize {
    let largest = plan.building.max_fragment.0 as usize;
    let lists = plan.building.buffer_events as usize * 16;
    (2 * largest).max(lists) + 4096
}

fn tcp(plan: &Plan, options: &JoinOptions) -> Result<Tcp, NodeError> {
    let tcp = TcpOptions {
        listen: options.listen,
        peer_timeout: plan.run.peer_timeout.as_duration(),
        connect_timeout: options.patience,
        max_body: longest_body(plan),
        ..TcpOptions::new(plan.building.nodes(), options.token)
    };
    Tcp::bind(options.node, tcp).map_err(|error| {
        NodeError::new(error)
            .hint("`--listen HOST:PORT` chooses another address for this node; port 0 takes any free one")
    })
}

fn shm(plan: &Plan, options: &JoinOptions) -> Result<Shm, NodeError> {
    let shm = ShmOptions {
        connect_timeout: options.patience,
        max_body: longest_body(plan),
        ..ShmOptions::new(plan.building.nodes(), options.token)
    };
    Shm::bind(options.node, shm)
        .map_err(|error| NodeError::new(error).hint("`--set transport.type=tcp` needs no shared memory"))
}
