//! ATLAS DAQ note 77 (1997): farms on ATM, and the parameters of its figure 6 on networks that are modelled here.

use crate::{
    PaperError, Results,
    fit::mean,
    report_builder::ReportBuilder,
    results::{per_destination, simulation},
};
use evb_record::Record;

const SENDERS: [&str; 7] = ["1", "2", "3", "4", "5", "6", "7"];
/// Computing time of a farm for each event, in microseconds.
const COMPUTE: [f64; 4] = [0.0, 100.0, 400.0, 1600.0];
const NETWORKS: [&str; 5] =
    ["atm-155", "fast-ethernet", "myrinet-oct-sw8", "gigabit-ethernet", "infiniband-hdr-fat-tree"];

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    overheads(results, report)?;
    rates(results, report)?;
    bandwidth(results, report)?;
    lost_cells(results, report)?;
    let columns = NETWORKS.iter().map(|network| parameters(results, network)).collect::<Result<Vec<_>, _>>()?;
    show_parameters(&columns, report)
}

/// A key of a sweep, and its value at a point.
type Point<'a> = (&'a str, &'a str);

/// Time of one cycle or message in microseconds.
fn cycle(record: &Record) -> f64 {
    1e6 / record.event_rate_hz
}

/// The value of the swept key for a computing time.
fn computing(us: f64) -> String {
    format!("{us} us")
}

/// Mbit/s of payload to each destination.
fn megabits(record: &Record) -> f64 {
    per_destination(record) * 8.0
}

fn overheads(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for (experiment, column) in [("push-small", "push"), ("pull-small", "pull")] {
        let at = |senders| results.at(experiment, &[("readout.units", senders), ("workload.compute", "0 us")]);
        let times = SENDERS.iter().map(|senders| Ok(cycle(at(senders)?))).collect::<Result<Vec<_>, _>>()?;
        report.column("overhead", column, &times)?;
        let points = (1..).map(f64::from).zip(times).collect();
        report.curve("overheads", &format!("{column}-farm"), points)?;
    }
    Ok(())
}

fn rates(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let rates = |experiment: &str, fixed: &[Point<'_>]| -> Result<Vec<f64>, PaperError> {
        let rate = |us: &f64| {
            let compute = computing(*us);
            let point: Vec<_> = fixed.iter().copied().chain([("workload.compute", compute.as_str())]).collect();
            Ok(results.at(experiment, &point)?.event_rate_hz / 1e3)
        };
        COMPUTE.iter().map(rate).collect()
    };
    report.column("rate-model", "push-small", &rates("push-small", &[("readout.units", "4")])?)?;
    report.column("rate-model", "pull-small", &rates("pull-small", &[("readout.units", "4")])?)?;
    for farm in ["push", "pull"] {
        let rates = rates(&format!("{farm}-1kb"), &[])?;
        report.item(&format!("{farm}-4.rate"), rates[0])?;
        report.item(&format!("{farm}-4.time"), 1e3 / rates[0])?;
        report.column("rate-model", &format!("{farm}-1kB"), &rates)?;
        report.curve("rates", &format!("{farm}-farm"), COMPUTE.into_iter().zip(rates).collect())?;
    }
    Ok(())
}

