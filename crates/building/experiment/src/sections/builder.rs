//! `[builder]`: the builder units, and how many events they have under construction.

use super::{block, counts, protocol::PROTOCOL, source};
use crate::{
    diagnostics::Problem,
    limits::*,
    schema::*,
    tree::Node,
    view::{Rule, View},
};
use evb_protocol::Config;

pub(super) const BUILDER: &[Key] = &[
    required("units", integer(1, MAX_UNITS), "number of builder units"),
    key(
        "slots",
        KeyKind::IntegerOr { min: 1, max: MAX_SLOTS, word: "auto" },
        KeyDefault::Text("auto"),
        "events that one builder may have under construction; blocks, where events go in blocks (`trigger.block`). `auto` finds a \
         sufficient number during the run, at most 64, or with blocks 512 events but at least 4 blocks; all builders together may have fewer than one each. With `[shaping]` it is the maximum from the start",
    ),
    key(
        "patience",
        wait(),
        KeyDefault::Text("250 ms"),
        "time after which a builder asks for missing fragments of an event",
    ),
    optional(
        "deadline",
        wait(),
        "time after which an event, or a phase of it, ends with the fragments received so far; a source that has missed it \
         three times in a row is not awaited until it sends again",
    ),
];

pub(super) const RULES: &[Rule] = &[fragments];

/// Events that all builders together may have under construction at first, if their number is to be found.
pub(super) fn first_under_way(view: View<'_>) -> Option<u32> {
    // Shaping needs many events to fill its buckets: few of them would cost more than they bring.
    let is_fixed = view.0.at("builder.slots").and_then(Node::integer).is_some() || view.text("shaping.type") != "none";
    let protocol = PROTOCOL.make(view.below("protocol"));
    (!is_fixed).then(|| Config::usual_under_way(protocol, view.integer("builder.units"), block::largest_block(view.0)))
}

/// Most slots of a builder.
pub(super) fn most_slots(view: View<'_>) -> u32 {
    u32::try_from(counts::written_slots(view.0, block::largest_block(view.0))).unwrap_or(u32::MAX)
}

fn fragments(view: View<'_>) -> Option<Problem> {
    let count = |path| view.integer::<u64>(path);
    let (readouts, builders, slots) = (count("readout.units"), count("builder.units"), u64::from(most_slots(view)));
    let fragments =
        (source::all(view).count() as u64).max(readouts) * u64::from(block::largest_block(view.0)) * builders * slots;
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
