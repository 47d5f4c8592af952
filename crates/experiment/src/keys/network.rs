//! The keys of `[network]`.

use super::{bandwidth, bytes, delay, integer, key, number};
use crate::{
    limits::*,
    schema::{Choice, Default, Key, Kind, Variant, Word},
};
use evb_core::Span;

pub(super) const DOC: &str = "The network that `evb simulate` runs on. Every key that the file does not give is the preset's, key by key; but a table \
with another `type` than the preset's has nothing of it, so that its keys must be given. Where the preset has no value, the \
default of the table below counts.";

pub(super) const NETWORK: &[Key] = &[
    key("preset", Kind::Preset, Default::Text("ideal"), "what lies below the other keys"),
    key(
        "fitted_to",
        Kind::Text,
        Default::Absent,
        "message layer that the network was fitted to, as `evb bench --fit` writes it: results then say what is not in them",
    ),
    key("topology", Kind::Choice(&TOPOLOGY), PRESET, "switches and links"),
    key("link", Kind::Section(LINK), PRESET, "every link that does not say otherwise"),
    key("switch", Kind::Section(SWITCH), PRESET, "every switch"),
    key("flow", Kind::Choice(&FLOW), PRESET, "what happens to a packet that cannot go on"),
    key("routing", Kind::Choice(&ROUTING), PRESET, "how a packet finds its way"),
    key("nic", Kind::Section(NIC), PRESET, "every network interface"),
    key("host", Kind::Section(HOST), PRESET, "what a message costs the processor of a host"),
    key("control", Kind::Choice(&CONTROL), PRESET, "how control messages travel: all but fragments"),
    key(
        "placement",
        Kind::Section(PLACEMENT),
        Default::Derived("each node on a host of its own"),
        "the hosts of the nodes: those of one kind follow each other",
    ),
    key(
        "fault",
        Kind::List { item: &Kind::Choice(&FAULT), most: MAX_FAULTS },
        Default::Absent,
        "one table `[[network.fault]]` for each thing that goes wrong in the network",
    ),
];

/// What the preset says, which has every key that its own tags want.
const PRESET: Default = Default::Derived("the preset's");

const TOPOLOGY: Choice = Choice {
    tag: "type",
    what: "topology",
    default: PRESET,
    variants: &[
        Variant {
            name: "crossbar",
            doc: "one switch with all hosts",
            keys: &[key(
                "ports",
                integer(1, MAX_COUNT),
                Default::Derived("the preset's; else, and under `ideal`, as many as the hosts need"),
                "ports of the switch, one per port of a host",
            )],
        },
        Variant {
            name: "clos",
            doc: "two layers: every leaf is linked to every spine",
            keys: &[LEAVES, PORTS_PER_LEAF, SPINES, LINKS, UPLINK],
        },
        Variant {
            name: "composite",
            doc: "a composite of crossbars, such as the M2M-OCT-SW8: a `clos` whose leaves are called edges and whose \
                  spines middles",
            keys: &[
                key("edges", integer(1, MAX_COUNT), PRESET, "crossbars that hosts hang on"),
                key("ports_per_edge", integer(1, MAX_COUNT), PRESET, "ports for hosts on each of them"),
                key("middles", integer(1, MAX_COUNT), PRESET, "crossbars between them"),
                key("links", integer(1, MAX_COUNT), ONE, "parallel links between each edge and each middle"),
            ],
        },
        Variant {
            name: "fat-tree",
            doc: "three layers of switches with `radix` ports each, for `radix`^3 / 4 host ports",
            keys: &[key("radix", integer(2, MAX_COUNT), PRESET, "ports per switch, even")],
        },
        Variant {
            name: "butterfly",
            doc: "stages of crossbars, a k-ary n-fly: hosts send into the first stage and receive from the last",
            keys: &[
                key("radix", integer(2, MAX_COUNT), PRESET, "inputs, and outputs, of one crossbar"),
                key("stages", integer(1, 16), PRESET, "number of stages"),
            ],
        },
        Variant { name: "grid", doc: "switches in rows and columns, linked to their neighbours", keys: MESH },
        Variant { name: "torus", doc: "a grid whose rows and columns are closed to rings", keys: MESH },
        Variant {
            name: "tree",
            doc: "a root switch and leaves below it, each joined to the root by a trunk",
            keys: &[
                LEAVES,
                PORTS_PER_LEAF,
                key("trunk", integer(1, MAX_COUNT), ONE, "parallel links from each leaf to the root"),
                UPLINK,
            ],
        },
        Variant {
            name: "explicit",
            doc: "whatever is listed",
            keys: &[
                key("switches", Kind::Names { least: 1, most: MAX_LISTED }, PRESET, "names of the switches"),
                key(
                    "link",
                    Kind::List { item: &Kind::Section(EXPLICIT_LINK), most: MAX_LISTED },
                    PRESET,
                    "one table `[[network.topology.link]]` for each cable, or several parallel ones",
                ),
            ],
        },
    ],
    common: &[],
};

