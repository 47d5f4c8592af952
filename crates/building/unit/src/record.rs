//! The part of the record that comes from the account.

use crate::{Account, Faults, ReadoutReport, SourceIdentity, VERSION};
use evb_core::{ByteCount, Span};
use evb_experiment::Plan;
use evb_protocol::{Fault, Shaping as Order, ShapingStep};
use evb_record::steady::{Offer, Series, Steady};
use evb_record::{Bundles, Finding, FindingKind, Record, RecordKind, Shaping, Slots, Trigger};
use std::collections::BTreeMap;

mod clocks;
mod histograms;

/// Most sources with faults that a record names.
const MOST_FAULTY: usize = 1000;

/// Most sources whose counters a finding lists.
const MOST_LISTED: usize = 8;

/// The load that an experiment file asks for.
pub struct Offered {
    /// The key in the file.
    pub key: &'static str,
    /// The kind of load that is offered.
    pub what: &'static str,
    /// The offered rate, or `None` if the load comes as fast as possible.
    pub rate_hz: Option<f64>,
}

impl Offered {
    /// Triggers at a rate.
    pub const fn triggers(rate_hz: Option<f64>) -> Self {
        Self { key: "trigger.rate", what: "triggers", rate_hz }
    }

    /// The offered load, or `None` if it comes as fast as possible.
    fn offer(&self, trigger: &Trigger, longest_us: f64, plan: &Plan) -> Option<Offer> {
        Some(Offer {
            key: self.key,
            what: self.what,
            came: trigger.offered - trigger.switched,
            turned_away: trigger.inhibited - trigger.switched,
            switched: trigger.switched,
            longest_s: longest_us * 1e-6,
            rate_hz: self.rate_hz?,
            accepted_loss: f64::from(plan.trigger.accept_loss) / 100.0,
        })
    }
}

impl Account {
    /// The record of an experiment that has ended, from the plan, the reports of the nodes, and the counts over time with their
    /// steady window. The driver adds its own measurements and the verdict.
    pub fn assemble(
        mut self,
        kind: RecordKind,
        plan: &Plan,
        (series, steady): (&Series, &Steady),
        offered: &Offered,
    ) -> Record {
        let faults = self.faults();
        self.manager.events = self.by_event(self.manager.events);
        let (bundles, shaping) = (self.bundles(plan), self.shaping(plan));
        let histograms = self.filled(kind, plan);
        if bundles.is_none() {
            self.name_faults();
        }
        for (readout, clock) in self.readouts.iter_mut().zip(&self.manager.clocks) {
            readout.counts.clock = Some(*clock);
        }
        let trigger = Trigger { offered_rate_hz: offered.rate_hz, ..self.manager.trigger };
        self.findings.extend(same_source(&self.readouts));
        self.findings.extend((0..).zip(&self.readouts).flat_map(|(unit, readout)| clocks::findings(unit, readout)));
        self.findings.extend(not_confirmed(&self.readouts, faults.get(Fault::Mismatch.name()).copied().unwrap_or(0)));
        self.findings.extend(self.readouts.iter_mut().flat_map(|readout| readout.findings.drain(..)));
        self.findings.extend(self.builders.iter_mut().flat_map(|builder| builder.findings.drain(..)));
        self.findings.extend(steady.finding());
        let offer = offered.offer(&trigger, self.manager.latency_us.max, plan);
        self.findings.extend(offer.and_then(|offer| offer.judge(series, steady)));
        Record {
            kind,
            experiment: plan.name.clone(),
            sweep: plan.sweep.iter().cloned().collect(),
            seed: plan.run.seed,
            version: VERSION.into(),
            protocol: plan.building.protocol.name().into(),
            transport: String::new(),
            control_transport: None,
            readout_units: plan.building.readout_units,
            builder_units: plan.building.builder_units,
            events: self.manager.events,
            trigger,
            seconds: 0.0,
            switch_seconds: None,
            window: steady.window(),
            event_rate_hz: 0.0,
            event_rate_interval_hz: steady.rate_hz(),
            fragment_rate_hz: 0.0,
            throughput_bytes_per_s: 0.0,
            goodput_bytes_per_s: None,
            per_destination_bytes_per_s: Vec::new(),
            per_source_bytes_per_s: Vec::new(),
            latency_us: self.manager.latency_us,
            faults,
            builders: self.builders.into_iter().map(|builder| builder.counts).collect(),
            readouts: self.readouts.into_iter().map(|readout| readout.counts).collect(),
            good: false,
            verdict: None,
            filter: None,
            stages: None,
            lost_nodes: self.lost_nodes,
            findings: self.findings,
            bundles,
            shaping,
            broadcast: None,
            placement: BTreeMap::new(),
            occupancy: None,
            histograms,
            simulation: None,
        }
    }

