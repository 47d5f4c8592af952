//! The transport between threads under the conformance suite.

use evb_transport::{
    DEFAULT_MAX_BODY, HEAD_BYTES, OverLayer, OverTransport,
    conformance::{Subject, boxed, run_all},
    doorbell::Doorbell,
};
use evb_transport_shm::in_process;
use std::sync::Arc;

#[test]
fn in_process_conforms() {
    let connect = |nodes| boxed(in_process::connect(nodes, 512));
    run_all(&Subject { connect: &connect, max_body: DEFAULT_MAX_BODY });
}

/// A transport over a layer over a transport.
#[test]
fn a_transport_over_a_layer_conforms() {
    let max_body = 1 << 20;
    let over = |end| OverLayer::new(OverTransport::new(end, max_body + HEAD_BYTES));
    let connect = |nodes| boxed(in_process::connect(nodes, 512).into_iter().map(over).collect());
    run_all(&Subject { connect: &connect, max_body });
}

#[test]
fn workers_share_one_doorbell() {
    let bells = [Arc::new(Doorbell::new()), Arc::new(Doorbell::new())];
    let hosts: Vec<_> = (0..6).map(|node| Arc::clone(&bells[node % 2])).collect();
    let nodes = in_process::connect_workers(8, &hosts);
    assert!(nodes.iter().enumerate().all(|(node, end)| Arc::ptr_eq(end.doorbell(), &bells[node % 2])));
}
