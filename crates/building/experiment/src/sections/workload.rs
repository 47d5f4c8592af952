//! `[workload]`: what the nodes do.

use crate::{
    choice::*,
    limits::*,
    plan::{Load, TrafficPlan, Workload},
    schema::*,
    tree::Node,
    view::View,
};
use evb_core::{Frequency, Span};
use evb_patterns::{Pattern, Start, TrafficConfig};
use evb_protocol::Config;

pub(super) mod rules;

pub(super) const DOC: &str = "What the nodes do. All but event building is traffic without an event manager: the readout units are its senders and the \
builder units its receivers, and the sources give the sizes of the messages. Traffic ends after `messages`, or with \
`trigger.duration`; one of them must be given. Of `[trigger]`, only that and `accept_loss` have an effect on it; `[protocol]` \
and `[shaping]` have none. `evb run` needs a rate in place of `load`, and for `gather`.";

/// Event building, or traffic.
pub(super) static WORKLOAD: Choice<Option<Traffic>> = choice(
    "workload",
    KeyDefault::Text("event-building"),
    &[
        variant("event-building", "events are built, as `[protocol]` says", &[], None),
        variant(
            "assigned",
            "each sender always sends to the same receiver",
            &[
                required(
                    "destinations",
                    KeyKind::Integers { min: 0, max: MAX_UNITS - 1, most: MAX_UNITS as usize },
                    "for each sender the index of its receiver, such as [0, 0, 2]",
                ),
                WINDOW,
                AWAITS,
                LOAD,
                RATE,
                ARRIVALS,
                MESSAGES,
            ],
            traffic(Between::Any, |view| Pattern::Assigned { destinations: destinations(view) }),
        ),
        variant(
            "random",
            "each message goes to a receiver drawn at random, never to one on the sender's own host",
            SENDING,
            traffic(Between::Hosts, |_| Pattern::Random),
        ),
        variant(
            "pairs",
            "sender n always sends to receiver n + half, where half is half the number of receivers: fixed pairs",
            SENDING,
            traffic(Between::Any, |_| Pattern::Pairs),
        ),
        variant(
            "rotation",
            "message e of every sender goes to receiver e mod N: event building without a manager",
            &[
                key("start", KeyKind::Word(&STARTS), KeyDefault::Text("simultaneous"), "how the senders start"),
                WINDOW,
                AWAITS,
                LOAD,
                RATE,
                ARRIVALS,
                MESSAGES,
            ],
            traffic(Between::Any, |view| Pattern::Rotation { start: STARTS.at(view, "start") }),
        ),
        variant(
            "stream",
            "each sender waits for a start message from every receiver, then sends to each in turn (MStreamIO)",
            SENDING,
            traffic(Between::Any, |_| Pattern::Stream),
        ),
        variant(
            "gather",
            "for each event some receivers (processors) gather data from some senders (buffers), as in a second-level \
             trigger; without `rate` and `load` as fast as it goes",
            &[
                required("least", integer(1, MAX_UNITS), "fewest senders that one processor gathers from"),
                required("most", integer(1, MAX_UNITS), "most senders that one processor gathers from"),
                key(
                    "processors",
                    integer(1, MAX_UNITS),
                    KeyDefault::Integer(1),
                    "processors that gather for one event",
                ),
                key(
                    "ask",
                    KeyKind::Flag,
                    KeyDefault::Flag(true),
                    "whether a processor asks each sender; else the senders send by themselves when the event comes",
                ),
                WINDOW,
                LOAD,
                RATE,
                ARRIVALS,
                MESSAGES,
            ],
            traffic(Between::Any, |view| Pattern::Gather {
                least: view.integer("least"),
                most: view.integer("most"),
                processors: view.integer("processors"),
                ask: view.flag("ask"),
            }),
        ),
        variant(
            "ping-pong",
            "sender n sends to receiver n, which sends the data back; a cycle is a round trip",
            &[DEPTH, MESSAGES],
            traffic(Between::Pairs, |_| Pattern::PingPong),
        ),
        variant(
            "two-way",
            "sender n and receiver n send to each other at once; a cycle of the sender ends when its data have left and \
             the other's are there",
            CYCLES,
            traffic(Between::Pairs, |_| Pattern::TwoWay),
        ),
        variant(
            "all-to-all",
            "every node, sender or receiver, sends to every other at once; each counts its own cycles, which end when \
             its data have left and those of all others are there",
            CYCLES,
            traffic(Between::Any, |_| Pattern::AllToAll),
        ),
        variant(
            "outfarming",
            "one sender sends to each receiver; a cycle ends when the last message has left its host",
            CYCLES,
            traffic(Between::OneSender, |_| Pattern::Outfarming),
        ),
        variant(
            "broadcast",
            "one sender sends the same message to all receivers, in copies that its network interface makes, since no \
             network here has a multicast; a cycle ends when the last copy has left its host",
            CYCLES,
            traffic(Between::OneSender, |_| Pattern::Broadcast),
        ),
        variant(
            "funnel",
            "all senders send to one receiver; a cycle is one message from each",
            TRAFFIC,
            traffic(Between::OneReceiver, |_| Pattern::Funnel),
        ),
        variant(
            "push-farm",
            "a funnel whose receiver computes for each event; with a window of 2 the next event is on its way \
             meanwhile, and never one after it",
            &[COMPUTE, OVERHEAD, WINDOW, LOAD, RATE, ARRIVALS, MESSAGES],
            traffic(Between::OneReceiver, |view| Pattern::PushFarm { work: work(view) }),
        ),
        variant(
            "pull-farm",
            "one receiver asks all senders by 64 B each, gets the data, asks for those of the next event, and computes",
            &[COMPUTE, OVERHEAD, MESSAGES],
            traffic(Between::OneReceiver, |view| Pattern::PullFarm { work: work(view) }),
        ),
    ],
);

