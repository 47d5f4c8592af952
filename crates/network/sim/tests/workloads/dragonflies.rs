//! Routes through a dragonfly of nine groups.

use crate::support::{assert_between, assert_near, efficiency, network, run_with};
use evb_record::Record;

/// Four switches in a group, with two hosts and two links to other groups each: one link between any two groups.
const DRAGONFLY: &str = r#"
[network]
preset = "infiniband-hdr-fat-tree"
topology = { type = "dragonfly", groups = 9, routers = 4, terminals = 2, global = 2 }
flow = { type = "cut-through", buffer = "64 KiB", reaction = "250 ns", virtual_channels = 5 }
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
units = 72
source = { type = "fixed", size = "64 KiB" }
[builder]
units = 72
"#;

/// All hosts of a group send to hosts of the next one.
fn to_next_group(routing: &str) -> Record {
    let destinations: Vec<_> = (0..72).map(|host| ((host + 8) % 72).to_string()).collect();
    let workload = format!("workload={{type=\"assigned\",window=4,destinations=[{}]}}", destinations.join(","));
    run_with(DRAGONFLY, &[&workload, &format!("network.routing={{type=\"{routing}\"}}")])
}

fn uniform(routing: &str) -> Record {
    run_with(DRAGONFLY, &[&format!("network.routing={{type=\"{routing}\"}}")])
}

/// The eight hosts of a group share one link (Kim et al. 2008: 1 / (a p) of the bandwidth, with a switches of p hosts each).
#[test]
fn minimal_routes_to_the_next_group_share_one_link() {
    for routing in ["fixed", "adaptive"] {
        assert_near(routing, efficiency(&to_next_group(routing)), 1.0 / 8.0, 0.02);
    }
}

/// Half of the bandwidth is the bound of Valiant's routes, since each packet takes two links between groups.
#[test]
fn routes_over_another_group_spread_the_traffic() {
    assert_between("valiant", efficiency(&to_next_group("valiant")), 0.33, 0.5);
    assert_between("ugal", efficiency(&to_next_group("ugal")), 0.4, 0.5);
}

/// Where all links are used evenly by minimal routes, UGAL takes these.
#[test]
fn ugal_is_as_good_as_minimal_routes_under_uniform_traffic() {
    let (minimal, ugal) = (efficiency(&uniform("fixed")), efficiency(&uniform("ugal")));
    assert_between("ugal", ugal, minimal * 0.97, 0.8);
    assert_between("valiant", efficiency(&uniform("valiant")), 0.3, 0.5);
}

/// Saturated traffic of every kind goes on.
#[test]
fn no_route_of_a_dragonfly_blocks_itself() {
    let faster = "network.topology.global_rate=400 Gbit/s";
    for routing in ["fixed", "random", "adaptive", "ecmp", "valiant", "ugal"] {
        let record = run_with(DRAGONFLY, &[&format!("network.routing={{type=\"{routing}\"}}"), faster]);
        assert!(network(&record).deadlock.is_empty(), "{routing}");
        assert_between(routing, efficiency(&record), 0.3, 1.0);
    }
}
