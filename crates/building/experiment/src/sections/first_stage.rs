//! `[first_stage]`: event builders that build the sources of each readout unit into super-fragments.
//!
//! The event builder of a group has the sections of a file: those written here, and what follows from the rest of the file.
//! So its plan is made and checked as that of any file.

use super::{builder, control, counts::slices, network, protocol, readout, run, shaping, source, transport, workload};
use crate::{
    diagnostics::Problem,
    limits::*,
    schema::*,
    view::{Rule, View},
};

pub(super) const DOC: &str = "A first stage: an event builder for each readout unit builds its sources into super-fragments. Without `slices`, each \
readout unit reads its sources itself. See [two stages](../guides/stages.md).";

pub(super) const FIRST_STAGE: &[Key] = &[
    optional(
        "slices",
        integer(1, MAX_UNITS),
        "number of builders in each event builder of the first stage, and of event builders of the second: event n goes to \
         slice (n - 1) modulo this; `builder.units` is a multiple of it",
    ),
    optional(
        "readout",
        like("readout", &KeyKind::Section(readout::READOUT)),
        "buffers and limits of its readout units, each with one source",
    ),
    optional("builder", like("builder", &KeyKind::Section(builder::BUILDER)), "slots and times of its builders"),
    optional("protocol", like("protocol", &PROTOCOL), "its protocol; push by default"),
    optional("shaping", like("shaping", &SHAPING), "its traffic shaping; none by default"),
    optional("transport", like("transport", &TRANSPORT), "its transport; that of the second stage by default"),
    optional(
        "control",
        like("control", &KeyKind::Section(control::CONTROL)),
        "its control messages; as in the second stage by default",
    ),
    optional(
        "network",
        like("network", &KeyKind::Section(network::NETWORK)),
        "the network of each of its event builders when simulated; `ideal` by default",
    ),
];

static PROTOCOL: KeyKind = KeyKind::Choice(&protocol::PROTOCOL);
static SHAPING: KeyKind = KeyKind::Choice(&shaping::SHAPING);
static TRANSPORT: KeyKind = KeyKind::Choice(&transport::TRANSPORT);

/// A table with the keys of a section.
const fn like(section: &'static str, table: &'static KeyKind) -> KeyKind {
    KeyKind::Like { section, table }
}

/// Keys of the sections above that follow from the rest of the file.
const IMPLIED: [(&str, &str); 7] = [
    ("readout", "units"),
    ("readout", "unit"),
    ("readout", "source"),
    ("readout", "sources"),
    ("readout", "masked"),
    ("builder", "units"),
    ("protocol", "assignment"),
];

pub(super) const RULES: &[Rule] =
    &[without_slices, implied, phased, uneven, numbered, with_faults, bound, in_traffic, partial];

fn without_slices(view: View<'_>) -> Option<Problem> {
    let entry = view.below("first_stage").0.table()?.0.first().filter(|_| slices(view).is_none())?;
    let help = "write slices = 1 in [first_stage] for one event builder in the second stage, or remove the section";
    Some(Problem::new("[first_stage] has no `slices`", help).at(entry.node.origin, "key of a first stage"))
}

fn implied(view: View<'_>) -> Option<Problem> {
    IMPLIED.iter().find_map(|(section, key)| {
        let origin = view.below("first_stage").0.at(section)?.table()?.entry(key)?.key_origin;
        let message = format!("`first_stage.{section}.{key}` follows from the rest of the file");
        let help =
            "remove it: a group has a readout unit for each source, a builder for each slice, and assigns by number";
        Some(Problem::new(message, help).at(origin, "not a key of the first stage"))
    })
}

/// An event that is rejected leaves a gap in the numbers of super-fragments.
fn phased(view: View<'_>) -> Option<Problem> {
    let node = view.0.at("first_stage.protocol.type").filter(|node| node.text() == Some(protocol::PHASED))?;
    let help =
        "write \"push\" or \"pull\"; the second stage may be phased: its [protocol] and [filter] decide on events";
    Some(Problem::new("a first stage builds every event: it cannot be phased", help).at(node.origin, "phased"))
}

fn uneven(view: View<'_>) -> Option<Problem> {
    let (slices, builders) = (slices(view)?, view.integer::<u16>("builder.units"));
    (builders % slices > 0).then(|| {
        let message = format!("`builder.units` of {builders} is not a multiple of the {slices} slices");
        let above = builders.next_multiple_of(slices);
        Problem::new(message, format!("each slice has as many builders: write units = {above} in [builder]"))
            .at(view.origin("builder.units"), "builders of all slices")
            .at(view.origin("first_stage.slices"), "slices")
    })
}

/// All groups must number their events alike.
fn numbered(view: View<'_>) -> Option<Problem> {
    slices(view)?;
    let table = source::used(view).into_iter().find(|table| source::make(*table).is_numbered())?;
    let message = "a source that numbers its events itself cannot be used in two stages: the groups cannot agree which of \
                   its fragments belong to which event";
    let problem = Problem::new(message, "use generated sources, or remove [first_stage]");
    Some(problem.at(table.origin("type"), "numbers its events").at(view.origin("first_stage.slices"), "two stages"))
}

fn with_faults(view: View<'_>) -> Option<Problem> {
    let fault = view.list("fault").first().filter(|_| slices(view).is_some())?;
    let help = "remove [[fault]], or [first_stage]";
    Some(Problem::new("faults are brought about in event builders of one stage only", help).at(fault.origin, "fault"))
}

/// Each event builder would take the same cores, from the first on.
fn bound(view: View<'_>) -> Option<Problem> {
    (slices(view).is_some() && run::binds(view)).then(|| {
        let help = "leave out `run.placement`, or remove [first_stage]";
        Problem::new("nodes are bound to cores in event builders of one stage only", help)
            .at(view.origin("run.placement"), "binds nodes")
            .at(view.origin("first_stage.slices"), "two stages")
    })
}

fn in_traffic(view: View<'_>) -> Option<Problem> {
    (slices(view).is_some() && workload::is_traffic(view)).then(|| {
        Problem::new("traffic has no stages", "remove [first_stage], or remove [workload] to build events")
            .at(view.origin("first_stage.slices"), "two stages")
    })
}

/// A super-fragment has the fragments of all sources of its group, and an event those of all groups.
fn partial(view: View<'_>) -> Option<Problem> {
    slices(view)?;
    let first = || protocol::partial(view.below("first_stage")).map(|key| view.below("first_stage").origin(key));
    let origin = protocol::partial(view).map(|key| view.origin(key)).or_else(first)?;
    let help = "write first = ... without `rest`, or remove [first_stage]";
    Some(Problem::new("two stages build whole events", help).at(origin, "asks some of the readout units"))
}