/// A kind of traffic.
pub(super) struct Traffic {
    between: Between,
    pattern: Make<Pattern>,
}

/// The nodes that traffic wants.
#[derive(Clone, Copy)]
enum Between {
    /// Any number of senders and of receivers.
    Any,
    /// A receiver on another host for each sender.
    Hosts,
    /// A receiver for each sender.
    Pairs,
    /// One sender.
    OneSender,
    /// One receiver.
    OneReceiver,
}

const fn traffic(between: Between, pattern: Make<Pattern>) -> Option<Traffic> {
    Some(Traffic { between, pattern })
}

/// The keys of all that is not event building.
const TRAFFIC: &[Key] = &[WINDOW, LOAD, RATE, ARRIVALS, MESSAGES];

/// The keys of patterns whose receivers do not answer.
const SENDING: &[Key] = &[WINDOW, AWAITS, LOAD, RATE, ARRIVALS, MESSAGES];

/// The keys of what goes in cycles, one after the other.
const CYCLES: &[Key] = &[MESSAGES];

const COMPUTE: Key =
    key("compute", time(MAX_COMPUTE), KeyDefault::Text("0 s"), "time that the receiver computes for each event");

const OVERHEAD: Key = key(
    "overhead",
    time(MAX_COMPUTE),
    KeyDefault::Text("0 s"),
    "time that the receiver's application needs for each event beside its messages and what it computes",
);

const WINDOW: Key = key(
    "window",
    integer(1, MAX_WINDOW),
    KeyDefault::Integer(2),
    "messages that a saturating sender has under way: it sends the next when one has left its host; in a `funnel` and a \
     `push-farm` for every sender, until the receiver is done with one and reports this by a message of 64 B",
);

const AWAITS: Key = key(
    "awaits",
    KeyKind::Word(&AWAITED),
    KeyDefault::Text("departure"),
    "what a saturating sender awaits before it takes a message as sent; only simulated",
);

const DEPTH: Key =
    key("window", integer(1, MAX_WINDOW), KeyDefault::Integer(1), "messages in flight: the depth of the pipeline");

const LOAD: Key = optional(
    "load",
    number(MIN_LOAD, MAX_LOAD),
    "payload of each sender, as a part of the rate of its link; without `load` and `rate` it sends as much as goes",
);

