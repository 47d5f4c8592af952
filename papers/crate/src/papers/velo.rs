//! VELO (2008): the arithmetic of the engine, and its prototype as a network.

use crate::{
    PaperError, Results,
    fit::crossing,
    measured::Measured,
    report_builder::ReportBuilder,
    results::{SIZE, curve, per_destination, simulation},
};
use evb_record::Record;
use evb_velo::{AddressMap, LINE_BYTES, Target, messages_for_each_cut, overhead};

/// Rate of the link in MB/s (section 4).
const LINK: f64 = 200.0;
/// A cycle of the prototype in nanoseconds.
const CYCLE_NS: f64 = 10.0;
/// Share of processor, memory controller and software in the latency, in nanoseconds (section 5).
const HOST_NS: f64 = 350.0;
/// Seconds between two switches of the thread scheduler (section 3, footnote 1).
const TICK: f64 = 10e-3;
/// The keys of the processor time at both ends of a message.
const HOSTS: &str = "network.host.send, network.host.receive";

pub(crate) fn reproduce(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    addresses(report)?;
    latency(results, report)?;
    rates(results, report)?;
    mailbox(results, report)?;
    slow_receivers(results, report)?;
    nodes(results, report)?;
    hardware(&Measured::of("velo-2008")?, report)
}

/// Measurements of the engine in `velo/hardware`, by its benches and its synthesis.
fn hardware(measured: &Measured, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for (unit, module) in
        [("requester", "velo_requester"), ("completer", "velo_completer"), ("register-file", "velo_register_file")]
    {
        for (item, what) in [("flip-flops", "flip-flops"), ("luts", "LUTs")] {
            let found = measured.get("synthesis", &format!("{what}, {module}"))?;
            report.measured(&format!("rtl.{unit}.{item}"), found.value, &found.tool)?;
        }
    }
    for (item, bench, what) in [
        ("rtl.requester.latency", "requester", "latency, first word, 64 B"),
        ("rtl.completer.latency", "completion", "latency, header in to first write, 64 B"),
        ("rtl.link.latency", "link", "latency of a word, 16 wires"),
        ("rtl.latency", "system", "latency end to end, 8 B, 16 wires"),
        ("rtl.cycles.64", "system", "cycles per message, one way, 64 B, 16 wires"),
        ("rtl.cycles.64.wide", "system", "cycles per message, one way, 64 B, 96 wires"),
        ("rtl.clock", "timing", "clock of velo_node, 16 wires"),
    ] {
        let found = measured.get(bench, what)?;
        report.measured(item, found.value, &found.tool)?;
    }
    let rate = |bytes: u32| measured.get("system", &format!("cycles per message, one way, {bytes} B, 16 wires"));
    for (item, bytes, per_message) in [("rtl.rate.8", 8, 1.0), ("rtl.streaming.32", 32, 32.0)] {
        let found = rate(bytes)?;
        report.measured(item, per_message * per_microsecond(found.value), &found.tool)?;
    }
    let (mut times, mut rates) = (Vec::new(), Vec::new());
    for bytes in [8, 32, 64] {
        let latency = measured.get("system", &format!("latency end to end, {bytes} B, 16 wires"))?;
        times.push((f64::from(bytes), (latency.value * CYCLE_NS + HOST_NS) / 1e3));
        rates.push((f64::from(bytes), f64::from(bytes) * per_microsecond(rate(bytes)?.value)));
    }
    report.curve("latency", "our hardware, and 350 ns of host", times)?;
    report.curve("streaming", "our hardware", rates)
}

/// Events per microsecond, at one event every `cycles` cycles.
fn per_microsecond(cycles: f64) -> f64 {
    1e3 / (cycles * CYCLE_NS)
}

fn addresses(report: &mut ReportBuilder) -> Result<(), PaperError> {
    let map = AddressMap::new(28, 20).expect("the example of the paper");
    let threads = (0..map.nodes()).flat_map(|node| (0..map.threads_per_node()).map(move |thread| (node, thread)));
    let is_found = |&(node, thread): &(u64, u64)| {
        let target = Target { node, thread, length: LINE_BYTES, offset: 0 };
        map.encode(target).and_then(|address| map.decode(address)) == Ok(target)
    };
    report.item("address.nodes", map.nodes() as f64)?;
    report.item("address.threads", map.threads() as f64)?;
    report.item("address.pages", threads.filter(is_found).count() as f64)?;
    report.item("address.bar", (map.bar_bytes() >> 20) as f64)?;
    // In velo/hardware each sending thread of a node has its own window.
    report.item("rtl.address.bar", ((map.bar_bytes() * map.threads_per_node()) >> 20) as f64)?;
    report.item("overhead.8", 100.0 * overhead(8))?;
    report.item("overhead.64", 100.0 * overhead(LINE_BYTES))
}

/// Half a round trip in microseconds.
fn half_round_trip(record: &Record) -> f64 {
    1e6 / record.event_rate_hz / 2.0
}

