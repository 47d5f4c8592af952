//! Benchmarks: tables, CSV and plots.

use crate::{samples, texts::snapshot};
use evb_record::{
    Benchmark, BenchmarkSamples, BenchmarkSettings, Calibration, Change, CoreToCore, CpuLoad, Launches, Origin,
    Parameters, RecordKind, Times,
};
use evb_report::{NARROW, benchmark_csv, benchmark_plots, benchmark_tables, compare, comparison_table, samples_csv};

const TRANSPORTS: [&str; 4] = ["threads", "shm", "tcp", "ofi:tcp"];

/// A row with this median in nanoseconds, or with this many messages per second.
pub(crate) fn row(pattern: &str, transport: &str, nodes: u16, size_bytes: u64, value: f64) -> Benchmark {
    let streams = matches!(pattern, "pairs" | "one-way" | "stream");
    let times = Times {
        min: value * 0.9,
        p50: value,
        p99: value * 3.0,
        p999: value * 20.0,
        max: value * 100.0,
        mean: value * 1.1,
        samples: 60_000,
    };
    let messages_per_s = if streams { value } else { 1e9 / value };
    let quantity = if streams { "messages_per_s" } else { "cycle_ns" };
    let cores = CoreToCore { line_ns: 61.0, message_ns: 70.5 };
    Benchmark {
        kind: RecordKind::Benchmark,
        experiment: "bench".into(),
        seed: 1,
        version: "0.1.0".into(),
        pattern: pattern.into(),
        transport: transport.into(),
        settings: BenchmarkSettings {
            size_bytes,
            nodes,
            compute_us: 0.0,
            window: if pattern.ends_with("farm") { 2 } else { 1 },
            rate_hz: None,
            gathers: None,
            destinations: Vec::new(),
            wait: "yield".into(),
        },
        cores: (0..nodes).map(|node| node % 2).collect(),
        cycle_ns: (!streams).then_some(times),
        half_round_trip_ns: (pattern == "ping-pong").then(|| times.scaled(0.5)),
        messages_per_s,
        bytes_per_s: messages_per_s * size_bytes as f64,
        cpu_load: CpuLoad { senders: 1.0, receivers: 0.987 },
        launches: Launches {
            quantity: quantity.into(),
            values: [0.98, 0.99, 1.0, 1.0, 1.01, 1.02].map(|part| value * part).to_vec(),
            median: value,
            low: value * 0.98,
            high: value * 1.02,
            confidence: 0.968_75,
        },
        longest_gap_us: 120.0,
        messages: 100_000,
        lost: 0,
        corrupted: 0,
        calibration: Some(Calibration { before: cores, after: cores }),
        trusted: true,
        notes: Vec::new(),
        good: true,
    }
}

/// The same row with other settings.
pub(crate) fn with(row: &Benchmark, change: impl FnOnce(&mut BenchmarkSettings)) -> Benchmark {
    let mut row = row.clone();
    change(&mut row.settings);
    row
}

/// A round trip whose launches took these times in nanoseconds.
pub(crate) fn launched(values: &[f64]) -> Benchmark {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    let record = row("ping-pong", "shm", 2, 8, median);
    Benchmark { launches: Launches { values: values.to_vec(), ..record.launches }, ..record }
}

pub(crate) fn untrusted(row: Benchmark, note: &str) -> Benchmark {
    Benchmark { trusted: false, notes: vec![note.into()], ..row }
}

pub(crate) fn lossy(row: Benchmark) -> Benchmark {
    Benchmark { good: false, lost: 3, ..untrusted(row, "3 messages were lost") }
}

/// Four transports, each slower than the one before it, with one row that is not good and some that cannot be trusted.
pub(crate) fn suite() -> Vec<Benchmark> {
    let mut rows = Vec::new();
    for (transport, factor) in TRANSPORTS.into_iter().zip([1.0, 1.5, 40.0, 160.0]) {
        for size in [8, 64, 1024, 1_048_576] {
            let cycle = factor * (250.0 + size as f64 / 4.0);
            rows.push(row("ping-pong", transport, 2, size, cycle));
            rows.push(row("pairs", transport, 2, size, 1e9 / cycle));
            rows.push(row("pairs", transport, 4, size, 2e9 / cycle));
        }
        for compute_us in [0.0, 99.999_999_999_999_99, 1600.0] {
            let farm = row("push-farm", transport, 5, 1024, factor * 900.0 + compute_us * 1000.0);
            rows.push(with(&farm, |settings| settings.compute_us = compute_us));
        }
    }
    rows[0] = untrusted(rows[0].clone(), "a cache line took 61 to 90 ns between the cores meanwhile: measure again");
    rows[1] = untrusted(rows[1].clone(), "a cache line took 62 to 99 ns between the cores meanwhile: measure again");
    rows[4] = lossy(rows[4].clone());
    rows
}

