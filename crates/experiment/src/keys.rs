//! The one table of keys: name, type with limits, default, meaning.

use crate::{
    limits::*,
    schema::{Choice, Default, Key, Kind, Variant, Word},
};
use evb_core::{ByteCount, Frequency, Span};
use network::NETWORK;
use transport::TRANSPORT;
use workload::WORKLOAD;

mod network;
mod transport;
mod workload;

/// The whole file.
pub(crate) static FILE: Kind = Kind::Section(ROOT);

/// The keys of the whole file.
pub(crate) const ROOT: &[Key] = &[
    key("name", Kind::Name, Default::Derived("the file's name without `.toml`"), "name of the experiment"),
    key("description", Kind::Text, Default::Text(""), "what it is for"),
    table("data", Kind::Section(DATA), "Where data files are."),
    table("trigger", Kind::Choice(&TRIGGER), "What makes the event manager trigger, and when that ends."),
    table("readout", Kind::Section(READOUT), "The readout units: how many, what feeds them, how much they hold."),
    table("builder", Kind::Section(BUILDER), "The builder units."),
    table("protocol", Kind::Choice(&PROTOCOL), "Who starts the transfer of fragments."),
    table("shaping", Kind::Choice(&SHAPING), "How readout units order and pack what they send."),
    table("transport", Kind::Choice(&TRANSPORT), "How nodes talk when the command line does not say otherwise."),
    table("storage", Kind::Section(STORAGE), "What is kept, and where."),
    table("network", Kind::Section(NETWORK), network::DOC),
    table("workload", Kind::Choice(&WORKLOAD), workload::DOC),
    table("run", Kind::Section(RUN), "Seed, limits and the like."),
    table("fault", Kind::List { item: &Kind::Choice(&FAULT), most: MAX_FAULTS }, "Faults brought about on purpose."),
    table("sweep", Kind::Sweep, "Keys that take several values."),
];

const DATA: &[Key] = &[key(
    "directory",
    Kind::Path,
    Default::Derived("the folder of the experiment file"),
    "folder that relative data files start from; itself relative to the folder of the experiment file (given by `--set`: \
     to the working folder)",
)];

const TRIGGER: Choice = Choice {
    tag: "type",
    what: "trigger",
    default: Default::Derived("`data` if any source is recorded or live, else `free-running`"),
    variants: &[
        Variant { name: "free-running", doc: "as fast as builders ask for events", keys: &[] },
        Variant {
            name: "rate",
            doc: "at a rate",
            keys: &[
                key("rate", Kind::Rate { min: Frequency(1), max: MAX_RATE }, Default::Required, "mean trigger rate"),
                key(
                    "spacing",
                    Kind::Word(&[
                        Word { name: "regular", doc: "equal intervals" },
                        Word { name: "poisson", doc: "exponential intervals, as from a beam" },
                    ]),
                    Default::Text("regular"),
                    "intervals between triggers",
                ),
            ],
        },
        Variant { name: "data", doc: "when the sources have fragments: recorded to their end, or live", keys: &[] },
    ],
    common: &[
        key("events", integer(1, i64::MAX), Default::Absent, "events after which the trigger stops"),
        key("duration", Kind::Time { min: MIN_WAIT, max: MAX_DURATION }, Default::Absent, "time after which it stops"),
        key(
            "accept_loss",
            integer(0, 100),
            Default::Integer(0),
            "percent of what comes at a rate, triggers or messages, that may be lost before the result is not good",
        ),
    ],
};