fn latency(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let hardware = |delay| Ok(1e3 * half_round_trip(results.at("hardware", &[("network.link.delay", delay)])?));
    let (all, other): (f64, f64) = (hardware("140 ns")?, hardware("0 s")?);
    report.item("hardware.latency", all)?;
    report.item("hardware.network", (all - other) / CYCLE_NS)?;
    report.item("hardware.other", other / CYCLE_NS)?;
    report.item("asic.latency", 1e3 * half_round_trip(results.at("asic", &[(HOSTS, "0 s")])?))?;
    report.item("asic.half-round-trip", half_round_trip(results.at("asic", &[(HOSTS, "150 ns")])?))?;
    software(results, report)
}

/// Latency for a user of one of the two interfaces.
fn software(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for (item, label, host) in
        [("half-round-trip", "VELO", "175 ns"), ("half-round-trip.openmpi", "with OpenMPI", "425 ns")]
    {
        let records = results.among("ping-pong", &[(HOSTS, host)])?;
        let times = curve(records, SIZE, half_round_trip);
        let bandwidths = times.iter().map(|(bytes, us)| (*bytes, bytes / us)).collect();
        report.item(item, half_round_trip(results.at("ping-pong", &[(HOSTS, host), (SIZE, "1 B")])?))?;
        report.curve("latency", label, times)?;
        report.curve("ping-pong", label, bandwidths)?;
    }
    let of_8 = half_round_trip(results.at("ping-pong", &[(HOSTS, "175 ns"), (SIZE, "8 B")])?);
    report.item("ping-pong.8", 8.0 / of_8)
}

fn rates(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let rate = |bytes| Ok(results.at("streaming", &[(SIZE, bytes)])?.event_rate_hz);
    let of_32: f64 = rate("32 B")?;
    report.item("rate.1", rate("1 B")? / 1e6)?;
    report.item("rate.max", rate("8 B")? / 1e6)?;
    report.item("rate.32", of_32 / 1e6)?;
    report.item("cut.one-in", messages_for_each_cut(of_32, TICK))?;
    report.item("streaming.32", per_destination(results.at("streaming", &[(SIZE, "32 B")])?))?;
    let rates = curve(results.all("streaming")?, SIZE, per_destination);
    report.item("half-peak", crossing(&rates, LINK / 2.0).unwrap_or(f64::NAN))?;
    report.curve("streaming", "VELO", rates)
}

/// Ratio of the packets that leave all hosts to those that reach one.
fn sent_over_received(record: &Record) -> Result<f64, PaperError> {
    let links = &simulation(record)?.network.links;
    let packets = |is_meant: fn(&str) -> bool| {
        links.iter().filter(|link| is_meant(&link.name)).map(|link| link.packets).sum::<u64>() as f64
    };
    Ok(packets(|name| name.starts_with('h')) / packets(|name| name.contains(">h")))
}

fn mailbox(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let eight = |bytes| results.at("mailbox", &[("readout.units", "8"), (SIZE, bytes)]);
    for (item, bytes) in [("overhead.8.simulated", "8 B"), ("overhead.64.simulated", "64 B")] {
        report.item(item, 100.0 * (1.0 - per_destination(eight(bytes)?) / LINK))?;
    }
    report.item("mailbox.sent-over-received", sent_over_received(eight("64 B")?)?)?;
    let lost = results.everything().map(|record| Ok(simulation(record)?.network.lost_packets));
    report.item("flow.lost", lost.sum::<Result<u64, PaperError>>()? as f64)
}

fn slow_receivers(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for rate in [100.0, 50.0, 25.0] {
        let record = results.at("slow-receiver", &[("network.topology.link.1.rate", &format!("{rate} MB/s"))])?;
        sent.push(sent_over_received(record)?);
        received.push(per_destination(record) / (rate * (1.0 - overhead(LINE_BYTES))));
    }
    report.column("slow-receiver", "sent-over-received", &sent)?;
    report.column("slow-receiver", "received-over-possible", &received)?;
    for (item, workload) in [("slow-host.memory", "pairs"), ("slow-host.window", "funnel")] {
        let record = results.at("slow-host", &[("workload.type", workload)])?;
        report.item(item, sent_over_handled(record))?;
    }
    Ok(())
}

/// Ratio of the data that reach the receiver to those that its processor has handled.
fn sent_over_handled(record: &Record) -> f64 {
    record.throughput_bytes_per_s / LINE_BYTES as f64 / record.event_rate_hz
}

fn nodes(results: &Results, report: &mut ReportBuilder) -> Result<(), PaperError> {
    for (label, host) in [("hardware", "0 s"), ("software", "150 ns")] {
        let records = results.among("asic-nodes", &[(HOSTS, host)])?;
        let times: Vec<_> = records.iter().map(|record| record.latency_us.p50).collect();
        let bandwidths: Vec<_> = records.iter().map(|record| per_destination(record)).collect();
        report.column("asic-nodes", &format!("{label}-us"), &times)?;
        report.column("asic-nodes", &format!("{label}-MB/s"), &bandwidths)?;
        let counts = records.iter().map(|record| f64::from(record.readout_units + record.builder_units));
        report.curve("asic-nodes", label, counts.zip(times).collect())?;
    }
    Ok(())
}
