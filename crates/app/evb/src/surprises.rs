//! The effects of a plan that could surprise.

use crate::headrooms;
use evb_core::{Bandwidth, Span};
use evb_experiment::{Keep, Plan, Workload};
use evb_node::MemoryBound;
use evb_protocol::Trigger;
use evb_sources::SourceSpec;
use std::fs;

/// Shortest time from trigger to end for which a user is warned that events wait in line.
const LONG: Span = Span::from_secs(1);

/// Texts about surprising properties of some plans, one for each property. Those about memory and waits are of the
/// largest plan.
#[must_use]
pub fn surprises(plans: &[Plan]) -> Vec<String> {
    let marks = plans.iter().any(needs_marks).then(|| {
        "live front ends are distinguished by their event counters alone, unless their frames carry marks".to_owned()
    });
    let largest = largest(plans);
    let total =
        |plan: &Plan| plan.event_builders().map(|one| MemoryBound::of(one).total()).fold(0, u64::saturating_add);
    let building = plans.iter().filter(|plan| plan.workload == Workload::EventBuilding);
    let memory = building.map(total).max().and_then(|total| too_much_memory(total, memory_of_this_machine()));
    let wait = largest.and_then(|(plan, _)| long_wait(plan));
    let headroom = plans.iter().filter(|plan| plan.network.config.flow.may_lose()).find_map(little_headroom);
    [marks, memory, wait, headroom].into_iter().flatten().collect()
}

/// The event builder that may need the most memory, and that memory.
#[must_use]
pub fn largest(plans: &[Plan]) -> Option<(&Plan, MemoryBound)> {
    let building = plans.iter().filter(|plan| plan.workload == Workload::EventBuilding).flat_map(Plan::event_builders);
    building.map(|plan| (plan, MemoryBound::of(plan))).max_by_key(|(_, bound)| bound.total())
}

/// A rounded number of bytes.
#[must_use]
pub fn in_bytes(bytes: u64) -> String {
    let (unit, name) = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")]
        .into_iter()
        .find(|&(unit, _)| bytes >= unit)
        .unwrap_or((1 << 10, "KiB"));
    format!("{:.1} {name}", bytes as f64 / unit as f64)
}

/// The network pauses to lose nothing, and loses what finds no headroom.
fn little_headroom(plan: &Plan) -> Option<String> {
    let few = headrooms(plan).into_iter().find(|one| one.given < one.needed)?;
    Some(format!(
        "network.flow.headroom of {} is less than the {} that a cable of {} at {} needs: packets can be lost in spite of pauses",
        few.given, few.needed, few.delay, few.rate
    ))
}

/// The nodes may need more than there is, if this machine carries them all.
fn too_much_memory(total: u64, machine: Option<u64>) -> Option<String> {
    let machine = machine.filter(|&machine| total > machine)?;
    Some(format!(
        "all nodes on this machine may need {} of memory, and it has {}: lower `builder.slots`, `readout.max_fragment` or \
         `readout.buffer_bytes`",
        in_bytes(total),
        in_bytes(machine)
    ))
}

/// The memory of this machine in bytes, if known.
fn memory_of_this_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// In free running all slots fill up: with many slots behind something slow, events wait in line for long.
fn long_wait(plan: &Plan) -> Option<String> {
    let (slots, event) = (plan.building.first_slots(), mean_event_bytes(plan)?);
    if plan.building.trigger != Trigger::FreeRunning {
        return None;
    }
    let (rate, what) = slowest(plan)?;
    let seconds = f64::from(slots) * event / rate.as_bytes_per_second();
    (seconds >= LONG.as_secs_f64()).then(|| {
        format!(
            "events take about {seconds:.1} s: {slots} slots of a builder x {} at the {rate} of {what}; lower `builder.slots`",
            in_bytes(event as u64)
        )
    })
}

/// The lowest known rate at which a builder gets rid of its slots, and what has it.
fn slowest(plan: &Plan) -> Option<(Bandwidth, &'static str)> {
    let builders = plan.building.builder_nodes().iter();
    let kept = if let Keep::OneIn(n) = plan.storage.keep { n } else { 1 };
    let disk = builders.filter_map(|node| plan.slow_disk(node)).min();
    let disk = disk.map(|rate| (Bandwidth(rate.0.saturating_mul(kept)), "its slow disk"));
    let nic = &plan.network.config.nic;
    let hosts = plan.building.builder_nodes().iter().filter_map(|node| plan.host(node));
    let slowest = hosts.map(|host| plan.network.config.host_link(host).rate).min()?;
    let port = Bandwidth(slowest.0.saturating_mul(nic.ports.into()));
    let network = (plan.network.config.preset != "ideal").then_some((port, "its network port"));
    disk.into_iter().chain(network).min_by_key(|(rate, _)| *rate)
}

/// Mean size of an event, when that is known of all sources.
fn mean_event_bytes(plan: &Plan) -> Option<f64> {
    let mean = |source: &SourceSpec| match source {
        SourceSpec::Fixed { size } => Some(size.0 as f64),
        SourceSpec::Uniform { min, max } => Some((min.0 + max.0) as f64 / 2.0),
        SourceSpec::LogNormal { mean, .. } => Some(mean.0 as f64),
        _ => None,
    };
    plan.sources.iter().map(mean).sum()
}

/// True if a live front end could mistake its events without another one noticing.
fn needs_marks(plan: &Plan) -> bool {
    // Slices have their numbers from the time.
    let counts = |source: &SourceSpec| source.live().is_some_and(|live| live.slices.is_none());
    plan.building.numbered.len() > 1 && plan.sources.iter().any(counts)
}
