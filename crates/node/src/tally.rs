//! The last report of each node, and the record that they make together.

use crate::VERSION;
use crate::control::{BuilderReport, Ended, Faults, ManagerReport, Progress, ReadoutReport, Report};
use evb_core::{Frequency, NodeId, Span, Time};
use evb_experiment::Plan;
use evb_protocol::Config;
use evb_record::{Events, Finding, FindingKind, Kind, Record, Trigger};
use evb_steady::{ENDED, Offer, Series, Steady};
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

    pub(crate) fn report(&mut self, node: NodeId, report: Report) {
        match report {
            Report::Manager(report) => self.manager = Some(report),
            Report::Readout(report) => self.set_readout(node, report),
            Report::Builder(report) => self.set_builder(node, report),
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

    /// A number that changes when an event ends, or a builder receives or stores something.
    pub(crate) fn done(&self) -> u64 {
        let ended = self.manager.as_ref().map_or(0, |manager| manager.ended.total());
        let moved = self.builders.iter().map(|builder| builder.counts.bytes + builder.counts.stored_bytes);
        ended + moved.sum::<u64>()
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
        self.findings.extend(same_source(&self.readouts));
        self.findings.extend(self.readouts.iter_mut().flat_map(|readout| readout.findings.drain(..)));
        self.findings.extend(self.builders.iter_mut().flat_map(|builder| builder.findings.drain(..)));
        let manager = self.manager.take().unwrap_or_default();
        let steady = steady(&manager, plan, seconds);
        let trigger = trigger(&manager, plan);
        self.findings.extend(steady.finding());
        self.findings.extend(offer(&trigger, plan).and_then(|offer| offer.judge(&steady)));
        // Without a window, what the accounts say is exact.
        let is_windowed = steady.window().steady || plan.run.warmup.is_some();
        let rate = |series: &Series, count: usize, all: u64| match is_windowed {
            true => series.rate(steady.window, count),
            false if seconds > 0.0 => all as f64 / seconds,
            false => 0.0,
        };
        let of_builders = |count, all: fn(&evb_record::Builder) -> u64| -> Vec<f64> {
            self.builders.iter().map(|builder| rate(&builder.series, count, all(&builder.counts))).collect()
        };
        let received = of_builders(0, |builder| builder.bytes);
        let sent = |readout: &ReadoutReport| rate(&readout.series, 0, readout.counts.sent_bytes);
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
            trigger,
            seconds,
            window: steady.window(),
            event_rate_hz: rate(&manager.series, ENDED, events.triggered - events.lost),
            event_rate_interval_hz: steady.rate_hz(),
            fragment_rate_hz: of_builders(1, |builder| builder.fragments).iter().sum(),
            throughput_bytes_per_s: received.iter().sum(),
            per_destination_bytes_per_s: received,
            per_source_bytes_per_s: self.readouts.iter().map(sent).collect(),
            latency_us: manager.latency_us,
            faults,
            builders: self.builders.into_iter().map(|builder| builder.counts).collect(),
            readouts: self.readouts.into_iter().map(|readout| readout.counts).collect(),
            good: false,
            lost_nodes: self.lost_nodes,
            findings: self.findings,
            simulation: None,
        }
        .judged()
    }
}

/// The window that the rates of a run are of.
fn steady(manager: &ManagerReport, plan: &Plan, seconds: f64) -> Steady {
    let warmup = plan.run.warmup.map(|warmup| Time::ZERO + warmup);
    Steady::find(&manager.series, warmup, Time::ZERO + Span((seconds * 1e12) as u64))
}

fn trigger(manager: &ManagerReport, plan: &Plan) -> Trigger {
    Trigger {
        offered: manager.triggered + manager.inhibited,
        offered_rate_hz: plan.trigger.rate.map(Frequency::as_hertz),
        inhibited: manager.inhibited,
        inhibitions: manager.inhibitions,
    }
}

/// What was offered; none when events came as fast as it went.
fn offer(trigger: &Trigger, plan: &Plan) -> Option<Offer> {
    Some(Offer {
        key: "trigger.rate",
        what: "triggers",
        came: trigger.offered,
        turned_away: trigger.inhibited,
        rate_hz: trigger.offered_rate_hz?,
        accepted_loss: f64::from(plan.trigger.accept_loss) / 100.0,
    })
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
