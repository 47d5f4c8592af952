//! The nodes of a session as run control sees them, in threads or processes.

use crate::{
    control::{Notice, Order},
    error::NodeError,
    machine::NodeMachine,
    observer::Observer,
    run_info::RunInfo,
};
use evb_core::NodeId;
use evb_experiment::Plan;
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// The plan of the configured nodes, and the resolved experiment file.
#[derive(Clone)]
pub(crate) struct Blueprint {
    pub(crate) plan: Plan,
    pub(crate) text: String,
}

/// The nodes of a session, in threads or processes.
pub(crate) trait NodeGroup {
    /// Takes the plan of the next configuration, and starts absent nodes if this is the task of run control.
    fn gather(
        &mut self,
        blueprint: &Arc<Blueprint>,
        absent: &[NodeId],
        observer: &mut dyn Observer,
    ) -> Result<(), NodeError>;
    /// Asks the nodes that are here, and that an experiment has, whether they could take it. Returns their names; each of
    /// them answers with the number of the question.
    fn ask(&mut self, _blueprint: &Blueprint, _question: u64) -> BTreeSet<String> {
        BTreeSet::new()
    }
    /// Gives an order to a node. `run` is the run of [`Order::Prepare`] and [`Order::Next`].
    fn order(&mut self, node: NodeId, order: Order, run: Option<&RunInfo>) -> Result<(), NodeError>;
    /// Waits for the next notice of a node, at most for `wait`.
    fn notice(&mut self, wait: Duration, observer: &mut dyn Observer) -> Result<Option<(NodeId, Notice)>, NodeError>;
    /// Starts a lost node again during the run, if this is the task of run control.
    fn bring_back(&mut self, _node: NodeId) -> Result<(), NodeError> {
        Ok(())
    }
    /// The way in which a lost node has ended, if known.
    fn fate(&mut self, node: NodeId) -> Option<String>;
    /// The longest wait for all nodes to join.
    fn patience(&self) -> Duration;
    /// The machine of a node that has joined from a separate process.
    fn machine(&self, _node: NodeId) -> Option<NodeMachine> {
        None
    }
    /// The transport's name in records.
    fn transport(&self, plan: &Plan) -> &'static str;
}
