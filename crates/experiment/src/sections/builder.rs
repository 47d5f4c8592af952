//! `[builder]`: the builder units, and how many events they have under construction.

use super::{Rule, bundle, put, source};
use crate::{
    diagnostics::Problem,
    limits::*,
    schema::*,
    tree::{Node, Value},
    view::View,
};

pub(super) const BUILDER: &[Key] = &[
    required("units", integer(1, MAX_UNITS), "number of builder units"),
    key(
        "slots",
        integer(1, MAX_SLOTS),
        Default::Derived("64, and with blocks fewer: 512 events, but 4 blocks"),
        "events that one builder may have under construction; with `trigger.block`, blocks",
    ),
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

/// Default number of slots, if an event is not larger than usual.
const SLOTS: i64 = 64;
/// Default number of events in the slots, if blocks are so large that fewer slots have them: more only wait, and leave the
/// caches before they are built.
const SLOT_EVENTS: i64 = 512;
/// Smallest default number of slots: some blocks are built while others are on their way.
const FEWEST_SLOTS: i64 = 4;

pub(super) const RULES: &[Rule] = &[fragments];

/// The number of slots follows from the size of a block.
pub(super) fn fill(root: &mut Node) {
    let block = root.at("trigger.block").and_then(Node::integer).unwrap_or(1).max(1);
    put(root, &["builder", "slots"], Value::Integer((SLOT_EVENTS / block).clamp(FEWEST_SLOTS, SLOTS)));
}

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
