//! The account of an experiment: the last report of each node, lost nodes and findings.

use crate::{
    BuilderReport, DriverReport, Faults, ManagerReport, Offered, ReadoutReport, Report, occupancy::OccupancySamples,
};
use evb_core::{Frequency, NodeId, NodeRange, Span, Time};
use evb_experiment::Plan;
use evb_protocol::Config;
use evb_record::steady::{ENDED, Series, Steady};
use evb_record::{
    Broadcast, Events, Filtering, Finding, FindingKind, Occupancy, Record, RecordKind, WaitingSource, waiting_sources,
};
use std::{collections::BTreeMap, iter};

/// The last reports of all nodes, lost nodes and findings.
#[derive(Clone)]
pub struct Account {
    pub(crate) config: Config,
    /// True if events are built in blocks. The event manager knows the outcome of blocks only.
    has_blocks: bool,
    pub(crate) manager: ManagerReport,
    pub(crate) readouts: Vec<ReadoutReport>,
    pub(crate) builders: Vec<BuilderReport>,
    pub(crate) lost_nodes: Vec<String>,
    pub(crate) findings: Vec<Finding>,
    /// How full the units are, or `None` where it is not sampled.
    occupancy: Option<OccupancySamples>,
}

/// The state of a run, for displays of its progress.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Events triggered so far.
    pub triggered: u64,
    /// Events ended so far: built, incomplete or rejected.
    pub ended: u64,
    /// Ended events with a fragment missing or bad.
    pub incomplete: u64,
    /// Payload bytes delivered to builders so far.
    pub bytes: u64,
    /// Time since the start in seconds.
    pub seconds: f64,
    /// True if the run was stopped and drains.
    pub stopping: bool,
}

impl Account {
    /// The account of nodes that have not reported yet.
    pub fn new(plan: &Plan) -> Self {
        let config = &plan.building;
        Self {
            has_blocks: plan.bundling.has_blocks(),
            readouts: vec![ReadoutReport::default(); config.readout_units.into()],
            builders: vec![BuilderReport::default(); config.builder_units.into()],
            occupancy: Some(OccupancySamples::new(plan)),
            ..Self::of_traffic(config)
        }
    }

    /// The account of nodes that build no events: it has their names only.
    pub fn of_traffic(config: &Config) -> Self {
        Self {
            config: config.clone(),
            has_blocks: false,
            manager: ManagerReport::default(),
            readouts: Vec::new(),
            builders: Vec::new(),
            lost_nodes: Vec::new(),
            findings: Vec::new(),
            occupancy: None,
        }
    }

    /// Notes the report of a node.
    pub fn report(&mut self, node: NodeId, report: Report) {
        match report {
            // All nodes report as often as the event manager does, so once a round is enough.
            Report::Manager(report) => {
                self.manager = report;
                if let Some(samples) = &mut self.occupancy {
                    samples.sample(&self.readouts, &self.builders);
                }
            }
            Report::Readout(report) => put(&mut self.readouts, self.config.readout_nodes(), node, *report),
            Report::Builder(report) => put(&mut self.builders, self.config.builder_nodes(), node, report),
        }
    }

    /// Notes that a node is lost; returns false if that is known already.
    pub fn lose(&mut self, name: &str) -> bool {
        let new = !self.is_lost(name);
        if new {
            self.lost_nodes.push(name.to_owned());
        }
        new
    }

    /// True if a node is lost.
    pub fn is_lost(&self, name: &str) -> bool {
        self.lost_nodes.iter().any(|known| known == name)
    }

