//! Numbers of units, slots and slices that several sections need.

use crate::{limits::*, tree::Node, view::View};

/// Most slots of `auto`, if an event is not larger than usual.
const SLOTS: i64 = 64;
/// Most events in the slots of `auto`, if blocks are so large that fewer slots have them: more only wait, and leave the
/// caches before they are built.
const SLOT_EVENTS: i64 = 512;
/// Fewest blocks of these: some are built while others are on their way.
const FEWEST_BLOCKS: i64 = 4;

/// Most slots of a builder in an unchecked tree, with blocks of this many events.
pub(crate) fn written_slots(root: &Node, block: u32) -> i64 {
    let auto = (SLOT_EVENTS / i64::from(block)).clamp(FEWEST_BLOCKS, SLOTS);
    root.at("builder.slots").and_then(Node::integer).unwrap_or(auto).clamp(1, MAX_SLOTS)
}

/// The number of builder units in an unchecked tree.
pub(crate) fn builder_units(root: &Node) -> i64 {
    root.at("builder.units").and_then(Node::integer).unwrap_or(1).clamp(1, MAX_UNITS)
}

/// Blocks of this many events that all builders of an unchecked tree can have under construction.
pub(crate) fn under_construction(root: &Node, block: u32) -> i64 {
    builder_units(root).saturating_mul(written_slots(root, block))
}

/// Number of slices; `None` without a first stage.
pub(crate) fn slices(view: View<'_>) -> Option<u16> {
    view.maybe_integer("first_stage.slices")
}
