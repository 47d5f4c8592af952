//! The presets beside calculated values; each page of `docs/reference/networks` shows the results.

use crate::{
    pages::{Comparison, FigureUnit, check_page},
    support::{assert_near, network_config, run_with},
};
use evb_fabric::{Flow, NetworkConfig};

/// Tolerance between calculated and simulated values.
const EXACT: f64 = 1e-3;
/// The same where the first packets and the last ones of a measurement count.
const STEADY: f64 = 1e-2;

const PAIRS: &str = "experiments/pairs.toml";
const ONE: &[&str] = &["workload.messages=1", "readout.source.size=48 B"];
const STREAM: &[&str] = &["workload.messages=100"];

/// Host 0 sends one packet to the host that is farthest away, over `switches` switches.
fn alone(preset: &str, farthest: u16, switches: u64) -> Comparison {
    let set = [format!("network.placement.builder={farthest}")];
    Comparison {
        what: format!("one message of 48 B to h{farthest}; switches: {switches}"),
        source: "the sum of its parts",
        theory: seconds_alone(&network_config(preset), 48.0, switches as f64),
        unit: FigureUnit::Time,
        within: EXACT,
        ..Comparison::new(PAIRS, preset, ONE, &set.each_ref().map(String::as_str))
    }
}

/// Processors, interface and memory of the hosts, links and switches; a switch passes a packet on when it has its first
/// byte, or all of it.
fn seconds_alone(config: &NetworkConfig, bytes: f64, switches: f64) -> f64 {
    let span = |span: evb_core::Span| span.0 as f64 * 1e-12;
    let wire = (bytes + config.nic.header.0 as f64).max(config.nic.minimum.0 as f64);
    let rate = config.link.rate.as_bytes_per_second();
    let pace = config.nic.rate.map_or(rate, |nic| rate.min(nic.as_bytes_per_second()));
    let moved = match config.flow {
        Flow::StoreAndForward { .. } => (switches + 1.0) * wire / rate,
        Flow::CutThrough { .. } => wire / pace + switches / rate,
        Flow::Wormhole { .. } => (wire + switches) / pace,
    };
    let crossing = bytes + config.nic.header.0 as f64;
    let memory = config
        .nic
        .dma
        .map_or(0.0, |dma| crossing / dma.read.as_bytes_per_second() + crossing / dma.write.as_bytes_per_second());
    let hosts = span(config.host.send) + span(config.nic.overhead) + span(config.host.receive);
    hosts + memory + moved + (switches + 1.0) * span(config.link.delay) + switches * span(config.switch.delay)
}

/// One host sends messages of 64 KiB to the next one.
fn stream(preset: &str) -> Comparison {
    Comparison {
        what: "messages of 64 KiB, back to back, to the next host".to_owned(),
        source: "payload and time of each packet",
        theory: stream_rate(&network_config(preset), 65536.0),
        unit: FigureUnit::Rate,
        within: STEADY,
        ..Comparison::new(PAIRS, preset, STREAM, &[])
    }
}

/// The ports of an interface send packets, each after an overhead; memory is read as fast as written.
fn stream_rate(config: &NetworkConfig, bytes: f64) -> f64 {
    let nic = &config.nic;
    let rate = config.link.rate.as_bytes_per_second();
    let pace = nic.rate.map_or(rate, |nic| rate.min(nic.as_bytes_per_second()));
    let packet = nic.packet.0 as f64;
    let of_packet = |payload: f64| {
        let wire = (payload + nic.header.0 as f64).max(nic.minimum.0 as f64);
        nic.overhead.0 as f64 * 1e-12 + wire / pace
    };
    let rest = bytes % packet;
    let last = if rest > 0.0 { of_packet(rest) } else { 0.0 };
    f64::from(nic.ports) * bytes / ((bytes / packet).floor() * of_packet(packet) + last)
}

/// A number of pairs of hosts, as many apart, all at once: a shift, which takes no link twice.
fn shift(preset: &str, pairs: u16) -> Comparison {
    let set = ["readout.units", "builder.units", "network.placement.builder"].map(|key| format!("{key}={pairs}"));
    Comparison {
        what: format!("h0 to h{pairs}, h1 to h{}, ... at once, each", pairs + 1),
        source: "as one alone: a shift (Zahavi, JPDC 72, 2012)",
        theory: stream_rate(&network_config(preset), 65536.0),
        unit: FigureUnit::RateOfEach,
        within: STEADY,
        ..Comparison::new(PAIRS, preset, STREAM, &set.each_ref().map(String::as_str))
    }
}

/// Frames per second of 64 and 1518 B without their 18 B of header and check sum; hosts that cost nothing.
fn frames(preset: &str, [smallest, largest]: [f64; 2]) -> [Comparison; 2] {
    [(46, 64, smallest), (1500, 1518, largest)].map(|(payload, frame, theory)| {
        let size = format!("readout.source.size={payload} B");
        let set = [size.as_str(), "workload.messages=2000", "network.host={send=\"0 s\",receive=\"0 s\"}"];
        Comparison {
            what: format!("frames of {frame} B"),
            source: "RFC 2544, appendix B, for this rate",
            theory,
            unit: FigureUnit::Messages,
            within: STEADY,
            ..Comparison::new(PAIRS, preset, &set, &[])
        }
    })
}

