//! The endpoint of a node in a process of its own, as the plan defines it.

use crate::control::NodeError;
use crate::join::JoinOptions;
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_transport::{NodeOptions, OpenError, UseEndpoint};
use std::sync::{Arc, atomic::AtomicBool};

/// Opens the endpoint of a node. With a plan for threads, nodes that are started one by one talk over TCP. Setting
/// `interrupt` ends the wait for peers.
pub(crate) fn open<V: UseEndpoint>(
    plan: &Plan,
    node: NodeId,
    options: &JoinOptions,
    interrupt: Arc<AtomicBool>,
    use_it: V,
) -> Result<V::Output, V::Error> {
    let options = NodeOptions {
        node,
        nodes: plan.building.nodes(),
        listen: options.listen,
        token: options.token,
        peer_timeout: plan.run.peer_timeout.as_duration(),
        connect_timeout: options.patience,
        stop: interrupt,
        max_body: longest_body(plan),
    };
    evb_transports::open(&plan.transport, options, use_it)
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
