//! Makes the workload of a plan.

use crate::{
    plan::{Load, TrafficPlan, Workload},
    tree::Node,
    view::View,
};
use evb_core::Span;
use evb_patterns::{Pattern, Start, TrafficConfig};
use evb_protocol::Config;

/// Makes the workload.
pub(crate) fn plan(view: View<'_>, config: &Config) -> Workload {
    let workload = view.below("workload");
    let Some(pattern) = pattern(workload) else { return Workload::EventBuilding };
    Workload::Traffic(TrafficPlan {
        config: TrafficConfig {
            senders: config.readout_nodes(),
            receivers: config.builder_nodes(),
            pattern,
            window: workload.maybe_integer("window").unwrap_or(1),
            seed: view.integer("run.seed"),
        },
        load: load(workload),
        messages: workload.maybe_integer("messages"),
    })
}

/// The pattern of the traffic; none for event building.
fn pattern(view: View<'_>) -> Option<Pattern> {
    Some(match view.text("type") {
        "assigned" => Pattern::Assigned { destinations: destinations(view) },
        "random" => Pattern::Random,
        "pairs" => Pattern::Pairs,
        "rotation" => Pattern::Rotation {
            start: match view.text("start") {
                "retarded" => Start::Retarded,
                _ => Start::Simultaneous,
            },
        },
        "stream" => Pattern::Stream,
        "gather" => Pattern::Gather {
            least: view.integer("least"),
            most: view.integer("most"),
            processors: view.integer("processors"),
            ask: view.flag("ask"),
        },
        "ping-pong" => Pattern::PingPong,
        "two-way" => Pattern::TwoWay,
        "all-to-all" => Pattern::AllToAll,
        "outfarming" => Pattern::Outfarming,
        "broadcast" => Pattern::Broadcast,
        "funnel" => Pattern::Funnel,
        "push-farm" => Pattern::PushFarm { work: work(view) },
        "pull-farm" => Pattern::PullFarm { work: work(view) },
        _ => return None,
    })
}

/// How long the processor of a farm is busy for each event beside its messages.
fn work(view: View<'_>) -> Span {
    let (compute, overhead): (Span, Span) = (view.quantity("compute"), view.quantity("overhead"));
    Span(compute.0 + overhead.0)
}

fn destinations(view: View<'_>) -> Vec<u16> {
    view.list("destinations").iter().filter_map(Node::integer).filter_map(|index| index.try_into().ok()).collect()
}

fn load(view: View<'_>) -> Load {
    if !view.has("arrivals") {
        return Load::Saturating;
    }
    let poisson = view.text("arrivals") == "poisson";
    match view.maybe_quantity("rate") {
        Some(rate) => Load::Rate { rate, poisson },
        None if view.has("load") => Load::Fraction { load: view.number("load"), poisson },
        None => Load::Saturating,
    }
}
