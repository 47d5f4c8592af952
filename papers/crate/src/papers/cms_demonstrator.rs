//! CMS 1999: eight sources and eight destinations on a composite Myrinet switch.

use crate::{
    PaperError, Results,
    fit::{crossing, line, mean},
    report_builder::ReportBuilder,
    results::{SIZE, curve, efficiency, links_between, per_destination},
};
use evb_record::Record;

/// Half of the speed of a network interface, in MB/s.
const HALF_SPEED: f64 = 66.0;
/// The assignments of destinations of test 3, in the order of the experiment, the first without blocking.
const ASSIGNMENTS: [&str; 5] = ["01234567", "00234567", "00034567", "00004567", "01243567"];
/// Mean and rms of the log-normal fragments in bytes. Its mode is `mean / (1 + rms^2 / mean^2)^(3/2)`.
const MEAN_SIZE: f64 = 2048.0;
/// Bytes of an event of `large-system.toml`: 512 fragments of 2 KiB.
const LARGE_EVENT: f64 = 512.0 * 2048.0;
const START: &str = "workload.start";

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    one_to_one(results, report)?;
    exclusive_pairs(results, report)?;
    blocking(results, report)?;
    random(results, report)?;
    without_manager(results, report)?;
    with_manager(results, report)?;
    future(results, report)
}

fn one_to_one(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let throughput = curve(results.all("point-to-point")?, SIZE, per_destination);
    // Bytes over MB/s are microseconds.
    let times: Vec<_> = throughput.iter().map(|(size, rate)| (*size, size / rate)).collect();
    let (overhead, slope) = line(&times);
    report.item("fit.overhead", overhead)?;
    report.item("fit.speed", 1.0 / slope)?;
    report.item("half-efficiency", crossing(&throughput, HALF_SPEED).unwrap_or(f64::NAN))?;
    report.curve("fig-5", "1 x 1", throughput)
}

fn exclusive_pairs(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let aggregate = |size: &str, units: &str| -> Result<f64, PaperError> {
        let point = [(SIZE, size), ("readout.units", units)];
        Ok(results.at("exclusive-pairs", &point)?.throughput_bytes_per_s / 1e6)
    };
    let sizes = ["512 B", "1 KiB", "2 KiB", "32 KiB"];
    for (units, count) in [("4", 4.0), ("8", 8.0)] {
        let scaling = |size: &&str| Ok(aggregate(size, units)? / (count * aggregate(size, "1")?));
        let scaling = sizes.iter().map(scaling).collect::<Result<Vec<f64>, PaperError>>()?;
        report.item(&format!("pairs.{units}"), scaling.into_iter().fold(f64::INFINITY, f64::min))?;
    }
    for size in sizes {
        let points = [("1", 1.0), ("4", 4.0), ("8", 8.0)].map(|(units, n)| Ok((n, aggregate(size, units)?)));
        report.curve("fig-6", size, points.into_iter().collect::<Result<_, PaperError>>()?)?;
    }
    Ok(())
}

fn blocking(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let assigned = |name: &str| {
        let digits: Vec<_> = name.chars().map(String::from).collect();
        format!("[{}]", digits.join(", "))
    };
    let rates = |name: &str, size| -> Result<Vec<f64>, PaperError> {
        let point = [("workload.destinations", assigned(name)), (SIZE, String::from(size))];
        let point = point.each_ref().map(|(key, value)| (*key, value.as_str()));
        Ok(results.at("blocking", &point)?.per_source_bytes_per_s.clone())
    };
    let free = rates(ASSIGNMENTS[0], "32 KiB")?;
    let (mut slowdowns, mut change) = (Vec::new(), 0.0_f64);
    for name in &ASSIGNMENTS[1..] {
        let blocked = rates(name, "32 KiB")?;
        let factors: Vec<_> = free.iter().zip(&blocked).map(|(free, blocked)| free / blocked).collect();
        slowdowns.push(factors[0]);
        if *name == ASSIGNMENTS[4] {
            report.column("internal-blocking", "slowdown", &factors)?;
            let short = rates(name, "1 KiB")?;
            report.item("blocking.constant", short[0] / blocked[0])?;
        } else {
            let others = factors.iter().zip(name.chars()).filter(|(_, destination)| *destination != '0');
            change = others.map(|(factor, _)| (factor - 1.0).abs() * 100.0).fold(change, f64::max);
        }
    }
    report.column("blocking", "source-0", &slowdowns)?;
    report.item("blocking.others", change)?;
    for name in ASSIGNMENTS {
        let records = results.among("blocking", &[("workload.destinations", &assigned(name))])?;
        let points = curve(records, SIZE, |record| record.per_source_bytes_per_s[0] / 1e6);
        report.curve("fig-7", &format!("d({name})"), points)?;
    }
    Ok(())
}

fn random(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    report.item("random.2KiB", efficiency(results.at("random", &[(SIZE, "2 KiB")])?))?;
    report.item("random.32KiB", efficiency(results.at("random", &[(SIZE, "32 KiB")])?))?;
    report.curve("random", "8 x 8", curve(results.all("random")?, SIZE, efficiency))
}

