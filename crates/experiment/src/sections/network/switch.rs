//! `network.switch`: every switch.

use super::PRESET;
use crate::{
    choice::{Words, word},
    schema::{Key, Kind, delay, key},
    view::View,
};
use evb_fabric::{Arbitration, SwitchConfig};

pub(super) const SWITCH: &[Key] = &[
    key(
        "delay",
        delay(),
        PRESET,
        "time from a packet's head being first in its input buffer to its asking for an output",
    ),
    key("arbitration", Kind::Word(&ARBITRATION), PRESET, "who is next at an output for which several inputs wait"),
];

static ARBITRATION: Words<Arbitration> = Words(&[
    word("round-robin", "the inputs in turn", Arbitration::RoundRobin),
    word("random", "drawn at random", Arbitration::Random),
    word("oldest", "the one that has waited longest", Arbitration::Oldest),
]);

pub(super) fn plan(view: View<'_>) -> SwitchConfig {
    SwitchConfig { delay: view.quantity("delay"), arbitration: ARBITRATION.at(view, "arbitration") }
}
