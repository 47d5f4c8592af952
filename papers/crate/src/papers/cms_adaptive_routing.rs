//! CMS 2007: adaptive wormhole routing with one and two ports, MStreamIO and the event builder.

use crate::{
    PaperError, Results,
    report_builder::ReportBuilder,
    results::{SIZE, curve, efficiency, per_destination, simulation},
};
use evb_record::{KnownMap, Record};

/// Number of ports, the names of column and curve, and the rate of all links of a node in MB/s.
const PORTS: [(&str, &str, &str, f64); 2] = [("1", "1-port", "1 port", 250.0), ("2", "2-ports", "2 ports", 500.0)];
/// Rate that CMS required of each node, in MB/s.
const REQUIRED: f64 = 200.0;
/// Time of the failure in `mapper.toml`, in seconds.
const SPINE_FAILS_S: f64 = 1.5;

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    pairs(results, report)?;
    let streams = many(results, report, "mstreamio", ["fig-9", "fig-10"])?;
    let events = many(results, report, "event-builder", ["fig-11", "fig-12"])?;
    report.item("falls-to.mstreamio", last(&streams[0]) / PORTS[0].3 * 100.0)?;
    report.item("falls-to.event-builder", last(&events[0]) / PORTS[0].3 * 100.0)?;
    report.item("levels-off.event-builder", last_step(&sums(&saturation(&events[0], PORTS[0].3))))?;
    for ((.., label, _), rates) in PORTS.iter().zip(&events) {
        report.curve("fig-13", &format!("adaptive routing, {label}"), sums(rates))?;
    }
    report.item("required.largest-n", events[1].iter().take_while(|rate| **rate >= REQUIRED).count() as f64)?;
    let queueing: Vec<_> = results.all("queueing")?.iter().map(efficiency).collect();
    report.column("queueing", "throughput", &queueing)?;
    barrel_shifter(results, report)?;
    settling(results, report)?;
    mapper(results, report)
}

/// One host to another, and two to each other.
fn pairs(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let mut both_ways = 0.0;
    for (ports, column, label, _) in PORTS {
        let alone = results.at("standalone", &[("network.nic.ports", ports)])?;
        report.item(&format!("standalone.{column}"), per_destination(alone))?;
        for (experiment, figure) in [("one-way", "fig-7"), ("two-way", "fig-8")] {
            let curve = against_size(results, experiment, ports)?;
            both_ways = curve.last().map_or(0.0, |point| point.1);
            report.item(&format!("{experiment}.{column}"), both_ways)?;
            report.curve(figure, label, curve)?;
        }
    }
    let one_way = |ports, size| results.at("one-way", &[("network.nic.ports", ports), (SIZE, size)]);
    let ratio = |over: &Record, under: &Record| over.event_rate_hz / under.event_rate_hz;
    report.item("small-messages.ports", ratio(one_way("2", "128 B")?, one_way("1", "128 B")?))?;
    let (whole, shadowed) = (one_way("1", "64 kB")?, one_way("1", "8 kB")?);
    report.item("shadowed.8kB", ratio(shadowed, whole) * 8.0 / 64.0 * 100.0)?;
    let both = results.at("dma", &[])?.throughput_bytes_per_s / 1e6;
    report.item("dma.combined", both)?;
    report.item("two-way.of-memory", both_ways / both * 100.0)?;
    let alone = results.at("standalone", &[("network.nic.ports", "1")])?;
    report.item("framework", whole.throughput_bytes_per_s / alone.throughput_bytes_per_s * 100.0)
}

/// Throughput of all nodes in MB/s against the size of the messages in bytes: data delivered to applications, without
/// those in queues.
fn against_size(results: &Results, experiment: &str, ports: &str) -> Result<Vec<(f64, f64)>, PaperError> {
    let records = results.among(experiment, &[("network.nic.ports", ports)])?;
    let rates = curve(records, SIZE, |record| record.event_rate_hz);
    Ok(rates.into_iter().map(|(size, rate)| (size, size * rate / 1e6)).collect())
}

