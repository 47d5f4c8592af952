//! `[protocol]`: who starts the transfer of fragments, choice of the builder of an event, and the decision after the
//! first phase.

use super::{builder, counts};
use crate::{
    choice::*,
    diagnostics::Problem,
    limits::*,
    schema::*,
    tree::{Node, Value, put_default},
    view::{Rule, View},
};
use evb_protocol::{Assignment, FirstPhase, Protocol, RequestOrder};
use std::num::NonZeroU32;

pub(super) static PROTOCOL: Choice<Make<Protocol>> = Choice {
    tag: "type",
    what: "protocol",
    default: KeyDefault::Text(PUSH),
    common: &[key(
        "assignment",
        KeyKind::Word(&ASSIGNMENT),
        KeyDefault::Text("round-robin"),
        "choice of the builder of an event",
    )],
    variants: &[
        variant(
            PUSH,
            "the event manager broadcasts assignments, readout units send at once",
            &[
                key(
                    "group",
                    integer(1, MAX_GROUP),
                    KeyDefault::Derived("352, or the number of builders if that is more"),
                    "most assignments in one message; at least the number of builders",
                ),
                key("group_timeout", wait(), KeyDefault::Text("1 ms"), "longest wait of an incomplete group"),
            ],
            |_| Protocol::Push,
        ),
        variant(
            "pull",
            "the builder asks the event manager for events, then each readout unit for its fragment",
            &[REQUEST_GROUP, REQUEST_ORDER, REQUEST_WINDOW],
            |_| Protocol::Pull,
        ),
        variant(
            PHASED,
            "as pull, but the builder asks the first readout units or a region of interest, decides, and asks the others for accepted events only",
            &[
                REQUEST_GROUP,
                REQUEST_ORDER,
                REQUEST_WINDOW,
                optional(
                    "first",
                    integer(1, MAX_UNITS),
                    "readout units that are asked first: `ru0` and those after it; fewer than there are, if the others are asked later",
                ),
                optional(
                    "least",
                    integer(1, MAX_UNITS),
                    "in place of `first`: fewest readout units of a region of interest, which is drawn by seed and event and asked first",
                ),
                optional(
                    "most",
                    integer(1, MAX_UNITS),
                    "most readout units of a region of interest; fewer than there are, if the others are asked later",
                ),
                key(
                    REST,
                    KeyKind::Flag,
                    KeyDefault::Flag(true),
                    "true if the others are asked for accepted events; otherwise an event is decided and stored with the fragments of its first phase",
                ),
                optional(
                    "accept",
                    number(0.0, 1.0),
                    "part of the events that is accepted before any `[filter]`, drawn by seed and event; one with a fragment missing or bad by \
                     then is always accepted",
                ),
            ],
            |view| Protocol::Phased { first: first(view), rest: view.flag(REST) },
        ),
    ],
};

const PUSH: &str = "push";
pub(super) const PHASED: &str = "phased";
const REST: &str = "rest";

const REQUEST_GROUP: Key = optional(
    "group",
    integer(1, MAX_SLOTS),
    "events, or blocks of them, that a builder requests at once: it gathers this many free slots, and asks each readout \
     unit for this many fragments in one message; without it, as many as are free",
);

const REQUEST_ORDER: Key =
    key("order", KeyKind::Word(&ORDER), KeyDefault::Text("rotated"), "order in which a builder asks the readout units");

const REQUEST_WINDOW: Key = optional(
    "window",
    integer(1, MAX_WINDOW),
    "most requests of a builder to readout units, over all its events, that have no answer: the next one goes when the \
     fragments of one have come, its unit is lost, or it has waited for `builder.patience`; without it, all go at once",
);

static ORDER: Words<RequestOrder> = Words(&[
    word(
        "rotated",
        "builder n asks `ru`n first, and goes round, one message after the other: builders in step ask different units",
        RequestOrder::Rotated,
    ),
    word("same", "all builders ask `ru0` first, with one message to all units", RequestOrder::Same),
]);

/// The units that are asked first; the seed of a region comes later.
fn first(view: View<'_>) -> FirstPhase {
    match view.maybe_integer("first") {
        Some(first) => FirstPhase::Units(first),
        None => FirstPhase::Region { least: view.integer("least"), most: view.integer("most"), seed: 0 },
    }
}

/// True for phased building.
pub(super) fn is_phased(view: View<'_>) -> bool {
    view.has("protocol.rest")
}

/// True for phased building with a second phase.
pub(super) fn has_rest(view: View<'_>) -> bool {
    is_phased(view) && view.flag("protocol.rest")
}