pub(crate) fn parameters() -> Vec<Parameters> {
    let of = |(transport, factor): (&str, f64)| {
        let origin = |rows: &str, trusted| Origin { rows: rows.into(), trusted };
        let nodes = if transport == "tcp" { "3 to 9" } else { "3 to 5" };
        Parameters {
            kind: RecordKind::Parameters,
            transport: transport.into(),
            latency_us: Some(0.126 * factor),
            two_way_us: None,
            overhead_us: Some(0.252 * factor),
            bandwidth_mb_per_s: Some(2023.4 / factor),
            broadcast_quality: Some(1.0),
            funnel_us: None,
            push_farm_us: Some(0.99 * factor),
            pull_farm_us: None,
            overlap_percent: Some(-12.34),
            half_peak_bytes: Some(1234.5),
            peak_rate_m_per_s: Some(3.9 / factor),
            fixed_overhead_us: Some(0.125 * factor),
            rate_mb_per_s: Some(8000.0 / factor),
            fit_error_percent: Some(0.0),
            taken_from: [
                ("latency_us".into(), origin("ping-pong, 8 B, 2 nodes", transport != "threads")),
                ("broadcast_quality".into(), origin(&format!("broadcast and outfarming, 8 B, {nodes} nodes"), true)),
            ]
            .into(),
        }
    };
    TRANSPORTS.into_iter().zip([1.0, 1.5, 40.0, 160.0]).map(of).collect()
}

/// Times that are made up: each launch a little slower.
fn single_times() -> Vec<BenchmarkSamples> {
    let of = |transport: &str| BenchmarkSamples {
        transport: transport.into(),
        pattern: "ping-pong".into(),
        settings: row("ping-pong", transport, 2, 8, 1.0).settings,
        launches: (0..2).map(|launch| vec![(0, (0..500).map(|n| 200 + launch * 10 + n % 7).collect())]).collect(),
    };
    vec![of("threads"), of("tcp")]
}

/// All but the notes, which are sentences, keeps to the width.
pub(crate) fn assert_narrow(text: &str) {
    for line in text.lines().filter(|line| !line.contains("meanwhile")) {
        assert!(line.chars().count() <= NARROW, "{line} in\n{text}");
    }
}

#[test]
fn tables_of_four_transports_are_narrow() {
    let text = benchmark_tables(&suite(), &parameters(), NARROW);
    assert_narrow(&text);
    snapshot("benchmarks", &text);
}

#[test]
fn many_transports_make_several_tables() {
    let mut rows = Vec::new();
    for n in 0..7 {
        let mut wide = row("stream", &format!("ofi:provider;{n}"), 64, 16_777_216, 54_321.0);
        (wide.settings.rate_hz, wide.cycle_ns) = (Some(1e4), None);
        rows.push(wide);
    }
    let text = benchmark_tables(&rows, &[], NARROW);
    assert_eq!(text.matches("nodes  ").count(), 3, "{text}");
    assert_narrow(&text);
    assert!((0..7).all(|n| text.contains(&format!("ofi:provider;{n}"))), "{text}");
}

#[test]
fn several_patterns_that_are_measured_once_have_an_overview() {
    let mut rows = Vec::new();
    for (transport, factor) in TRANSPORTS.into_iter().zip([1.0, 1.5, 40.0, 160.0]) {
        rows.push(row("ping-pong", transport, 2, 1000, 250.0 * factor));
        rows.push(row("all-to-all", transport, 4, 1000, 750.0 * factor));
        rows.push(row("stream", transport, 4, 1000, 4e6 / factor));
        let times = row("gather", transport, 4, 1000, 1500.0 * factor);
        let times = Benchmark { messages_per_s: 2000.0, ..times };
        rows.push(with(&times, |settings| (settings.rate_hz, settings.gathers) = (Some(1e3), Some((2, 2)))));
    }
    rows.remove(13);
    rows[1] = untrusted(rows[1].clone(), "one launch says nothing about the next");
    let text = benchmark_tables(&rows, &[], NARROW);
    assert_narrow(&text);
    let overview =
        |text: &str| text.strip_prefix("overview\n").and_then(|text| Some(text.split_once("\n\n")?.0.to_owned()));
    snapshot("benchmark_overview", &overview(&text).expect("it comes first"));
    rows.push(row("stream", "tcp", 8, 1000, 1e5));
    assert_eq!(overview(&benchmark_tables(&rows, &[], NARROW)), None, "two numbers of nodes need two lines");
    assert_eq!(overview(&benchmark_tables(&rows[..1], &[], NARROW)), None, "one pattern is its own overview");
}

#[test]
fn unusual_suites() {
    assert!(benchmark_tables(&[], &[], NARROW).contains("not good: nothing was measured"));
    let mut rated = row("one-way", "tcp", 2, 64, 10_000.0);
    (rated.settings.rate_hz, rated.cores, rated.calibration) = (Some(10_000.0), Vec::new(), None);
    rated.cycle_ns = row("ping-pong", "tcp", 2, 64, 30_000.0).cycle_ns;
    snapshot("benchmark_at_a_rate", &benchmark_tables(&[rated], &[], NARROW));
}

