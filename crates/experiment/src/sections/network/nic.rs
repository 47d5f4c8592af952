//! `network.nic`: every network interface.

use super::PRESET;
use crate::{
    choice::{Words, word},
    limits::{MAX_PACKET, MAX_PORTS, MAX_SWITCH_BUFFER, MAX_WINDOW},
    schema::{Default, Key, Kind, bandwidth, bytes, delay, integer, key},
    view::View,
};
use evb_fabric::{Dma, NicConfig, Service};

pub(super) const NIC: &[Key] = &[
    key("ports", integer(1, MAX_PORTS), PRESET, "ports to the network; packets take whichever is free"),
    key(
        "rate",
        bandwidth(),
        Default::Absent,
        "rate of the engine between the memory of the interface and the link, when that is below the rate of the link",
    ),
    key("overhead", delay(), PRESET, "time that the interface needs for each packet before it sends it"),
    key("packet", bytes(1, MAX_SWITCH_BUFFER), PRESET, "largest payload of a packet: longer messages are cut"),
    key("header", bytes(0, MAX_PACKET), PRESET, "bytes that each packet has on the wire beside its payload"),
    key("minimum", bytes(0, MAX_PACKET), PRESET, "fewest bytes of a packet on the wire"),
    key("messages", integer(1, MAX_WINDOW - 1), PRESET, "messages that are sent at once, their packets in turn"),
    key(
        "service",
        Kind::Word(&SERVICE),
        Default::Text("in-turn"),
        "which of the waiting messages the next packet is of",
    ),
    key(
        "dma",
        Kind::Section(DMA),
        Default::Absent,
        "what the interface reads and writes in the memory of its host; it \
         is never held up without this table",
    ),
];

static SERVICE: Words<Service> = Words(&[
    word("in-turn", "of the messages that are sent at once, in turn", Service::InTurn),
    word(
        "random-peer",
        "of any peer for which something waits, drawn at random; each has a queue",
        Service::RandomPeer,
    ),
]);

const DMA: &[Key] = &[
    key("read", bandwidth(), Default::Required, "rate of reading what is sent"),
    key("write", bandwidth(), Default::Required, "rate of writing what is received; both share one bus"),
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
        service: SERVICE.at(view, "service"),
        dma: view.has("dma").then(|| Dma { read: view.quantity("dma.read"), write: view.quantity("dma.write") }),
    }
}
