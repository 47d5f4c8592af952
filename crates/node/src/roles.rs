//! Which role a node has.

use crate::builder::Builder;
use crate::control::NodeError;
use crate::manager::Manager;
use crate::readout::Readout;
use crate::worker::Role;
use evb_core::{NodeId, SourceId};
use evb_experiment::Plan;
use evb_protocol::Config;
use evb_transport::Transport;

/// Makes the role of one node, which has this endpoint, and opens what it needs. `text` is the resolved experiment, `run` the
/// run's number.
pub(crate) fn open_role(
    plan: &Plan,
    text: &str,
    run: u64,
    node: NodeId,
    endpoint: &impl Transport,
) -> Result<Box<dyn Role>, NodeError> {
    let (readouts, builders) = (plan.building.readout_nodes(), plan.building.builder_nodes());
    Ok(if node == Config::EVENT_MANAGER {
        Box::new(Manager::new(plan))
    } else if builders.contains(node) {
        Box::new(Builder::open(plan, text, run, node.0 - builders.first.0, endpoint.waker())?)
    } else {
        Box::new(Readout::open(
            plan,
            SourceId(node.0 - readouts.first.0),
            node,
            (endpoint.waker(), endpoint.buffers()),
        )?)
    })
}