const ONE: Default = Default::Integer(1);

const LEAVES: Key = key("leaves", integer(1, MAX_COUNT), PRESET, "leaf switches");
const PORTS_PER_LEAF: Key = key("ports_per_leaf", integer(1, MAX_COUNT), PRESET, "ports for hosts on each leaf");
const SPINES: Key = key("spines", integer(1, MAX_COUNT), PRESET, "spine switches");
const LINKS: Key = key("links", integer(1, MAX_COUNT), ONE, "parallel links between two switches");
const UPLINK: Key =
    key("uplink", bandwidth(), Default::Absent, "rate of the links between switches; that of all links by default");

const MESH: &[Key] = &[
    key("width", integer(1, MAX_COUNT), PRESET, "switches in a row"),
    key("height", integer(1, MAX_COUNT), PRESET, "switches in a column"),
    key("terminals", integer(1, MAX_COUNT), ONE, "ports for hosts on each switch"),
    LINKS,
];

const EXPLICIT_LINK: &[Key] = &[
    key(
        "ends",
        Kind::Names { least: 2, most: 2 },
        Default::Required,
        "each the name of a switch, or `h0`, `h1`, ... for the ports of hosts, in order",
    ),
    key("count", integer(1, MAX_COUNT), ONE, "parallel links"),
    key("rate", bandwidth(), Default::Absent, "rate of each; that of all links by default"),
    key("delay", delay(), Default::Absent, "delay of each; that of all links by default"),
];

const LINK: &[Key] = &[
    key("rate", bandwidth(), PRESET, "data rate of each direction"),
    key("delay", delay(), PRESET, "time from the end of sending a byte to its being there: cable and transceivers"),
];

const SWITCH: &[Key] = &[
    key(
        "delay",
        delay(),
        PRESET,
        "time from a packet's head being first in its input buffer to its asking for an output",
    ),
    key(
        "arbitration",
        Kind::Word(&[
            Word { name: "round-robin", doc: "the inputs in turn" },
            Word { name: "random", doc: "drawn at random" },
            Word { name: "oldest", doc: "the one that has waited longest" },
        ]),
        PRESET,
        "who is next at an output for which several inputs wait",
    ),
];

const FLOW: Choice = Choice {
    tag: "type",
    what: "flow control",
    default: PRESET,
    variants: &[
        Variant {
            name: "wormhole",
            doc: "STOP/GO or byte credits: a stalled packet stands on all the links behind its head",
            keys: &[
                key("slack", bytes(1, MAX_SWITCH_BUFFER), PRESET, "bytes that an input buffers of one packet"),
                REACTION,
            ],
        },
        Variant {
            name: "cut-through",
            doc: "virtual cut-through with credits: a packet goes on only when the next buffer can take all of it",
            keys: &[
                key(
                    "buffer",
                    bytes(1, MAX_SWITCH_BUFFER),
                    PRESET,
                    "bytes of each input buffer, for each virtual channel",
                ),
                REACTION,
                key("virtual_channels", integer(1, MAX_CHANNELS), ONE, "virtual channels of each link"),
            ],
        },
        Variant {
            name: "store-and-forward",
            doc: "a switch takes a packet whole, then puts it into the queue of its output",
            keys: &[
                key(
                    "queue",
                    bytes(1, MAX_SWITCH_BUFFER),
                    PRESET,
                    "bytes of each output queue (`drop`), or of the packets of one input that a switch holds before it \
                     asks the sender to pause",
                ),
                key(
                    "full",
                    Kind::Word(&[
                        Word { name: "drop", doc: "packets that do not fit are lost, and counted" },
                        Word { name: "pause", doc: "the sender of the link pauses, IEEE 802.3x" },
                        Word {
                            name: "priority-pause",
                            doc: "the sender pauses what has the same priority, IEEE 802.1Qbb",
                        },
                    ]),
                    PRESET,
                    "what happens when that is full",
                ),
                REACTION,
                key(
                    "priorities",
                    integer(1, MAX_PRIORITIES),
                    ONE,
                    "priorities, each with its own queues; control messages have the highest",
                ),
            ],
        },
    ],
    common: &[],
};

const REACTION: Key =
    key("reaction", delay(), PRESET, "time from a buffer filling or emptying to the sender knowing it");

