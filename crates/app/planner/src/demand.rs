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
    /// Bytes per second on the wire that each host sends.
    sent: Vec<f64>,
    /// Builder units on each host.
    builders: Vec<u16>,
    /// Mean payload of an event.
    pub(crate) event_bytes: f64,
    /// Rates of the cables of hosts that the experiment fixes.
    pub(crate) fixed: Vec<Option<Bandwidth>>,
}

impl Demand {
    /// The traffic of a plan on one switch, at so many events per second.
    pub(crate) fn of(plan: &Plan, rate_hz: f64, path: &Path) -> Result<Self, PlannerError> {
        let refuse = |what: &str, hint: &str| Err(PlannerError::file(path, what, hint));
        if plan.workload != Workload::EventBuilding || plan.stages.is_some() {
            return refuse("only event building in one stage is planned", "plan each stage by itself");
        }
        let config = &plan.network.config;
        if config.nic.ports != 1 {
            return refuse("its hosts have several ports", "set `network.nic.ports = 1`");
        }
        let hosts =
            (0..=u16::MAX).filter_map(|node| plan.host(NodeId(node))).max().map_or(0, |last| usize::from(last) + 1);
        let mut demand =
            Self { sent: vec![0.0; hosts], builders: vec![0; hosts], event_bytes: 0.0, fixed: vec![None; hosts] };
        for link in config.host_links.iter().filter(|link| link.rate.is_some()) {
            let first = usize::from(link.first);
            (first..hosts.min(first + usize::from(link.count))).for_each(|host| demand.fixed[host] = link.rate);
        }
        let host = |node: NodeId| plan.host(node).map(usize::from);
        for node in plan.building.builder_nodes().iter() {
            host(node).into_iter().for_each(|host| demand.builders[host] += 1);
        }
        let overhead = 1.0 + config.nic.header.0 as f64 / config.nic.packet.0.max(1) as f64;
        for (index, node) in plan.building.readout_nodes().iter().enumerate() {
            let bytes = mean_bytes(plan, index).map_err(|why| PlannerError::file(path, why, "see `evb check`"))?;
            demand.event_bytes += bytes;
            // Not every fragment is sent where a first phase decides.
            let is_sent = !matches!(plan.building.protocol, Protocol::Phased { .. });
            host(node).filter(|_| is_sent).into_iter().for_each(|host| demand.sent[host] += bytes * overhead * rate_hz);
        }
        Ok(demand)
    }

    /// Number of hosts.
    pub(crate) fn hosts(&self) -> u16 {
        self.sent.len() as u16
    }

    /// What these hosts send to others, and receive from others, in bytes per second on the wire. Each event goes to any builder
    /// with the same probability.
    pub(crate) fn crossing(&self, hosts: Range<usize>) -> Crossing {
        let hosts = hosts.start.min(self.sent.len())..hosts.end.min(self.sent.len());
        let all: f64 = self.builders.iter().map(|&count| f64::from(count)).sum::<f64>().max(1.0);
        let inside = self.builders[hosts.clone()].iter().map(|&count| f64::from(count)).sum::<f64>() / all;
        let sent: f64 = self.sent[hosts].iter().sum();
        let total: f64 = self.sent.iter().sum();
        Crossing { out: sent * (1.0 - inside), into: (total - sent) * inside }
    }
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
