//! Hosts of a topology that send fragments of 64 KiB as fast as their links take them.

use crate::support::{efficiency, network, run_with};
use evb_record::Record;

const TRAFFIC: &str = r#"
[network]
preset = "infiniband-hdr-fat-tree"
flow = { type = "cut-through", buffer = "64 KiB", reaction = "250 ns" }
placement = { readout = 0, builder = 0 }
control = { type = "separate", delay = "5 us", rate = "10 Gbit/s" }
[workload]
type = "random"
window = 4
[trigger]
duration = "700 us"
[run]
warmup = "200 us"
[readout]
source = { type = "fixed", size = "64 KiB" }
"#;

/// A network with a sender and a receiver on each host.
pub(crate) struct Saturated {
    pub(crate) topology: &'static str,
    pub(crate) hosts: u16,
    pub(crate) channels: u8,
}

impl Saturated {
    /// Runs the traffic to random receivers by a kind of routing, with more keys set; no packets may wait in a ring.
    pub(crate) fn run(&self, routing: &str, more: &[&str]) -> Record {
        let Self { topology, hosts, channels } = self;
        let keys = [
            format!("network.topology={topology}"),
            format!("network.routing={{type=\"{routing}\"}}"),
            format!("network.flow.virtual_channels={channels}"),
            format!("readout.units={hosts}"),
            format!("builder.units={hosts}"),
        ];
        let record = run_with(TRAFFIC, &[&keys.each_ref().map(String::as_str), more].concat());
        assert!(network(&record).deadlock.is_empty(), "{topology} {routing}");
        record
    }

    /// The part of their bandwidth that hosts get with random receivers.
    pub(crate) fn uniform(&self, routing: &str) -> f64 {
        efficiency(&self.run(routing, &[]))
    }

    /// The part of their bandwidth that hosts get when each has one receiver.
    pub(crate) fn assigned(&self, routing: &str, receiver: impl Fn(u16) -> u16, more: &[&str]) -> f64 {
        let destinations: Vec<_> = (0..self.hosts).map(|host| receiver(host).to_string()).collect();
        let workload = format!("workload={{type=\"assigned\",window=4,destinations=[{}]}}", destinations.join(","));
        efficiency(&self.run(routing, &[&[workload.as_str()], more].concat()))
    }
}
