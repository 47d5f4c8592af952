//! `[network]`: the network of a simulation, and the hosts of the nodes.

use crate::{
    defaults::NETWORK as DEFAULT,
    limits::MAX_FAULTS,
    plan::NetworkPlan,
    schema::{Default, Key, Kind, bandwidth, delay, key},
    view::View,
};
use evb_fabric::{HostConfig, LinkConfig, NetworkConfig};

mod control;
mod fault;
mod flow;
mod nic;
pub(super) mod placement;
pub(crate) mod preset;
mod routing;
pub(crate) mod rules;
mod switch;
mod topology;

pub(super) const DOC: &str = "The network that `evb simulate` runs on. Every key that the file does not give is the preset's, key by key; but a table \
with another `type` than the preset's has nothing of it, so that its keys must be given. Where the preset has no value, the \
default of the table below counts.";

pub(super) const NETWORK: &[Key] = &[
    key("preset", Kind::Preset, Default::Text(DEFAULT), "what lies below the other keys"),
    key(
        "fitted_to",
        Kind::Text,
        Default::Absent,
        "message layer that the network was fitted to, as `evb bench --fit` writes it: results then say what is not in them",
    ),
    key("topology", Kind::Choice(&topology::TOPOLOGY), PRESET, "switches and links"),
    key("link", Kind::Section(LINK), PRESET, "every link that does not say otherwise"),
    key("switch", Kind::Section(switch::SWITCH), PRESET, "every switch"),
    key("flow", Kind::Choice(&flow::FLOW), PRESET, "what happens to a packet that cannot go on"),
    key("routing", Kind::Choice(&routing::ROUTING), PRESET, "how a packet finds its way"),
    key("nic", Kind::Section(nic::NIC), PRESET, "every network interface"),
    key("host", Kind::Section(HOST), PRESET, "what a message costs the processor of a host"),
    key("control", Kind::Choice(&control::CONTROL), PRESET, "how control messages travel: all but fragments"),
    key(
        "placement",
        Kind::Section(placement::PLACEMENT),
        Default::Derived("each node on a host of its own"),
        "the hosts of the nodes: those of one kind follow each other",
    ),
    key(
        "fault",
        Kind::List { item: &fault::TABLE, most: MAX_FAULTS },
        Default::Absent,
        "one table `[[network.fault]]` for each thing that goes wrong in the network",
    ),
];

/// What the preset says, which has every key that its own tags want.
const PRESET: Default = Default::Derived("the preset's");

const ONE: Default = Default::Integer(1);

const LINK: &[Key] = &[
    key("rate", bandwidth(), PRESET, "data rate of each direction"),
    key("delay", delay(), PRESET, "time from the end of sending a byte to its being there: cable and transceivers"),
];

const HOST: &[Key] = &[
    key("send", delay(), PRESET, "time to send one message"),
    key("receive", delay(), PRESET, "time to receive one message"),
];

/// Makes the network, the places of the nodes in it, and its faults.
pub(crate) fn plan(view: View<'_>) -> NetworkPlan {
    NetworkPlan {
        config: config(view.below("network")),
        fitted_to: view.maybe_text("network.fitted_to").map(str::to_owned),
        placement: placement::plan(view),
        faults: view.list("network.fault").iter().map(|node| fault::plan(View(node))).collect(),
    }
}

/// Makes the description of the network.
fn config(network: View<'_>) -> NetworkConfig {
    NetworkConfig {
        preset: network.text("preset").to_owned(),
        topology: topology::TOPOLOGY.make(network.below("topology")),
        link: LinkConfig { rate: network.quantity("link.rate"), delay: network.quantity("link.delay") },
        switch: switch::plan(network.below("switch")),
        flow: flow::FLOW.make(network.below("flow")),
        routing: routing::ROUTING.make(network.below("routing")),
        nic: nic::plan(network.below("nic")),
        host: HostConfig { send: network.quantity("host.send"), receive: network.quantity("host.receive") },
        control: control::plan(network.below("control")),
    }
}
