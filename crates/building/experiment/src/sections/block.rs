//! Events in blocks: their number, and the room of their bundles.

use super::{counts, protocol, source, trigger, workload};
use crate::{Bundling, limits::*, tree::Node};
use evb_core::ByteCount;

/// Largest fragment by default.
const DEFAULT_MAX_FRAGMENT: ByteCount = ByteCount(1 << 20);

/// Bytes that fill the buffer of a readout unit by default.
pub(super) const BUFFER_BYTES: &str = "64 MiB";
/// Most events of a block with `block = "auto"`, bytes of its bundles, and bytes of a whole block. More bring little, and leave
/// the caches before they are built.
const AUTO_EVENTS: u64 = 64;
const AUTO_BUNDLE: ByteCount = ByteCount(128 << 10);
const AUTO_BLOCK: ByteCount = ByteCount(1 << 20);
/// Fewest blocks for each builder in a run with a fixed number of events: a builder without one at the end would idle for too long.
const AUTO_BLOCKS: u64 = 8;
/// A block has room for fragments of at least this many times the usual size, and of this many bytes.
const AUTO_TIMES: u64 = 64;
const AUTO_LARGEST: ByteCount = ByteCount(64 << 10);

/// Events in a block, in an unchecked tree: at first, and at most, if their number follows the load.
pub(crate) fn block(root: &Node) -> (u32, Option<u32>) {
    if !is_auto(root) {
        let written = root.at("trigger.block").and_then(Node::integer).and_then(|block| u32::try_from(block).ok());
        return (written.unwrap_or(1).max(1), None);
    }
    let most = auto_block(root);
    if root.at("trigger.type").and_then(Node::text) == Some(trigger::RATE) {
        return (1, Some(most).filter(|most| *most > 1));
    }
    // Builders always ask for more, so blocks are as large as they may be.
    let Some(events) = root.at("trigger.events").and_then(Node::integer) else { return (most, None) };
    let builders = counts::builder_units(root).unsigned_abs();
    let fair = u32::try_from(events.unsigned_abs() / (AUTO_BLOCKS * builders)).unwrap_or(u32::MAX);
    (most.min(fair).max(1), None)
}

/// Most events in a block, in an unchecked tree.
pub(crate) fn largest_block(root: &Node) -> u32 {
    let (first, most) = block(root);
    most.unwrap_or(first)
}

/// True if the file leaves the events of a block to evb.
pub(crate) fn is_auto(root: &Node) -> bool {
    root.at("trigger.block").and_then(Node::integer).is_none()
}

/// Most events in a block with `block = "auto"`; 1 where blocks are not possible, or might cost more than they bring.
fn auto_block(root: &Node) -> u32 {
    let Some(size) = source::usual_size(root).filter(|_| may_have_blocks(root)) else { return 1 };
    let fragments = fragments_of_unit(root);
    let units = positive(root, "readout.units");
    let of_unit = fragments.saturating_mul(size.0.max(1));
    let usual = (AUTO_BUNDLE.0 / of_unit).min(AUTO_BLOCK.0 / of_unit.saturating_mul(units));
    let accepted = written_bytes(root, "readout.max_fragment").unwrap_or(AUTO_LARGEST).max(AUTO_LARGEST);
    let each = accepted.0.max(AUTO_TIMES.saturating_mul(size.0));
    let largest = fragments.saturating_mul(each.saturating_add(Bundling::ENTRY_BYTES));
    let room = largest_bundle(root).0.saturating_sub(Bundling::TAIL_BYTES) / largest;
    let most = u32::try_from(usual.min(room).min(AUTO_EVENTS)).unwrap_or(1);
    let can_be_under_way = |block: &u32| {
        let blocks = counts::under_construction(root, *block).unsigned_abs();
        blocks.saturating_mul((*block).into()).saturating_mul(units).saturating_mul(fragments) <= MAX_FRAGMENTS
    };
    (1..=most).rev().find(can_be_under_way).unwrap_or(1)
}

/// True if an unchecked tree has nothing that means single events: the buckets and packets of shaping have fragments of many
/// events already, and faults are injected into single messages.
fn may_have_blocks(root: &Node) -> bool {
    let is = |key: &str, value: &str| root.at(key).and_then(Node::text) == Some(value);
    let is_shaped = root.at("shaping.type").is_some() && !is("shaping.type", "none");
    let has_faults = root.at("fault").and_then(Node::list).is_some_and(|faults| !faults.is_empty());
    let is_staged = root.at("first_stage.slices").is_some();
    let has_data =
        source::has_data(root) || [trigger::DATA, trigger::TIME].into_iter().any(|data| is("trigger.type", data));
    let is_phased = is("protocol.type", protocol::PHASED);
    workload::is_event_building(root) && !(is_shaped || has_faults || is_staged || has_data || is_phased)
}

/// Bytes of the largest bundle of an unchecked tree with `block = "auto"`: the buffer of a readout unit holds two.
fn largest_bundle(root: &Node) -> ByteCount {
    let buffer = written_bytes(root, "readout.buffer_bytes").or_else(|| BUFFER_BYTES.parse().ok());
    buffer.map_or(MAX_FRAGMENT, |buffer| ByteCount(buffer.0 / 2).min(MAX_FRAGMENT))
}

fn written_bytes(root: &Node, path: &str) -> Option<ByteCount> {
    root.at(path).and_then(Node::text)?.parse().ok()
}

/// A number of an unchecked tree, at least 1.
fn positive(root: &Node, path: &str) -> u64 {
    root.at(path).and_then(Node::integer).unwrap_or(1).max(1).unsigned_abs()
}

/// Most fragments of a readout unit for one event, in an unchecked tree.
fn fragments_of_unit(root: &Node) -> u64 {
    let tables = root.at("readout.unit").and_then(Node::list).unwrap_or(&[]);
    let listed = tables.iter().filter_map(|unit| unit.at("sources").and_then(Node::list)).map(<[Node]>::len).max();
    let units = positive(root, "readout.units").saturating_sub(tables.len() as u64).max(1);
    let shared = positive(root, "readout.sources").div_ceil(units);
    shared.max(listed.unwrap_or(1) as u64)
}

/// Largest fragment by default: a bundle of such fragments is not above the largest message.
pub(crate) fn default_max_fragment(root: &Node) -> ByteCount {
    let block = largest_block(root);
    let fragments = fragments_of_unit(root).saturating_mul(block.into());
    let bundle = if is_auto(root) && block > 1 { largest_bundle(root) } else { MAX_FRAGMENT };
    let room = bundle.0.saturating_sub(Bundling::TAIL_BYTES) / fragments;
    let each = room.saturating_sub(Bundling::ENTRY_BYTES).clamp(1, DEFAULT_MAX_FRAGMENT.0);
    // A round number for the reader.
    ByteCount(1 << each.ilog2())
}
