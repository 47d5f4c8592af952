//! Routes through a dragonfly of nine groups.

use crate::saturated::Saturated;
use crate::support::{assert_between, assert_near, efficiency};

/// Four switches in a group, with two hosts and two links to other groups each: one link between any two groups.
const DRAGONFLY: Saturated =
    Saturated { topology: r#"{type="dragonfly",groups=9,routers=4,terminals=2,global=2}"#, hosts: 72, channels: 5 };

/// All hosts of a group send to hosts of the next one.
fn to_next_group(routing: &str) -> f64 {
    DRAGONFLY.assigned(routing, |host| (host + 8) % 72, &[])
}

/// The eight hosts of a group share one link (Kim et al. 2008: 1 / (a p) of the bandwidth, with a switches of p hosts each).
#[test]
fn minimal_routes_to_the_next_group_share_one_link() {
    for routing in ["fixed", "adaptive"] {
        assert_near(routing, to_next_group(routing), 1.0 / 8.0, 0.02);
    }
}

/// Half of the bandwidth is the bound of Valiant's routes, since each packet takes two links between groups.
#[test]
fn routes_over_another_group_spread_the_traffic() {
    assert_between("valiant", to_next_group("valiant"), 0.33, 0.5);
    assert_between("ugal", to_next_group("ugal"), 0.4, 0.5);
}

/// Where all links are used evenly by minimal routes, UGAL takes these.
#[test]
fn ugal_is_as_good_as_minimal_routes_under_uniform_traffic() {
    assert_between("ugal", DRAGONFLY.uniform("ugal"), DRAGONFLY.uniform("fixed") * 0.97, 0.8);
    assert_between("valiant", DRAGONFLY.uniform("valiant"), 0.3, 0.5);
}

/// Saturated traffic of every kind goes on.
#[test]
fn no_route_of_a_dragonfly_blocks_itself() {
    for routing in ["fixed", "random", "adaptive", "ecmp", "valiant", "ugal"] {
        let record = DRAGONFLY.run(routing, &["network.topology.global_rate=400 Gbit/s"]);
        assert_between(routing, efficiency(&record), 0.3, 1.0);
    }
}
