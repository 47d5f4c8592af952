//! `[first_stage]`: event builders that build the sources of each readout unit into super-fragments.
//!
//! The event builder of a group has the sections of a file: those written here, and what follows from the rest of the file.
//! So its plan is made and checked as that of any file.

use super::{Rule, bundle, protocol, run, source, workload};
use crate::{
    check,
    diagnostics::Problem,
    limits::*,
    plan::{Link, Plan, Stages},
    schema::*,
    sections,
    tree::{Node, Table, Value},
    view::View,
};
use evb_core::SourceId;
use evb_protocol::{Assignment, Config, Trigger};

pub(super) const DOC: &str = "A first stage: an event builder for each readout unit builds its sources into super-fragments. Without `slices`, each \
readout unit reads its sources itself. See [two stages](../guides/stages.md).";

pub(super) const FIRST_STAGE: &[Key] = &[
    optional(
        "slices",
        integer(1, MAX_UNITS),
        "number of builders in each event builder of the first stage, and of event builders of the second: event n goes to \
         slice (n - 1) modulo this; `builder.units` is a multiple of it",
    ),
    optional("readout", Kind::Like("readout"), "buffers and limits of its readout units, each with one source"),
    optional("builder", Kind::Like("builder"), "slots and times of its builders"),
    optional("protocol", Kind::Like("protocol"), "its protocol; push by default"),
    optional("shaping", Kind::Like("shaping"), "its traffic shaping; none by default"),
    optional("transport", Kind::Like("transport"), "its transport; that of the second stage by default"),
    optional("control", Kind::Like("control"), "its control messages; as in the second stage by default"),
    optional(
        "network",
        Kind::Like("network"),
        "the network of each of its event builders when simulated; `ideal` by default",
    ),
];

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

/// Number of slices; none without a first stage.
pub(super) fn slices(view: View<'_>) -> Option<u16> {
    view.maybe_integer("first_stage.slices")
}

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
        let message = format!("`builder.units` of {builders} is no multiple of the {slices} slices");
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
    let message = "a source that numbers its events itself has no place in two stages: nothing tells all groups which of \
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

/// The event builders of both stages, of a tree and its plan; none without a first stage.
pub(crate) fn stages(root: &Node, whole: &Plan) -> Result<Option<Box<Stages>>, Vec<Problem>> {
    let view = View(root);
    let Some(slices) = slices(view) else { return Ok(None) };
    let groups = (0..whole.building.readout_units).map(|unit| group(view, whole, unit, slices));
    let groups = groups.collect::<Result<_, _>>()?;
    let slices = (0..slices).map(|slice| second(whole, slice, slices)).collect();
    Ok(Some(Box::new(Stages { groups, slices })))
}

/// The event builder of the first stage that makes the super-fragments of a readout unit.
fn group(view: View<'_>, whole: &Plan, unit: u16, slices: u16) -> Result<Plan, Vec<Problem>> {
    let fail =
        |problems: Vec<Problem>| problems.into_iter().map(|problem| problem.within("first stage")).collect::<Vec<_>>();
    let mut root = tree(view, unit, slices);
    sections::fill(&mut root, &format!("{}-g{unit}", whole.name));
    let filled = check::check(&root).map_err(fail)?;
    sections::check(&filled, &mut None).map_err(fail)?;
    let mut plan = sections::plan(&filled, Vec::new());
    let sources = whole.bundling.sources_of(unit);
    plan.bundling.bounds = sources.clone().chain([sources.end]).collect();
    plan.bundling.masked = whole.bundling.masked.clone();
    plan.bundling.suppressed = whole.bundling.suppressed.clone();
    plan.bundling.max_fragment = Some(whole.max_fragment());
    plan.building.assignment = Assignment::ByNumber;
    // A group that turned a trigger away would number all later ones differently.
    if plan.building.trigger == Trigger::Driven {
        plan.building.trigger = Trigger::Deferred;
    }
    plan.link = Link::Outlets { unit, paths: (0..slices).map(|slice| Link::path(slice, unit)).collect() };
    Ok(plan)
}

/// The tree of the event builder of a group.
fn tree(view: View<'_>, unit: u16, slices: u16) -> Node {
    let mut root = Node::from(Value::Table(Table::default()));
    for section in ["description", "data", "trigger", "run", "transport", "control"] {
        root.put(&[section], None, view.below(section).0.clone());
    }
    for section in ["readout", "builder", "protocol", "shaping", "transport", "control", "network"] {
        if let Some(node) = view.below("first_stage").0.at(section) {
            root.put(&[section], None, node.clone());
        }
    }
    let table = |source: View<'_>| {
        let mut table = Node::from(Value::Table(Table::default()));
        table.put(&["source"], None, source.0.clone());
        table
    };
    let units = source::of_unit(view, unit.into()).into_iter().map(table).collect();
    root.put(&["readout", "unit"], None, Value::List(units).into());
    root.put(&["readout", "max_fragment"], None, view.below("readout.max_fragment").0.clone());
    root.put(&["builder", "units"], None, Value::Integer(slices.into()).into());
    if bundle::is_auto(view.0) {
        root.put(&["trigger", "block"], None, Value::Integer(bundle::block(view.0).0.into()).into());
    }
    root.put(&["storage", "keep"], None, Value::Text("none".to_owned()).into());
    root
}

/// An event builder of the second stage.
fn second(whole: &Plan, slice: u16, slices: u16) -> Plan {
    let units = whole.building.readout_units;
    let mut plan = Plan {
        name: if slices == 1 { whole.name.clone() } else { format!("{}-s{slice}", whole.name) },
        building: Config {
            builder_units: whole.building.builder_units / slices,
            numbered: (0..units).map(SourceId).collect(),
            trigger: Trigger::AllData,
            events: None,
            ..whole.building.clone()
        },
        sources: Vec::new(),
        link: Link::Inlets((0..units).map(|unit| Link::path(slice, unit)).collect()),
        ..whole.clone()
    };
    (plan.trigger.rate, plan.trigger.duration) = (None, None);
    plan.bundling.slice = Some((slice, slices));
    plan
}
