//! `[protocol]`: who starts the transfer of fragments, how the builder of an event is picked, and the decision after the
//! first phase.

use super::{Rule, builder, put};
use crate::{
    choice::*,
    diagnostics::Problem,
    limits::*,
    schema::*,
    tree::{Node, Value},
    view::View,
};
use evb_protocol::{Assignment, Protocol};

pub(super) static PROTOCOL: Choice<Make<Protocol>> = Choice {
    tag: "type",
    what: "protocol",
    default: Default::Text(PUSH),
    common: &[key(
        "assignment",
        Kind::Word(&ASSIGNMENT),
        Default::Text("round-robin"),
        "how the builder of an event is picked",
    )],
    variants: &[
        variant(
            PUSH,
            "the event manager broadcasts assignments, readout units send at once",
            &[
                key(
                    "group",
                    integer(1, MAX_GROUP),
                    Default::Derived("352, or the number of builders if that is more"),
                    "most assignments in one message; at least the number of builders",
                ),
                key("group_timeout", wait(), Default::Text("1 ms"), "how long an incomplete group waits for more"),
            ],
            |_| Protocol::Push,
        ),
        variant(
            "pull",
            "the builder asks the event manager for events, then each readout unit for its fragment",
            &[],
            |_| Protocol::Pull,
        ),
        variant(
            "phased",
            "as pull, but the builder asks the first readout units, decides, and asks the others for accepted events only",
            &[
                required(
                    "first",
                    integer(1, MAX_UNITS - 1),
                    "readout units that are asked first: `ru0` and those after it; fewer than there are",
                ),
                optional(
                    "accept",
                    number(0.0, 1.0),
                    "part of the events that is accepted before any `[filter]`, drawn by seed and event; one with a fragment missing or bad by \
                     then is always accepted",
                ),
            ],
            |view| Protocol::Phased { first: view.integer("first") },
        ),
    ],
};

const PUSH: &str = "push";

pub(super) static ASSIGNMENT: Words<Assignment> = Words(&[
    word("round-robin", "builders in turn, leaving out those without a free slot", Assignment::RoundRobin),
    word("least-loaded", "the builder with the fewest events under construction", Assignment::LeastLoaded),
    word(
        "by-number",
        "builder n gets every event whose number, less 1, leaves n when divided by the number of builders; the events of a builder that is gone are not built",
        Assignment::ByNumber,
    ),
]);

pub(super) const RULES: &[Rule] = &[group_below_builders, first_phase];

/// The size of a group follows from the number of builders, where there are groups.
pub(super) fn fill(root: &mut Node) {
    if matches!(root.at("protocol.type").map(Node::text), None | Some(Some(PUSH))) {
        let group = builder::units(root).max(DEFAULT_GROUP);
        put(root, &["protocol", "group"], Value::Integer(group));
    }
}

/// The assignments in a message. Pull sends no groups, but the machines want a valid value all the same.
pub(super) fn group(view: View<'_>) -> u32 {
    let builders = || view.integer::<u32>("builder.units").max(DEFAULT_GROUP as u32);
    view.maybe_integer("protocol.group").unwrap_or_else(builders)
}

fn group_below_builders(view: View<'_>) -> Option<Problem> {
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

fn first_phase(view: View<'_>) -> Option<Problem> {
    let (first, units) = (view.maybe_integer::<i64>("protocol.first")?, view.integer::<i64>("readout.units"));
    (first >= units).then(|| {
        let message = format!("`protocol.first` of {first} leaves none of {units} readout units for the second phase");
        let help = match units {
            1 => "phases need two readout units or more: raise `readout.units`, or write type = \"pull\"".to_owned(),
            _ => format!("write {} or less, or write type = \"pull\" to ask all units at once", units - 1),
        };
        Problem::new(message, help)
            .at(view.origin("protocol.first"), "too many")
            .at(view.origin("readout.units"), "readout units")
    })
}
