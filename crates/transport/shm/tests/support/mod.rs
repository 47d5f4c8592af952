//! Helpers of the tests of shared memory.

use evb_core::NodeId;
use evb_transport::conformance::{changed, joined};
use evb_transport_shm::{Shm, ShmOptions};

/// Nodes of shared memory of this process, joined from one thread each.
pub(crate) fn shm_nodes(count: usize, options: &ShmOptions) -> Vec<Shm> {
    let options = ShmOptions {
        endpoint: changed(options.endpoint.clone(), |endpoint| endpoint.nodes = count as u16),
        ..options.clone()
    };
    joined((0..count as u16).map(|node| Shm::bind(NodeId(node), options.clone()).unwrap()).collect())
}
