//! Two stages: the records of all event builders, and the record of the whole.

use crate::{Finding, FindingKind, Record, Simulation, Window};
use serde::{Deserialize, Serialize};

/// The records of the event builders of two stages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// The first stage: an event builder for each readout unit of the second, whose super-fragments it makes.
    pub first: Vec<Record>,
    /// The second stage: the slices in order.
    pub second: Vec<Record>,
}

impl Stages {
    /// The record of the whole, from trigger to storage. The triggers are those of the first stage. Everything else is that
    /// of the second, summed over the slices; latencies are the longest of any slice, from the last super-fragment of an event
    /// to its storage. None without a second stage.
    pub fn whole(self, experiment: &str) -> Option<Record> {
        let Self { first, second } = &self;
        let mut whole = second.first()?.clone();
        whole.experiment = experiment.into();
        second[1..].iter().for_each(|slice| add(&mut whole, slice));
        whole.builder_units = second.iter().map(|slice| slice.builder_units).sum();
        let ended = whole.events.built + whole.events.incomplete + whole.events.rejected;
        // After a stop, groups may have triggered events that others have not. Those that all have are events.
        let stood = first.iter().filter(|group| !group.lost_nodes.iter().any(|node| node == "evm"));
        whole.events.triggered = stood.map(|group| group.events.triggered).min().unwrap_or(ended).max(ended);
        whole.events.lost = whole.events.triggered - ended;
        whole.trigger = first.first().map_or(whole.trigger, |group| group.trigger);
        whole.seconds = self.all().map(|(_, record)| record.seconds).fold(0.0, f64::max);
        whole.lost_nodes = self
            .all()
            .flat_map(|(name, record)| record.lost_nodes.iter().map(move |node| format!("{name}.{node}")))
            .collect();
        whole.findings = self
            .all()
            .flat_map(|(name, record)| {
                record.findings.iter().filter(|one| !follows(one)).map(move |one| named(&name, one))
            })
            .collect();
        let unsteady =
            second.iter().flat_map(|slice| &slice.findings).find(|one| one.kind == FindingKind::NoSteadyState);
        whole.findings.extend(unsteady.cloned());
        if let Some(filter) = &mut whole.filter {
            filter.set_rates(whole.seconds);
        }
        if let Some(simulation) = &mut whole.simulation {
            let of_groups = first.iter().filter_map(|group| group.simulation.as_ref());
            of_groups.for_each(|group| add_packets(simulation, group));
        }
        whole.stages = Some(Box::new(self));
        Some(whole.judged())
    }

    /// All event builders, with their names: `g` or `s`, and the index.
    pub fn all(&self) -> impl Iterator<Item = (String, &Record)> {
        let named = |letter, records| (0..).zip(records).map(move |(index, record)| (name(letter, index), record));
        named('g', &self.first).chain(named('s', &self.second))
    }
}

/// The name of the event builder with this index in its stage: `g0` in the first, `s0` in the second.
fn name(letter: char, index: usize) -> String {
    format!("{letter}{index}")
}

/// True for a finding that follows from the numbers of one event builder, and is reported for the whole.
const fn follows(finding: &Finding) -> bool {
    use FindingKind::{IncompleteEvents, LostEvents, NoSteadyState, NothingTriggered};
    matches!(finding.kind, NothingTriggered | LostEvents | IncompleteEvents | NoSteadyState)
}

/// The finding of an event builder.
fn named(builder: &str, finding: &Finding) -> Finding {
    Finding {
        subject: format!("{builder}.{}", finding.subject),
        message: format!("{builder}: {}", finding.message),
        ..finding.clone()
    }
}

/// Adds the counts and rates of another slice.
fn add(whole: &mut Record, slice: &Record) {
    whole.events.built += slice.events.built;
    whole.events.incomplete += slice.events.incomplete;
    whole.events.rejected += slice.events.rejected;
    whole.events.reassigned += slice.events.reassigned;
    let steady = whole.window.steady && slice.window.steady;
    whole.window = Window {
        from_s: whole.window.from_s.min(slice.window.from_s),
        to_s: whole.window.to_s.max(slice.window.to_s),
        steady,
    };
    whole.event_rate_hz += slice.event_rate_hz;
    whole.event_rate_interval_hz = None;
    whole.fragment_rate_hz += slice.fragment_rate_hz;
    whole.throughput_bytes_per_s += slice.throughput_bytes_per_s;
    whole.goodput_bytes_per_s = whole.goodput_bytes_per_s.zip(slice.goodput_bytes_per_s).map(|(all, one)| all + one);
    whole.per_destination_bytes_per_s.extend(&slice.per_destination_bytes_per_s);
    for (whole, slice) in whole.per_source_bytes_per_s.iter_mut().zip(&slice.per_source_bytes_per_s) {
        *whole += slice;
    }
    let (all, one) = (&mut whole.latency_us, slice.latency_us);
    all.mean = [all.mean, one.mean].into_iter().flatten().reduce(f64::max);
    for (all, one) in
        [(&mut all.p50, one.p50), (&mut all.p99, one.p99), (&mut all.p999, one.p999), (&mut all.max, one.max)]
    {
        *all = all.max(one);
    }
    for (fault, count) in &slice.faults {
        *whole.faults.entry(fault.clone()).or_default() += count;
    }
    whole.builders.extend(slice.builders.iter().cloned());
    whole.readouts.extend(slice.readouts.iter().cloned());
    if let (Some(all), Some(one)) = (&mut whole.simulation, &slice.simulation) {
        add_packets(all, one);
        all.efficiency = all.efficiency.min(one.efficiency);
        all.goodput_efficiency = all.goodput_efficiency.zip(one.goodput_efficiency).map(|(all, one)| all.min(one));
    }
    if let (Some(all), Some(one)) = (&mut whole.broadcast, &slice.broadcast) {
        all.add(one);
    }
    if let (Some(all), Some(one)) = (&mut whole.bundles, &slice.bundles) {
        all.add(one);
    }
    whole.histograms.iter_mut().zip(&slice.histograms).for_each(|(all, one)| all.add(one));
    if let (Some(all), Some(one)) = (&mut whole.filter, &slice.filter) {
        all.add(one);
    }
}

fn add_packets(whole: &mut Simulation, one: &Simulation) {
    whole.packets += one.packets;
    whole.packet_hops += one.packet_hops;
}
