//! `network.cpu`: the processors of the computers, and the cost of the work of nodes.

use crate::{
    choice::*,
    limits::*,
    plan::{
        CacheCost, Computers, CpuFit, CpuPlan, CrossingCost, DiskPlan, EventCost, Interruption, LocalMessages,
        ManagerCost, MessageCost, PayloadCost, WakeCost,
    },
    schema::*,
    view::View,
};
use evb_core::{ByteCount, Frequency, Span};

pub(super) const DOC: &str = "the processors of the computers that carry the nodes; with this table `host` has no meaning, and without it \
each node has a processor that only `host` keeps busy";

/// Most cores of a computer.
const MAX_CORES: i64 = 4096;
/// Most bytes that a system holds for a disk.
const MAX_CACHED: ByteCount = ByteCount(1 << 44);
/// Most kinds of interruptions.
const MAX_INTERRUPTIONS: usize = 8;

pub(super) const CPU: &[Key] = &[
    key("cores", integer(1, MAX_CORES), KeyDefault::Integer(1), "cores of each computer"),
    key(
        "computers",
        KeyKind::Word(&COMPUTERS),
        KeyDefault::Text("each-host"),
        "which nodes share the cores of one computer",
    ),
    key(
        "messages",
        KeyKind::Word(&MESSAGES),
        KeyDefault::Text("network"),
        "what carries messages between the nodes of one computer",
    ),
    key("nodes", KeyKind::Word(&NODES), KeyDefault::Text("threads"), "how a computer runs its nodes"),
    cost("poll", "time of a turn of a node in which nothing happens"),
    cost("poll_peer", "time of each turn for each other node whose messages the node looks for"),
    optional("send", KeyKind::Section(MESSAGE), "time of the sender of a message"),
    optional("receive", KeyKind::Section(MESSAGE), "time of the receiver of a message"),
    optional(
        "crossing",
        KeyKind::Section(CROSSING),
        "times beside these for a message from another worker of the computer",
    ),
    optional("manager", KeyKind::Section(MANAGER), "work of the event manager"),
    optional(
        "readout",
        KeyKind::Section(READOUT),
        "work of a readout unit: fragments are read or generated, with a checksum",
    ),
    optional(
        "builder",
        KeyKind::Section(PAYLOAD),
        "work of a builder unit: fragments are checked and matched, and events end",
    ),
    optional(
        "storage",
        KeyKind::Section(EVENT),
        "work of the thread that stores the events of a builder; events that are not kept cost nothing",
    ),
    optional(
        "disk",
        KeyKind::Section(DISK),
        "the disk of each computer; without this table it takes all events at once",
    ),
    optional(
        "filter",
        KeyKind::Section(EVENT),
        "work of a filter unit to get an event, beside `filter.time`; units of other machines have their own cores",
    ),
    optional(
        "cache",
        KeyKind::Section(CACHE),
        "the caches of the cores; without this table payload is always as near as when it was fitted",
    ),
    optional("wake", KeyKind::Section(WAKE), "waking a worker that sleeps"),
    cost("context_switch", "time that a core needs to change from one worker to another"),
    cost(
        "refill",
        "time of a change beside this for each other worker that shares the core, whose data have been in its caches since",
    ),
    key(
        "slice",
        time(MAX_WAIT),
        KeyDefault::Text("3 ms"),
        "time for which a worker may use a core while others wait for it",
    ),
    optional(
        "interruptions",
        KeyKind::List { item: &KeyKind::Section(INTERRUPTION), most: MAX_INTERRUPTIONS },
        "what takes a core away from its worker at random: timers of the system, other programs, the machine below a virtual one",
    ),
    optional("fit", KeyKind::Section(FIT), "where the costs come from, as `evb twin --fit` writes it"),
];

const INTERRUPTION: &[Key] = &[
    required("every", wait(), "mean time between two of them, in which the worker has its core"),
    required("length", wait(), "time for which the core is away"),
];

const FIT: &[Key] = &[
    required(
        "error",
        number(0.0, 1000.0),
        "per cent by which simulated event rates differ from those of the runs, of nine in ten at most",
    ),
    required(
        "reference",
        KeyKind::Rate { min: Frequency(1), max: MAX_RATE },
        "event rate of the run by which the machine is known again",
    ),
];

/// A time that is zero by default.
const fn cost(name: &'static str, doc: &'static str) -> Key {
    key(name, delay(), KeyDefault::Text("0 s"), doc)
}

const MESSAGE: &[Key] = &[
    cost("call", "for each peer of a turn, however many messages: that of a system call"),
    cost("message", "for each message"),
    cost("byte", "for each byte of payload"),
];

