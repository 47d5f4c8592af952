//! `[run]`: seed, limits and the like.

use super::Rule;
use crate::{diagnostics::Problem, limits::*, plan::RunPlan, schema::*, view::View};
use evb_core::Span;

pub(super) const RUN: &[Key] = &[
    key("seed", integer(0, i64::MAX), Default::Integer(1), "seed of every random stream"),
    optional(
        "warmup",
        time(MAX_DURATION),
        "what happens before this time after the start is not measured; by default the steady window is found, and rates are of it",
    ),
    key("peer_timeout", wait(), Default::Text("5 s"), "longest silence of a node, and longest wait for nodes to start"),
    key(
        "drain_timeout",
        wait(),
        Default::Text("10 s"),
        "longest time for which nothing moves in a stopped run (no event ends, no byte is received or stored) before it is given up",
    ),
    optional(
        "workers",
        integer(1, MAX_WORKERS),
        "threads that carry the nodes in one process; by default the number of cores, at most that of nodes",
    ),
];

pub(super) const RULES: &[Rule] = &[warmup];

pub(super) fn plan(view: View<'_>) -> RunPlan {
    RunPlan {
        seed: view.integer("run.seed"),
        peer_timeout: view.quantity("run.peer_timeout"),
        drain_timeout: view.quantity("run.drain_timeout"),
        workers: view.maybe_integer("run.workers"),
        warmup: view.maybe_quantity("run.warmup"),
    }
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
