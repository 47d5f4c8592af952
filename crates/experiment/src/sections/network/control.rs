//! `network.control`: how control messages travel.

use super::PRESET;
use crate::{
    choice::{Choice, Make, choice, variant},
    schema::{bandwidth, delay, key},
    tree::Node,
    view::View,
};
use evb_fabric::Control;

pub(super) static CONTROL: Choice<Travel> = choice(
    "control",
    PRESET,
    &[
        variant(
            "shared",
            "through the same network as the fragments",
            &[],
            Travel { is_shared: true, make: |_| Control::Shared },
        ),
        variant(
            "separate",
            "through a network of their own, without contention",
            &[
                key("delay", delay(), PRESET, "time from sender to receiver, beside the length of the message"),
                key("rate", bandwidth(), PRESET, "rate of its links"),
            ],
            Travel {
                is_shared: false,
                make: |view| Control::Separate { delay: view.quantity("delay"), rate: view.quantity("rate") },
            },
        ),
    ],
);

/// A way for control messages.
pub(super) struct Travel {
    /// Whether it is that of the fragments.
    is_shared: bool,
    make: Make<Control>,
}

pub(super) fn plan(view: View<'_>) -> Control {
    (CONTROL.of(view).make)(view)
}

/// Whether control messages go through the network, in a tree that nobody has checked.
pub(super) fn is_shared(root: &Node) -> bool {
    CONTROL.written(root.at("network.control")).is_none_or(|travel| travel.is_shared)
}
