//! Makes the workload of a plan.

use crate::{
    plan::{Load, TrafficPlan, Workload},
    tree::Node,
    view::View,
};
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
            window: workload.integer("window"),
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
        _ => return None,
    })
}

fn destinations(view: View<'_>) -> Vec<u16> {
    view.list("destinations").iter().filter_map(Node::integer).filter_map(|index| index.try_into().ok()).collect()
}

fn load(view: View<'_>) -> Load {
    let poisson = view.text("arrivals") == "poisson";
    match view.maybe_quantity("rate") {
        Some(rate) => Load::Rate { rate, poisson },
        None if view.has("load") => Load::Fraction { load: view.number("load"), poisson },
        None => Load::Saturating,
    }
}
