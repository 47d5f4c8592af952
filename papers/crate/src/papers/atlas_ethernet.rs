//! Ethernet for the ATLAS Second Level Trigger? (1998): DS-link networks of up to 1024 nodes, and properties of
//! Ethernet.

use crate::{
    PaperError, Results,
    fit::line,
    report_builder::ReportBuilder,
    results::{SIZE, curve, simulation},
};
use evb_record::Record;

/// Payload rate of a DS link in bytes per second: 100 Mbit/s, ten bits for each byte (IEEE 1355).
const DS_LINK: f64 = 10e6;
/// Rate of Fast Ethernet in MB/s.
const FAST_ETHERNET: f64 = 12.5;
/// Payload of a packet divided by its bytes on the wire (3 B of header and end, as in the presets).
const PAYLOAD: f64 = 64.0 / 67.0;

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    sizes(results, report)?;
    latency(results, report)?;
    packets(results, report)?;
    routing(results, report)?;
    trigger(results, report)?;
    hosts(results, report)?;
    bridges(results, report)?;
    requirement(results, report)
}

/// Payload of each node in per cent of its DS link.
fn of_link(record: &Record) -> f64 {
    record.throughput_bytes_per_s / f64::from(record.builder_units) / DS_LINK * 100.0
}

fn kilohertz(record: &Record) -> f64 {
    record.event_rate_hz / 1e3
}

fn smallest(ratios: impl Iterator<Item = f64>) -> f64 {
    ratios.fold(f64::INFINITY, f64::min)
}

/// Number of nodes, and of switches along one side of the grid or torus of that size.
const SIZES: [(u16, u16); 4] = [(16, 1), (64, 2), (256, 4), (1024, 8)];

/// Figure 2.
fn sizes(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let clos = |point| SIZES.map(|(nodes, _)| results.point(&format!("clos-{nodes}"), point).map(of_link));
    // One switch is a grid too.
    let plane = |point| {
        SIZES.map(|(nodes, side)| match side {
            1 => results.point("clos-16", point % 2).map(of_link),
            _ => results.point(&format!("plane-{nodes}"), point).map(of_link),
        })
    };
    let columns = [
        ("clos-random", clos(0)),
        ("clos-pairs", clos(1)),
        ("grid-random", plane(0)),
        ("grid-pairs", plane(1)),
        ("torus-random", plane(2)),
        ("torus-pairs", plane(3)),
    ];
    let mut known = Vec::new();
    for (name, values) in columns {
        let values = values.into_iter().collect::<Result<Vec<_>, _>>()?;
        report.column("size", name, &values)?;
        report.curve(
            "fig-2",
            name,
            SIZES.iter().map(|size| f64::from(size.0)).zip(values.iter().copied()).collect(),
        )?;
        known.push(values);
    }
    report.column("size", "grid-bound", &SIZES.map(|(_, side)| bound(side, false)))?;
    report.column("size", "torus-bound", &SIZES.map(|(_, side)| bound(side, true)))?;
    let [clos, pairs, grid, far, torus] = [0, 1, 2, 3, 4].map(|column: usize| &known[column]);
    let over = |other: &Vec<f64>| smallest(clos.iter().zip(other).skip(1).map(|(clos, other)| clos / other));
    report.item("five-stages", of_link(results.point("five-stages", 0)?))?;
    report.item("clos.scaling", clos[3] / clos[1] * 16.0)?;
    report.item("order.clos-over-grid", over(grid))?;
    report.item("order.clos-over-torus", over(torus))?;
    report.item("systematic.clos", pairs[2] / clos[2])?;
    report.item("systematic.grid-near", of_link(results.point("grid-neighbours", 0)?) / grid[2])?;
    report.item("systematic.grid-far", far[2] / grid[2])?;
    let load: Vec<_> = results.all("torus-load")?.iter().map(of_link).collect();
    report.column("torus-load", "delivered", &load)
}

/// The throughput limit of the middle of a grid or torus under random traffic, in per cent of a link for each node.
/// There are four links for each row, and as many again where rows are rings of more than two switches. Half of the
/// traffic of half of the nodes, 16 on each switch, crosses the middle in each direction.
fn bound(side: u16, closed: bool) -> f64 {
    let rings = if closed && side > 2 { 2.0 } else { 1.0 };
    let side = f64::from(side);
    let (links, crossing) = (4.0 * side * rings, 16.0 * side * side / 4.0);
    (links / crossing).min(1.0) * PAYLOAD * 100.0
}

/// Figure 3.
fn latency(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let records = results.all("latency")?;
    let against_load = |of: fn(&Record) -> f64| records.iter().map(|record| (of_link(record), of(record))).collect();
    report.curve("fig-3", "median", against_load(|record| record.latency_us.p50))?;
    report.curve("fig-3", "99 of 100", against_load(|record| record.latency_us.p99))?;
    let median = |load| results.at("latency", &[("workload.load", load)]).map(|record| record.latency_us.p50);
    let empty = median("0.05")?;
    report.item("latency.empty", empty)?;
    report.item("latency.before-saturation", median("0.4")? / empty)?;
    report.item("latency.beyond", median("0.6")? / empty)
}