const RATE: Key = optional(
    "rate",
    KeyKind::Rate { min: Frequency(1), max: MAX_RATE },
    "mean rate of the messages of each sender (`gather`: of events in all), instead of `load`",
);

const ARRIVALS: Key = key(
    "arrivals",
    KeyKind::Word(&SPACING),
    KeyDefault::Text("poisson"),
    "intervals between messages under `load` or `rate`",
);

const MESSAGES: Key = optional(
    "messages",
    integer(1, i64::MAX),
    "messages of each sender (`gather`: events in all; `ping-pong` and what follows it: cycles) after which it stops",
);

static STARTS: Words<Start> = Words(&[
    word("simultaneous", "all senders start with the first message", Start::Simultaneous),
    word("retarded", "sender n skips the first n messages", Start::Retarded),
]);

static AWAITED: Words<bool> = Words(&[
    word("departure", "it has left its host", false),
    word(
        "acknowledgement",
        "its connection has acknowledged all of it, as with a blocking send; needs `network.transport`",
        true,
    ),
]);

/// The spacing of messages.
#[derive(Clone, Copy, PartialEq)]
enum Spacing {
    Poisson,
    Regular,
    Slotted,
}

static SPACING: Words<Spacing> = Words(&[
    word("poisson", "exponential intervals", Spacing::Poisson),
    word("regular", "equal intervals", Spacing::Regular),
    word(
        "slotted",
        "in each time slot one with the probability `load`; a slot is as long as the payload of a message on its link, and \
         the slots of all senders begin together",
        Spacing::Slotted,
    ),
]);

/// True if messages come in time slots.
fn is_slotted(workload: View<'_>) -> bool {
    workload.has("arrivals") && SPACING.at(workload, "arrivals") == Spacing::Slotted
}

/// True if a message is under way until it is acknowledged.
fn awaits_acknowledgement(workload: View<'_>) -> bool {
    workload.has("awaits") && AWAITED.at(workload, "awaits")
}

/// True if the workload is traffic and not event building.
pub(super) fn is_traffic(view: View<'_>) -> bool {
    WORKLOAD.of(view.below("workload")).is_some()
}

/// True if the workload is event building, in an unchecked tree.
pub(super) fn is_event_building(root: &Node) -> bool {
    WORKLOAD.written(root.at("workload")).is_some_and(Option::is_none)
}

/// Makes the workload.
pub(super) fn plan(view: View<'_>, config: &Config) -> Workload {
    let workload = view.below("workload");
    let Some(traffic) = WORKLOAD.of(workload) else { return Workload::EventBuilding };
    Workload::Traffic(TrafficPlan {
        config: TrafficConfig {
            senders: config.readout_nodes(),
            receivers: config.builder_nodes(),
            pattern: (traffic.pattern)(workload),
            window: workload.maybe_integer("window").unwrap_or(1),
            seed: view.integer("run.seed"),
        },
        load: load(workload),
        messages: workload.maybe_integer("messages"),
        awaits_acknowledgement: awaits_acknowledgement(workload),
    })
}

/// Time for which the processor of a farm is busy with each event, beside its messages.
fn work(view: View<'_>) -> Span {
    let (compute, overhead): (Span, Span) = (view.quantity("compute"), view.quantity("overhead"));
    Span(compute.0 + overhead.0)
}

fn destinations(view: View<'_>) -> Vec<u16> {
    view.list("destinations").iter().filter_map(Node::integer).filter_map(|index| index.try_into().ok()).collect()
}

fn load(view: View<'_>) -> Load {
    if !view.has("arrivals") {
        return Load::Saturating;
    }
    let poisson = SPACING.at(view, "arrivals") == Spacing::Poisson;
    match view.maybe_quantity("rate") {
        Some(rate) => Load::Rate { rate, poisson },
        None if !view.has("load") => Load::Saturating,
        None if is_slotted(view) => Load::Slots { load: view.number("load") },
        None => Load::Fraction { load: view.number("load"), poisson },
    }
}
