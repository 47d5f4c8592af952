//! Makes the network of a plan.

use crate::{
    plan::{NetworkPlan, Placement},
    preset::has_manager,
    tree::Node,
    view::View,
};
use evb_fabric::{
    Arbitration, Control, Dma, ExplicitLink, Flow, HostConfig, LinkConfig, NetworkConfig, NetworkFault,
    NetworkFaultAction, NicConfig, Routing, Service, Spread, SwitchConfig, Topology, WhenFull,
};

/// Makes the network, the places of the nodes in it, and its faults.
pub(crate) fn plan(view: View<'_>) -> NetworkPlan {
    NetworkPlan {
        config: config(view),
        fitted_to: view.maybe_text("network.fitted_to").map(str::to_owned),
        placement: placement(view),
        faults: view.list("network.fault").iter().map(|node| fault(View(node))).collect(),
    }
}

/// Makes the description of the network.
pub(crate) fn config(view: View<'_>) -> NetworkConfig {
    NetworkConfig {
        preset: view.text("network.preset").to_owned(),
        topology: topology(view.below("network.topology")),
        link: link(view.below("network.link")),
        switch: switch(view.below("network.switch")),
        flow: flow(view.below("network.flow")),
        routing: routing(view.below("network.routing")),
        nic: nic(view.below("network.nic")),
        host: host(view.below("network.host")),
        control: control(view.below("network.control")),
    }
}

/// Where the first unit of each kind is.
pub(crate) fn placement(view: View<'_>) -> Placement {
    let placement = view.below("network.placement");
    Placement {
        manager: has_manager(view.0).then(|| placement.integer("manager")),
        readout: placement.integer("readout"),
        builder: placement.integer("builder"),
    }
}

fn topology(view: View<'_>) -> Topology {
    let count = |name: &str| view.integer::<u16>(name);
    match view.text("type") {
        "crossbar" => Topology::Crossbar { ports: count("ports") },
        "clos" => Topology::Clos {
            leaves: count("leaves"),
            ports_per_leaf: count("ports_per_leaf"),
            spines: count("spines"),
            links: count("links"),
            uplink: view.maybe_quantity("uplink"),
        },
        "composite" => Topology::Clos {
            leaves: count("edges"),
            ports_per_leaf: count("ports_per_edge"),
            spines: count("middles"),
            links: count("links"),
            uplink: None,
        },
        "fat-tree" => Topology::FatTree { radix: count("radix") },
        "butterfly" => Topology::Butterfly { radix: count("radix"), stages: count("stages") },
        "grid" => Topology::Grid {
            width: count("width"),
            height: count("height"),
            terminals: count("terminals"),
            links: count("links"),
        },
        "torus" => Topology::Torus {
            width: count("width"),
            height: count("height"),
            terminals: count("terminals"),
            links: count("links"),
        },
        "tree" => Topology::Tree {
            leaves: count("leaves"),
            ports_per_leaf: count("ports_per_leaf"),
            trunk: count("trunk"),
            uplink: view.maybe_quantity("uplink"),
        },
        _ => Topology::Explicit {
            switches: texts(view, "switches"),
            links: view.list("link").iter().map(|node| explicit_link(View(node))).collect(),
        },
    }
}

fn texts(view: View<'_>, path: &str) -> Vec<String> {
    view.list(path).iter().filter_map(Node::text).map(str::to_owned).collect()
}

fn explicit_link(view: View<'_>) -> ExplicitLink {
    ExplicitLink {
        ends: ["ends.0", "ends.1"].map(|end| view.text(end).to_owned()),
        count: view.integer("count"),
        rate: view.maybe_quantity("rate"),
        delay: view.maybe_quantity("delay"),
    }
}

fn link(view: View<'_>) -> LinkConfig {
    LinkConfig { rate: view.quantity("rate"), delay: view.quantity("delay") }
}

fn switch(view: View<'_>) -> SwitchConfig {
    let arbitration = match view.text("arbitration") {
        "random" => Arbitration::Random,
        "oldest" => Arbitration::Oldest,
        _ => Arbitration::RoundRobin,
    };
    SwitchConfig { delay: view.quantity("delay"), arbitration }
}

fn flow(view: View<'_>) -> Flow {
    let reaction = view.quantity("reaction");
    match view.text("type") {
        "wormhole" => Flow::Wormhole { slack: view.quantity("slack"), reaction },
        "cut-through" => Flow::CutThrough {
            buffer: view.quantity("buffer"),
            reaction,
            virtual_channels: view.integer("virtual_channels"),
        },
        _ => Flow::StoreAndForward {
            queue: view.quantity("queue"),
            full: match view.text("full") {
                "drop" => WhenFull::Drop,
                "pause" => WhenFull::Pause,
                _ => WhenFull::PriorityPause,
            },
            reaction,
            priorities: view.integer("priorities"),
        },
    }
}

fn routing(view: View<'_>) -> Routing {
    let spread = || match view.text("spread") {
        "source" => Spread::Source,
        "destination" => Spread::Destination,
        "switch" => Spread::Switch,
        _ => Spread::Pair,
    };
    match view.text("type") {
        "fixed" => Routing::Fixed { spread: spread() },
        "random" => Routing::Random,
        "dispersive" => Routing::Dispersive { patience: view.quantity("patience"), after: view.integer("after") },
        "adaptive" => Routing::Adaptive,
        "dimension-order" => Routing::DimensionOrder { spread: spread() },
        "adaptive-dimension-order" => Routing::AdaptiveDimensionOrder,
        "spanning-tree" => Routing::SpanningTree,
        _ => Routing::Ecmp,
    }
}

fn nic(view: View<'_>) -> NicConfig {
    NicConfig {
        ports: view.integer("ports"),
        rate: view.maybe_quantity("rate"),
        overhead: view.quantity("overhead"),
        packet: view.quantity("packet"),
        header: view.quantity("header"),
        minimum: view.quantity("minimum"),
        messages: view.integer("messages"),
        service: match view.text("service") {
            "random-peer" => Service::RandomPeer,
            _ => Service::InTurn,
        },
        dma: view.has("dma").then(|| Dma { read: view.quantity("dma.read"), write: view.quantity("dma.write") }),
    }
}

fn host(view: View<'_>) -> HostConfig {
    HostConfig { send: view.quantity("send"), receive: view.quantity("receive") }
}

fn control(view: View<'_>) -> Control {
    match view.text("type") {
        "separate" => Control::Separate { delay: view.quantity("delay"), rate: view.quantity("rate") },
        _ => Control::Shared,
    }
}

fn fault(view: View<'_>) -> NetworkFault {
    let action = match view.text("action") {
        "fail" => NetworkFaultAction::Fail { reroute: view.quantity("reroute") },
        "slow" => NetworkFaultAction::Slow { factor: view.number("factor") },
        _ => NetworkFaultAction::Corrupt { one_in: view.integer("one_in") },
    };
    NetworkFault { target: view.text("target").to_owned(), at: view.quantity("at"), action }
}
