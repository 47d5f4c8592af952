//! `evb bench` and `evb compare`. Nothing here depends on how fast the machine is.

use crate::support::{Lab, Outcome};
use evb_record::{Benchmark, Change, Comparison, Launches, Parameters, RecordKind, RunComparison};
use serde_json::Value;
use std::fs;

const SHORT: [&str; 16] = [
    "bench",
    "ping-pong",
    "one-way",
    "--transport",
    "threads,tcp",
    "--sizes",
    "8B,64B,256B",
    "--launches",
    "2",
    "--time",
    "5ms",
    "--warmup",
    "1ms",
    "--out",
    "results",
    "--json",
];

/// The lines of standard output of a short suite, whose files are in `results`.
fn measure(lab: &Lab) -> Vec<Value> {
    let outcome = lab.evb(&SHORT).run();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{outcome}");
    let lines = outcome.stdout.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

fn benchmarks(lines: &[Value]) -> Vec<Benchmark> {
    let of_kind = lines.iter().filter(|line| line["kind"] == "benchmark");
    of_kind.map(|line| serde_json::from_value(line.clone()).expect("a benchmark")).collect()
}

/// The records as a file that can be compared whatever the machine did meanwhile: all launches took about 1000 ns, or of the first
/// record for that many times as long.
fn steady(records: &[Benchmark], factor: f64) -> String {
    let steady = |from: &Benchmark| {
        let mut record = Benchmark { trusted: true, notes: Vec::new(), calibration: None, ..from.clone() };
        // Less is better of all of them.
        let median = if std::ptr::eq(from, &records[0]) { 1000.0 * factor } else { 1000.0 };
        let values = [0.99, 0.995, 1.0, 1.0, 1.005, 1.01].map(|part| part * median).to_vec();
        let (low, high, quantity) = (values[0], values[5], "cycle_ns".into());
        record.launches = Launches { quantity, values, median, low, high, confidence: 0.968_75 };
        serde_json::to_string(&record).expect("a record is JSON") + "\n"
    };
    records.iter().map(steady).collect()
}

#[test]
fn a_short_suite_gives_records_tables_and_plots() {
    let lab = Lab::new();
    let lines = measure(&lab);
    let records = benchmarks(&lines);
    assert_eq!(records.len(), 2 * 2 * 3, "patterns, transports, sizes");
    for record in &records {
        assert!(record.good && record.lost == 0 && record.corrupted == 0, "{record:#?}");
        assert!(record.launches.values.len() <= 2, "{record:#?}");
        assert_eq!(record.trusted, record.notes.is_empty());
    }
    assert!(records.iter().map(|record| record.messages).sum::<u64>() > 0);
    let parameters: Vec<Parameters> =
        lines[records.len()..].iter().map(|line| serde_json::from_value(line.clone()).expect("parameters")).collect();
    let names: Vec<_> = parameters.iter().map(|of| (of.kind, of.transport.as_str())).collect();
    assert_eq!(names, [(RecordKind::Parameters, "threads"), (RecordKind::Parameters, "tcp")]);
    assert_eq!(parameters[1].taken_from, evb::bench::parameters("tcp", &records).taken_from);
    assert_eq!(parameters[1].overhead_us, None, "it has no pairs");

    let text =
        |name: &str| fs::read_to_string(lab.path("results").join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
    assert_eq!(text("records.jsonl").lines().count(), records.len());
    assert_eq!(text("parameters.jsonl").lines().count(), 2);
    assert_eq!(text("table.csv").lines().count(), records.len() + 1);
    let samples = text("samples.csv");
    assert!(samples.starts_with("transport,pattern,size,nodes,compute,launch,node,index,ns\n"));
    let is_time = |line: &str| line.split(',').count() == 9 && line.ends_with(|c: char| c.is_ascii_digit());
    assert!(samples.lines().skip(1).all(is_time));
    for plot in evb_report::benchmark_plots(&records, &parameters, &[]) {
        assert!(text(&format!("{}.svg", plot.name)).starts_with("<svg"), "{} could be drawn again", plot.name);
    }
}

/// The patterns of a simulation over real layers: one list, with comparable records.
#[test]
fn traffic_goes_over_real_layers_as_over_a_simulated_network() {
    let lab = Lab::new();
    let patterns = ["random", "rotation", "rotation-retarded", "gather", "gather-unasked"];
    let gathers = |record: &Benchmark| record.pattern.starts_with("gather");
    let media = ["threads", "shm", "tcp", "sim:ds-link-clos"];
    let transport = media.join(",");
    let options = ["--transport", &transport, "--nodes", "6", "--sizes", "256B", "--json", "--launches", "2"];
    let measure = |patterns: &[&str], more: &[&str]| {
        lab.evb(&["bench"]).args(patterns).args(&options).args(&["--warmup", "1ms"]).args(more).run()
    };
    let outcome = measure(&patterns[..3], &["--time", "5ms"]);
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{outcome}");
    // Long enough for an event to be gathered whatever the machine does meanwhile.
    let gathered = measure(&patterns[3..], &["--rate", "20kHz", "--gathers", "2..9", "--time", "100ms"]);
    assert_eq!((gathered.code(), gathered.stderr.as_str()), (Some(0), ""), "{gathered}");
    let lines = |outcome: &Outcome| -> Vec<Value> {
        outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let (records, of_events) = (benchmarks(&lines(&outcome)), benchmarks(&lines(&gathered)));
    for (records, patterns) in [(&records, &patterns[..3]), (&of_events, &patterns[3..])] {
        let rows: Vec<_> = records.iter().map(|record| (record.transport.as_str(), record.pattern.as_str())).collect();
        let expected = media.iter().flat_map(|medium| patterns.iter().map(|pattern| (*medium, *pattern)));
        assert_eq!(rows, expected.collect::<Vec<_>>());
    }
    for record in records.iter().chain(&of_events) {
        assert!(record.good && record.messages > 0 && record.lost == 0 && record.corrupted == 0, "{record:#?}");
        assert_eq!((record.settings.nodes, record.cycle_ns.is_some()), (6, gathers(record)), "{record:#?}");
        assert_eq!(record.settings.gathers, gathers(record).then_some((2, 3)), "no more than there are: {record:#?}");
    }
    let simulated = &records[9..];
    let rates: Vec<_> = simulated.iter().map(|record| record.bytes_per_s).collect();
    assert!(
        rates[2] > rates[0] && rates[0] > rates[1],
        "the more senders meet at a receiver, the less comes: {rates:?}"
    );
}

/// Blocking at an output: of three senders, two share a receiver, on each layer and in a simulated network.
#[test]
fn senders_go_where_they_are_assigned() {
    let lab = Lab::new();
    let assigned = |more: &[&str]| {
        let options = ["bench", "assigned", "--sizes", "256B", "--json", "--launches", "2", "--time", "5ms"];
        lab.evb(&options).args(&["--warmup", "1ms"]).args(more).run()
    };
    let outcome = assigned(&["--transport", "threads,tcp,sim:ds-link-clos", "--to", "0,0,2"]);
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{outcome}");
    let lines: Vec<Value> = outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let records = benchmarks(&lines);
    assert_eq!(records.len(), 3);
    for record in &records {
        assert!(record.good && record.messages > 0, "{record:#?}");
        assert_eq!(
            (record.settings.nodes, record.settings.destinations.as_slice()),
            (6, &[0, 0, 2][..]),
            "{record:#?}"
        );
    }
    let simulated = |to: &str| {
        let outcome = assigned(&["--transport", "sim:ds-link-clos", "--nodes", "6", "--to", to]);
        benchmarks(&[serde_json::from_str(outcome.stdout.lines().next().expect("a record")).expect("JSON")])[0]
            .bytes_per_s
    };
    let (apart, one) = (simulated("0,1,2"), simulated("0"));
    // Alone a sender does not fill its link; three senders do.
    assert!((2.0..3.0).contains(&(apart / one)), "three links, and one: {apart} and {one} B/s");
    for (more, message) in [
        (&[][..], "the senders of assigned have no receivers"),
        (&["--to", "0,3", "--nodes", "6"], "give --nodes 8 or more"),
    ] {
        let outcome = assigned(more);
        assert!(outcome.code() == Some(2) && outcome.stderr.contains(message), "{outcome}");
    }
    let outcome = lab.evb(&["bench", "pairs", "--to", "0"]).run();
    assert!(outcome.code() == Some(2) && outcome.stderr.contains("--to is for assigned"), "{outcome}");
}

/// What a user types to have every pattern over several layers in one table.
#[test]
fn all_patterns_are_measured_by_one_command() {
    let lab = Lab::new();
    let all =
        ["bench", "all", "--transport", "threads,sim:ideal", "--nodes", "4", "--sizes", "64B", "--compute", "0us"];
    let times = ["--launches", "1", "--time", "5ms", "--warmup", "1ms", "--quiet"];
    let outcome = lab.evb(&all).args(&times).run();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{outcome}");
    let overview =
        outcome.stdout.split_once("overview\n").expect("an overview").1.split_once("\n\n").expect("its end").0;
    let names = ["ping-pong", "pull-farm", "stream", "assigned", "random", "rotation", "rotation-retarded", "gather"];
    for name in names.into_iter().chain(["threads", "sim:ideal"]) {
        assert!(overview.contains(name), "{name} is not in {outcome}");
    }
    assert!(outcome.stdout.contains("good: all 36 measurements"), "{outcome}");
}

#[test]
fn without_json_there_are_tables() {
    let lab = Lab::new();
    let outcome = lab.evb(&SHORT[..2]).args(&["--transport", "threads"]).args(&SHORT[5..13]).run();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{outcome}");
    for part in
        ["latency (ping-pong)", "ping-pong: half of the round trip", "waiting       yield", "good: all 3 measurements"]
    {
        assert!(outcome.stdout.contains(part), "{part} is not in {outcome}");
    }
}

#[test]
fn a_comparison_tells_by_its_status_whether_the_new_file_is_worse() {
    let lab = Lab::new();
    let lines = measure(&lab);
    let records = benchmarks(&lines);
    // What the command printed can be compared, parameters and all.
    let printed: String = lines.iter().map(|line| format!("{line}\n")).collect();
    lab.write("printed.jsonl", printed);
    let whole = lab.evb(&["compare", "printed.jsonl", "results/records.jsonl"]).run();
    // Too few launches for any verdict on a difference.
    assert_eq!(whole.code(), Some(3), "{whole}");
    assert!(whole.stdout.contains("\ncannot tell: "), "{whole}");

    lab.write("old.jsonl", steady(&records, 1.0));
    let same = lab.evb(&["compare", "old.jsonl", "old.jsonl", "--json"]).run();
    assert_eq!((same.code(), same.stderr.as_str()), (Some(0), ""), "{same}");
    let rows: Vec<Comparison> =
        same.stdout.lines().map(|line| serde_json::from_str(line).expect("a comparison")).collect();
    assert_eq!(rows.len(), records.len());
    assert!(
        rows.iter().all(|row| row.difference.verdict == Change::Same
            && row.difference.good
            && row.difference.change_percent == Some(0.0)),
        "{same}"
    );

    lab.write("slower.jsonl", steady(&records, 2.0));
    let worse = lab.evb(&["compare", "old.jsonl", "slower.jsonl"]).run();
    assert_eq!(worse.code(), Some(1), "{worse}");
    assert!(
        worse.stdout.contains("+100.0 %")
            && worse.stdout.contains("! slower")
            && worse.stdout.ends_with("not good: 1 slower, 11 same\n"),
        "{worse}"
    );
    let tolerated = lab.evb(&["compare", "old.jsonl", "slower.jsonl", "--tolerance", "110 %"]).run();
    assert_eq!(tolerated.code(), Some(0), "{tolerated}");
    let better = lab.evb(&["compare", "slower.jsonl", "old.jsonl"]).run();
    assert_eq!(better.code(), Some(0), "{better}");
}

#[test]
fn files_that_cannot_be_compared_say_where() {
    let lab = Lab::new();
    let record = include_str!("benchmark.jsonl").trim_end();
    lab.write("good.jsonl", record);
    lab.write("empty.jsonl", "\n");
    lab.write("broken.jsonl", format!("{record}\n\n{{\"kind\":\"benchmark\",\n"));
    lab.write("lacking.jsonl", format!("{record}\n{{\"kind\":\"benchmark\"}}\n"));
    lab.write("run.jsonl", "{\"kind\":\"run\"}\n");
    lab.write("simulation.jsonl", "{\"kind\":\"simulation\"}\n");
    lab.write("other.jsonl", "{\"kind\":\"poem\"}\n");
    lab.write("twice.jsonl", format!("{record}\n{record}\n"));
    let cases = [
        ("missing.jsonl", "missing.jsonl: "),
        ("empty.jsonl", "empty.jsonl: it has no record"),
        ("broken.jsonl", "broken.jsonl: line 3: not JSON"),
        ("lacking.jsonl", "lacking.jsonl: line 2: not a whole record: missing field"),
        ("run.jsonl", "run.jsonl: line 1: not a whole record: missing field"),
        ("simulation.jsonl", "simulation.jsonl: line 1: not a whole record: missing field"),
        ("other.jsonl", "other.jsonl: line 1: not a benchmark, a run, a simulation or a plan: its kind is \"poem\""),
        ("twice.jsonl", "twice.jsonl: line 2: the same measurement as in line 1"),
    ];
    for (file, message) in cases {
        for order in [["good.jsonl", file], [file, "good.jsonl"]] {
            let outcome = lab.evb(&["compare"]).args(&order).run();
            assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(2), ""), "{outcome}");
            assert!(outcome.stderr.contains(message) && outcome.stderr.contains("hint: "), "{message}: {outcome}");
        }
    }
    for tolerance in ["5", "five%", "-1%", "inf%"] {
        let option = format!("--tolerance={tolerance}");
        let outcome = lab.evb(&["compare", "good.jsonl", "good.jsonl", &option]).run();
        assert_eq!(outcome.code(), Some(2), "{tolerance}: {outcome}");
    }
    assert_eq!(lab.evb(&["compare", "good.jsonl", "good.jsonl"]).run().code(), Some(3));
}

/// Six runs of an experiment against its simulation, which needs one.
#[test]
fn runs_are_compared_with_simulations() {
    let lab = Lab::with(
        "[workload]\ntype = \"pairs\"\nrate = \"1 kHz\"\nmessages = 100\n\
         [readout]\nunits = 2\nsource = { type = \"fixed\", size = \"1 kB\" }\n[builder]\nunits = 2\n",
    );
    lab.write("runs.jsonl", lab.evb(&["run", "experiment.toml", "--runs", "6", "--json"]).run().stdout);
    lab.write("simulation.jsonl", lab.evb(&["simulate", "experiment.toml", "--json"]).run().stdout);
    lab.write("benchmark.jsonl", include_str!("benchmark.jsonl"));
    let compare = |files: &[&str]| lab.evb(&["compare", "--json", "--tolerance", "1000000%"]).args(files).run();
    for files in [["simulation.jsonl", "runs.jsonl"], ["runs.jsonl", "simulation.jsonl"]] {
        let outcome = compare(&files);
        let rows: Vec<RunComparison> = outcome
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {outcome}")))
            .collect();
        let quantities: Vec<_> = rows.iter().map(|row| row.difference.quantity.as_str()).collect();
        assert_eq!(quantities, ["event_rate_hz", "throughput_bytes_per_s", "latency_us.p50", "latency_us.p99"]);
        assert!(rows.iter().all(|row| row.difference.change_percent.is_some()
            && row.difference.old.is_some()
            && row.difference.new.is_some()));
    }
    let outcome = compare(&["simulation.jsonl", "simulation.jsonl"]);
    assert_eq!(outcome.code(), Some(3), "{outcome}");
    let outcome = compare(&["runs.jsonl", "benchmark.jsonl"]);
    assert!(
        outcome.code() == Some(2) && outcome.stderr.contains("benchmarks cannot be compared with runs"),
        "{outcome}"
    );
}