/// N to N: the table, aggregate and throughput of each node; returns the latter in MB/s for one and two ports.
fn many(
    results: &Results,
    report: &mut ReportBuilder,
    experiment: &str,
    [aggregate, each]: [&str; 2],
) -> Result<[Vec<f64>; 2], PaperError> {
    let mut rates = [Vec::new(), Vec::new()];
    for (rates, (ports, column, label, full)) in rates.iter_mut().zip(PORTS) {
        let records = results.among(experiment, &[("network.nic.ports", ports)])?;
        *rates = records.iter().map(|record| per_destination(record)).collect();
        report.column(experiment, column, &saturation(rates, full))?;
        report.curve(aggregate, label, sums(rates))?;
        report.curve(each, label, (1..).map(f64::from).zip(rates.iter().copied()).collect())?;
    }
    Ok(rates)
}

/// Rates of nodes in per cent of the full one.
fn saturation(rates: &[f64], full: f64) -> Vec<f64> {
    rates.iter().map(|rate| rate / full * 100.0).collect()
}

/// N against the throughput of N nodes.
fn sums(rates: &[f64]) -> Vec<(f64, f64)> {
    (1..).map(f64::from).zip(rates).map(|(n, rate)| (n, n * rate)).collect()
}

fn barrel_shifter(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let link = PORTS[0].3;
    for (experiment, column) in [("barrel-shifter", "separate-control"), ("barrel-shifter-shared", "shared-control")] {
        let records = results.all(experiment)?;
        let efficiency: Vec<_> = records.iter().map(|record| per_destination(record) / link * 100.0).collect();
        report.column("barrel-shifter", column, &efficiency)?;
    }
    let records = results.all("barrel-shifter")?;
    let rates: Vec<_> =
        records.iter().map(|record| (f64::from(record.builder_units), per_destination(record))).collect();
    let least = rates.iter().map(|rate| rate.1).fold(f64::INFINITY, f64::min);
    report.item("barrel-shifter.least", least / link * 100.0)?;
    let first = rates.first().map_or(0.0, |rate| rate.1);
    report.item("barrel-shifter.linear", rates.last().map_or(0.0, |rate| rate.1) / first)?;
    report.curve("fig-13", "barrel shifter, 1 port", rates.iter().map(|(n, rate)| (*n, n * rate)).collect())?;
    report.curve("fig-13", "required", rates.iter().map(|(n, _)| (*n, n * REQUIRED)).collect())
}

fn settling(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for (record, name) in results.all("settling")?.iter().zip(["fixed", "turning"]) {
        let simulation = simulation(record)?;
        let changes = simulation.network.route_changes as f64 / simulation.packets as f64;
        report.item(&format!("settling.{name}.efficiency"), efficiency(record))?;
        report.item(&format!("settling.{name}.changes"), changes * 100.0)?;
    }
    Ok(())
}

fn mapper(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let record = results.at("mapper", &[])?;
    let maps = simulation(record)?.network.mapping.iter().flat_map(|mapping| &mapping.maps);
    let known_to = |map: &KnownMap| map.known_to as f64 / map.hosts as f64 * 100.0;
    // One map before the failure, and one after it.
    let (whole, rest): (Vec<_>, Vec<_>) = maps.partition(|map| map.made_s < SPINE_FAILS_S);
    let newest = [whole.last(), rest.last()].map(|map| map.map_or(0.0, |map| known_to(map)));
    report.item("mapper.known-to", newest[0].min(newest[1]))?;
    let without = rest.last().map_or(f64::INFINITY, |map| map.known_s - SPINE_FAILS_S);
    report.item("mapper.without-service", without * 1e3)
}

/// The last point of a curve over the one before it.
fn last_step(curve: &[(f64, f64)]) -> f64 {
    match curve {
        [.., (_, before), (_, last)] => last / before,
        _ => f64::NAN,
    }
}

fn last(values: &[f64]) -> f64 {
    values.last().copied().unwrap_or_default()
}
