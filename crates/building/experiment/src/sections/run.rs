//! `[run]`: seed and limits.

use super::fault::node_id;
use crate::{
    choice::{Words, word},
    diagnostics::Problem,
    limits::*,
    plan::{Cores, Needs, Rejoin, RunPlan},
    scalar::unit,
    schema::*,
    tree::Node,
    view::{Rule, View},
};
use evb_core::{NodeId, Span};

pub(super) const RUN: &[Key] = &[
    key("seed", integer(0, i64::MAX), KeyDefault::Integer(1), "seed of every random stream"),
    optional(
        "warmup",
        time(MAX_DURATION),
        "what happens before this time after the start is not measured; by default the steady window is found, and rates are of it",
    ),
    key(
        "peer_timeout",
        wait(),
        KeyDefault::Text("5 s"),
        "longest silence of a node, and longest wait for nodes to start",
    ),
    key(
        "drain_timeout",
        wait(),
        KeyDefault::Text("10 s"),
        "longest time for which nothing moves in a stopped run (no event ends, no byte is received or stored) before it is given up",
    ),
    optional(
        "workers",
        integer(1, MAX_WORKERS),
        "threads that carry the nodes in one process; by default the number of cores, at most that of nodes",
    ),
    key("placement", KeyKind::Word(&CORES), KeyDefault::Text("none"), "the cores of the nodes in a real run"),
    optional(
        "required",
        KeyKind::Names { least: 1, most: MAX_REQUIRED },
        "nodes that the run requires, such as `ru0`: when one is lost, the run is stopped and drains",
    ),
    key(
        "minimum_readouts",
        integer(0, i64::MAX),
        KeyDefault::Integer(0),
        "a run with fewer readout units than these is stopped",
    ),
    key(
        "minimum_builders",
        integer(0, i64::MAX),
        KeyDefault::Integer(0),
        "a run with fewer builder units than these is stopped",
    ),
    key(
        "samples",
        integer(0, MAX_SAMPLES),
        KeyDefault::Integer(0),
        "events per second of which each builder sends a copy to those who monitor the run; a service takes 2 if none are set",
    ),
    key(
        "rejoin",
        KeyKind::Word(&REJOIN),
        KeyDefault::Text("next-run"),
        "when lost nodes take part again that have come back, under a service or an operator",
    ),
];

static CORES: Words<Cores> = Words(&[
    word("none", "the system places the nodes, and moves them as it likes", Cores::None),
    word(
        "auto",
        "each node is bound to a core of its machine: a separate one if there are enough for the units there, else readout units and builder units share them evenly; the event manager is not bound if no core is left, and joins a worker in threads",
        Cores::Auto,
    ),
]);

static REJOIN: Words<Rejoin> = Words(&[
    word("next-run", "in the run that the operator starts next", Rejoin::NextRun),
    word(
        "split",
        "at once: the run is stopped, and the next one begins with all nodes. Run control starts dead processes again, at most eight times between two starts",
        Rejoin::Split,
    ),
]);

/// Most events per second that a builder sends to those who monitor a run.
const MAX_SAMPLES: i64 = 100;
/// Most nodes that a file may list.
const MAX_REQUIRED: usize = 1000;

pub(super) const RULES: &[Rule] = &[warmup, required, minimum];

/// True if nodes are bound to cores.
pub(super) fn binds(view: View<'_>) -> bool {
    CORES.at(view, "run.placement") != Cores::None
}

pub(super) fn plan(view: View<'_>) -> RunPlan {
    RunPlan {
        seed: view.integer("run.seed"),
        peer_timeout: view.quantity("run.peer_timeout"),
        drain_timeout: view.quantity("run.drain_timeout"),
        workers: view.maybe_integer("run.workers"),
        cores: CORES.at(view, "run.placement"),
        warmup: view.maybe_quantity("run.warmup"),
        samples: view.integer("run.samples"),
        rejoin: REJOIN.at(view, "run.rejoin"),
        needs: Needs {
            required: listed(view).filter_map(|(_, name)| node_named(view, name)).collect(),
            readouts: view.integer("run.minimum_readouts"),
            builders: view.integer("run.minimum_builders"),
        },
    }
}

/// The names of required nodes, with their places in the file.
fn listed(view: View<'_>) -> impl Iterator<Item = (&Node, &str)> {
    view.list("run.required").iter().filter_map(|node| Some((node, node.text()?)))
}

/// The node with this name, if the event builder has it.
fn node_named(view: View<'_>, name: &str) -> Option<NodeId> {
    node_id(unit(name)?, view.integer("readout.units"), view.integer("builder.units"))
}

fn required(view: View<'_>) -> Option<Problem> {
    let (node, name) = listed(view).find(|(_, name)| node_named(view, name).is_none())?;
    let message = format!("there is no node {name:?} in this event builder");
    let help = "write \"evm\", \"ru\" or \"bu\" and the number of a unit, such as \"ru0\"";
    Some(Problem::new(message, help).at(node.origin, "no such node"))
}

fn minimum(view: View<'_>) -> Option<Problem> {
    let kinds = [("readout", "run.minimum_readouts"), ("builder", "run.minimum_builders")];
    let units = |kind: &str| view.integer::<i64>(&format!("{kind}.units"));
    let (kind, key) = kinds.into_iter().find(|(kind, key)| view.integer::<i64>(key) > units(kind))?;
    let message = format!("`{key}` is more than the {} {kind} units that there are", units(kind));
    Some(Problem::new(message, "a run could never begin: lower it").at(view.origin(key), "too many"))
}

fn warmup(view: View<'_>) -> Option<Problem> {
    let (warmup, duration): (Span, Span) =
        (view.maybe_quantity("run.warmup")?, view.maybe_quantity("trigger.duration")?);
    (warmup >= duration).then(|| {
        let message = format!("`run.warmup` of {warmup} leaves nothing of `trigger.duration` of {duration} to measure");
        Problem::new(message, "shorten `warmup`, or lengthen `duration`")
            .at(view.origin("run.warmup"), "too long")
            .at(view.origin("trigger.duration"), "whole run")
    })
}