const CROSSING: &[Key] = &[
    cost("delay", "until the receiver can see the message"),
    cost("message", "of the receiver, for each message"),
    cost("byte", "of the receiver, for each byte of payload"),
];

const MANAGER: &[Key] =
    &[cost("block", "for each block of events, or for each event without blocks"), cost("event", "for each event")];

const PAYLOAD: &[Key] = &[OF_BLOCK, OF_FRAGMENT, OF_BYTE];

const READOUT: &[Key] =
    &[OF_BLOCK, OF_FRAGMENT, OF_BYTE, cost("draw", "for each fragment of a source whose sizes differ")];

const OF_BLOCK: Key = cost("block", "for the fragments of each block of events, or for each fragment without blocks");
const OF_FRAGMENT: Key = cost("fragment", "for each fragment");
const OF_BYTE: Key = cost("byte", "for each byte of payload");

const EVENT: &[Key] = &[cost("event", "for each event"), cost("byte", "for each byte of payload")];

const DISK: &[Key] = &[
    required("rate", bandwidth(), "rate at which it writes"),
    key("latency", delay(), KeyDefault::Text("0 s"), "time of each write beside that of its bytes"),
    key(
        "cache",
        bytes(0, MAX_CACHED),
        KeyDefault::Text("0 B"),
        "bytes that the system holds for it: events that fit are stored at once, others wait for the disk",
    ),
];

const CACHE: &[Key] = &[
    required("size", bytes(1, MAX_BUFFER), "payload under way on a computer from which on it leaves the caches"),
    required("byte", delay(), "time of the receiver for each byte that has left them"),
];

const WAKE: &[Key] = &[
    cost("delay", "from the message to the first turn of the worker"),
    cost("call", "of the worker that sends the message"),
];

static COMPUTERS: Words<Computers> = Words(&[
    word("each-host", "those of one host of the network", Computers::EachHost),
    word("one", "all of them, as on a test machine", Computers::One),
]);

static MESSAGES: Words<LocalMessages> = Words(&[
    word("memory", "its memory", LocalMessages::Memory),
    word("network", "the network, if they are on different hosts of it", LocalMessages::Network),
]);

static NODES: Words<bool> = Words(&[
    word("threads", "`run.workers` threads carry them, one for each core by default", false),
    word("processes", "each node is a process", true),
]);

pub(super) fn plan(view: View<'_>) -> CpuPlan {
    let time = |path: &str| view.maybe_quantity(path).unwrap_or(Span::ZERO);
    let message = |of: &str| MessageCost {
        call: time(&format!("{of}.call")),
        message: time(&format!("{of}.message")),
        byte: time(&format!("{of}.byte")),
    };
    let payload = |of: &str| PayloadCost {
        block: time(&format!("{of}.block")),
        fragment: time(&format!("{of}.fragment")),
        byte: time(&format!("{of}.byte")),
    };
    let event = |of: &str| EventCost { event: time(&format!("{of}.event")), byte: time(&format!("{of}.byte")) };
    CpuPlan {
        computers: COMPUTERS.at(view, "computers"),
        cores: view.integer("cores"),
        messages: MESSAGES.at(view, "messages"),
        processes: NODES.at(view, "nodes"),
        poll: time("poll"),
        poll_peer: time("poll_peer"),
        send: message("send"),
        receive: message("receive"),
        crossing: CrossingCost {
            delay: time("crossing.delay"),
            message: time("crossing.message"),
            byte: time("crossing.byte"),
        },
        manager: ManagerCost { block: time("manager.block"), event: time("manager.event") },
        readout: payload("readout"),
        draw: time("readout.draw"),
        builder: payload("builder"),
        storage: event("storage"),
        disk: view.has("disk").then(|| DiskPlan {
            rate: view.quantity("disk.rate"),
            latency: time("disk.latency"),
            cache: view.quantity("disk.cache"),
        }),
        filter: event("filter"),
        cache: view.has("cache").then(|| CacheCost { size: view.quantity("cache.size"), byte: time("cache.byte") }),
        wake: WakeCost { delay: time("wake.delay"), call: time("wake.call") },
        context_switch: time("context_switch"),
        refill: time("refill"),
        slice: time("slice"),
        interruptions: view.list("interruptions").iter().map(|node| interruption(View(node))).collect(),
        fit: view
            .has("fit")
            .then(|| CpuFit { error_percent: view.number("fit.error"), reference: view.quantity("fit.reference") }),
    }
}

fn interruption(view: View<'_>) -> Interruption {
    Interruption { every: view.quantity("every"), length: view.quantity("length") }
}
