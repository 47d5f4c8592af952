//! The keys of `[workload]`.

use super::{integer, key, number};
use crate::{
    limits::*,
    schema::{Choice, Default, Key, Kind, Variant, Word},
};
use evb_core::{Frequency, Span};

pub(super) const DOC: &str = "What the nodes do. All but event building is traffic without an event manager, for `evb simulate`: the readout units \
are its senders and the builder units its receivers, and the sources give the sizes of the messages. Traffic ends after \
`messages`, or with `trigger.duration`; one of them must be given. Of `[trigger]`, only that and `accept_loss` have an effect on it; `[protocol]` \
and `[shaping]` have none.";

pub(super) const WORKLOAD: Choice = Choice {
    tag: "type",
    what: "workload",
    default: Default::Text("event-building"),
    variants: &[
        Variant { name: "event-building", doc: "events are built, as `[protocol]` says", keys: &[] },
        Variant {
            name: "assigned",
            doc: "each sender always sends to the same receiver",
            keys: &[
                key(
                    "destinations",
                    Kind::Integers { min: 0, max: MAX_UNITS - 1, most: MAX_UNITS as usize },
                    Default::Required,
                    "for each sender the index of its receiver, such as [0, 0, 2]",
                ),
                WINDOW,
                LOAD,
                RATE,
                ARRIVALS,
                MESSAGES,
            ],
        },
        Variant {
            name: "random",
            doc: "each message goes to a receiver drawn at random, never to one on the sender's own host",
            keys: TRAFFIC,
        },
        Variant {
            name: "pairs",
            doc: "sender n always sends to receiver n + half, where half is half the number of receivers: fixed pairs",
            keys: TRAFFIC,
        },
        Variant {
            name: "rotation",
            doc: "message e of every sender goes to receiver e mod N: event building without a manager",
            keys: &[
                key(
                    "start",
                    Kind::Word(&[
                        Word { name: "simultaneous", doc: "all senders start with the first message" },
                        Word { name: "retarded", doc: "sender n skips the first n messages" },
                    ]),
                    Default::Text("simultaneous"),
                    "how the senders start",
                ),
                WINDOW,
                LOAD,
                RATE,
                ARRIVALS,
                MESSAGES,
            ],
        },
        Variant {
            name: "stream",
            doc: "each sender waits for a start message from every receiver, then sends to each in turn (MStreamIO)",
            keys: TRAFFIC,
        },
        Variant {
            name: "gather",
            doc: "for each event some receivers (processors) gather data from some senders (buffers), as in a second-level \
                  trigger; without `rate` and `load` as fast as it goes",
            keys: &[
                key(
                    "least",
                    integer(1, MAX_UNITS),
                    Default::Required,
                    "fewest senders that one processor gathers from",
                ),
                key("most", integer(1, MAX_UNITS), Default::Required, "most senders that one processor gathers from"),
                key("processors", integer(1, MAX_UNITS), Default::Integer(1), "processors that gather for one event"),
                key(
                    "ask",
                    Kind::Flag,
                    Default::Flag(true),
                    "whether a processor asks each sender; else the senders send by themselves when the event comes",
                ),
                WINDOW,
                LOAD,
                RATE,
                ARRIVALS,
                MESSAGES,
            ],
        },
        Variant {
            name: "ping-pong",
            doc: "sender n sends to receiver n, which sends the data back; a cycle is a round trip",
            keys: &[DEPTH, MESSAGES],
        },
        Variant {
            name: "two-way",
            doc: "sender n and receiver n send to each other at once; a cycle of the sender ends when its data have left and \
                  the other's are there",
            keys: CYCLES,
        },
        Variant {
            name: "all-to-all",
            doc: "every node, sender or receiver, sends to every other at once; each counts its own cycles, which end when \
                  its data have left and those of all others are there",
            keys: CYCLES,
        },
        Variant {
            name: "outfarming",
            doc: "one sender sends to each receiver; a cycle ends when the last message has left its host",
            keys: CYCLES,
        },
        Variant {
            name: "broadcast",
            doc: "one sender sends the same message to all receivers, in copies that its network interface makes, since no \
                  network here has a multicast; a cycle ends when the last copy has left its host",
            keys: CYCLES,
        },
        Variant {
            name: "funnel",
            doc: "all senders send to one receiver; a cycle is one message from each",
            keys: TRAFFIC,
        },
        Variant {
            name: "push-farm",
            doc: "a funnel whose receiver computes for each event; with a window of 2 the next event is on its way \
                  meanwhile, and never one after it",
            keys: &[COMPUTE, OVERHEAD, WINDOW, LOAD, RATE, ARRIVALS, MESSAGES],
        },
        Variant {
            name: "pull-farm",
            doc: "one receiver asks all senders by 64 B each, gets the data, asks for those of the next event, and computes",
            keys: &[COMPUTE, OVERHEAD, MESSAGES],
        },
    ],
    common: &[],
};

/// The keys of all that is not event building.
const TRAFFIC: &[Key] = &[WINDOW, LOAD, RATE, ARRIVALS, MESSAGES];

/// The keys of what goes in cycles, one after the other.
const CYCLES: &[Key] = &[MESSAGES];

const COMPUTE: Key = key(
    "compute",
    Kind::Time { min: Span::ZERO, max: MAX_COMPUTE },
    Default::Text("0 s"),
    "time that the receiver computes for each event",
);

const OVERHEAD: Key = key(
    "overhead",
    Kind::Time { min: Span::ZERO, max: MAX_COMPUTE },
    Default::Text("0 s"),
    "time that the receiver's application needs for each event beside its messages and what it computes",
);

const WINDOW: Key = key(
    "window",
    integer(1, MAX_WINDOW),
    Default::Integer(2),
    "messages that a saturating sender has under way: it sends the next when one has left its host; in a `funnel` and a \
     `push-farm` for every sender, until the receiver is done with one and says so by a message of 64 B",
);

const DEPTH: Key =
    key("window", integer(1, MAX_WINDOW), Default::Integer(1), "messages under way at once: the depth of the pipeline");

const LOAD: Key = key(
    "load",
    number(MIN_LOAD, MAX_LOAD),
    Default::Absent,
    "payload of each sender, as a part of the rate of its link; without `load` and `rate` it sends as much as goes",
);

const RATE: Key = key(
    "rate",
    Kind::Rate { min: Frequency(1), max: MAX_RATE },
    Default::Absent,
    "mean rate of the messages of each sender (`gather`: of events in all), instead of `load`",
);

const ARRIVALS: Key = key(
    "arrivals",
    Kind::Word(&[
        Word { name: "poisson", doc: "exponential intervals" },
        Word { name: "regular", doc: "equal intervals" },
    ]),
    Default::Text("poisson"),
    "intervals between messages under `load` or `rate`",
);

const MESSAGES: Key = key(
    "messages",
    integer(1, i64::MAX),
    Default::Absent,
    "messages of each sender (`gather`: events in all; `ping-pong` and what follows it: cycles) after which it stops",
);