    /// Notes a finding.
    pub fn find(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// The state of the run.
    pub fn progress(&self, seconds: f64, stopping: bool) -> Progress {
        let events = self.events();
        let bytes = self.builders.iter().map(|builder| builder.counts.bytes).sum();
        let ended = events.triggered - events.lost;
        Progress { triggered: events.triggered, ended, incomplete: events.incomplete, bytes, seconds, stopping }
    }

    /// How full the units were, on average over all rounds of reports; `None` before the first one.
    pub fn occupancy(&self) -> Option<Occupancy> {
        self.occupancy.as_ref().and_then(OccupancySamples::means)
    }

    /// The live sources that the run waits for, after this time.
    pub fn waiting_sources(&self, seconds: f64) -> Vec<WaitingSource> {
        waiting_sources(self.readouts.iter().map(|readout| &readout.counts), seconds)
    }

    /// A number that changes when an event ends, or a builder receives or stores something.
    pub fn done(&self) -> u64 {
        let moved = self.builders.iter().map(|builder| builder.counts.bytes + builder.counts.stored_bytes);
        self.manager.events.triggered - self.manager.events.lost + moved.sum::<u64>()
    }

    /// Counts of the events by the event manager. If it died, the accounts of the other nodes replace its own.
    fn events(&self) -> Events {
        let events = self.manager.events;
        if !self.is_lost(&self.config.node_name(Config::EVENT_MANAGER)) {
            return self.by_event(events);
        }
        let ended = self.ended_by_builders();
        let known = self.readouts.iter().map(|readout| readout.through).max().unwrap_or(0);
        let triggered = events.triggered.max(known).max(ended.triggered);
        Events { triggered, lost: triggered - ended.triggered, reassigned: events.reassigned, ..ended }
    }

    /// The outcome of each event of the blocks, which builders count. For a builder that was lost, the outcome of a
    /// block is that of all its events.
    pub(crate) fn by_event(&self, events: Events) -> Events {
        if !self.has_blocks {
            return events;
        }
        let ended = self.ended_by_builders();
        let lost = events.triggered.saturating_sub(ended.triggered);
        Events { triggered: events.triggered, lost, reassigned: events.reassigned, ..ended }
    }

    /// Events that have ended by the builders' own accounts. For a builder that was lost before, the event manager's
    /// count holds: other builders built its further events again.
    fn ended_by_builders(&self) -> Events {
        let mut all = Events::default();
        for (index, (node, builder)) in self.config.builder_nodes().iter().zip(&self.builders).enumerate() {
            let evb_record::BuilderRecord { built, incomplete, rejected, .. } = builder.counts;
            let own = Events { built, incomplete, rejected, ..Events::default() };
            let heard = self.manager.of_builders.get(index).copied().unwrap_or_default();
            let ended = if self.is_lost(&self.config.node_name(node)) { heard } else { own };
            all.triggered += ended.built + ended.incomplete + ended.rejected;
            all.built += ended.built;
            all.incomplete += ended.incomplete;
            all.rejected += ended.rejected;
        }
        all
    }

    /// Faults by kind, of all nodes.
    pub(crate) fn faults(&self) -> Faults {
        let readouts = self.readouts.iter().map(|readout| &readout.faults);
        let builders = self.builders.iter().map(|builder| &builder.faults);
        let mut all = self.manager.faults.clone();
        for (fault, count) in readouts.chain(builders).flatten() {
            *all.entry(fault.clone()).or_default() += count;
        }
        all
    }

    /// The selection of all builders in a run with this duration; none without filters.
    pub fn filtering(&self, seconds: f64) -> Option<Filtering> {
        let of_builders = self.builders.iter().filter_map(|builder| builder.filter.as_deref());
        let mut all = of_builders.fold(None::<Filtering>, |all, own| {
            let mut all = all.unwrap_or_default();
            all.add(own);
            Some(all)
        })?;
        all.set_rates(seconds);
        Some(all)
    }

    /// What the driver of each node has reported.
    pub(crate) fn drivers(&self) -> impl Iterator<Item = (NodeId, &DriverReport)> {
        let of_readouts = self.config.readout_nodes().iter().zip(&self.readouts);
        let of_builders = self.config.builder_nodes().iter().zip(&self.builders);
        iter::once((Config::EVENT_MANAGER, &self.manager.driver))
            .chain(of_readouts.map(|(node, report)| (node, &report.driver)))
            .chain(of_builders.map(|(node, report)| (node, &report.driver)))
    }

    /// The part of the payload received that belongs to complete or decided events; 1 before anything was received.
    pub fn useful_part(&self) -> f64 {
        let sum = |count: fn(&evb_record::BuilderRecord) -> u64| {
            self.builders.iter().map(|builder| count(&builder.counts)).sum::<u64>()
        };
        let received = sum(|builder| builder.bytes);
        if received > 0 { (sum(|builder| builder.useful_bytes) as f64 / received as f64).min(1.0) } else { 1.0 }
    }

    /// Broadcasts of each node that has reported.
    fn broadcasts(&self) -> impl Iterator<Item = (NodeId, &Broadcast)> {
        let all = self.drivers().map(|(node, driver)| (node, &driver.broadcast));
        all.filter(|(_, broadcast)| !broadcast.how.is_empty())
    }

    /// The core of each node that is bound to one, by the name of the node.
    fn placement(&self) -> BTreeMap<String, u16> {
        self.drivers().filter_map(|(node, driver)| Some((self.config.node_name(node), driver.core?))).collect()
    }

    /// Broadcasts of all nodes.
    fn broadcast(&self) -> Broadcast {
        let mut all = Broadcast::default();
        self.broadcasts().for_each(|(_, own)| all.add(own));
        all.fell_back = self.reason_for_copies();
        all
    }

    /// The first node that sends copies of broadcasts although the transport was asked for more, and its reason.
    fn reason_for_copies(&self) -> Option<String> {
        self.broadcasts().find_map(|(node, own)| {
            own.fell_back.as_ref().map(|reason| format!("{}: {reason}", self.config.node_name(node)))
        })
    }

    /// A finding if a node sends copies of broadcasts although the transport was asked for more.
    pub fn fell_back(&self) -> Option<Finding> {
        let reason = self.reason_for_copies()?;
        let message = format!("broadcasts go as copies: {reason}");
        let hint = "the events do not suffer; `--set transport.multicast=off` sends copies from the start";
        Some(Finding::new(FindingKind::NoMulticast, "transport.multicast", message).hint(hint))
    }

    /// The record of a run with this duration. Its rates are those that the nodes have counted over time.
    pub fn record(mut self, plan: &Plan, transport: &str, seconds: f64) -> Record {
        self.manager.events = self.events();
        let broadcast = self.broadcast();
        self.findings.extend(self.fell_back());
        self.findings.extend(self.dead_links().into_values());
        let warmup = plan.run.warmup.map(|warmup| Time::ZERO + warmup);
        let steady = Steady::find(&self.manager.series, warmup, Time::ZERO + Span((seconds * 1e12) as u64));
        // Without a window, the accounts are exact.
        let is_windowed = steady.window().steady || plan.run.warmup.is_some();
        let rate = |series: &Series, count: usize, all: u64| match is_windowed {
            true => series.rate(steady.window, count),
            false if seconds > 0.0 => all as f64 / seconds,
            false => 0.0,
        };
        let of_builders = |count, all: fn(&evb_record::BuilderRecord) -> u64| -> Vec<f64> {
            self.builders.iter().map(|builder| rate(&builder.series, count, all(&builder.counts))).collect()
        };
        let useful = self.useful_part();
        let sent = |readout: &ReadoutReport| rate(&readout.series, 0, readout.counts.sent_bytes);
        let received = of_builders(0, |builder| builder.bytes);
        let fragments = of_builders(1, |builder| builder.fragments);
        let sent = self.readouts.iter().map(sent).collect();
        let events = rate(&self.manager.series, ENDED, self.manager.events.triggered - self.manager.events.lost);
        let series = self.manager.series.clone();
        let offered = Offered::triggers(plan.trigger.rate.map(Frequency::as_hertz));
        Record {
            transport: transport.into(),
            seconds,
            event_rate_hz: events,
            fragment_rate_hz: fragments.iter().sum(),
            throughput_bytes_per_s: received.iter().sum(),
            goodput_bytes_per_s: Some(received.iter().sum::<f64>() * useful),
            per_destination_bytes_per_s: received,
            per_source_bytes_per_s: sent,
            filter: self.filtering(seconds),
            broadcast: Some(broadcast),
            placement: self.placement(),
            occupancy: self.occupancy(),
            ..self.assemble(RecordKind::Run, plan, (&series, &steady), &offered)
        }
        .judged()
    }
}

fn put<R>(reports: &mut [R], nodes: NodeRange, node: NodeId, report: R) {
    if let Some(place) = reports.get_mut(usize::from(node.0 - nodes.first.0)) {
        *place = report;
    }
}
