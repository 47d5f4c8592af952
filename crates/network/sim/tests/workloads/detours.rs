//! Detours in the dragonfly+ and the HyperX: Valiant's routes and the choice of UGAL-L. `dragonflies` has those of the dragonfly.

use crate::saturated::Saturated;
use crate::support::{assert_between, assert_near};

/// A network with as many links between its groups, or between the switches of a line, as hosts in each of them.
struct Balanced {
    /// With the virtual channels that detours need.
    network: Saturated,
    /// Hosts in a line of switches, or in all groups.
    line: u16,
    /// Hosts in a group or on a switch; they share one link to the next one.
    share: u16,
}

/// An 8-ary 2-flat: eight switches in a line.
const FLAT: Balanced = Balanced {
    network: Saturated { topology: r#"{type="hyperx",sizes=[8],terminals=8}"#, hosts: 64, channels: 2 },
    line: 64,
    share: 8,
};

/// A 4-ary 3-flat: four by four switches.
const SQUARE: Balanced = Balanced {
    network: Saturated { topology: r#"{type="hyperx",sizes=[4,4],terminals=4}"#, hosts: 64, channels: 4 },
    line: 16,
    share: 4,
};

const PLUS: Balanced = Balanced {
    network: Saturated {
        topology: r#"{type="dragonfly-plus",groups=9,leaves=4,spines=4,terminals=2,global=2}"#,
        hosts: 72,
        channels: 6,
    },
    line: 72,
    share: 8,
};

impl Balanced {
    /// The part of their bandwidth that hosts get when those of a switch, or group, send to those of the next one of the line.
    fn worst(&self, routing: &str, more: &[&str]) -> f64 {
        let &Self { line, share, .. } = self;
        self.network.assigned(routing, |host| host / line * line + (host + share) % line, more)
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
    for Balanced { network, .. } in [FLAT, SQUARE, PLUS] {
        assert_between("ugal", network.uniform("ugal"), network.uniform("random") * 0.97, 0.8);
        assert_between("valiant", network.uniform("valiant"), 0.3, 0.5);
    }
}
