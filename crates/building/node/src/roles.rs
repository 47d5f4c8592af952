//! The role of a node, and the files that it needs on its machine.

use crate::builder::BuilderNode;
use crate::error::NodeError;
use crate::filter;
use crate::manager::ManagerNode;
use crate::node::NodeRole;
use crate::readout::{ReadoutNode, source_error};
use crate::run_info::RunStart;
use crate::storage::storage_error;
use evb_core::{NodeId, SourceId};
use evb_events::WriteError;
use evb_experiment::{Keep, Plan};
use evb_protocol::Config;
use evb_sources::SharedLinks;
use evb_transport::Transport;
use std::fs;

/// Makes the role of the node with this endpoint, and opens its files. `text` is the resolved experiment, and `links` are those
/// that sources of this process share; `None` in a process of one node.
pub(crate) fn open_role(
    plan: &Plan,
    text: &str,
    run: &RunStart,
    node: NodeId,
    endpoint: &impl Transport,
    links: Option<&SharedLinks>,
) -> Result<Box<dyn NodeRole>, NodeError> {
    let (readouts, builders) = (plan.building.readout_nodes(), plan.building.builder_nodes());
    Ok(if node == Config::EVENT_MANAGER {
        Box::new(ManagerNode::new(plan))
    } else if builders.contains(node) {
        Box::new(BuilderNode::open(plan, text, run, node.0 - builders.first.0, endpoint.waker())?)
    } else {
        Box::new(ReadoutNode::open(
            plan,
            (text, run),
            SourceId(node.0 - readouts.first.0),
            node,
            (endpoint.waker(), endpoint.buffers()),
            links,
        )?)
    })
}

/// Checks that the file of a node's source is on this machine, and makes the folder of its event files. A configuration
/// thus fails before any of its runs begins.
pub(crate) fn check_paths(plan: &Plan, node: NodeId) -> Result<(), NodeError> {
    let (readouts, builders) = (plan.building.readout_nodes(), plan.building.builder_nodes());
    if readouts.contains(node) {
        let unit = SourceId(node.0 - readouts.first.0);
        let mut read = plan.bundling.read_by(unit.0).filter(|_| plan.bundling.slice.is_none());
        let checked = read.try_for_each(|source| plan.source(source).check_file(&plan.data_directory));
        return checked.map_err(|error| source_error(unit, &error));
    }
    if builders.contains(node) {
        filter::check_files(plan)?;
    }
    if builders.contains(node) && plan.storage.keep != Keep::None {
        let path = &plan.storage.directory;
        return fs::create_dir_all(path).map_err(|source| {
            storage_error(
                node.0 - builders.first.0,
                &WriteError::Write { path: path.clone(), needed: 0, lost: 0, source },
            )
        });
    }
    Ok(())
}
