//! `network.nic`: every network interface.

use super::{jitter, preset_keys::of_preset};
use crate::{choice::*, limits::*, schema::*, view::View};
use evb_fabric::{Dma, NicConfig, Service};

pub(super) const NIC: &[Key] = &[
    of_preset(
        "ports",
        integer(1, MAX_PORTS),
        "ports to the network; packets take whichever is free; with `planes` as many as these",
    ),
    optional(
        "rate",
        bandwidth(),
        "rate of the engine between the memory of the interface and the link, if it is below the rate of the link",
    ),
    of_preset("overhead", delay(), "time that the interface needs for each packet before it sends it"),
    of_preset("packet", bytes(1, MAX_SWITCH_BUFFER), "largest payload of a packet: longer messages are cut"),
    of_preset("header", bytes(0, MAX_PACKET), "bytes that each packet has on the wire beside its payload"),
    of_preset("minimum", bytes(0, MAX_PACKET), "fewest bytes of a packet on the wire"),
    of_preset("messages", integer(1, MAX_WINDOW - 1), "messages whose packets are sent in turn at the same time"),
    key(
        "queue",
        integer(1, MAX_WINDOW - 1),
        KeyDefault::Integer(NicConfig::QUEUE as i64),
        "fragments that wait in the interface beside those that are being sent; further ones wait in the readout unit, in \
         the order of their requests",
    ),
    key(
        "service",
        KeyKind::Word(&SERVICE),
        KeyDefault::Text("in-turn"),
        "choice of the waiting message of the next packet",
    ),
    key(
        "keeps_step",
        KeyKind::Flag,
        KeyDefault::Flag(false),
        "true if the interface itself handles the messages by which a barrel shifter keeps step, and sends them before all \
         others, as firmware can; otherwise the processor of the host does, as in a real run of evb",
    ),
    optional(
        "dma",
        KeyKind::Section(DMA),
        "what the interface reads and writes in the memory of its host; it \
         is never held up without this table",
    ),
    optional(
        "jitter",
        KeyKind::Section(jitter::OF_NIC),
        "random time beside `overhead`, from a stream of each host; there is none without this table",
    ),
];

static SERVICE: Words<Service> = Words(&[
    word("in-turn", "of the messages that are sent at once, in turn", Service::InTurn),
    word(
        "peers-in-turn",
        "of the peers with waiting messages, in turn, `messages` of them at once; each peer has a queue",
        Service::PeersInTurn,
    ),
]);

const DMA: &[Key] = &[
    required("read", bandwidth(), "rate of reading what is sent"),
    required("write", bandwidth(), "rate of writing what is received; both share one bus"),
];

pub(super) fn plan(view: View<'_>) -> NicConfig {
    NicConfig {
        ports: view.integer("ports"),
        rate: view.maybe_quantity("rate"),
        overhead: view.quantity("overhead"),
        packet: view.quantity("packet"),
        header: view.quantity("header"),
        minimum: view.quantity("minimum"),
        messages: view.integer("messages"),
        queue: view.integer("queue"),
        service: SERVICE.at(view, "service"),
        keeps_step: view.flag("keeps_step"),
        jitter: view.has("jitter").then(|| jitter::plan(view.below("jitter"))),
        dma: view.has("dma").then(|| Dma { read: view.quantity("dma.read"), write: view.quantity("dma.write") }),
    }
}