    /// The shaping of the traffic, with the slots of all readout units.
    fn shaping(&self, plan: &Plan) -> Option<Shaping> {
        let shaping = plan.building.shaping;
        let (step, bytes, lead) = match shaping {
            Order::None => return None,
            Order::Grouping { packet, .. } | Order::RateDivision { packet } => (None, packet, ByteCount(0)),
            Order::BarrelShifter { bucket, step: step @ ShapingStep::Clock { .. }, .. } => {
                (Some(step.name().into()), bucket, ByteCount(0))
            }
            Order::BarrelShifter { bucket, step, lead, .. } => (Some(step.name().into()), bucket, lead),
        };
        let add = |sum: Slots, one: &ReadoutReport| Slots {
            used: sum.used + one.slots.used,
            empty: sum.empty + one.slots.empty,
            passed: sum.passed + one.slots.passed,
        };
        let slots = self.readouts.iter().fold(Slots::default(), add);
        let measured = self.readouts.iter().filter_map(|readout| readout.clock_error).max();
        let simulated = Some(plan.network.slot_errors.skew).filter(|&skew| skew > Span::ZERO);
        let skew = measured.into_iter().chain(simulated).reduce(|measured, simulated| measured + simulated);
        let skew_us = skew.map(|skew| skew.as_secs_f64() * 1e6);
        Some(Shaping { kind: shaping.name().into(), step, bytes: bytes.0, lead_bytes: lead.0, slots, skew_us })
    }

    /// Gives each readout unit the faults of its source.
    fn name_faults(&mut self) {
        let of_units = self.readouts.iter().map(|readout| readout.faults.clone()).enumerate();
        let of_builders = self.builders.iter().flat_map(|builder| &builder.sources);
        let of_builders = of_builders.map(|(source, faults)| (usize::from(*source), faults.clone()));
        let all: Vec<_> = of_units.chain(of_builders).collect();
        for (unit, faults) in all {
            let Some(readout) = self.readouts.get_mut(unit) else { continue };
            faults.into_iter().for_each(|(kind, count)| *readout.counts.faults.entry(kind).or_default() += count);
        }
    }

    /// Sources, blocks, and the faults by source, where readout units make bundles.
    fn bundles(&self, plan: &Plan) -> Option<Bundles> {
        let mut faults: BTreeMap<u16, Faults> = BTreeMap::new();
        for (source, counted) in self.builders.iter().flat_map(|builder| &builder.sources) {
            let of_source = faults.entry(*source).or_default();
            counted.iter().for_each(|(fault, count)| *of_source.entry(fault.clone()).or_default() += count);
        }
        let faulty_sources = faults.len() as u64;
        (!plan.bundling.is_plain()).then(|| Bundles {
            sources: plan.bundling.sources(plan.building.readout_units).into(),
            block: plan.bundling.largest_block(),
            masked: plan.bundling.masked.iter().map(|source| source.0).collect(),
            faulty_sources,
            faults: faults.into_iter().take(MOST_FAULTY).collect(),
        })
    }
}

/// A finding if nothing but counters says which fragments of live sources belong together.
fn not_confirmed(readouts: &[ReadoutReport], mismatches: u64) -> Option<Finding> {
    let live = || (0..).zip(readouts).filter_map(|(unit, readout)| Some((unit, readout.identity?)));
    let is_confirmed = |identity: &SourceIdentity| identity.tolerated_mismatches.is_some_and(|most| mismatches <= most);
    let (first, _): (usize, _) = live().find(|(_, identity)| !is_confirmed(identity))?;
    let counters: Vec<_> = live()
        .filter_map(|(unit, identity)| {
            let (from, to) = identity.counters?;
            Some(format!("ru{unit} counts from {from} to {to}"))
        })
        .collect();
    let (counters, more) = counters.split_at(counters.len().min(MOST_LISTED));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let message = format!("aligned by counters, not confirmed: {}{more}", counters.join(", "));
    let hint =
        "`first_counter` at each source says which number its first trigger has; marks of the front ends prove it";
    Some(Finding::new(FindingKind::NotConfirmed, format!("ru{first}"), message).hint(hint))
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
