//! `[[fault]]`: what happens to nodes on purpose.

use super::{bundle, storage};
use crate::{
    choice::*,
    diagnostics::Problem,
    limits::*,
    plan::{FaultAction, FaultSpec, Keep},
    scalar::{UnitName, unit},
    schema::*,
    view::View,
};
use evb_core::{NodeId, SourceId};
use evb_protocol::Config;

/// Each table of the list.
pub(super) static TABLE: KeyKind = KeyKind::Choice(&FAULT);

static FAULT: Choice<Fault> = Choice {
    tag: "action",
    what: "fault action",
    default: KeyDefault::Required,
    common: &[required(
        "node",
        KeyKind::Unit,
        "`evm`, `ru0`, `ru1`, ..., `bu0`, `bu1`, ...; `kill` takes any, `slow-disk` a builder unit, the others a readout unit",
    )],
    variants: &[
        variant(
            "kill",
            "the node stops dead",
            &[required("at", time(MAX_DURATION), "time after the start of the run")],
            Fault { harms: Harms::Node, make: |view| FaultAction::Kill { at: view.quantity("at") } },
        ),
        of_fragments(
            "corrupt",
            "a fragment has one bit flipped after its checksum was made",
            &[NTH, OF_SOURCE],
            |view| FaultAction::Corrupt { one_in: nth(view) },
        ),
        of_fragments("duplicate", "a fragment is sent twice", &[NTH], |view| FaultAction::Duplicate {
            one_in: nth(view),
        }),
        of_fragments("lose", "a fragment is not sent", &[NTH, OF_SOURCE], |view| FaultAction::Lose {
            one_in: nth(view),
        }),
        of_fragments("oversize", "a fragment is made larger than allowed", &[NTH, OF_SOURCE], |view| {
            FaultAction::Oversize { one_in: nth(view) }
        }),
        of_fragments("delay", "a fragment is sent late", &[NTH, required("by", wait(), "how late")], |view| {
            FaultAction::Delay { one_in: nth(view), by: view.quantity("by") }
        }),
        variant(
            "slow-disk",
            "a builder unit stores its events one after another at this rate",
            &[required("rate", bandwidth(), "rate of its disk")],
            Fault { harms: Harms::Storage, make: |view| FaultAction::SlowDisk { rate: view.quantity("rate") } },
        ),
    ],
};

/// A kind of fault.
pub(super) struct Fault {
    harms: Harms,
    make: Make<FaultAction>,
}

/// The target of a fault.
#[derive(Clone, Copy, PartialEq)]
enum Harms {
    /// Any node.
    Node,
    /// The fragments that a readout unit sends.
    Fragments,
    /// Events that a builder unit stores.
    Storage,
}

const NTH: Key = required("one_in", integer(1, i64::MAX), "one fragment in this many");

const OF_SOURCE: Key = optional(
    "source",
    integer(0, MAX_SOURCES - 1),
    "number of the source whose fragments are meant, for a unit with several; a lost fragment of it is missing for good",
);

const fn of_fragments(
    name: &'static str,
    doc: &'static str,
    keys: &'static [Key],
    make: Make<FaultAction>,
) -> Variant<Fault> {
    variant(name, doc, keys, Fault { harms: Harms::Fragments, make })
}

fn nth(fault: View<'_>) -> u64 {
    fault.integer("one_in")
}

pub(super) fn plan(fault: View<'_>, config: &Config) -> Option<FaultSpec> {
    let node = node_id(unit(fault.text("node"))?, config.readout_units, config.builder_units)?;
    let source = fault.maybe_integer("source").map(SourceId);
    Some(FaultSpec { node, source, action: (FAULT.of(fault).make)(fault) })
}

/// True for a fault that can happen to a whole bundle on its way.
fn is_on_the_way(fault: View<'_>) -> bool {
    match (FAULT.of(fault).make)(fault) {
        FaultAction::Lose { .. } | FaultAction::Duplicate { .. } | FaultAction::Delay { .. } => true,
        FaultAction::Corrupt { .. }
        | FaultAction::Oversize { .. }
        | FaultAction::Kill { .. }
        | FaultAction::SlowDisk { .. } => false,
    }
}

/// The node with this name, if the event builder has it.
pub(super) fn node_id(name: UnitName, readout_units: u16, builder_units: u16) -> Option<NodeId> {
    let within = |index: u32, count: u16| u16::try_from(index).ok().filter(|index| *index < count);
    match name {
        UnitName::Manager => Some(Config::EVENT_MANAGER),
        UnitName::Readout(index) => within(index, readout_units).map(|index| NodeId(1 + index)),
        UnitName::Builder(index) => within(index, builder_units).map(|index| NodeId(1 + readout_units + index)),
    }
}

/// A fault must happen to a node that can have it.
pub(super) fn check(view: View<'_>, fault: View<'_>) -> Option<Problem> {
    let (name, action) = (fault.text("node"), fault.text("action"));
    let (readouts, builders) = (view.integer::<u16>("readout.units"), view.integer::<u16>("builder.units"));
    let Some(unit) = unit(name).filter(|unit| node_id(*unit, readouts, builders).is_some()) else {
        let message = format!("there is no node {name:?} in this event builder");
        let help = format!("it has evm, ru0 to ru{} and bu0 to bu{}", readouts - 1, builders - 1);
        return Some(Problem::new(message, help).at(fault.origin("node"), "no such node"));
    };
    let (help, label) = match (FAULT.of(fault).harms, unit) {
        (Harms::Node, _) => return None,
        (Harms::Fragments, UnitName::Readout(index)) => {
            return bundle::check_fault(view, fault, index as u16, is_on_the_way(fault));
        }
        (Harms::Storage, UnitName::Builder(_)) => return nothing_stored(view, fault),
        (Harms::Storage, _) => (
            "it is done to what a builder unit stores: write node = \"bu0\" or another builder unit",
            "stores no events",
        ),
        (Harms::Fragments, _) => (
            "it is done to the fragments that a readout unit sends: write node = \"ru0\" or another readout unit",
            "sends no fragments",
        ),
    };
    let message = format!("the fault {action:?} cannot happen to {name:?}");
    Some(Problem::new(message, help).at(fault.origin("node"), label))
}

/// A problem when nothing is kept: no disk is slow then.
fn nothing_stored(view: View<'_>, fault: View<'_>) -> Option<Problem> {
    (storage::keep(view) == Keep::None).then(|| {
        let help = "write keep = \"all\" or keep = { one_in = N } in [storage], or leave the fault out";
        Problem::new("a disk cannot be slow when nothing is stored", help)
            .at(fault.origin("action"), "slow disk")
            .at(view.origin("storage.keep"), "nothing is kept")
    })
}
