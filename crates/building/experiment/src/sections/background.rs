//! `[[background]]`: traffic that shares the simulated network with the workload.

use super::network::placement;
use crate::{
    choice::*,
    limits::*,
    plan::{BackgroundPlan, BackgroundPriority, Load, TrafficPlan},
    schema::*,
    tree::Node,
    view::View,
};
use evb_core::{Frequency, NodeId, NodeRange, Span};
use evb_patterns::{Pattern, Start, TrafficConfig};
use evb_protocol::Config;
use evb_sources::SourceSpec;

mod rules;

pub(super) use rules::{check, hosts};

pub(super) const DOC: &str = "Background traffic: what shares the network, its links and the interfaces of its hosts with the \
workload, such as storage, monitoring and file transfers. Only `evb simulate` has it. Its messages go by \
`network.transport`, too, and no unit of the workload hears of them. In the interface of a host, they and the messages of the \
workload take turns packet by packet. It ends with the workload, or at `until`.";

/// Each table of the list.
pub(super) static TABLE: KeyKind = KeyKind::Choice(&BACKGROUND);

static BACKGROUND: Choice<MakePattern> = Choice {
    tag: "pattern",
    what: "pattern of background traffic",
    default: KeyDefault::Text("random"),
    common: &[
        required("name", KeyKind::Name, "its name in the record"),
        required("senders", KeyKind::Choice(&HOSTS), "hosts that send, each on its own"),
        required("receivers", KeyKind::Choice(&HOSTS), "hosts that receive"),
        required("message", KeyKind::Choice(&MESSAGE), "sizes of the messages"),
        key(
            "window",
            integer(1, MAX_WINDOW),
            KeyDefault::Integer(2),
            "messages that a sender without `load` and `rate` has under way: it sends the next when one has left its host",
        ),
        optional(
            "load",
            number(MIN_LOAD, MAX_LOAD),
            "payload of each sender, as a part of the rate of its link; without `load` and `rate` it sends as much as goes",
        ),
        optional(
            "rate",
            KeyKind::Rate { min: Frequency(1), max: MAX_RATE },
            "mean rate of the messages of each sender, instead of `load`",
        ),
        key("arrivals", KeyKind::Word(&ARRIVALS), KeyDefault::Text("poisson"), "intervals between its messages"),
        optional("messages", integer(1, i64::MAX), "messages of each sender after which it stops"),
        key("from", time(MAX_DURATION), KeyDefault::Text("0 s"), "time after the start at which it begins"),
        optional("until", time(MAX_DURATION), "time after the start at which its senders stop"),
        key(
            "priority",
            KeyKind::Word(&PRIORITY),
            KeyDefault::Text("same"),
            "its priority in the network and in the interfaces of its senders",
        ),
    ],
    variants: &[
        variant(
            "random",
            "each message goes to a receiver drawn at random, never to one on the sender's own host",
            &[],
            |_, _| Pattern::Random,
        ),
        variant(
            "assigned",
            "each sender always sends to the same receiver",
            &[optional(
                "destinations",
                KeyKind::Integers { min: 0, max: MAX_UNITS - 1, most: MAX_UNITS as usize },
                "for each sender the index of its receiver, such as [0, 0, 2]; by default sender n has receiver n mod N",
            )],
            assigned,
        ),
        variant(
            "pairs",
            "sender n always sends to receiver n + half, where half is half the number of receivers",
            &[],
            |_, _| Pattern::Pairs,
        ),
        variant(
            "rotation",
            "each sender sends to all receivers in turn; sender n begins with receiver n",
            &[],
            |_, _| Pattern::Rotation { start: Start::Retarded },
        ),
    ],
};