fn bandwidth(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for (item, size) in [("usable-rate", "60 kB"), ("rate-at-1024", "1024 B"), ("rate-at-1024-bit", "128 B")] {
        report.item(item, megabits(results.at("bandwidth", &[("readout.source.size", size)])?))?;
    }
    let two_hosts = |point: &[Point<'_>]| results.at("one-to-one", point);
    let pairs =
        |size| two_hosts(&[("network.preset", "atm-155"), ("workload.type", "pairs"), ("readout.source.size", size)]);
    report.item("receiver-overhead", cycle(pairs("8 B")?))?;
    let bandwidth = per_destination(pairs("1024 B")?);
    report.item("bandwidth.least", bandwidth)?;
    report.item("bandwidth.most", bandwidth)
}

/// Messages and cells of a funnel that the switch drops, in per cent.
fn lost_cells(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let cells = |point| -> Result<f64, PaperError> {
        let simulation = simulation(results.point("lost-cells", point)?)?;
        Ok(simulation.network.lost_packets as f64 / simulation.packets as f64 * 100.0)
    };
    let messages = results.point("lost-cells", 0)?.events;
    report.item("lost-cells.full-speed", messages.lost as f64 / messages.triggered as f64 * 100.0)?;
    report.item("lost-cells.of-cells", cells(0)?)?;
    report.item("lost-cells.constant-rate", cells(1)?)
}

/// One of the parameters.
type Parameter = fn(&Parameters) -> f64;

/// The parameters of one network, as section 5.1 defines them.
struct Parameters {
    /// Half of a round trip of the smallest message, in microseconds.
    ping_pong: f64,
    /// A cycle with both directions at once, not halved.
    two_way: f64,
    /// One direction, from message to message.
    pairs: f64,
    /// Bandwidth at 1 kB, in MB/s.
    bandwidth: f64,
    /// Ratio of the times of outfarming to 4 and to 2 receivers, over the same ratio of broadcast.
    broadcast: f64,
    /// Cycle of four senders of 1 kB.
    funnel: f64,
    pull_farm: f64,
    /// Per cent of the communication that is hidden by computing.
    overlap: f64,
}

fn parameters(results: &Results, network: &str) -> Result<Parameters, PaperError> {
    let network = ("network.preset", network);
    let one = |workload, size| {
        results.at("one-to-one", &[network, ("workload.type", workload), ("readout.source.size", size)])
    };
    let many = |workload| results.at("many-to-one", &[network, ("workload.type", workload)]);
    let ratio = |workload| -> Result<f64, PaperError> {
        let time = |receivers| {
            let point = [network, ("workload.type", workload), ("builder.units", receivers)];
            results.at("one-to-many", &point).map(cycle)
        };
        Ok(time("4")? / time("2")?)
    };
    Ok(Parameters {
        ping_pong: cycle(one("ping-pong", "8 B")?) / 2.0,
        two_way: cycle(one("two-way", "8 B")?),
        pairs: cycle(one("pairs", "8 B")?),
        bandwidth: per_destination(one("pairs", "1024 B")?),
        broadcast: ratio("outfarming")? / ratio("broadcast")?,
        funnel: cycle(many("funnel")?),
        pull_farm: cycle(many("pull-farm")?),
        overlap: overlap(results, network)?,
    })
}

/// Section 5.1: 1 - a / t0 in per cent, where a is the mean of t - d over all d that are computed, and t0 the time
/// without computing.
fn overlap(results: &Results, network: Point<'_>) -> Result<f64, PaperError> {
    let time = |us: f64| results.at("overlap", &[network, ("workload.compute", &computing(us))]).map(cycle);
    let excess = COMPUTE[1..].iter().map(|us| Ok(time(*us)? - us)).collect::<Result<Vec<_>, PaperError>>()?;
    Ok((1.0 - mean(&excess) / time(0.0)?) * 100.0)
}

fn show_parameters(networks: &[Parameters], report: &mut ReportBuilder) -> Result<(), PaperError> {
    let columns: [(&str, Parameter); 8] = [
        ("ping-pong-us", |network| network.ping_pong),
        ("two-way-us", |network| network.two_way),
        ("pairs-overhead-us", |network| network.pairs),
        ("pairs-MB/s", |network| network.bandwidth),
        ("broadcast-quality", |network| network.broadcast),
        ("funnel-us", |network| network.funnel),
        ("pull-farm-us", |network| network.pull_farm),
        ("overlap-percent", |network| network.overlap),
    ];
    for (column, of) in columns {
        report.column("parameters", column, &networks.iter().map(of).collect::<Vec<_>>())?;
    }
    let [atm, ..] = networks else { return Ok(()) };
    for item in ["ping-pong.rio2", "ping-pong.alphastation"] {
        report.item(item, atm.ping_pong)?;
    }
    report.item("pairs.alphastation", atm.pairs)?;
    report.item("two-way-over-ping-pong", atm.two_way / atm.ping_pong)?;
    report.item("pairs-over-ping-pong", atm.pairs / atm.ping_pong)
}
