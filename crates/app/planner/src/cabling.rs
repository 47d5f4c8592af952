//! The cables of a network, as the simulation has them.

use crate::demand::used_hosts;
use evb_core::Bandwidth;
use evb_experiment::Plan;
use evb_fabric::{LinkEnd, Network};

/// A cable between two ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CableRun {
    /// The host, or the lower switch.
    pub from: String,
    /// The switch.
    pub to: String,
    /// Its rate.
    pub rate: Bandwidth,
}

/// All cables of the network of a plan, those of hosts first. Places for hosts that the plan does not use have none.
#[must_use]
pub fn cables(plan: &Plan) -> Vec<CableRun> {
    let hosts = used_hosts(plan);
    let Ok(network) = Network::build(&plan.network.config) else { return Vec::new() };
    let is_used = |end: LinkEnd| match end {
        LinkEnd::Endpoint(endpoint) => endpoint.0 < hosts,
        LinkEnd::Switch(_) => true,
    };
    let order = |end: LinkEnd| match end {
        LinkEnd::Endpoint(endpoint) => (0, endpoint.0),
        LinkEnd::Switch(switch) => (1, switch.0),
    };
    let links = network.links.iter().filter(|link| order(link.from) < order(link.to) && is_used(link.from));
    let mut cables: Vec<_> = links
        .map(|link| {
            let run = CableRun { from: network.end_name(link.from), to: network.end_name(link.to), rate: link.rate };
            (order(link.from), order(link.to), run)
        })
        .collect();
    cables.sort_by_key(|&(from, to, _)| (from, to));
    cables.into_iter().map(|(_, _, run)| run).collect()
}