/// Sixteen nodes of a switch share four links to the next switch.
fn neighbours(preset: &str) -> Comparison {
    Comparison {
        what: "every node to one on the next switch, each".to_owned(),
        source: "4 links for 16 nodes, 64 of 67 B payload",
        theory: 10e6 * 4.0 / 16.0 * 64.0 / 67.0,
        unit: FigureUnit::RateOfEach,
        within: STEADY,
        ..Comparison::new("papers/atlas-ethernet-1998/grid-neighbours.toml", preset, &[], &[])
    }
}

#[test]
fn the_ideal_network_agrees_with_theory() {
    let blocked = Comparison {
        what: "8 x 8, random, what waits blocks what is behind it".to_owned(),
        source: "Hluchyj and Karol 1988, table I",
        theory: 0.6184,
        unit: FigureUnit::Efficiency,
        within: STEADY,
        ..Comparison::new(
            "experiments/crossbar-hol.toml",
            "ideal",
            &["sweep={}", "readout.units=8", "builder.units=8"],
            &[],
        )
    };
    check_page("ideal", &[alone("ideal", 1, 1), stream("ideal"), shift("ideal", 32), blocked]);
}

#[test]
fn myrinet_agrees_with_theory() {
    check_page("myrinet-oct-sw8", &[alone("myrinet-oct-sw8", 15, 3), stream("myrinet-oct-sw8")]);
    check_page("myrinet-clos-128", &[alone("myrinet-clos-128", 63, 3), stream("myrinet-clos-128")]);
}

#[test]
fn ds_links_agree_with_theory() {
    check_page("ds-link-clos", &[alone("ds-link-clos", 255, 3), stream("ds-link-clos")]);
    for (preset, farthest, switches) in [("ds-link-grid", 255, 7), ("ds-link-torus", 170, 5)] {
        check_page(preset, &[alone(preset, farthest, switches), stream(preset), neighbours(preset)]);
    }
}

#[test]
fn ethernet_agrees_with_theory() {
    // The table is for 10 Mbit/s: 14880 and 812 frames/s; with a digit more, 812.74.
    for (preset, farthest, times) in [("fast-ethernet", 15, 10.0), ("gigabit-ethernet", 63, 100.0)] {
        let [smallest, largest] = frames(preset, [14880.0 * times, 812.0 * times]);
        check_page(preset, &[alone(preset, farthest, 1), stream(preset), smallest, largest]);
    }
}

#[test]
fn other_presets_agree_with_theory() {
    for (preset, farthest, switches) in [("atm-155", 7, 1), ("velo-prototype", 1, 1), ("roce-100g-clos", 127, 3)] {
        check_page(preset, &[alone(preset, farthest, switches), stream(preset)]);
    }
}

#[test]
fn infiniband_agrees_with_theory() {
    for (preset, farthest, switches, pairs) in
        [("infiniband-hdr-fat-tree", 127, 5, 64), ("infiniband-ndr-fat-tree", 511, 3, 256)]
    {
        check_page(preset, &[alone(preset, farthest, switches), stream(preset), shift(preset, pairs)]);
    }
}

#[test]
fn networks_of_today_agree_with_theory() {
    for (preset, farthest, switches) in [
        ("ethernet-25g-rack", 47, 1),
        ("ethernet-400g-leaf-spine", 255, 3),
        ("ethernet-800g-leaf-spine", 255, 3),
        ("slingshot-dragonfly", 8, 2),
    ] {
        let stream = Comparison {
            theory: stream_rate(&network_config(preset), 65536.0),
            ..Comparison::new(PAIRS, preset, &["workload.messages=1000"], &[])
        };
        let (what, source) =
            ("messages of 64 KiB, back to back, to the next host".to_owned(), "payload and time of each packet");
        let stream = Comparison { what, source, unit: FigureUnit::Rate, within: STEADY, ..stream };
        check_page(preset, &[alone(preset, farthest, switches), stream]);
    }
}

/// 128 x 128 on the 128 hosts of the fat tree.
const UNIFORM: &str = r#"
[network]
preset = "infiniband-hdr-fat-tree"
placement = { readout = 0, builder = 0 }
[workload]
type = "random"
[trigger]
duration = "100 us"
[run]
warmup = "40 us"
[readout]
units = 128
source = { type = "fixed", size = "16 KiB" }
[builder]
units = 128
"#;

/// A saturated tree loses rate to packets that meet at their destinations, not to idle links.
#[test]
fn fixed_routes_carry_as_much_uniform_traffic_as_random_ones() {
    let rate = |routing: &str| run_with(UNIFORM, &[routing]).throughput_bytes_per_s;
    assert_near("fixed", rate("network.routing.type=fixed"), rate("network.routing={type=\"random\"}"), 0.05);
}
