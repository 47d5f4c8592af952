//! `network.planes`: several networks of one kind, with a port of each host in each of them.

use crate::{
    choice::*,
    diagnostics::Problem,
    limits::*,
    schema::*,
    tree::{Node, Value},
    view::View,
};
use evb_fabric::{PlaneChoice, Planes};

pub(super) const PLANES: &[Key] = &[
    required(
        "count",
        integer(2, MAX_PORTS),
        "number of planes: each has the switches and links of `network.topology`, and one port of each host",
    ),
    key("choice", KeyKind::Word(&CHOICES), KeyDefault::Text("packet"), "what goes over which plane"),
];

static CHOICES: Words<PlaneChoice> = Words(&[
    word(
        "packet",
        "each packet over the plane whose port is free first, those of a connection over the planes in turn",
        PlaneChoice::Packet,
    ),
    word("message", "the messages of a host over the planes in turn; without `transport`", PlaneChoice::Message),
    word("pair", "all between two hosts over one plane, by the sum of their numbers", PlaneChoice::Pair),
    word("destination", "all for a host over one plane, by its number", PlaneChoice::Destination),
]);

/// Makes the planes at this place, if they are there.
pub(super) fn plan(view: View<'_>, at: &str) -> Option<Planes> {
    let planes = view.table(at)?;
    Some(Planes { count: planes.integer("count"), choice: CHOICES.at(planes, "choice") })
}

/// Time slots go over all planes at once: who shapes traffic counts on the whole rate of a host.
pub(super) fn check(view: View<'_>) -> Option<Problem> {
    let has_slots = matches!(view.text("shaping.type"), "barrel-shifter" | "rate-division");
    let is_whole = view.maybe_text("network.planes.choice").is_none_or(|choice| choice == "packet");
    (has_slots && !is_whole).then(|| {
        let help = "use network.planes.choice = \"packet\", or shaping.type = \"none\"";
        Problem::new("the time slots of this shaping go over all planes, packet by packet", help)
            .at(view.origin("network.planes.choice"), "not by packet")
            .at(view.origin("shaping.type"), "in slots")
    })
}

/// The number of planes in an unchecked file: 1 without any.
pub(super) fn count(root: &Node) -> i64 {
    root.at("network.planes.count").and_then(Node::integer).unwrap_or(1).clamp(1, MAX_PORTS)
}

/// Gives each host as many ports as there are planes, unless the file says how many it has.
pub(super) fn fill(root: &mut Node) {
    let count = count(root);
    if count > 1 && root.at("network.nic.ports").is_none() {
        root.put(&["network", "nic", "ports"], None, Value::Integer(count).into());
    }
}
