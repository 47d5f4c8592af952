//! `[builder]`: the builder units, and how many events they have under construction.

use super::{Rule, bundle, protocol::PROTOCOL, source};
use crate::{diagnostics::Problem, limits::*, schema::*, tree::Node, view::View};
use evb_protocol::Config;

pub(super) const BUILDER: &[Key] = &[
    required("units", integer(1, MAX_UNITS), "number of builder units"),
    key(
        "slots",
        Kind::Auto { max: MAX_SLOTS },
        Default::Text("auto"),
        "events that one builder may have under construction; blocks, where events go in blocks (`trigger.block`). `auto` looks \
         for the number that is enough while events are built, up to 64, also fewer than one for each, and with blocks fewer: 512 events, but 4 blocks; with `[shaping]` it has as many from the start",
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

/// Most slots of `auto`, if an event is not larger than usual.
const SLOTS: i64 = 64;
/// Most events in the slots of `auto`, if blocks are so large that fewer slots have them: more only wait, and leave the
/// caches before they are built.
const SLOT_EVENTS: i64 = 512;
/// Fewest blocks of these: some are built while others are on their way.
const FEWEST_BLOCKS: i64 = 4;

pub(super) const RULES: &[Rule] = &[fragments];

/// Events that all builders together may have under construction at first, if their number is to be found.
pub(super) fn first_under_way(view: View<'_>) -> Option<u32> {
    // Shaping needs many events to fill its buckets: few of them would cost more than they bring.
    let is_fixed = view.0.at("builder.slots").and_then(Node::integer).is_some() || view.text("shaping.type") != "none";
    let protocol = PROTOCOL.make(view.below("protocol"));
    (!is_fixed).then(|| Config::usual_under_way(protocol, view.integer("builder.units"), bundle::largest_block(view.0)))
}

/// Most slots of a builder.
pub(super) fn most_slots(view: View<'_>) -> u32 {
    u32::try_from(written_slots(view.0, bundle::largest_block(view.0))).unwrap_or(u32::MAX)
}

/// Most slots of a builder in an unchecked tree, if so many events go in a block.
fn written_slots(root: &Node, block: u32) -> i64 {
    let auto = (SLOT_EVENTS / i64::from(block)).clamp(FEWEST_BLOCKS, SLOTS);
    root.at("builder.slots").and_then(Node::integer).unwrap_or(auto).clamp(1, MAX_SLOTS)
}

/// The number of builder units in an unchecked tree.
pub(super) fn units(root: &Node) -> i64 {
    root.at("builder.units").and_then(Node::integer).unwrap_or(1).clamp(1, MAX_UNITS)
}

/// Blocks of so many events that all builders of such a tree can have under construction.
pub(super) fn under_construction(root: &Node, block: u32) -> i64 {
    units(root).saturating_mul(written_slots(root, block))
}

fn fragments(view: View<'_>) -> Option<Problem> {
    let count = |path| view.integer::<u64>(path);
    let (readouts, builders, slots) = (count("readout.units"), count("builder.units"), u64::from(most_slots(view)));
    let fragments =
        (source::all(view).count() as u64).max(readouts) * u64::from(bundle::largest_block(view.0)) * builders * slots;
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