#[test]
fn csv_has_every_scalar_of_a_benchmark() {
    let mut record = lossy(row("ping-pong", "tcp", 2, 8, 1e4));
    record.settings.rate_hz = Some(1e3);
    record.notes.push("and, \"this\"".into());
    let mut fields = Vec::new();
    samples::flatten("", &serde_json::to_value(&record).unwrap(), &mut fields);
    let text = benchmark_csv(&[record]);
    let mut names: Vec<_> = text.lines().next().unwrap().split(',').filter(|name| *name != "notes").collect();
    names.sort_unstable();
    let mut expected: Vec<_> = fields.iter().map(|field| field.0.as_str()).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert!(text.ends_with(",\"3 messages were lost; and, \"\"this\"\"\"\n"), "{text}");
    assert_eq!(benchmark_csv(&suite()).lines().count(), suite().len() + 1);
}

#[test]
fn single_times_are_thinned_out_evenly() {
    let lines = |most| {
        let mut text = Vec::new();
        samples_csv(&single_times(), most, &mut text).unwrap();
        String::from_utf8(text).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = lines(2000);
    assert_eq!(all.len(), 1 + 2000);
    assert_eq!(all[0], "transport,pattern,size,nodes,compute,launch,node,index,ns");
    assert_eq!(all[501], "threads,ping-pong,8,2,0,1,0,0,210");
    let some = lines(700);
    assert_eq!(some.len(), 1 + 4 * 167, "every third");
    assert_eq!(some[2], "threads,ping-pong,8,2,0,0,0,3,203");
}

#[test]
fn plots_of_what_there_is() {
    let names = |rows: &[Benchmark], parameters: &[Parameters], times: &[BenchmarkSamples]| -> Vec<String> {
        benchmark_plots(rows, parameters, times).into_iter().map(|plot| plot.name).collect()
    };
    let all = [
        "throughput-ping-pong",
        "latency-ping-pong",
        "cpu-ping-pong",
        "cycle-times-ping-pong",
        "throughput-pairs",
        "cpu-pairs",
        "elapsed",
    ];
    assert_eq!(names(&suite(), &parameters(), &single_times()), all);
    assert_eq!(names(&suite()[..1], &parameters()[..1], &[]), [""; 0], "one size");
    assert_eq!(names(&[], &[], &[]), [""; 0]);
    let mut windows = suite();
    let more: Vec<_> = windows
        .iter()
        .filter(|row| row.pattern == "pairs")
        .map(|row| with(row, |settings| settings.window = 8))
        .collect();
    windows.extend(more);
    assert!(names(&windows, &[], &[]).contains(&"throughput-pairs-2".into()));
}

#[test]
fn plots_have_a_curve_for_each_transport() {
    let plots = benchmark_plots(&suite(), &parameters(), &single_times());
    let plot = |name: &str| &plots.iter().find(|plot| plot.name == name).unwrap_or_else(|| panic!("no {name}")).svg;
    let legend = |svg: &str| TRANSPORTS.iter().filter(|name| svg.lines().any(|line| line == **name)).count();
    for name in ["throughput-ping-pong", "latency-ping-pong", "cpu-pairs", "elapsed"] {
        assert_eq!(legend(plot(name)), 4, "{name}");
    }
    assert_eq!(legend(plot("cycle-times-ping-pong")), 2);
    for (name, has_bars) in [("latency-ping-pong", true), ("throughput-pairs", true), ("cpu-pairs", false)] {
        assert_eq!(plot(name).contains("% interval"), has_bars, "{name}");
    }
    for plot in &plots {
        assert!(!plot.svg.contains("NaN") && !plot.svg.contains("inf\""), "{}", plot.name);
    }
}

#[test]
fn impossible_numbers_of_benchmarks_do_no_harm() {
    for value in [f64::NAN, f64::INFINITY, -1.0, 0.0, f64::MAX] {
        let rows: Vec<_> = suite()
            .into_iter()
            .map(|mut row| {
                row.cycle_ns = row.cycle_ns.map(|times| Times { p50: value, p99: value, ..times });
                row.half_round_trip_ns = row.cycle_ns.filter(|_| row.half_round_trip_ns.is_some());
                (row.messages_per_s, row.bytes_per_s, row.cpu_load.senders) = (value, value, value);
                (row.launches.median, row.launches.low) = (value, value);
                row.calibration = row
                    .calibration
                    .map(|all| Calibration { before: CoreToCore { line_ns: value, ..all.before }, ..all });
                row
            })
            .collect();
        let mut parameters = parameters();
        parameters[0].fixed_overhead_us = Some(value);
        parameters[1].rate_mb_per_s = Some(value);
        assert!(!benchmark_tables(&rows, &parameters, NARROW).is_empty());
        assert!(!benchmark_csv(&rows).contains("NaN"));
        for plot in benchmark_plots(&rows, &parameters, &single_times()) {
            assert!(!plot.svg.contains("NaN"), "{} with {value}", plot.name);
        }
        assert!(!comparison_table(&compare(&suite(), &rows, 0.05), NARROW).is_empty());
        assert!(
            compare(&suite(), &rows, 0.05)
                .iter()
                .all(|row| row.difference.verdict != Change::Faster || value == f64::MAX)
        );
    }
}