const READOUT: &[Key] = &[
    key(
        "units",
        integer(1, MAX_UNITS),
        Default::Derived("the number of `[[readout.unit]]`"),
        "number of readout units",
    ),
    key(
        "buffer_events",
        integer(1, MAX_BUFFER_EVENTS),
        Default::Derived("4096, or twice what all builders can have under construction if that is more"),
        "events that one readout unit can hold; at least what all builders can have under construction",
    ),
    key(
        "buffer_bytes",
        bytes(1, MAX_BUFFER),
        Default::Text("64 MiB"),
        "bytes that fill the buffer of one readout unit: with `busy` percent of them it stops the trigger, and fragments that \
         it has no room for stay in their source",
    ),
    key("busy", integer(1, 100), Default::Integer(90), "percent of the buffer at which the trigger is inhibited"),
    key("free", integer(0, 99), Default::Integer(70), "percent of the buffer at which the trigger resumes"),
    key("max_fragment", bytes(1, MAX_FRAGMENT), Default::Text("1 MiB"), "largest fragment that is accepted"),
    key("source", Kind::Choice(&SOURCE), Default::Absent, "what feeds every unit without a table of its own"),
    key(
        "unit",
        Kind::List { item: &Kind::Section(UNIT), most: MAX_UNITS as usize },
        Default::Absent,
        "one table `[[readout.unit]]` for each of the first units, in order",
    ),
];

const UNIT: &[Key] = &[key("source", Kind::Choice(&SOURCE), Default::Required, "what feeds this unit")];

const SOURCE: Choice = Choice {
    tag: "type",
    what: "source",
    default: Default::Required,
    variants: &[
        Variant {
            name: "fixed",
            doc: "generated, all of one size",
            keys: &[key("size", bytes(1, MAX_FRAGMENT), Default::Required, "size of every fragment")],
        },
        Variant {
            name: "uniform",
            doc: "generated, sizes uniform between two bounds, both included",
            keys: &[
                key("min", bytes(1, MAX_FRAGMENT), Default::Required, "smallest size"),
                key("max", bytes(1, MAX_FRAGMENT), Default::Required, "largest size"),
            ],
        },
        Variant {
            name: "log-normal",
            doc: "generated, sizes log-normal",
            keys: &[
                key("mean", bytes(1, MAX_FRAGMENT), Default::Required, "mean size"),
                key("rms", bytes(0, MAX_FRAGMENT), Default::Required, "rms deviation from the mean"),
            ],
        },
        Variant {
            name: "trace",
            doc: "generated, sizes from a CSV file `event,source,bytes`",
            keys: &[
                key("file", Kind::Path, Default::Required, FILE_DOC),
                key("source", integer(0, i64::MAX), Default::Absent, "rows to take; by default the unit's own index"),
            ],
        },
        Variant {
            name: "size-model",
            doc: "generated, sizes from a CSV file `FED,offset,slope,square,rms` with one relative size for the whole event",
            keys: &[
                key("file", Kind::Path, Default::Required, FILE_DOC),
                key(
                    "fed",
                    integer(0, i64::MAX),
                    Default::Absent,
                    "FED to take; by default the row of the unit's index",
                ),
                key("event_size_mean", number(1e-3, 1e3), Default::Number(1.0), "mean relative size of an event"),
                key("event_size_rms", number(0.0, 1e3), Default::Number(0.0), "rms of it, log-normal"),
            ],
        },
        Variant {
            name: "cms-fed",
            doc: "recorded CMS front-end driver fragments, back to back in a file",
            keys: &[
                key("file", Kind::Path, Default::Required, FILE_DOC),
                key(
                    "source_id",
                    integer(0, 4095),
                    Default::Absent,
                    "source id that every fragment must have; by default that of the first good one",
                ),
                IDENTITY,
            ],
        },
        Variant { name: "tcp", doc: "live front ends that connect by TCP", keys: LIVE },
        Variant { name: "udp", doc: "live front ends that send UDP datagrams", keys: LIVE },
    ],
    common: &[],
};

const FILE_DOC: &str = "the file; a relative path starts from `data.directory`";

const LIVE: &[Key] = &[
    key("listen", Kind::Address, Default::Required, "address to listen on; port 0 is any free one"),
    key("counter_bits", integer(1, 64), Default::Integer(32), "width of the front end's event counter"),
    IDENTITY,
];

