//! `[network]`: the network of a simulation, and the hosts of the nodes.

use super::shaping;
use crate::{choice::*, limits::*, plan::NetworkPlan, schema::*, view::View};
use evb_fabric::{Arbitration, HostConfig, HostLinks, LinkConfig, NetworkConfig, SwitchConfig};
pub(crate) use fabric_files::KnownNetwork;
use preset_keys::{DEFAULT_NETWORK, of_preset};

mod control;
mod cpu;
mod fabric_files;
mod fault;
mod flow;
pub(super) mod jitter;
mod lanes;
mod mapper;
mod nic;
pub(super) mod placement;
mod planes;
pub(crate) mod preset;
pub(crate) mod preset_keys;
mod queues;
mod routing;
pub(crate) mod rules;
mod topology;
mod transport;

/// Most tables of hosts whose links differ.
const MAX_HOST_LINKS: usize = 256;

pub(super) const DOC: &str = "The network that `evb simulate` runs on. Every key that is not in the file has the value of the preset. A table with another `type` than the preset's takes \
nothing from it, so that its keys must be given. Where the preset has no value, the default of the table below applies.";

pub(super) const NETWORK: &[Key] = &[
    key("preset", KeyKind::Preset, KeyDefault::Text(DEFAULT_NETWORK), "preset whose values the other keys replace"),
    optional(
        "fitted_to",
        KeyKind::Text,
        "message layer that the network was fitted to, as `evb bench --fit` writes it: results then list the costs that are not in them",
    ),
    of_preset("topology", KeyKind::Choice(&topology::TOPOLOGY), "switches and links"),
    optional(
        "planes",
        KeyKind::Section(planes::PLANES),
        "several networks of this topology that no link joins, with a port of each host in each; there is one network without this table",
    ),
    of_preset("link", KeyKind::Section(LINK), "every link without separate values"),
    optional(
        "host_link",
        KeyKind::List { item: &KeyKind::Section(HOST_LINK), most: MAX_HOST_LINKS },
        "one table `[[network.host_link]]` for hosts in a row whose links differ from `network.link`",
    ),
    of_preset("switch", KeyKind::Section(SWITCH), "every switch"),
    of_preset("flow", KeyKind::Choice(&flow::FLOW), "the flow control: the fate of a packet that cannot move"),
    of_preset("routing", KeyKind::Choice(&routing::ROUTING), "routing of packets"),
    of_preset("nic", KeyKind::Section(nic::NIC), "every network interface"),
    of_preset("host", KeyKind::Section(HOST), "processor time of a host for a message"),
    optional("cpu", KeyKind::Section(cpu::CPU), cpu::DOC),
    of_preset(
        "control",
        KeyKind::Choice(&control::CONTROL),
        "network of control messages, which are all but fragments",
    ),
    optional(
        "transport",
        KeyKind::Choice(&transport::TRANSPORT),
        "the connections that carry messages; without this table a packet is sent once, and what a switch drops is lost",
    ),
    key(
        "placement",
        KeyKind::Section(placement::PLACEMENT),
        KeyDefault::Derived("each node on a separate host"),
        "the hosts of the nodes: those of one kind follow each other",
    ),
    optional(
        "mapper",
        KeyKind::Section(mapper::MAPPER),
        "the mappers of the hosts: they find the network, and the routes after a failure; routes are known without this \
         table, and are found again at the `reroute` of a fault",
    ),
    optional(
        "fault",
        KeyKind::List { item: &fault::TABLE, most: MAX_FAULTS },
        "one table `[[network.fault]]` for each fault of the network",
    ),
];

const LINK: &[Key] = &[
    of_preset("rate", bandwidth(), "data rate of each direction"),
    of_preset("delay", delay(), "time from the end of sending a byte to its arrival: cable and transceivers"),
];

const HOST_LINK: &[Key] = &[
    required("first", integer(0, MAX_COUNT), "the first of the hosts, counted from 0"),
    key("count", integer(1, MAX_COUNT), KeyDefault::Integer(1), "number of these hosts"),
    optional("rate", bandwidth(), "data rate of each direction of their links; that of `network.link` by default"),
    optional("delay", delay(), "delay of their links; that of `network.link` by default"),
];

