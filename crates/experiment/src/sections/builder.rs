//! `[builder]`: the builder units, and how many events they have under construction.

use super::{Rule, bundle, source};
use crate::{diagnostics::Problem, limits::*, schema::*, tree::Node, view::View};

pub(super) const BUILDER: &[Key] = &[
    required("units", integer(1, MAX_UNITS), "number of builder units"),
    key("slots", integer(1, MAX_SLOTS), Default::Integer(SLOTS), "events that one builder may have under construction"),
    key(
        "patience",
        wait(),
        Default::Text("250 ms"),
        "how long a builder waits for the fragments of an event before it asks for those that it lacks",
    ),
    optional(
        "deadline",
        wait(),
        "time after which an event, or a phase of it, ends with what is there, though the rest may still come",
    ),
];

const SLOTS: i64 = 64;

pub(super) const RULES: &[Rule] = &[fragments];

/// The number of builder units in an unchecked tree.
pub(super) fn units(root: &Node) -> i64 {
    root.at("builder.units").and_then(Node::integer).unwrap_or(1).clamp(1, MAX_UNITS)
}

/// Events that all builders of such a tree can have under construction.
pub(super) fn under_construction(root: &Node) -> i64 {
    let slots = root.at("builder.slots").map_or(Some(SLOTS), Node::integer).unwrap_or(1);
    units(root).saturating_mul(slots)
}

fn fragments(view: View<'_>) -> Option<Problem> {
    let count = |path| view.integer::<u64>(path);
    let (readouts, builders, slots) = (count("readout.units"), count("builder.units"), count("builder.slots"));
    let fragments = (source::all(view).count() as u64).max(readouts) * bundle::block(view) * builders * slots;
    (fragments > MAX_FRAGMENTS).then(|| {
        let message = format!("{fragments} fragments under construction are more than {MAX_FRAGMENTS}");
        let help =
            format!("they are {readouts} readout units x {builders} builders x {slots} slots: lower `builder.slots`");
        let help = match fragments == readouts * builders * slots {
            true => help,
            false => format!("they are those of all sources and of all events of {builders} builders x {slots} slots: lower `builder.slots`"),
        };
        Problem::new(message, help)
            .at(view.origin("builder.slots"), "slots")
            .at(view.origin("builder.units"), "builders")
            .at(view.origin("readout.units"), "readout units")
    })
}
