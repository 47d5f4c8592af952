//! Rules on the keys of `[network]`, among themselves and with the number of nodes.

use super::{
    KnownNetwork, mapper,
    placement::{self, has_manager},
    planes, topology,
};
use crate::{diagnostics::Problem, limits::*, scalar::brief, sections::background, view::View};
use evb_core::Span;
use evb_fabric::{FaultTarget, Network};

/// Checks that the network can be built, that every node has a host in it, and that faults happen to parts of it. The
/// points of a sweep often have the same network: `known` keeps the last one.
pub(crate) fn check(view: View<'_>, known: &mut KnownNetwork) -> Vec<Problem> {
    if let Some(problem) = needless_manager(view).or_else(|| planes::check(view)).or_else(|| topology::check(view)) {
        return vec![problem];
    }
    let mut config = super::config(view.below("network"));
    match known.fabric(view, config.routing) {
        Ok(fabric) => config.topology = fabric.unwrap_or(config.topology),
        Err(problem) => return vec![problem],
    }
    // Routes are left to the simulation: to find them for every point of a sweep takes long.
    let network = match known
        .network
        .take()
        .filter(|network| network.config == config)
        .map_or_else(|| Network::build(&config), Ok)
    {
        Ok(network) => known.network.insert(network),
        Err(error) => {
            let problem = Problem::new(format!("no such network can be: {error}"), error.hint());
            return vec![problem.at(view.origin("network"), "this network")];
        }
    };
    let faults = view.list("network.fault").iter().filter_map(|node| fault(view, network, View(node)));
    let mappers = mapper::check(view, network);
    let of_nodes = hosts(view, network.hosts()).into_iter().chain(background::hosts(view, network.hosts()));
    of_nodes.chain(mappers).chain(faults).take(MAX_FOUND).collect()
}

fn needless_manager(view: View<'_>) -> Option<Problem> {
    (!has_manager(view.0) && view.has("network.placement.manager")).then(|| {
        let help = "the event manager is only on the network when events are built and control is \"shared\": remove \
                    `manager`";
        Problem::new("`network.placement.manager` is the host of an event manager that needs none", help)
            .at(view.origin("network.placement.manager"), "not on the network")
            .at(view.origin("network.control.type").or_else(|| view.origin("workload.type")), "because of this")
    })
}

/// Every unit of each kind must have a host.
fn hosts(view: View<'_>, hosts: usize) -> Vec<Problem> {
    let placement = placement::plan(view);
    let manager = placement.manager.map(|first| ("manager", "", "the event manager", first, 1));
    let readout = ("readout", "readout.units", "the readout units", placement.readout, view.integer("readout.units"));
    let builder = ("builder", "builder.units", "the builder units", placement.builder, view.integer("builder.units"));
    let kinds = manager.into_iter().chain([readout, builder]);
    kinds
        .filter_map(|(key, units, what, first, count): (_, &str, _, _, usize)| {
            let last = usize::from(first) + count - 1;
            (last >= hosts).then(|| {
                let message = match count {
                    1 => format!("there is no host {first} for {what}: the network has {hosts} hosts"),
                    _ => format!("there are no hosts {first} to {last} for {what}: the network has {hosts} hosts"),
                };
                let help = "hosts are counted from 0: use a larger network.topology, fewer units, or another \
                            network.placement; units of different kinds may share hosts";
                Problem::new(message, help)
                    .at(view.origin(&format!("network.placement.{key}")), "first host")
                    .at(view.origin("network.topology"), "too small")
                    .at(view.origin(units), "units")
            })
        })
        .collect()
}

/// A fault that ends must begin before. Mappers look for what is gone, and not for what came back.
fn end_of_fault(view: View<'_>, fault: View<'_>) -> Option<Problem> {
    let until: Span = fault.maybe_quantity("until")?;
    let at = |problem: Problem| problem.at(fault.origin("until"), "its end");
    if until <= fault.quantity("at") {
        let help = "write an `until` after `at`, or leave it out";
        return Some(at(Problem::new("the fault ends before it begins", help).at(fault.origin("at"), "its beginning")));
    }
    (view.has("network.mapper") && fault.text("action") == "fail").then(|| {
        let help = "remove `until`, or `network.mapper`: then routes are found again after `reroute`";
        at(Problem::new("mappers do not find links that come back", help))
    })
}

/// Only a host pauses without end, and only a network with pauses hears it.
fn pause_of_host(network: &Network, target: FaultTarget, fault: View<'_>) -> Option<Problem> {
    if fault.text("action") != "pause" {
        return None;
    }
    let links = match target {
        FaultTarget::Link(link) => vec![link],
        FaultTarget::Cable(links) => links.to_vec(),
        FaultTarget::Switch(_) | FaultTarget::Plane(_) => Vec::new(),
    };
    if links.iter().all(|&link| network.link(link).to.switch().is_some()) {
        let to_host = network.endpoints.first().map_or("", |endpoint| &*network.link(endpoint.down).name);
        let help = format!("name a link to a host, such as {to_host:?}");
        return Some(
            Problem::new("no host is at the end that is to pause", help).at(fault.origin("target"), "this part"),
        );
    }
    (!network.config.flow.pauses()).then(|| {
        let help = "use network.flow.full = \"priority-pause\" or \"pause\", or remove the fault";
        Problem::new("this network has no pauses", help).at(fault.origin("action"), "nothing obeys them")
    })
}

fn fault(view: View<'_>, network: &Network, fault: View<'_>) -> Option<Problem> {
    let target = fault.text("target");
    if let Some(found) = network.find(target) {
        return end_of_fault(view, fault).or_else(|| pause_of_host(network, found, fault));
    }
    let link = network.links.first().map_or("", |link| &*link.name);
    let switch = network.switches.first().map_or("", |switch| &*switch.name);
    let message = format!("there is no link or switch {} in this network", brief(target));
    let help =
        format!("its {} links have names such as {link:?}, its switches such as {switch:?}", network.links.len());
    Some(Problem::new(message, help).at(fault.origin("target"), "no such part"))
}
