//! Traffic on the HyperX and the dragonfly+.

use crate::saturated::Saturated;
use crate::support::{assert_between, assert_near};

/// Four by four switches with two hosts each.
const HYPERX: Saturated = Saturated { topology: r#"{type="hyperx",sizes=[4,4],terminals=2}"#, hosts: 32, channels: 2 };

/// Five groups of three leaves and two spines, with two hosts on each leaf. Minimal routes need a single channel.
const PLUS: Saturated = Saturated {
    topology: r#"{type="dragonfly-plus",groups=5,leaves=3,spines=2,terminals=2,global=2,global_rate="100 Gbit/s"}"#,
    hosts: 30,
    channels: 1,
};

/// Both hosts of a switch send to the next switch of the row, over one link; with two links in a row each has its own.
#[test]
fn neighbours_of_a_hyperx_share_their_link() {
    let neighbours = |more: &[&str]| HYPERX.assigned("adaptive", |host| host / 8 * 8 + (host + 2) % 8, more);
    assert_near("one link", neighbours(&[]), 0.5, 0.02);
    assert_near("two links", neighbours(&["network.topology.links=[2, 1]"]), 1.0, 0.02);
}

/// The six hosts of a group of a dragonfly+ share one link of half their rate to the next group.
#[test]
fn groups_of_a_dragonfly_plus_share_their_link() {
    assert_near("one link", PLUS.assigned("adaptive", |host| (host + 6) % 30, &[]), 0.5 / 6.0, 0.02);
}

/// Saturated traffic of every kind goes on.
#[test]
fn no_route_blocks_itself() {
    for routing in ["fixed", "random", "adaptive", "ecmp"] {
        for network in [HYPERX, PLUS] {
            assert_between(routing, network.uniform(routing), 0.2, 1.0);
        }
    }
    let ordered = Saturated { channels: 1, ..HYPERX };
    assert_between("dimension-order", ordered.uniform("dimension-order"), 0.3, 1.0);
}
