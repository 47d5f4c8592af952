//! The hardware as a message layer and as a transport. Where it cannot be simulated, the tests are skipped and say so.

use evb_core::NodeId;
use evb_transport::{
    MessageLayer, OverLayer, Refused, Transport,
    conformance::{Subject, run_all},
};
use evb_transport_rtl::{CYCLE, Pace, RtlError, RtlLayer, RtlOptions, cluster};
use evb_velo::registers::Control;
use std::thread;

/// Longest body: that of the longest messages of the suite that every transport takes. Every byte costs cycles.
const MAX_BODY: usize = 4096;

/// A cluster; none where no tool can build it.
fn nodes(count: usize, options: &RtlOptions) -> Option<Vec<RtlLayer>> {
    match cluster(count, options) {
        Ok(nodes) => Some(nodes),
        Err(error @ RtlError::NoTool { .. }) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The suite drives several nodes from one thread, which cannot be in lockstep with itself. The wide link does the same in
/// fewer cycles, and 500 small messages must find room.
#[test]
fn the_transport_over_the_hardware_conforms() {
    let options = RtlOptions {
        pace: Pace::Free,
        link: 96,
        queue_words: 30_000,
        max_bytes: MAX_BODY + evb_transport::HEAD_BYTES,
        ..RtlOptions::default()
    };
    if nodes(2, &options).is_none() {
        return;
    }
    let connect = |count| {
        let layers = nodes(count, &options).expect("the tools are there").into_iter();
        layers.map(|layer| Box::new(OverLayer::new(layer)) as Box<dyn Transport>).collect()
    };
    run_all(&Subject { connect: &connect, max_body: MAX_BODY });
}
