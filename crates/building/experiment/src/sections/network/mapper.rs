//! `[network.mapper]`: the mappers of the hosts of a source-routed network.

use crate::{diagnostics::Problem, limits::*, schema::*, view::View};
use evb_fabric::{MapperConfig, Network, Routing};

pub(super) const MAPPER: &[Key] = &[
    key(
        "interval",
        wait(),
        KeyDefault::Text("1 s"),
        "time from the end of one survey of the network by the leader to the next",
    ),
    key(
        "patience",
        wait(),
        KeyDefault::Text("5 s"),
        "time without a word of the leader after which a host takes it for gone; longer than it takes to explore the \
         network",
    ),
    key("timeout", wait(), KeyDefault::Text("1 ms"), "time after which an unanswered probe is repeated, or fails"),
    key("tries", integer(1, 100), KeyDefault::Integer(3), "most attempts of a probe"),
    key("window", integer(1, MAX_WINDOW), KeyDefault::Integer(16), "most probes of a mapper in flight"),
    key(
        "probe",
        bytes(1, MAX_SWITCH_BUFFER),
        KeyDefault::Text("64 B"),
        "a probe on the wire; a message with the map has 4 bytes more for each switch and each end of a cable, and 8 for \
         each host",
    ),
    key(
        "overhead",
        delay(),
        KeyDefault::Text("10 us"),
        "time of the host for each message of a mapper that it sends or receives",
    ),
];

pub(super) fn plan(view: View<'_>) -> MapperConfig {
    MapperConfig {
        interval: view.quantity("interval"),
        patience: view.quantity("patience"),
        timeout: view.quantity("timeout"),
        tries: view.integer("tries"),
        window: view.integer("window"),
        probe: view.quantity("probe"),
        overhead: view.quantity("overhead"),
    }
}

/// Mappers need switches that follow the routes of hosts, over cables that work in both directions.
pub(super) fn check(view: View<'_>, network: &Network) -> Option<Problem> {
    if !view.has("network.mapper") {
        return None;
    }
    let by_switches = !matches!(
        network.config.routing,
        Routing::Fixed { .. } | Routing::Random | Routing::Dispersive { .. } | Routing::DimensionOrder { .. }
    );
    let (message, help, because) = if by_switches {
        let help = "use a routing whose routes hosts can choose: \"fixed\", \"random\", \"dispersive\" or \
                    \"dimension-order\"; or remove network.mapper";
        ("the hosts' mappers find routes, but in this network switches choose them", help, "network.routing.type")
    } else if network.config.planes.is_some() {
        let help = "remove network.mapper: then routes are found again after `reroute`; or remove network.planes";
        ("a mapper explores one network, and no link joins planes", help, "network.planes")
    } else if !network.is_of_cables() {
        let help = "use a topology whose links all have two directions, or remove network.mapper";
        ("probes of a mapper cannot come back over links of one direction", help, "network.topology")
    } else {
        return None;
    };
    Some(
        Problem::new(message, help)
            .at(view.origin("network.mapper"), "mappers")
            .at(view.origin(because), "because of this"),
    )
}