fn packets(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for (column, slack) in [("slack-32", "32 B"), ("slack-64", "64 B"), ("slack-256", "256 B")] {
        let records = results.among("packets", &[("network.flow.slack", slack)])?;
        report.column("packets", column, &records.into_iter().map(of_link).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Random traffic under fixed and adaptive routing.
fn routing(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let adaptive = of_link(results.point("routing-random", 0)?);
    for (point, spread) in ["switch", "destination", "pair"].into_iter().enumerate() {
        let fixed = of_link(results.point("routing-random", point + 1)?);
        report.item(&format!("routing.gain-{spread}"), (adaptive / fixed - 1.0) * 100.0)?;
    }
    Ok(())
}

/// Second-level trigger traffic with the routing that runs fastest in all sweeps: deterministic, adaptive.
fn trigger(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let (fixed, adaptive) = (results.point("trigger", 0)?, results.point("trigger", 1)?);
    report.item("trigger.deterministic", kilohertz(fixed))?;
    report.item("trigger.adaptive", kilohertz(adaptive))?;
    for (column, processors) in [("processors-1", "1"), ("processors-3", "3"), ("processors-8", "8")] {
        let records = results.among("trigger-traffic", &[("workload.processors", processors)])?;
        let gains: Vec<_> = records.chunks(2).map(|pair| kilohertz(pair[1]) / kilohertz(pair[0])).collect();
        report.column("trigger-traffic", column, &gains)?;
    }
    let rates: Vec<_> = results.all("trigger-nodes")?.iter().map(kilohertz).collect();
    let every = |first| rates.iter().copied().skip(first).step_by(2).collect::<Vec<_>>();
    report.column("trigger-nodes", "deterministic", &every(0))?;
    report.column("trigger-nodes", "adaptive", &every(1))
}

/// Stored frames, and two PCs: figures 4 and 5.
fn hosts(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    // The frame is sent twice, the second time because it was stored.
    let stored = |point| results.point("stored-frames", point).map(|record| record.seconds * 1e6 / 2.0);
    report.item("stored.smallest", stored(0)?)?;
    report.item("stored.largest", stored(1)?)?;
    let elapsed =
        |experiment| results.all(experiment).map(|records| curve(records, SIZE, |record| record.seconds * 1e6));
    let (direct, switch) = (elapsed("elapsed-direct")?, elapsed("elapsed-switch")?);
    let added = |point: usize| switch[point].1 - direct[point].1;
    report.item("elapsed.fixed", line(&direct).0)?;
    report.item("elapsed.bend-direct", bend(&direct))?;
    report.item("elapsed.bend-switch", bend(&switch))?;
    report.item("elapsed.divergence", added(switch.len().min(direct.len()) - 1) - added(0))?;
    report.curve("fig-5", "link", direct)?;
    report.curve("fig-5", "switch", switch)?;
    let stream = curve(results.all("stream")?, SIZE, |record| record.throughput_bytes_per_s / 1e6);
    let most = stream.iter().map(|point| point.1).fold(0.0, f64::max);
    let at_1_kb = stream.iter().find(|point| point.0 == 1000.0).map_or(f64::NAN, |point| point.1);
    report.item("stream.1-kB", at_1_kb / most * 100.0)?;
    report.item("stream.1-kB-of-link", at_1_kb / FAST_ETHERNET * 100.0)?;
    report.curve("fig-4", "ours", stream)
}

/// The largest distance of some points from the straight line with the least squares through them.
fn bend(points: &[(f64, f64)]) -> f64 {
    let (offset, slope) = line(points);
    points.iter().map(|(x, y)| (y - offset - slope * x).abs()).fold(0.0, f64::max)
}

/// Ethernet between switches, and under overload.
fn bridges(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let throughput =
        |experiment, point| results.point(experiment, point).map(|record: &Record| record.throughput_bytes_per_s / 1e6);
    let trunk = results.all("trunk")?.iter().map(|record| record.throughput_bytes_per_s / 1e6).collect::<Vec<_>>();
    report.column("trunk", "trunk", &trunk)?;
    report.item("bridges.one-link", throughput("trunk", 0)?)?;
    report.item("bridges.trunk", throughput("trunk", 2)? / throughput("trunk", 0)?)?;
    report.item("bridges.uplink", throughput("uplink", 1)? / throughput("uplink", 0)?)?;
    report.item("bridges.static-tables", throughput("static-tables", 1)? / throughput("static-tables", 0)?)?;
    for (point, full) in ["pause", "drop"].into_iter().enumerate() {
        let simulation = simulation(results.point("overload", point)?)?;
        let lost = simulation.network.lost_packets as f64 / simulation.packets as f64;
        report.item(&format!("overload.lost-{full}"), lost * 100.0)?;
    }
    Ok(())
}

/// The network that ATLAS needs.
fn requirement(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for (name, experiment, points) in [("ethernet", "atlas-ethernet", 3), ("ds-links", "atlas-ds-links", 2)] {
        for point in 0..points {
            let record = results.point(experiment, point)?;
            report.item(&format!("atlas.{name}-{}", point + 1), record.throughput_bytes_per_s / 1e9)?;
        }
    }
    report.item("atlas.ethernet-2-latency", results.point("atlas-ethernet", 1)?.latency_us.p99)
}