/// Makes the pattern of a table, for these senders and receivers.
type MakePattern = fn(View<'_>, (u16, u16)) -> Pattern;

/// The hosts of senders or receivers.
static HOSTS: Choice<fn(View<'_>, View<'_>) -> Hosts> = Choice {
    tag: "on",
    what: "hosts of background traffic",
    default: KeyDefault::Required,
    common: &[],
    variants: &[
        variant("readouts", "those of the readout units, or senders of the workload", &[], |view, _| Hosts {
            first: placement::plan(view).readout,
            count: view.integer("readout.units"),
        }),
        variant("builders", "those of the builder units, or receivers of the workload", &[], |view, _| Hosts {
            first: placement::plan(view).builder,
            count: view.integer("builder.units"),
        }),
        variant(
            OTHERS,
            "others, such as storage servers; `network.topology` must have places for them",
            &[
                key(
                    "first",
                    integer(0, MAX_COUNT),
                    KeyDefault::Derived("the host after those of all units"),
                    "the first of them, counted from 0",
                ),
                key("count", integer(1, MAX_COUNT), KeyDefault::Integer(1), "number of them, one after the other"),
            ],
            |_, table| Hosts { first: table.integer("first"), count: table.integer("count") },
        ),
    ],
};

/// Hosts that are not those of units.
const OTHERS: &str = "hosts";

/// Hosts that follow each other.
#[derive(Clone, Copy)]
struct Hosts {
    first: u16,
    count: u16,
}

static MESSAGE: Choice<Make<SourceSpec>> = choice(
    "size of a message",
    KeyDefault::Required,
    &[
        variant(
            "fixed",
            "all of one size",
            &[required("size", bytes(1, MAX_FRAGMENT), "size of every message")],
            |view| SourceSpec::Fixed { size: view.quantity("size") },
        ),
        variant(
            "uniform",
            "uniform between two bounds, both included",
            &[
                required("min", bytes(1, MAX_FRAGMENT), "smallest size"),
                required("max", bytes(1, MAX_FRAGMENT), "largest size"),
            ],
            |view| SourceSpec::Uniform { min: view.quantity("min"), max: view.quantity("max") },
        ),
        variant(
            "log-normal",
            "log-normal",
            &[
                required("mean", bytes(1, MAX_FRAGMENT), "mean size"),
                required("rms", bytes(0, MAX_FRAGMENT), "rms deviation from the mean"),
            ],
            |view| SourceSpec::LogNormal { mean: view.quantity("mean"), rms: view.quantity("rms") },
        ),
    ],
);

/// True for intervals of a Poisson process.
static ARRIVALS: Words<bool> =
    Words(&[word("poisson", "exponential intervals", true), word("regular", "equal intervals", false)]);

static PRIORITY: Words<BackgroundPriority> = Words(&[
    word("same", "that of the fragments, or data, of the workload", BackgroundPriority::Same),
    word(
        "lower",
        "a lower one: in queues of its own it goes when nothing of the workload waits. `network.flow` must have two \
         priorities, or two virtual channels by priority",
        BackgroundPriority::Lower,
    ),
]);

/// The traffic of all tables. Its nodes follow those of the workload: senders and receivers of each table in turn.
pub(super) fn plan(view: View<'_>, config: &Config) -> Vec<BackgroundPlan> {
    let mut next = config.nodes();
    let mut range = |count: u16| {
        let first = NodeId(next);
        next += count;
        NodeRange { first, count }
    };
    let tables = view.list("background").iter().map(View);
    tables
        .map(|table| {
            let [from, to] = sides(view, table);
            let (senders, receivers) = (range(from.count), range(to.count));
            BackgroundPlan {
                name: table.text("name").to_owned(),
                traffic: TrafficPlan {
                    config: TrafficConfig {
                        senders,
                        receivers,
                        pattern: BACKGROUND.of(table)(table, (senders.count, receivers.count)),
                        window: table.integer("window"),
                        seed: view.integer("run.seed"),
                    },
                    load: load(table),
                    messages: table.maybe_integer("messages"),
                    awaits_acknowledgement: false,
                },
                sender_host: from.first,
                receiver_host: to.first,
                message: MESSAGE.make(table.below("message")),
                from: table.quantity("from"),
                until: table.maybe_quantity::<Span>("until"),
                priority: PRIORITY.at(table, "priority"),
            }
        })
        .collect()
}

/// The hosts of the senders and of the receivers of a table.
fn sides(view: View<'_>, table: View<'_>) -> [Hosts; 2] {
    ["senders", "receivers"].map(|side| HOSTS.of(table.below(side))(view, table.below(side)))
}

fn assigned(table: View<'_>, (senders, receivers): (u16, u16)) -> Pattern {
    let given = table.list("destinations").iter().filter_map(Node::integer).filter_map(|index| index.try_into().ok());
    let destinations = match table.has("destinations") {
        true => given.collect(),
        false => (0..senders).map(|sender| sender % receivers).collect(),
    };
    Pattern::Assigned { destinations }
}

fn load(table: View<'_>) -> Load {
    let poisson = ARRIVALS.at(table, "arrivals");
    match table.maybe_quantity("rate") {
        Some(rate) => Load::Rate { rate, poisson },
        None if table.has("load") => Load::Fraction { load: table.number("load"), poisson },
        None => Load::Saturating,
    }
}

/// Gives the hosts that are not those of units their places in an unchecked tree: from `after` on, unless the file says
/// where. Returns the number of hosts that all need.
pub(super) fn fill(root: &mut Node, after: i64) -> i64 {
    let tables = root.at("background").and_then(Node::list).map_or(0, <[Node]>::len).min(MAX_BACKGROUNDS);
    let mut hosts = after;
    for table in 0..tables {
        for side in ["senders", "receivers"] {
            let path = format!("background.{table}.{side}");
            if root.at(&format!("{path}.on")).and_then(Node::text) != Some(OTHERS) {
                continue;
            }
            if root.at(&format!("{path}.first")).is_none() {
                let index = table.to_string();
                let first = crate::tree::Value::Integer(after.min(MAX_COUNT));
                root.put(&["background", &index, side, "first"], None, first.into());
            }
            let number =
                |key: &str, default| root.at(&format!("{path}.{key}")).and_then(Node::integer).unwrap_or(default);
            hosts = hosts.max(number("first", 0).clamp(0, MAX_COUNT) + number("count", 1).clamp(1, MAX_COUNT));
        }
    }
    hosts
}
