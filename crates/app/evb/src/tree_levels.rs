//! The levels of the simulated network of a plan.

use evb_experiment::Plan;
use evb_fabric::{LevelRates, Network};

/// The levels of the network if it is a tree, that of the hosts first; none in any other topology.
#[must_use]
pub fn tree_levels(plan: &Plan) -> Vec<LevelRates> {
    Network::build(&plan.network.config).map_or_else(|_| Vec::new(), |network| network.levels())
}
