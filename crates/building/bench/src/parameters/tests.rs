//! The parameters of invented rows, against the formulas of the note worked out by hand.

use super::*;
use evb_record::{BenchmarkSettings, CpuLoad, Launches, Times};

/// A row whose cycles all take `cycle_us`, or with this number of messages per second.
pub(crate) fn row(pattern: Pattern, nodes: u16, size: u64, cycle_us: Option<f64>, messages_per_s: f64) -> Benchmark {
    let ns = cycle_us.map(|us| us * 1e3);
    let times = ns.map(|ns| Times { min: ns, p50: ns, p99: ns, p999: ns, max: ns, mean: ns, samples: 1000 });
    Benchmark {
        kind: RecordKind::Benchmark,
        experiment: "bench".into(),
        seed: 1,
        version: "0".into(),
        pattern: pattern.name().into(),
        transport: "tcp".into(),
        settings: BenchmarkSettings {
            size_bytes: size,
            nodes,
            compute_us: 0.0,
            window: 1,
            rate_hz: None,
            gathers: None,
            destinations: Vec::new(),
            wait: "yield".into(),
        },
        cores: Vec::new(),
        cycle_ns: times,
        half_round_trip_ns: times.filter(|_| pattern.is_round_trip()).map(|times| times.scaled(0.5)),
        messages_per_s,
        bytes_per_s: messages_per_s * size as f64,
        cpu_load: CpuLoad::default(),
        launches: Launches { median: ns.unwrap_or(messages_per_s), ..Launches::default() },
        longest_gap_us: 0.0,
        messages: 0,
        lost: 0,
        corrupted: 0,
        calibration: None,
        trusted: true,
        notes: Vec::new(),
        good: true,
    }
}

fn cycle(pattern: Pattern, nodes: u16, size: u64, us: f64) -> Benchmark {
    row(pattern, nodes, size, Some(us), 0.0)
}

fn stream(pattern: Pattern, nodes: u16, size: u64, messages_per_s: f64) -> Benchmark {
    row(pattern, nodes, size, None, messages_per_s)
}

fn near(value: Option<f64>, expected: f64) {
    let found = value.unwrap_or(f64::NAN);
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} is not {expected}");
}

#[test]
fn latency_and_overhead_are_those_of_the_smallest_size() {
    let rows = [
        cycle(Pattern::PingPong, 2, 64, 9.0),
        cycle(Pattern::PingPong, 2, 8, 8.0),
        cycle(Pattern::TwoWay, 2, 8, 7.0),
        stream(Pattern::Pairs, 8, 8, 4e6),
        stream(Pattern::Pairs, 4, 8, 1e6),
        stream(Pattern::Pairs, 4, 1024, 2e5),
    ];
    let found = parameters("tcp", &rows);
    near(found.latency_us, 4.0);
    near(found.two_way_us, 7.0);
    near(found.overhead_us, 2.0);
    near(found.bandwidth_mb_per_s, 102.4);
    assert_eq!(found.taken_from["overhead_us"].rows, "pairs, 8 B, 4 nodes");
    assert_eq!((found.funnel_us, found.fixed_overhead_us), (None, None));
    assert!(!found.taken_from.contains_key("funnel_us"));
    assert!(parameters("shm", &rows).taken_from.is_empty(), "rows of another transport");
}

#[test]
fn overlap_is_that_of_the_mean_excess() {
    let computing = |compute_us, us| {
        let mut row = cycle(Pattern::PushFarm, 5, 1024, us);
        row.settings.compute_us = compute_us;
        row
    };
    // a is the mean of 4 and 8, t(0) is 20: 1 - 6 / 20.
    let rows = [computing(0.0, 20.0), computing(100.0, 104.0), computing(400.0, 408.0)];
    let found = parameters("tcp", &rows);
    near(found.overlap_percent, 70.0);
    near(found.push_farm_us, 20.0);
    assert_eq!(found.taken_from["overlap_percent"].rows, "push-farm, 1024 B, 5 nodes, computing up to 400 us");
    assert_eq!(parameters("tcp", &rows[..1]).overlap_percent, None);
    assert_eq!(parameters("tcp", &rows[1..]).overlap_percent, None);
}

#[test]
fn broadcast_quality_compares_the_growth_with_twice_the_receivers() {
    let of = |pattern, times: [f64; 3]| {
        [3, 5, 9].into_iter().zip(times).map(move |(nodes, us)| cycle(pattern, nodes, 8, us)).collect::<Vec<_>>()
    };
    // Outfarming grows by 2 and 3, broadcast by 1 and 1.5: 2.5 / 1.25.
    let rows = [of(Pattern::Outfarming, [1.0, 2.0, 6.0]), of(Pattern::Broadcast, [2.0, 2.0, 3.0])].concat();
    let found = parameters("tcp", &rows);
    near(found.broadcast_quality, 2.0);
    assert_eq!(found.taken_from["broadcast_quality"].rows, "broadcast and outfarming, 8 B, 3 to 9 nodes");
}

#[test]
fn half_of_the_peak_lies_between_two_sizes() {
    let rows = [
        stream(Pattern::OneWay, 2, 100, 1e6),
        stream(Pattern::OneWay, 2, 200, 1e6),
        stream(Pattern::OneWay, 2, 1000, 3e5),
    ];
    let found = parameters("tcp", &rows);
    // The peak is 300 MB/s; 100 B give 100 MB/s, 200 B give 200 MB/s.
    near(found.half_peak_bytes, 150.0);
    near(found.peak_rate_m_per_s, 1.0);
}

#[test]
fn the_line_is_through_half_of_the_round_trip() {
    let rows: Vec<_> =
        [0_u64, 1000, 4000].map(|size| cycle(Pattern::PingPong, 2, size, 2.0 * (5.0 + size as f64 / 200.0))).into();
    let found = parameters("tcp", &rows);
    near(found.fixed_overhead_us, 5.0);
    near(found.rate_mb_per_s, 200.0);
    assert!(found.fit_error_percent.is_some_and(|error| error < 1e-9));
}

#[test]
fn rows_that_cannot_be_trusted_show() {
    let rows = [Benchmark { trusted: false, ..cycle(Pattern::PingPong, 2, 8, 8.0) }, cycle(Pattern::TwoWay, 2, 8, 7.0)];
    let found = parameters("tcp", &rows);
    assert!(!found.taken_from["latency_us"].trusted && found.taken_from["two_way_us"].trusted);
    let mut at_a_rate = rows[1].clone();
    at_a_rate.settings.rate_hz = Some(1e3);
    assert_eq!(parameters("tcp", &[at_a_rate]).two_way_us, None, "that is another measurement");
}
