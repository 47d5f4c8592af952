//! The traffic that the hosts of an event builder have for a network, and what of it must cross the links.

use crate::PlannerError;
use evb_core::{Bandwidth, EventId, NodeId, SourceId};
use evb_experiment::{Plan, Workload};
use evb_protocol::Protocol;
use evb_sources::SizeModel;
use evb_unit::open_options;
use std::{ops::Range, path::Path};

/// Events whose sizes are looked at for a mean.
const LOOKED_AT: u64 = 2000;

/// The traffic of all hosts, at the required rate.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    /// Bytes per second on the wire that the hosts before each one send; the last number is that of all.
    sent_before: Vec<f64>,
    /// Builder units on the hosts before each one; the last number is that of all.
    builders_before: Vec<f64>,
    /// Mean payload of an event.
    pub(crate) event_bytes: f64,
    /// Rates of the cables of hosts that the experiment fixes.
    pub(crate) fixed: Vec<Option<Bandwidth>>,
}

impl Demand {
    /// The traffic of a plan at this event rate.
    pub(crate) fn of(plan: &Plan, rate_hz: f64, path: &Path) -> Result<Self, PlannerError> {
        let refuse = |what: &str, hint: &str| Err(PlannerError::file(path, what, hint));
        if plan.workload != Workload::EventBuilding || plan.stages.is_some() {
            return refuse("only event building in one stage is planned", "plan each stage by itself");
        }
        let config = &plan.network.config;
        if config.nic.ports != 1 {
            return refuse("its hosts have several ports", "set `network.nic.ports = 1`");
        }
        let hosts = usize::from(used_hosts(plan));
        let (mut sent, mut builders, mut fixed) = (vec![0.0; hosts], vec![0.0; hosts], vec![None; hosts]);
        for link in config.host_links.iter().filter(|link| link.rate.is_some()) {
            let first = usize::from(link.first);
            (first..hosts.min(first + usize::from(link.count))).for_each(|host| fixed[host] = link.rate);
        }
        let host = |node: NodeId| plan.host(node).map(usize::from);
        for node in plan.building.builder_nodes().iter() {
            host(node).into_iter().for_each(|host| builders[host] += 1.0);
        }
        let overhead = 1.0 + config.nic.header.0 as f64 / config.nic.packet.0.max(1) as f64;
        let mut event_bytes = 0.0;
        for (index, node) in plan.building.readout_nodes().iter().enumerate() {
            let bytes = mean_bytes(plan, index).map_err(|why| PlannerError::file(path, why, "see `evb check`"))?;
            event_bytes += bytes;
            // Not every fragment is sent where a first phase decides.
            let is_sent = !matches!(plan.building.protocol, Protocol::Phased { .. });
            host(node).filter(|_| is_sent).into_iter().for_each(|host| sent[host] += bytes * overhead * rate_hz);
        }
        Ok(Self { sent_before: sums(&sent), builders_before: sums(&builders), event_bytes, fixed })
    }

    /// Number of hosts.
    pub(crate) fn hosts(&self) -> u16 {
        self.fixed.len() as u16
    }

    /// What these hosts send to others, and receive from others, in bytes per second on the wire. Each event goes to any builder
    /// with the same probability.
    pub(crate) fn crossing(&self, hosts: Range<usize>) -> Crossing {
        let all = self.fixed.len();
        let (start, end) = (hosts.start.min(all), hosts.end.min(all));
        let of = |before: &[f64]| (before[end] - before[start], before[all]);
        let ((sent, total), (here, builders)) = (of(&self.sent_before), of(&self.builders_before));
        let inside = here / builders.max(1.0);
        Crossing { out: sent * (1.0 - inside), into: (total - sent) * inside }
    }
}

/// Number of hosts up to the last one that has a node.
pub(crate) fn used_hosts(plan: &Plan) -> u16 {
    (0..=u16::MAX).filter_map(|node| plan.host(NodeId(node))).max().map_or(0, |last| last + 1)
}

/// The sum of the values before each one, and then that of all.
fn sums(values: &[f64]) -> Vec<f64> {
    let add = |sum: &mut f64, value: &f64| {
        *sum += value;
        Some(*sum)
    };
    [0.0].into_iter().chain(values.iter().scan(0.0, add)).collect()
}

/// The traffic between some hosts and all others, in bytes per second on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Crossing {
    pub(crate) out: f64,
    pub(crate) into: f64,
}

/// The mean bytes of a readout unit in an event.
fn mean_bytes(plan: &Plan, unit: usize) -> Result<f64, String> {
    let bounds = &plan.bundling.bounds;
    let sources = match bounds.get(unit..unit + 2) {
        Some([first, end]) => *first..*end,
        _ => unit as u16..unit as u16 + 1,
    };
    sources.map(|source| Ok(read_part(plan, SourceId(source)) * mean_of_source(plan, SourceId(source))?)).sum()
}

/// The part of the events that has a fragment of a source.
fn read_part(plan: &Plan, source: SourceId) -> f64 {
    let bundling = &plan.bundling;
    if bundling.masked.contains(&source) {
        return 0.0;
    }
    1.0 - bundling.suppressed.iter().find(|(suppressed, _)| *suppressed == source).map_or(0.0, |(_, without)| *without)
}

fn mean_of_source(plan: &Plan, source: SourceId) -> Result<f64, String> {
    let mut sizes = SizeModel::open(plan.source(source), &open_options(plan, source))
        .map_err(|error| format!("the sizes of source {} are not known: {error}", source.0))?;
    if let Some(mean) = sizes.mean() {
        return Ok(mean);
    }
    let seen: Vec<_> = (1..=LOOKED_AT).map_while(|event| sizes.size(EventId(event))).collect();
    Ok(seen.iter().map(|&size| f64::from(size)).sum::<f64>() / seen.len().max(1) as f64)
}
