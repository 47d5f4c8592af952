//! The options of a node that joins run control.

use crate::{control::Setup, error::NodeError, limits, roles::check_paths};
use evb_transport::Token;
use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// Options of a node that joins run control.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// The node's role: `evm`, or `ru` or `bu` and the index of the unit, such as `ru0`.
    pub role: String,
    /// Address at which run control listens.
    pub control: SocketAddr,
    /// Address at which this node listens for its peers; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Address at which this node listens for control messages, if they have a separate transport; any port of the
    /// host of `listen` by default.
    pub listen_control: Option<SocketAddr>,
    /// The secret of the session.
    pub token: Token,
    /// Longest wait for run control to listen, and for peers to connect.
    pub patience: Duration,
    /// Run control may be started after this node. If not, a node that cannot reach it is alone.
    pub control_may_come: bool,
    /// Folder that relative data files start from on this machine, in place of the plan's.
    pub data_directory: Option<PathBuf>,
    /// Folder of the event files on this machine, in place of the plan's.
    pub storage_directory: Option<PathBuf>,
    /// Ends a node that takes part in no run, when it is set. In a run it is for run control to end it.
    pub stop: Arc<AtomicBool>,
    /// Does not return errors that run control has received, since it reports them.
    pub quiet: bool,
}

impl JoinOptions {
    /// The setup with the folders of this machine, if a node can be configured for it here.
    pub(crate) fn fit(&self, mut setup: Setup) -> Result<Setup, NodeError> {
        let Setup { node, plan, .. } = &mut setup;
        if let Some(directory) = &self.data_directory {
            plan.data_directory = directory.clone();
        }
        if let Some(directory) = &self.storage_directory {
            plan.storage.directory = directory.clone();
        }
        limits::check_for_node(plan, &plan.building.node_name(*node))?;
        check_paths(plan, *node)?;
        Ok(setup)
    }
}