/// What is done with the second identity of a fragment.
const IDENTITY: Key = key(
    "identity",
    Kind::Word(&[
        Word { name: "strict", doc: "the marks of all fragments of an event must agree, where they carry one" },
        Word { name: "tolerant", doc: "a mark that disagrees is counted and spoils no event" },
    ]),
    Default::Text("strict"),
    "what a mark beside the event number (bunch crossing, orbit, timestamp) is good for",
);

const BUILDER: &[Key] = &[
    key("units", integer(1, MAX_UNITS), Default::Required, "number of builder units"),
    key("slots", integer(1, MAX_SLOTS), Default::Integer(64), "events that one builder may have under construction"),
    key(
        "patience",
        wait(),
        Default::Text("250 ms"),
        "how long a builder waits for the fragments of an event before it asks for those that it lacks",
    ),
    key(
        "deadline",
        wait(),
        Default::Absent,
        "time after which an event, or a phase of it, ends with what is there, though the rest may still come",
    ),
];

const PROTOCOL: Choice = Choice {
    tag: "type",
    what: "protocol",
    default: Default::Text("push"),
    variants: &[
        Variant {
            name: "push",
            doc: "the event manager broadcasts assignments, readout units send at once",
            keys: &[
                key(
                    "group",
                    integer(1, MAX_GROUP),
                    Default::Derived("352, or the number of builders if that is more"),
                    "most assignments in one message; at least the number of builders",
                ),
                key("group_timeout", wait(), Default::Text("1 ms"), "how long an incomplete group waits for more"),
            ],
        },
        Variant {
            name: "pull",
            doc: "the builder asks the event manager for events, then each readout unit for its fragment",
            keys: &[],
        },
        Variant {
            name: "phased",
            doc: "as pull, but the builder asks the first readout units, decides, and asks the others for accepted events only",
            keys: &[
                key(
                    "first",
                    integer(1, MAX_UNITS - 1),
                    Default::Required,
                    "readout units that are asked first: `ru0` and those after it; fewer than there are",
                ),
                key(
                    "accept",
                    number(0.0, 1.0),
                    Default::Required,
                    "part of the events that is accepted, drawn by seed and event; one with a fragment missing or bad by \
                     then is always accepted",
                ),
            ],
        },
    ],
    common: &[key(
        "assignment",
        Kind::Word(&[
            Word { name: "round-robin", doc: "builders in turn, leaving out those without a free slot" },
            Word { name: "least-loaded", doc: "the builder with the fewest events under construction" },
        ]),
        Default::Text("round-robin"),
        "how the builder of an event is picked",
    )],
};

const SHAPING: Choice = Choice {
    tag: "type",
    what: "shaping",
    default: Default::Text("none"),
    variants: &[
        Variant { name: "none", doc: "each fragment goes at once as a packet of its own", keys: &[] },
        Variant {
            name: "grouping",
            doc: "fragments for one builder wait until they fill a packet",
            keys: &[
                key("packet", bytes(MIN_PACKET.0, MAX_PACKET), Default::Text("32 KiB"), "bytes that fill a packet"),
                key("timeout", wait(), Default::Text("1 ms"), "how long an unfilled packet waits"),
            ],
        },
        Variant {
            name: "barrel-shifter",
            doc: "a queue for each builder at every source; one bucket of fixed size in each time slot, all builders in \
                  turn, and empty buckets keep the slots aligned (only simulated: a real run refuses it)",
            keys: &[key("bucket", bytes(MIN_PACKET.0, MAX_PACKET), Default::Text("8 KiB"), "bytes of a bucket")],
        },
        Variant {
            name: "rate-division",
            doc: "fragments are cut into small packets, builders in turn (only simulated: a real run refuses it)",
            keys: &[key("packet", bytes(MIN_PACKET.0, MAX_PACKET), Default::Text("512 B"), "bytes of a packet")],
        },
    ],
    common: &[],
};

