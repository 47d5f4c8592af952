//! The keys of `[workload]`.

use super::{integer, key, number};
use crate::{
    limits::*,
    schema::{Choice, Default, Key, Kind, Variant, Word},
};
use evb_core::Frequency;

pub(super) const DOC: &str = "What the nodes do. All but event building is traffic without an event manager, for `evb simulate`: the readout units \
are its senders and the builder units its receivers, and the sources give the sizes of the messages. Traffic ends after \
`messages`, or with `trigger.duration`; one of them must be given. `[trigger]` has no other effect on it, and `[protocol]` \
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
    ],
    common: &[],
};

/// The keys of all that is not event building.
const TRAFFIC: &[Key] = &[WINDOW, LOAD, RATE, ARRIVALS, MESSAGES];

const WINDOW: Key = key(
    "window",
    integer(1, MAX_WINDOW),
    Default::Integer(2),
    "messages that a saturating sender has under way: it sends the next when one has left its host",
);

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
    "messages of each sender (`gather`: events in all) after which it stops",
);
