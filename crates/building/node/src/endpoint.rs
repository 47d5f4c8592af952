//! The endpoints of a node in a separate process, as the plan defines them.

use crate::control_lane::ControlEndpoint;
use crate::error::NodeError;
use crate::join_options::JoinOptions;
use crate::worker::WorkerEnd;
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_transport::{Connect, EndpointOptions, NodeOptions, OpenError, Transport, UseEndpoint};
use evb_transport_registry::TransportChoice;
use std::sync::{Arc, atomic::AtomicBool};

/// A visitor that uses the endpoints of a node, which are not connected yet.
pub(crate) trait UseEndpoints {
    /// Uses the endpoint, and that of control messages if they have a separate transport.
    fn with<T: Transport + Connect>(
        self,
        transport: T,
        control: Option<&mut dyn ControlEndpoint>,
    ) -> Result<WorkerEnd, NodeError>;
}

/// Opens the endpoints of a node. With a plan for threads, nodes that are started one by one talk over TCP. Setting
/// `interrupt` ends the wait for peers.
pub(crate) fn open(
    plan: &Plan,
    node: NodeId,
    join: &JoinOptions,
    interrupt: Arc<AtomicBool>,
    use_them: impl UseEndpoints,
) -> Result<WorkerEnd, NodeError> {
    let endpoint = EndpointOptions {
        peer_timeout: plan.run.peer_timeout.as_duration(),
        connect_timeout: join.patience,
        stop: interrupt,
        max_body: longest_body(plan),
        ..EndpointOptions::new(plan.building.nodes(), join.token)
    };
    let options = NodeOptions { node, listen: join.listen, endpoint };
    let listen = join.listen_control.unwrap_or_else(|| (join.listen.ip(), 0).into());
    match &plan.control {
        None => evb_transport_registry::open(&plan.transport, options, WithData { use_them, control: None }),
        Some(control) => {
            let first = NodeOptions { listen, ..options.clone() };
            evb_transport_registry::open(control, first, WithControl { use_them, data: (&plan.transport, options) })
        }
    }
}

/// Opens the transport of the fragments beside that of control messages.
struct WithControl<'a, V> {
    use_them: V,
    data: (&'a TransportChoice, NodeOptions),
}

impl<V: UseEndpoints> UseEndpoint for WithControl<'_, V> {
    type Output = WorkerEnd;
    type Error = NodeError;

    fn with<T: Transport + Connect>(self, mut control: T) -> Result<WorkerEnd, NodeError> {
        let (transport, options) = self.data;
        evb_transport_registry::open(
            transport,
            options,
            WithData { use_them: self.use_them, control: Some(&mut control) },
        )
    }
}

struct WithData<'a, V> {
    use_them: V,
    control: Option<&'a mut dyn ControlEndpoint>,
}

impl<V: UseEndpoints> UseEndpoint for WithData<'_, V> {
    type Output = WorkerEnd;
    type Error = NodeError;

    fn with<T: Transport + Connect>(self, transport: T) -> Result<WorkerEnd, NodeError> {
        self.use_them.with(transport, self.control)
    }
}

/// Separator between the addresses of the two transports of a node.
const SEPARATOR: char = '\t';

/// The addresses of a node for its peers, as one text.
pub(crate) fn address(transport: &dyn Connect, control: Option<&dyn ControlEndpoint>) -> String {
    match control {
        None => transport.address(),
        Some(control) => format!("{}{SEPARATOR}{}", transport.address(), control.address()),
    }
}

/// Joins these peers, given with the addresses that [`address`] has made of theirs.
pub(crate) fn connect(
    transport: &mut dyn Connect,
    control: &mut Option<&mut dyn ControlEndpoint>,
    peers: Vec<(NodeId, String)>,
) -> Result<(), NodeError> {
    let Some(control) = control else { return transport.connect(&peers).map_err(NodeError::new) };
    let part = |(node, text): (NodeId, String)| match text.split_once(SEPARATOR) {
        Some((first, second)) => Ok(((node, first.to_owned()), (node, second.to_owned()))),
        None => Err(NodeError::new(format!("{node} has no address for control messages"))),
    };
    let parts = peers.into_iter().map(part).collect::<Result<Vec<_>, _>>()?;
    let (data, of_control): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    transport.connect(&data).map_err(NodeError::new)?;
    control.connect(&of_control).map_err(|error| NodeError::new(format!("control network: {error}")))
}

/// Longest body that a node accepts. It has room for the oversized fragments of a faulty source, so that they are
/// counted and not taken for a broken connection.
pub(crate) fn longest_body(plan: &Plan) -> usize {
    let largest = plan.building.max_fragment.0 as usize;
    let lists = plan.building.buffer_events as usize * 16;
    (2 * largest).max(lists) + 4096
}

impl From<OpenError> for NodeError {
    fn from(OpenError { message, hint }: OpenError) -> Self {
        Self { message, hint }
    }
}