/// The key that draws regions of interest, or leaves events without some units: then a missing fragment is none of a unit
/// that was not asked, and only the units of the builder know.
pub(super) fn partial(view: View<'_>) -> Option<&'static str> {
    let is_partial = |key: &&str| view.has(key) && !(key.ends_with(REST) && view.flag(key));
    ["protocol.least", "protocol.rest"].into_iter().find(is_partial)
}

pub(super) static ASSIGNMENT: Words<Assignment> = Words(&[
    word("round-robin", "builders in turn, leaving out those without a free slot", Assignment::RoundRobin),
    word("least-loaded", "the builder with the fewest events under construction", Assignment::LeastLoaded),
    word(
        "by-number",
        "builder n gets every event whose number, less 1, leaves n when divided by the number of builders; the events of a builder that is gone are not built",
        Assignment::ByNumber,
    ),
]);

pub(super) const RULES: &[Rule] = &[group_below_builders, group_above_slots, who_is_first, region_bounds, first_phase];

/// The size of a group follows from the number of builders, where there are groups.
pub(super) fn fill(root: &mut Node) {
    if matches!(root.at("protocol.type").map(Node::text), None | Some(Some(PUSH))) {
        let group = counts::builder_units(root).max(DEFAULT_GROUP);
        put_default(root, &["protocol", "group"], Value::Integer(group));
    }
}

/// The assignments in a message of push. Pull sends none, but the machines want a valid value all the same.
pub(super) fn assignment_group(view: View<'_>) -> u32 {
    let builders = || view.integer::<u32>("builder.units").max(DEFAULT_GROUP as u32);
    view.maybe_integer("protocol.group").filter(|_| is_push(view)).unwrap_or_else(builders)
}

/// The events of a request of pull or phased building.
pub(super) fn request_group(view: View<'_>) -> Option<NonZeroU32> {
    view.maybe_integer("protocol.group").filter(|_| !is_push(view)).and_then(NonZeroU32::new)
}

/// The order of the requests of pull or phased building. Push sends none.
pub(super) fn request_order(view: View<'_>) -> RequestOrder {
    if is_push(view) { RequestOrder::default() } else { ORDER.at(view, "protocol.order") }
}

/// The requests of pull or phased building that may be without an answer.
pub(super) fn request_window(view: View<'_>) -> Option<NonZeroU32> {
    view.maybe_integer("protocol.window").and_then(NonZeroU32::new)
}

fn is_push(view: View<'_>) -> bool {
    view.has("protocol.group_timeout")
}

fn group_above_slots(view: View<'_>) -> Option<Problem> {
    let (group, slots) = (request_group(view)?.get(), builder::most_slots(view));
    (group > slots).then(|| {
        let message = format!("`protocol.group` of {group} is above `builder.slots`, {slots}");
        Problem::new(message, "a builder requests no more events than it has slots")
            .at(view.origin("protocol.group"), "too large")
            .at(view.origin("builder.slots"), "slots")
    })
}

fn group_below_builders(view: View<'_>) -> Option<Problem> {
    if !is_push(view) {
        return None;
    }
    let (group, builders) = (view.maybe_integer::<i64>("protocol.group")?, view.integer::<i64>("builder.units"));
    (group < builders).then(|| {
        let message = format!("`protocol.group` of {group} is below the number of builders, {builders}");
        let help =
            format!("a group holds one event for each builder or more: write {builders} or more, or leave it out");
        Problem::new(message, help)
            .at(view.origin("protocol.group"), "too small")
            .at(view.origin("builder.units"), "builders")
    })
}

/// Either some units are first, or a region of interest with both bounds.
fn who_is_first(view: View<'_>) -> Option<Problem> {
    let has = |key: &str| view.has(key);
    let [first, least, most] = ["protocol.first", "protocol.least", "protocol.most"].map(has);
    let (message, key, label) = match (first, least, most) {
        _ if !is_phased(view) => return None,
        (true, false, false) | (false, true, true) => return None,
        (false, false, false) => ("phased building does not say who is asked first", "type", "no first phase"),
        (true, ..) => ("`protocol.first` and a region of interest exclude each other", "first", "not with a region"),
        (false, true, false) => ("a region of interest needs `protocol.most`", "least", "no upper bound"),
        (false, false, true) => ("a region of interest needs `protocol.least`", "most", "no lower bound"),
    };
    let help = "write first = 3 for the same units in every event, or least = 3 and most = 5 for a region of interest";
    Some(Problem::new(message, help).at(view.origin(&format!("protocol.{key}")), label))
}

fn region_bounds(view: View<'_>) -> Option<Problem> {
    let (least, most) = (view.maybe_integer::<i64>("protocol.least")?, view.maybe_integer::<i64>("protocol.most")?);
    (least > most).then(|| {
        let message = format!("`protocol.least` of {least} is above `protocol.most` of {most}");
        Problem::new(message, "swap the two").at(view.origin("protocol.least"), "too large")
    })
}

/// The units of the first phase are there, and one more for a second phase.
fn first_phase(view: View<'_>) -> Option<Problem> {
    let key = ["protocol.first", "protocol.most"].into_iter().find(|key| view.has(key))?;
    let (first, units) = (view.integer::<i64>(key), view.integer::<i64>("readout.units"));
    let rest = view.flag("protocol.rest");
    (first > units - i64::from(rest)).then(|| {
        let message = match rest {
            true => format!("`{key}` of {first} leaves none of {units} readout units for the second phase"),
            false => format!("`{key}` of {first} is more than the {units} readout units"),
        };
        let help = match units {
            1 => "phases need two readout units or more: raise `readout.units`, or write type = \"pull\"".to_owned(),
            _ if !rest => format!("write {units} or less"),
            _ => format!("write {} or less, or write type = \"pull\" to ask all units at once", units - 1),
        };
        Problem::new(message, help).at(view.origin(key), "too many").at(view.origin("readout.units"), "readout units")
    })
}
