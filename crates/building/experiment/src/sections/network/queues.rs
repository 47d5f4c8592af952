//! The switches: the output queues of those that store packets, `network.switch.marking`, `memory` and `trimming`, and which of
//! them cut through, `cut_through`.

use crate::{limits::*, schema::*, tree::Node, view::View};
use evb_fabric::{Marking, SharedMemory};

pub(super) const MARKING: &[Key] = &[
    required("low", bytes(0, MAX_SWITCH_BUFFER), "bytes of a queue up to which no packet is marked"),
    required(
        "high",
        bytes(0, MAX_SWITCH_BUFFER),
        "bytes above which all are marked; `low` again for a step, as DCTCP wants it",
    ),
    key(
        "most",
        number(0.0, 1.0),
        KeyDefault::Number(1.0),
        "probability of a mark at `high`, to which it grows from `low`",
    ),
];

pub(super) const MEMORY: &[Key] = &[
    required(
        "size",
        bytes(1, MAX_SWITCH_BUFFER),
        "bytes that all queues of a switch share; with pauses, the bytes of all inputs, beside `least` and the headroom",
    ),
    key(
        "alpha",
        number(0.001, 1000.0),
        KeyDefault::Number(1.0),
        "dynamic threshold: a queue, or an input and priority before it asks for a pause, takes no more than this many times the \
         free memory",
    ),
    key(
        "least",
        bytes(0, MAX_SWITCH_BUFFER),
        KeyDefault::Text("0 B"),
        "bytes that each queue has beside the shared ones",
    ),
    optional(
        "xon_offset",
        bytes(0, MAX_SWITCH_BUFFER),
        "for pauses: bytes below the threshold at which a pause ends; `3556 B` without this key",
    ),
];

/// Makes the marks at this place, if they are there.
pub(super) fn marking(view: View<'_>, at: &str) -> Option<Marking> {
    let marking = view.table(at)?;
    let (low, high) = (marking.quantity("low"), marking.quantity("high"));
    Some(Marking { low, high, most: marking.number("most") })
}

/// True if switches cut packets to their headers when they do not fit.
pub(super) fn trims(network: View<'_>) -> bool {
    network.has("switch.trimming") && network.flag("switch.trimming")
}

/// The names of the switches that cut through, if they are listed.
pub(super) fn cut_through(network: View<'_>) -> Option<Vec<String>> {
    let names = network.has("switch.cut_through").then(|| network.list("switch.cut_through"))?;
    Some(names.iter().filter_map(Node::text).map(str::to_owned).collect())
}

/// Makes the shared memory at this place, if it is there.
pub(super) fn memory(view: View<'_>, at: &str) -> Option<SharedMemory> {
    let memory = view.table(at)?;
    Some(SharedMemory {
        size: memory.quantity("size"),
        alpha: memory.number("alpha"),
        least: memory.quantity("least"),
        xon_offset: memory.maybe_quantity("xon_offset"),
    })
}
