//! `[[network.fault]]`: what goes wrong in the network on purpose.

use crate::{choice::*, limits::*, schema::*, view::View};
use evb_fabric::{NetworkFault, NetworkFaultAction};

/// A table of the list.
pub(super) static TABLE: KeyKind = KeyKind::Choice(&FAULT);

static FAULT: Choice<Make<NetworkFaultAction>> = Choice {
    tag: "action",
    what: "fault action",
    default: KeyDefault::Required,
    common: &[
        required(
            "target",
            KeyKind::Text,
            "name of a link (one direction), such as `h3>leaf0`, of a cable (both directions), such as `h3<>leaf0`, of a switch, or of a plane, such as `plane1`",
        ),
        required("at", time(MAX_DURATION), "time after the start"),
        optional(
            "until",
            time(MAX_DURATION),
            "time after the start at which all is as before; new routes are found again, after the `reroute` of `fail`; it stays \
             without this key",
        ),
    ],
    variants: &[
        variant(
            "fail",
            "it carries nothing any more",
            &[key(
                "reroute",
                time(MAX_WAIT),
                KeyDefault::Text("1 ms"),
                "time until routes without it are found, where there is no `mapper`",
            )],
            |view| NetworkFaultAction::Fail { reroute: view.quantity("reroute") },
        ),
        variant(
            "slow",
            "it is slower; of a switch, all links that begin there",
            &[required("factor", number(1.0, 1e6), "how many times slower")],
            |view| NetworkFaultAction::Slow { factor: view.number("factor") },
        ),
        variant(
            "corrupt",
            "a packet that passes is corrupted, and thrown away where it arrives",
            &[required("one_in", integer(1, i64::MAX), "one packet in this many")],
            |view| NetworkFaultAction::Corrupt { one_in: view.integer("one_in") },
        ),
        variant(
            "pause",
            "the host at the end of the link, such as `leaf0>h3`, asks its switch to pause all the time: a pause storm",
            &[],
            |_| NetworkFaultAction::Pause,
        ),
    ],
};

pub(super) fn plan(view: View<'_>) -> NetworkFault {
    NetworkFault {
        target: view.text("target").to_owned(),
        at: view.quantity("at"),
        until: view.maybe_quantity("until"),
        action: FAULT.make(view),
    }
}