fn without_manager(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for (config, figure) in [("4x4", "fig-8"), ("8x8", "fig-9")] {
        let experiment = format!("without-manager-{config}");
        for start in ["simultaneous", "retarded"] {
            let records = results.among(&experiment, &[(START, start)])?;
            let first = |record: &Record| record.per_destination_bytes_per_s[0] / 1e6;
            report.curve(figure, &format!("{start} start"), curve(records.iter().copied(), SIZE, first))?;
            let long = curve(records, SIZE, efficiency).into_iter().filter(|(size, _)| *size >= 2048.0);
            let parts: Vec<_> = long.map(|(_, part)| part).collect();
            // A curve near the full performance is judged by its worst size, any other by its best one.
            let locks = (config, start) == ("8x8", "simultaneous");
            let (from, judge): (f64, fn(f64, f64) -> f64) = if locks { (0.0, f64::max) } else { (100.0, f64::min) };
            report.item(&format!("without-manager.{config}.{start}"), parts.into_iter().fold(from, judge))?;
        }
    }
    let arbitrations: Vec<_> = results.all("arbitration")?.iter().map(efficiency).collect();
    report.column("arbitration", "efficiency", &arbitrations)?;
    for start in ["simultaneous", "retarded"] {
        let record = results.at("without-manager-8x8", &[(START, start), (SIZE, "2 KiB")])?;
        let layers = [("leaf", "spine"), ("spine", "leaf"), ("leaf", "h")];
        let waits = layers.map(|(from, to)| mean_wait(record, from, to));
        report.column("waits", start, &waits.into_iter().collect::<Result<Vec<_>, _>>()?)?;
    }
    Ok(())
}

/// Mean time in microseconds that a packet waited for a link from one kind of end to another, over the used links.
fn mean_wait(record: &Record, from: &str, to: &str) -> Result<f64, PaperError> {
    let links = links_between(record, from, to)?.filter(|link| link.packets > 0);
    Ok(mean(&links.map(|link| link.mean_wait_us).collect::<Vec<_>>()))
}

fn with_manager(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let fixed = results.at("with-manager", &[(SIZE, "2 KiB")])?;
    report.item("with-manager.throughput", per_destination(fixed))?;
    report.item("with-manager.trigger", fixed.event_rate_hz / 1e3)?;
    report.item("with-manager.rate", fixed.event_rate_hz / 1e3 / f64::from(fixed.builder_units))?;
    let small = |experiment, point: &[(&str, &str)]| results.at(experiment, point).map(per_destination);
    let without = small("without-manager-8x8", &[(START, "retarded"), (SIZE, "256 B")])?;
    report.item("manager.overhead", small("with-manager", &[(SIZE, "256 B")])? / without)?;
    report.item("manager.large", efficiency(results.at("with-manager", &[(SIZE, "32 KiB")])?))?;
    let large = results.at("large-system", &[])?;
    // The events of a group end together, so bytes say the rate of a short window, and events do not.
    report.item("large-system", large.throughput_bytes_per_s / LARGE_EVENT / 1e3)?;
    report.item("large-system.throughput", large.throughput_bytes_per_s / 1e9)?;
    let (mean, rms) = ("readout.source.mean", "readout.source.rms");
    let variable = results.at("variable-sizes", &[(mean, "2 KiB"), (rms, "2 KiB")])?;
    report.item("variable.throughput", per_destination(variable))?;
    report.item("variable.degradation", variable.throughput_bytes_per_s / fixed.throughput_bytes_per_s)?;
    report.item("distribution.mode", MEAN_SIZE / (1.0 + 1.0_f64).powf(1.5))?;
    let points = curve(results.all("with-manager")?, SIZE, per_destination);
    report.curve("fig-10", "fixed size", points.clone())?;
    report.curve("fig-11", "fixed size", points)?;
    for size in ["256 B", "1 KiB", "2 KiB", "4 KiB"] {
        let records = results.among("variable-sizes", &[(rms, size)])?;
        report.curve("fig-11", &format!("rms {size}"), curve(records, mean, per_destination))?;
    }
    Ok(())
}

fn future(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for (experiment, column) in [("shaping", "push 8x8"), ("pull", "pull 8x8"), ("shaping-16x16", "push 16x16")] {
        let rates: Vec<_> = results.all(experiment)?.iter().map(per_destination).collect();
        report.column("future", column, &rates)?;
    }
    report.item("future.barrel-shifter", per_destination(results.point("shaping", 3)?))?;
    for (point, sizes) in ["fixed", "log-normal"].into_iter().enumerate() {
        let (pull, phased) = (results.point("single-phase", point)?, results.point("phased", point)?);
        report.item(&format!("phased.rate.{sizes}"), phased.event_rate_hz / pull.event_rate_hz)?;
        if sizes == "fixed" {
            let bytes = |record: &Record| record.throughput_bytes_per_s / record.event_rate_hz;
            report.item("phased.bytes", bytes(phased) / bytes(pull) * 100.0)?;
        }
    }
    Ok(())
}
