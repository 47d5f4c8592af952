//! What the simulated network of a plan has: the levels of a tree, the headroom of inputs.

use evb_experiment::Plan;
use evb_fabric::{Headroom, LevelRates, Network};

/// The levels of the network if it is a tree, that of the hosts first; none in any other topology.
#[must_use]
pub fn tree_levels(plan: &Plan) -> Vec<LevelRates> {
    Network::build(&plan.network.config).map_or_else(|_| Vec::new(), |network| network.levels())
}

/// The headroom of inputs that ask for pauses, for each kind of cable; none in a network that does not pause.
#[must_use]
pub fn headrooms(plan: &Plan) -> Vec<Headroom> {
    let config = &plan.network.config;
    if !config.flow.pauses() {
        return Vec::new();
    }
    Network::build(config).map_or_else(|_| Vec::new(), |network| network.headrooms())
}
