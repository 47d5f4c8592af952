//! Traffic on the HyperX and the dragonfly+.

use crate::support::{assert_between, assert_near, efficiency, network, run_with};

/// Four by four switches with two hosts each.
const HYPERX: &str = r#"
[network]
preset = "infiniband-hdr-fat-tree"
topology = { type = "hyperx", sizes = [4, 4], terminals = 2 }
flow = { type = "cut-through", buffer = "64 KiB", reaction = "250 ns", virtual_channels = 2 }
routing = { type = "adaptive" }
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
units = 32
source = { type = "fixed", size = "64 KiB" }
[builder]
units = 32
"#;

/// Five groups of three leaves and two spines, with two hosts on each leaf.
const PLUS: &str = "network.topology={type=\"dragonfly-plus\",groups=5,leaves=3,spines=2,terminals=2,global=2,global_rate=\"100 Gbit/s\"}";

/// Both hosts of a switch send to the next switch of the row, over one link; with two links in a row each has its own.
#[test]
fn neighbours_of_a_hyperx_share_their_link() {
    let destinations: Vec<_> = (0..32).map(|host| (host / 8 * 8 + (host + 2) % 8).to_string()).collect();
    let workload = format!("workload={{type=\"assigned\",window=4,destinations=[{}]}}", destinations.join(","));
    assert_near("one link", efficiency(&run_with(HYPERX, &[&workload])), 0.5, 0.02);
    let doubled = run_with(HYPERX, &[&workload, "network.topology.links=[2, 1]"]);
    assert_near("two links", efficiency(&doubled), 1.0, 0.02);
}

/// The six hosts of a group of a dragonfly+ share one link of half their rate to the next group.
#[test]
fn groups_of_a_dragonfly_plus_share_their_link() {
    let destinations: Vec<_> = (0..30).map(|host| ((host + 6) % 30).to_string()).collect();
    let workload = format!("workload={{type=\"assigned\",window=4,destinations=[{}]}}", destinations.join(","));
    let record = run_with(HYPERX, &[PLUS, &workload, "readout.units=30", "builder.units=30"]);
    assert_near("one link", efficiency(&record), 0.5 / 6.0, 0.02);
}

/// Saturated traffic of every kind goes on, in a dragonfly+ with a single channel.
#[test]
fn no_route_blocks_itself() {
    let plus = [PLUS, "readout.units=30", "builder.units=30", "network.flow.virtual_channels=1"];
    for routing in ["fixed", "random", "adaptive", "ecmp"] {
        let routing = format!("network.routing={{type=\"{routing}\"}}");
        for more in [&[][..], &plus] {
            let record = run_with(HYPERX, &[more, &[&routing]].concat());
            assert!(network(&record).deadlock.is_empty(), "{routing}");
            assert_between(&routing, efficiency(&record), 0.2, 1.0);
        }
    }
    let ordered = run_with(HYPERX, &["network.routing={type=\"dimension-order\"}", "network.flow.virtual_channels=1"]);
    assert!(network(&ordered).deadlock.is_empty());
    assert_between("dimension-order", efficiency(&ordered), 0.3, 1.0);
}