const ROUTING: Choice = Choice {
    tag: "type",
    what: "routing",
    default: PRESET,
    variants: &[
        Variant { name: "fixed", doc: "one way for each pair of ports, always the same", keys: &[SPREAD] },
        Variant { name: "random", doc: "any of the equal ways for each packet, drawn at random", keys: &[] },
        Variant {
            name: "dispersive",
            doc: "one way for each pair, which changes, at random, when a packet was found blocked",
            keys: &[
                key("patience", delay(), PRESET, "a packet that has waited this long at a switch is blocked"),
                key(
                    "after",
                    integer(1, MAX_WINDOW - 1),
                    Default::Integer(1),
                    "packets of a pair that are blocked one after another before it takes another way",
                ),
            ],
        },
        Variant { name: "adaptive", doc: "any free link of the equal ways, at every switch", keys: &[] },
        Variant {
            name: "dimension-order",
            doc: "first along the rows, then along the columns; for `grid` and `torus`",
            keys: &[SPREAD],
        },
        Variant {
            name: "adaptive-dimension-order",
            doc: "as `dimension-order`, over any free one of parallel links",
            keys: &[],
        },
        Variant {
            name: "spanning-tree",
            doc: "only along a tree of links, as learning bridges do; parallel links count as one trunk",
            keys: &[],
        },
        Variant { name: "ecmp", doc: "equal ways by a hash over source, destination and message stream", keys: &[] },
    ],
    common: &[],
};

const SPREAD: Key = key(
    "spread",
    Kind::Word(&[
        Word { name: "source", doc: "way n for source n, layer by layer: S-mod-k" },
        Word {
            name: "destination",
            doc: "way n for destination n, layer by layer: D-mod-k, as the forwarding tables of a fat tree",
        },
        Word { name: "switch", doc: "one way for each pair of switches, as a table of intervals of destinations does" },
        Word { name: "pair", doc: "drawn at random for each pair, once for the whole run" },
    ]),
    Default::Text("destination"),
    "how pairs of ports are spread over equal ways",
);

const NIC: &[Key] = &[
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
        Kind::Word(&[
            Word { name: "in-turn", doc: "of the messages that are sent at once, in turn" },
            Word {
                name: "random-peer",
                doc: "of any peer for which something waits, drawn at random; each has a queue",
            },
        ]),
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

const DMA: &[Key] = &[
    key("read", bandwidth(), Default::Required, "rate of reading what is sent"),
    key("write", bandwidth(), Default::Required, "rate of writing what is received; both share one bus"),
];

const HOST: &[Key] = &[
    key("send", delay(), PRESET, "time to send one message"),
    key("receive", delay(), PRESET, "time to receive one message"),
];

const CONTROL: Choice = Choice {
    tag: "type",
    what: "control",
    default: PRESET,
    variants: &[
        Variant { name: "shared", doc: "through the same network as the fragments", keys: &[] },
        Variant {
            name: "separate",
            doc: "through a network of their own, without contention",
            keys: &[
                key("delay", delay(), PRESET, "time from sender to receiver, beside the length of the message"),
                key("rate", bandwidth(), PRESET, "rate of its links"),
            ],
        },
    ],
    common: &[],
};

const PLACEMENT: &[Key] = &[
    key(
        "manager",
        integer(0, MAX_COUNT),
        Default::Absent,
        "host of the event manager, 0 if the file does not say; it has none when control is separate, nor has traffic",
    ),
    key(
        "readout",
        integer(0, MAX_COUNT),
        Default::Derived("1, or 0 without a manager"),
        "host of the first readout unit",
    ),
    key(
        "builder",
        integer(0, MAX_COUNT),
        Default::Derived("the host after the last readout unit"),
        "host of the first builder unit; hosts may be shared by units of different kinds",
    ),
];

const FAULT: Choice = Choice {
    tag: "action",
    what: "fault action",
    default: Default::Required,
    variants: &[
        Variant {
            name: "fail",
            doc: "it carries nothing any more",
            keys: &[key(
                "reroute",
                Kind::Time { min: Span::ZERO, max: MAX_WAIT },
                Default::Text("1 ms"),
                "time until routes without it are found",
            )],
        },
        Variant {
            name: "slow",
            doc: "it is slower; of a switch, all links that begin there",
            keys: &[key("factor", number(1.0, 1e6), Default::Required, "how many times slower")],
        },
        Variant {
            name: "corrupt",
            doc: "a packet that passes is corrupted, and thrown away where it arrives",
            keys: &[key("one_in", integer(1, i64::MAX), Default::Required, "one packet in this many")],
        },
    ],
    common: &[
        key(
            "target",
            Kind::Text,
            Default::Required,
            "name of a link (one direction), such as `h3>leaf0`, or of a switch",
        ),
        key("at", Kind::Time { min: Span::ZERO, max: MAX_DURATION }, Default::Required, "time after the start"),
    ],
};
