//! `network.control`: how control messages travel.

use super::preset_keys::{PRESET, of_preset};
use crate::{choice::*, schema::*, tree::Node};
use evb_fabric::Control;

pub(super) static CONTROL: Choice<Make<Control>> = choice(
    "control",
    PRESET,
    &[
        variant("shared", "through the same network as the fragments", &[], |_| Control::Shared),
        variant(
            SEPARATE,
            "through a separate network, without contention",
            &[
                of_preset("delay", delay(), "time from sender to receiver, beside the length of the message"),
                of_preset("rate", bandwidth(), "rate of its links"),
            ],
            |view| Control::Separate { delay: view.quantity("delay"), rate: view.quantity("rate") },
        ),
    ],
);

const SEPARATE: &str = "separate";

/// True if control messages go through the network, in an unchecked tree.
pub(super) fn is_shared(root: &Node) -> bool {
    root.at("network.control.type").and_then(Node::text) != Some(SEPARATE)
}
