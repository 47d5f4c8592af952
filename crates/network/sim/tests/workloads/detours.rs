//! Detours in the dragonfly+ and the HyperX: Valiant's routes and the choice of UGAL-L. `dragonflies` has those of the dragonfly.

use crate::support::{assert_between, assert_near, efficiency, network, run_with};
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

/// A network with as many links between its groups, or between the switches of a line, as hosts in each of them.
struct Balanced {
    topology: &'static str,
    hosts: u16,
    /// Hosts in a line of switches, or in all groups.
    line: u16,
    /// Hosts in a group or on a switch; they share one link to the next one.
    share: u16,
    /// Virtual channels that detours need.
    channels: u8,
}

/// An 8-ary 2-flat: eight switches in a line.
const FLAT: Balanced =
    Balanced { topology: r#"{type="hyperx",sizes=[8],terminals=8}"#, hosts: 64, line: 64, share: 8, channels: 2 };

/// A 4-ary 3-flat: four by four switches.
const SQUARE: Balanced =
    Balanced { topology: r#"{type="hyperx",sizes=[4,4],terminals=4}"#, hosts: 64, line: 16, share: 4, channels: 4 };

const PLUS: Balanced = Balanced {
    topology: r#"{type="dragonfly-plus",groups=9,leaves=4,spines=4,terminals=2,global=2}"#,
    hosts: 72,
    line: 72,
    share: 8,
    channels: 6,
};

impl Balanced {
    fn run(&self, routing: &str, more: &[&str]) -> Record {
        let Self { topology, hosts, channels, .. } = self;
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

    /// The part of their bandwidth that hosts get when those of a switch, or group, send to those of the next one of the line.
    fn worst(&self, routing: &str, more: &[&str]) -> f64 {
        let &Self { hosts, line, share, .. } = self;
        let receiver = |host: u16| host / line * line + (host + share) % line;
        let destinations: Vec<_> = (0..hosts).map(|host| receiver(host).to_string()).collect();
        let workload = format!("workload={{type=\"assigned\",window=4,destinations=[{}]}}", destinations.join(","));
        efficiency(&self.run(routing, &[&[workload.as_str()], more].concat()))
    }

    /// Minimal routes get one share; detours take two links for one, so that half of the bandwidth is their bound.
    fn check_worst(&self, [valiant, ugal]: [f64; 2]) {
        for routing in ["random", "adaptive"] {
            assert_near(routing, self.worst(routing, &[]), 1.0 / f64::from(self.share), 0.02);
        }
        assert_between("valiant", self.worst("valiant", &[]), valiant, 0.5);
        assert_between("ugal", self.worst("ugal", &[]), ugal, 0.5);
    }
}

/// Kim, Dally and Abts (ISCA 2007) get 1 / k by minimal routes, and half of the bandwidth by those of Valiant and by UGAL. Here the one
/// buffer of each channel at an input, where packets wait behind others, costs a part of the half.
#[test]
fn detours_get_up_to_half_of_the_bandwidth_of_a_flattened_butterfly() {
    FLAT.check_worst([0.33, 0.44]);
    SQUARE.check_worst([0.38, 0.37]);
    assert_between("ugal with iSLIP", SQUARE.worst("ugal", &["network.switch.arbitration=\"islip\""]), 0.44, 0.5);
}

#[test]
fn detours_get_up_to_half_of_the_bandwidth_of_a_dragonfly_plus() {
    PLUS.check_worst([0.4, 0.46]);
}

/// Where minimal routes use all links evenly, UGAL takes them.
#[test]
fn ugal_takes_minimal_routes_under_uniform_traffic() {
    for balanced in [FLAT, SQUARE, PLUS] {
        let [minimal, valiant, ugal] = ["random", "valiant", "ugal"].map(|by| efficiency(&balanced.run(by, &[])));
        assert_between("ugal", ugal, minimal * 0.97, 0.8);
        assert_between("valiant", valiant, 0.3, 0.5);
    }
}