const STORAGE: &[Key] = &[
    key("keep", Kind::Keep, Default::Text("all"), "which events are written; incomplete ones too, unless none"),
    key(
        "directory",
        Kind::Path,
        Default::Text("evb-data"),
        "folder of the event files, relative to the working folder",
    ),
    key(
        "file_size",
        bytes(MIN_FILE_SIZE.0, MAX_FILE_SIZE),
        Default::Text("2 GB"),
        "size at which a new event file is begun",
    ),
];

/// The table form of `storage.keep`.
pub(crate) static ONE_IN: Key = key("one_in", integer(1, i64::MAX), Default::Required, "one event in this many");

const RUN: &[Key] = &[
    key("seed", integer(0, i64::MAX), Default::Integer(1), "seed of every random stream"),
    key(
        "warmup",
        Kind::Time { min: Span::ZERO, max: MAX_DURATION },
        Default::Absent,
        "what happens before this time after the start is not measured; by default the steady window is found, and rates are of it",
    ),
    key("peer_timeout", wait(), Default::Text("5 s"), "longest silence of a node, and longest wait for nodes to start"),
    key(
        "drain_timeout",
        wait(),
        Default::Text("10 s"),
        "longest time for which nothing moves in a stopped run (no event ends, no byte is received or stored) before it is given up",
    ),
    key(
        "workers",
        integer(1, MAX_WORKERS),
        Default::Absent,
        "threads that carry the nodes in one process; by default the number of cores, at most that of nodes",
    ),
];

const FAULT: Choice = Choice {
    tag: "action",
    what: "fault action",
    default: Default::Required,
    variants: &[
        Variant {
            name: "kill",
            doc: "the node stops dead",
            keys: &[key(
                "at",
                Kind::Time { min: Span::ZERO, max: MAX_DURATION },
                Default::Required,
                "time after the start of the run",
            )],
        },
        Variant { name: "corrupt", doc: "a fragment has one bit flipped after its checksum was made", keys: &[NTH] },
        Variant { name: "duplicate", doc: "a fragment is sent twice", keys: &[NTH] },
        Variant { name: "lose", doc: "a fragment is not sent", keys: &[NTH] },
        Variant { name: "oversize", doc: "a fragment is made larger than allowed", keys: &[NTH] },
        Variant {
            name: "delay",
            doc: "a fragment is sent late",
            keys: &[NTH, key("by", wait(), Default::Required, "how late")],
        },
        Variant {
            name: "slow-disk",
            doc: "a builder unit stores its events one after another at this rate",
            keys: &[key("rate", bandwidth(), Default::Required, "rate of its disk")],
        },
    ],
    common: &[key(
        "node",
        Kind::Unit,
        Default::Required,
        "`evm`, `ru0`, `ru1`, ..., `bu0`, `bu1`, ...; `kill` takes any, `slow-disk` a builder unit, the others a readout unit",
    )],
};

const NTH: Key = key("one_in", integer(1, i64::MAX), Default::Required, "one fragment in this many");

const fn key(name: &'static str, kind: Kind, default: Default, doc: &'static str) -> Key {
    Key { name, kind, default, doc }
}

const fn table(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    key(name, kind, Default::Absent, doc)
}

const fn integer(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max }
}

const fn number(min: f64, max: f64) -> Kind {
    Kind::Number { min, max }
}

const fn bytes(min: u64, max: ByteCount) -> Kind {
    Kind::Bytes { min: ByteCount(min), max }
}

const fn bandwidth() -> Kind {
    Kind::Bandwidth { min: MIN_BANDWIDTH, max: MAX_BANDWIDTH }
}

const fn delay() -> Kind {
    Kind::Time { min: Span::ZERO, max: MAX_DELAY }
}

const fn wait() -> Kind {
    Kind::Time { min: MIN_WAIT, max: MAX_WAIT }
}