const SWITCH: &[Key] = &[
    of_preset(
        "delay",
        delay(),
        "time from the arrival of a packet's head at the front of its input buffer to its request for an output",
    ),
    of_preset("arbitration", KeyKind::Word(&ARBITRATION), "order in which several waiting inputs get an output"),
    optional(
        "marking",
        KeyKind::SectionOrNone(queues::MARKING),
        "marks on packets that find a long queue, ECN; `store-and-forward` only",
    ),
    optional(
        "memory",
        KeyKind::SectionOrNone(queues::MEMORY),
        "memory that all queues of a switch share, or with pauses all its inputs; each has its own without this table; \
         `store-and-forward` only",
    ),
    optional(
        "trimming",
        KeyKind::Flag,
        "whether a packet of a connection that does not fit into a queue is cut to its header, which goes on with the highest \
         priority; for the transport `ultra-ethernet`, with two `flow.priorities`; dropped without this key",
    ),
    optional(
        "cut_through",
        KeyKind::Names { least: 0, most: MAX_COUNT as usize },
        "names of the switches that forward a packet before its tail has come, such as `leaf3`, or `leaf*` for all names that begin so; the \
         others store whole packets; without this key all do as `flow` says; not with `wormhole`",
    ),
    optional(
        "lanes",
        KeyKind::Section(lanes::LANES),
        "the shares of virtual channels in each link, as by the arbitration tables of InfiniBand; for `cut-through` with \
         `channel = \"priority\"`, where higher priorities go first without this table",
    ),
];

static ARBITRATION: Words<Arbitration> = Words(&[
    word("round-robin", "the inputs in turn", Arbitration::RoundRobin),
    word("random", "drawn at random", Arbitration::Random),
    word("oldest", "the input that has waited longest", Arbitration::Oldest),
    word(
        "islip",
        "a queue for each output at every input, and inputs and outputs matched in turn, iSLIP; `cut-through` only",
        Arbitration::Islip,
    ),
    word("least-recent", "the input that got any output of the switch the longest time ago", Arbitration::LeastRecent),
]);

const HOST: &[Key] = &[
    of_preset("send", delay(), "time to send one message"),
    of_preset("receive", delay(), "time to receive one message"),
    optional(
        "jitter",
        KeyKind::Section(jitter::OF_HOST),
        "random time beside each of the two; there is none without this table",
    ),
];

/// Makes the network, the places of the nodes in it, and its faults. The network has been checked, unless the file says
/// nothing about it.
pub(crate) fn plan(view: View<'_>, known: &KnownNetwork) -> NetworkPlan {
    let checked = known.network.as_ref().map(|network| network.config.clone());
    NetworkPlan {
        config: checked.unwrap_or_else(|| config(view.below("network"))),
        fitted_to: view.maybe_text("network.fitted_to").map(str::to_owned),
        placement: placement::plan(view),
        mapper: view.has("network.mapper").then(|| mapper::plan(view.below("network.mapper"))),
        faults: view.list("network.fault").iter().map(|node| fault::plan(View(node))).collect(),
        slot_errors: shaping::slot_errors(view.below("shaping")),
        cpu: view.has("network.cpu").then(|| cpu::plan(view.below("network.cpu"))),
    }
}

fn host_links(view: View<'_>) -> HostLinks {
    HostLinks {
        first: view.integer("first"),
        count: view.integer("count"),
        rate: view.maybe_quantity("rate"),
        delay: view.maybe_quantity("delay"),
    }
}

/// Makes the description of the network, but for what is in other files.
fn config(network: View<'_>) -> NetworkConfig {
    NetworkConfig {
        preset: network.text("preset").to_owned(),
        topology: topology::TOPOLOGY.make(network.below("topology")),
        planes: planes::plan(network, "planes"),
        link: LinkConfig { rate: network.quantity("link.rate"), delay: network.quantity("link.delay") },
        host_links: network.list("host_link").iter().map(|node| host_links(View(node))).collect(),
        switch: SwitchConfig {
            delay: network.quantity("switch.delay"),
            arbitration: ARBITRATION.at(network, "switch.arbitration"),
            marking: queues::marking(network, "switch.marking"),
            memory: queues::memory(network, "switch.memory"),
            trimming: queues::trims(network),
            cut_through: queues::cut_through(network),
            lanes: lanes::plan(network, "switch.lanes"),
        },
        flow: flow::FLOW.make(network.below("flow")),
        routing: routing::ROUTING.make(network.below("routing")),
        nic: nic::plan(network.below("nic")),
        host: HostConfig {
            send: network.quantity("host.send"),
            receive: network.quantity("host.receive"),
            jitter: network.has("host.jitter").then(|| jitter::plan(network.below("host.jitter"))),
        },
        control: control::CONTROL.make(network.below("control")),
        transport: transport::plan(network),
    }
}
