//! The last report of each node, and the record that they make together.

use crate::VERSION;
use crate::control::{BuilderReport, Ended, Faults, ManagerReport, Progress, ReadoutReport};
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_protocol::Config;
use evb_record::{Events, Finding, FindingKind, Kind, Record, Trigger};
use std::{collections::BTreeMap, ops::Add as _};

pub(crate) struct Tally {
    config: Config,
    pub(crate) manager: Option<ManagerReport>,
    readouts: Vec<ReadoutReport>,
    builders: Vec<BuilderReport>,
    lost_nodes: Vec<String>,
    findings: Vec<Finding>,
}

impl Tally {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            config: config.clone(),
            manager: None,
            readouts: vec![ReadoutReport::default(); config.readout_units.into()],
            builders: vec![BuilderReport::default(); config.builder_units.into()],
            lost_nodes: Vec::new(),
            findings: Vec::new(),
        }
    }

    pub(crate) fn set_readout(&mut self, node: NodeId, report: ReadoutReport) {
        let first = self.config.readout_nodes().first;
        if let Some(place) = self.readouts.get_mut(usize::from(node.0 - first.0)) {
            *place = report;
        }
    }

    pub(crate) fn set_builder(&mut self, node: NodeId, report: BuilderReport) {
        let first = self.config.builder_nodes().first;
        if let Some(place) = self.builders.get_mut(usize::from(node.0 - first.0)) {
            *place = report;
        }
    }

    /// Notes that a node is lost; false when that is known.
    pub(crate) fn lose(&mut self, name: &str) -> bool {
        let new = !self.is_lost(name);
        if new {
            self.lost_nodes.push(name.to_owned());
        }
        new
    }

    pub(crate) fn is_lost(&self, name: &str) -> bool {
        self.lost_nodes.iter().any(|known| known == name)
    }

    pub(crate) fn find(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    pub(crate) fn progress(&self, seconds: f64, stopping: bool) -> Progress {
        let events = self.events();
        let bytes = self.builders.iter().map(|builder| builder.counts.bytes).sum();
        let ended = events.triggered - events.lost;
        Progress { triggered: events.triggered, ended, incomplete: events.incomplete, bytes, seconds, stopping }
    }

    /// What became of the events. The event manager knows; when it died, the others' accounts stand in for its own.
    fn events(&self) -> Events {
        let manager = self.manager.clone().unwrap_or_default();
        let (mut triggered, mut ended) = (manager.triggered, manager.ended);
        if self.is_lost(&self.config.node_name(Config::EVENT_MANAGER)) {
            ended = self.ended_by_builders(&manager);
            let known = self.readouts.iter().map(|readout| readout.through).max().unwrap_or(0);
            triggered = triggered.max(known).max(ended.total());
        }
        let Ended { built, incomplete, rejected } = ended;
        let (lost, reassigned) = (triggered - ended.total(), manager.reassigned);
        Events { triggered, built, incomplete, rejected, lost, reassigned }
    }

    /// Events that have ended by the builders' own accounts. A builder that was lost before is taken at the event
    /// manager's word: what it had built beyond that was built again by others.
    fn ended_by_builders(&self, manager: &ManagerReport) -> Ended {
        let nodes = self.config.builder_nodes().iter();
        let ended = nodes.zip(&self.builders).enumerate().map(|(index, (node, builder))| {
            let evb_record::Builder { built, incomplete, rejected, .. } = builder.counts;
            let own = Ended { built, incomplete, rejected };
            let heard = manager.of_builders.get(index).copied().unwrap_or_default();
            if self.is_lost(&self.config.node_name(node)) { heard } else { own }
        });
        ended.fold(Ended::default(), Ended::add)
    }

    fn faults(&self) -> Faults {
        let manager = self.manager.iter().map(|manager| &manager.faults);
        let readouts = self.readouts.iter().map(|readout| &readout.faults);
        let builders = self.builders.iter().map(|builder| &builder.faults);
        let mut all = Faults::new();
        for (fault, count) in manager.chain(readouts).chain(builders).flatten() {
            *all.entry(fault.clone()).or_default() += count;
        }
        all
    }

    pub(crate) fn record(mut self, plan: &Plan, transport: &str, seconds: f64) -> Record {
        let (events, faults) = (self.events(), self.faults());
        let mut findings = self.findings;
        findings.extend(same_source(&self.readouts));
        findings.extend(self.readouts.iter_mut().flat_map(|readout| readout.findings.drain(..)));
        findings.extend(self.builders.iter_mut().flat_map(|builder| builder.findings.drain(..)));
        let manager = self.manager.unwrap_or_default();
        let per_second = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let builders: Vec<_> = self.builders.into_iter().map(|builder| builder.counts).collect();
        let readouts: Vec<_> = self.readouts.into_iter().map(|readout| readout.counts).collect();
        Record {
            kind: Kind::Run,
            experiment: plan.name.clone(),
            sweep: plan.sweep.iter().cloned().collect(),
            seed: plan.run.seed,
            version: VERSION.into(),
            protocol: plan.building.protocol.name().into(),
            transport: transport.into(),
            readout_units: plan.building.readout_units,
            builder_units: plan.building.builder_units,
            events,
            trigger: Trigger { inhibited: manager.inhibited, inhibitions: manager.inhibitions },
            seconds,
            event_rate_hz: per_second(events.triggered - events.lost),
            fragment_rate_hz: per_second(builders.iter().map(|builder| builder.fragments).sum()),
            throughput_bytes_per_s: per_second(builders.iter().map(|builder| builder.bytes).sum()),
            per_destination_bytes_per_s: builders.iter().map(|builder| per_second(builder.bytes)).collect(),
            per_source_bytes_per_s: readouts.iter().map(|readout| per_second(readout.sent_bytes)).collect(),
            latency_us: manager.latency_us,
            faults,
            builders,
            readouts,
            good: false,
            lost_nodes: self.lost_nodes,
            findings,
            simulation: None,
        }
        .judged()
    }
}

/// Readout units whose recorded fragments carry one source id.
fn same_source(readouts: &[ReadoutReport]) -> Vec<Finding> {
    let mut seen = BTreeMap::new();
    let mut found = Vec::new();
    for (unit, id) in readouts.iter().enumerate().filter_map(|(unit, readout)| Some((unit, readout.counts.source_id?)))
    {
        if let Some(first) = seen.insert(id, unit) {
            let message = format!("ru{first} and ru{unit} both deliver the fragments of source {id}");
            found.push(Finding::new(FindingKind::WrongSource, format!("ru{unit}"), message));
        }
    }
    found
}
