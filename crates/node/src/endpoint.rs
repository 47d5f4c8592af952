//! The endpoint of a node in a process of its own, as its plan says.

use crate::control::NodeError;
use crate::join::JoinOptions;
use evb_core::NodeId;
use evb_experiment::{Plan, TransportKind};
use evb_transport::{
    Connect, Transport,
    shm::{Shm, ShmOptions},
    tcp::{Tcp, TcpOptions},
};
use evb_transport_mpi::MpiOptions;
use evb_transport_ofi::{Ofi, OfiOptions};
use std::sync::{Arc, atomic::AtomicBool};

/// An endpoint that finds its peers by their addresses.
pub(crate) trait Endpoint: Transport + Connect {}

impl<T: Transport + Connect> Endpoint for T {}

/// What is done with an endpoint, of whichever kind it is.
pub(crate) trait WithEndpoint {
    fn with<T: Endpoint>(self, endpoint: T) -> Result<(), NodeError>;
}

/// Options of one endpoint.
pub(crate) struct Own<'a> {
    pub(crate) node: NodeId,
    /// Ends the waiting for peers, when it is set.
    pub(crate) interrupt: Arc<AtomicBool>,
    pub(crate) options: &'a JoinOptions,
}

/// Opens the endpoint of a node. The nodes of a plan for threads talk over TCP when they are started one by one.
pub(crate) fn open(plan: &Plan, own: &Own<'_>, use_it: impl WithEndpoint) -> Result<(), NodeError> {
    match &plan.transport {
        TransportKind::InProcess | TransportKind::Tcp => use_it.with(tcp(plan, own)?),
        TransportKind::Shm => use_it.with(shm(plan, own)?),
        TransportKind::Mpi => use_it.with(mpi(plan, own)?),
        TransportKind::Ofi { provider } => use_it.with(ofi(plan, own, provider)?),
        TransportKind::VeloRtl { .. } => {
            Err(NodeError::new("simulated hardware is one process, with threads for its nodes")
                .hint("start all nodes together: `evb run FILE`"))
        }
    }
}

/// Longest body that a node takes: room for what a faulty source might send, so that it is counted and not taken for a
/// broken connection.
pub(crate) fn longest_body(plan: &Plan) -> usize {
    let largest = plan.building.max_fragment.0 as usize;
    let lists = plan.building.buffer_events as usize * 16;
    (2 * largest).max(lists) + 4096
}

fn tcp(plan: &Plan, own: &Own<'_>) -> Result<Tcp, NodeError> {
    let tcp = TcpOptions {
        listen: own.options.listen,
        peer_timeout: plan.run.peer_timeout.as_duration(),
        connect_timeout: own.options.patience,
        stop: own.interrupt.clone(),
        max_body: longest_body(plan),
        ..TcpOptions::new(plan.building.nodes(), own.options.token)
    };
    Tcp::bind(own.node, tcp).map_err(|error| {
        NodeError::new(error)
            .hint("`--listen HOST:PORT` chooses another address for this node; port 0 takes any free one")
    })
}

fn shm(plan: &Plan, own: &Own<'_>) -> Result<Shm, NodeError> {
    let shm = ShmOptions {
        peer_timeout: plan.run.peer_timeout.as_duration(),
        connect_timeout: own.options.patience,
        stop: own.interrupt.clone(),
        max_body: longest_body(plan),
        ..ShmOptions::new(plan.building.nodes(), own.options.token)
    };
    Shm::bind(own.node, shm)
        .map_err(|error| NodeError::new(error).hint("`--set transport.type=tcp` needs no shared memory"))
}

fn mpi(plan: &Plan, own: &Own<'_>) -> Result<evb_transport_mpi::Endpoint, NodeError> {
    let Some(mpi) = &own.options.mpi else {
        return Err(NodeError::new("nodes that talk over MPI cannot be started one by one")
            .hint("start all together: `mpirun -n NODES evb run FILE`"));
    };
    let placement: Vec<_> = (0..mpi.size()).collect();
    let endpoints = mpi.endpoints(&placement, &MpiOptions { max_body: longest_body(plan) }).map_err(NodeError::new)?;
    endpoints.into_iter().next().ok_or_else(|| NodeError::new("this rank has no node"))
}

fn ofi(plan: &Plan, own: &Own<'_>, provider: &str) -> Result<Ofi, NodeError> {
    let ip = own.options.listen.ip();
    let ofi = OfiOptions {
        provider: provider.into(),
        interface: (!ip.is_loopback()).then(|| ip.to_string()),
        peer_timeout: plan.run.peer_timeout.as_duration(),
        connect_timeout: own.options.patience,
        stop: own.interrupt.clone(),
        max_body: longest_body(plan),
        ..OfiOptions::new(plan.building.nodes(), own.options.token)
    };
    Ofi::open(own.node, ofi).map_err(NodeError::new)
}
