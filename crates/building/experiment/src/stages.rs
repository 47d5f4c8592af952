//! The plans of two stages.
//!
//! The event builder of a group has the sections of a file: those of `[first_stage]`, and what follows from the rest of
//! the file. So its plan is made and checked like that of any file.

use crate::{
    check,
    diagnostics::Problem,
    plan::{Plan, StageLink, Stages},
    sections::{self, block, counts, network::KnownNetwork, source},
    tree::{Node, Table, Value},
    view::View,
};
use evb_core::SourceId;
use evb_protocol::{Assignment, Config, Trigger};

/// The event builders of both stages, of a tree and its plan; `None` without a first stage.
pub(crate) fn stages(root: &Node, whole: &Plan) -> Result<Option<Box<Stages>>, Vec<Problem>> {
    let view = View(root);
    let Some(slices) = counts::slices(view) else { return Ok(None) };
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
    let mut network = KnownNetwork::default();
    sections::check(&filled, &mut network).map_err(fail)?;
    let mut plan = sections::plan(&filled, Vec::new(), &network);
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
    plan.link = StageLink::Outlets { unit, paths: (0..slices).map(|slice| StageLink::path(slice, unit)).collect() };
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
    if block::is_auto(view.0) {
        root.put(&["trigger", "block"], None, Value::Integer(block::block(view.0).0.into()).into());
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
        link: StageLink::Inlets((0..units).map(|unit| StageLink::path(slice, unit)).collect()),
        ..whole.clone()
    };
    (plan.trigger.rate, plan.trigger.duration) = (None, None);
    plan.bundling.slice = Some((slice, slices));
    plan
}
