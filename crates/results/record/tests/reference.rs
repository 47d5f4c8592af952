//! The reference page names every field of a record, says its unit, and names no other.

use evb_record::{
    Advice, Agreement, Assumption, Background, Basis, Benchmark, BenchmarkSettings, BillLine, Bounds, Broadcast,
    BuilderOccupancy, BuilderRecord, Bundles, Calibration, Change, Class, ClockPlace, ClockRecord, Comparison,
    ConnectionRates, Connections, ConnectionsOverTime, CoreToCore, CpuLoad, CpuRecord, Difference, Dip, Events,
    Filtering, Finding, FindingKind, FrontEndRecord, FrontEntry, Given, HardwareMeasurement, Histogram, Interval,
    Judgement, KnownMap, Latency, Launches, LinkRecord, LinkSpeed, LinkVerdict, Mapping, Network, NetworkFault,
    Occupancy, Origin, Outcome, PairOfNodes, PaperItem, Parameters, PlanAnswer, PlanCandidate, PlanChange, PlanFigures,
    PlanLevel, PlanVerdict, Planning, PlanningGoal, Qualification, ReadoutOccupancy, ReadoutRecord, Record, RecordKind,
    Relation, RunComparison, Sensitivity, Shaping, Simulation, Slots, SourceRecord, SourceState, Stages, Stream,
    Timeline, Times, Trigger, Twin, TwinFigure, TwinLoad, Verdict, Window, WorkRecord, WorkerRecord,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/record.md");

/// A record with something everywhere; a new field does not compile without a place here.
fn full() -> Record {
    let alone = alone();
    let stages = Stages { first: vec![alone.clone()], second: vec![alone.clone()] };
    Record { stages: Some(Box::new(stages)), ..alone }
}

/// The record of one event builder.
fn alone() -> Record {
    Record {
        kind: RecordKind::Run,
        experiment: "full".into(),
        sweep: BTreeMap::from([("builder.units".into(), "2".into())]),
        seed: 1,
        version: "0".into(),
        protocol: "push".into(),
        transport: "tcp".into(),
        control_transport: Some("tcp".into()),
        readout_units: 1,
        builder_units: 1,
        events: Events { triggered: 1, built: 1, incomplete: 0, rejected: 0, lost: 0, reassigned: 0 },
        trigger: Trigger {
            offered: 0,
            offered_rate_hz: Some(1.0),
            inhibited: 0,
            switched: 1,
            inhibitions: 0,
            slots: 1.0,
            block: 1.0,
        },
        switch_seconds: Some(1.0),
        seconds: 1.0,
        window: Window { from_s: 0.0, to_s: 1.0, steady: true },
        event_rate_hz: 1.0,
        event_rate_interval_hz: Some(Bounds { low: 0.5, high: 1.5 }),
        fragment_rate_hz: 1.0,
        throughput_bytes_per_s: 1.0,
        goodput_bytes_per_s: Some(1.0),
        per_destination_bytes_per_s: vec![1.0],
        per_source_bytes_per_s: vec![1.0],
        latency_us: Latency { mean: Some(1.0), p50: 1.0, p99: 1.0, p999: 1.0, max: 1.0 },
        faults: BTreeMap::from([("late".into(), 1)]),
        builders: vec![BuilderRecord {
            built: 1,
            incomplete: 0,
            rejected: 0,
            fragments: 1,
            bytes: 1,
            useful_bytes: 1,
            asked: 1,
            repeated: 1,
            stored: 1,
            stored_bytes: 1,
            file_count: 1,
            files: vec!["a.evb".into()],
        }],
        readouts: vec![ReadoutRecord {
            came: 1,
            apart: 0,
            waiting: 1,
            apart_by_reason: BTreeMap::from([("early".into(), 1)]),
            apart_files: vec!["a-1-ru0.apart.evb".into()],
            apart_unstored: 1,
            source_id: Some(841),
            fragments: 1,
            bytes: 1,
            sent: 1,
            sent_bytes: 1,
            repeated: 1,
            busy: 1,
            most_events: 1,
            most_bytes: 1,
            rejected: 1,
            faults: [("missing".into(), 1)].into(),
            clock: Some(ClockRecord { place: ClockPlace::Known, found: 1, lost: 0, drift_ppm: Some(1.0) }),
            source: Some(SourceRecord {
                state: SourceState::Sending,
                since_s: 1.0,
                peer: Some("127.0.0.1:5000".into()),
                rate_hz: 1.0,
                last_s: Some(1.0),
                last_counter: Some(1),
                last_mark: Some(1),
                lost: Some(1),
                control: Some(FrontEndRecord { busy: true, vetoes: 1, busy_s: 1.0, problems: 1 }),
            }),
        }],
        bundles: Some(Bundles {
            sources: 3,
            block: 2,
            masked: vec![2],
            faulty_sources: 1,
            faults: [(1, [("missing".into(), 1)].into())].into(),
        }),
        broadcast: Some(Broadcast {
            how: "multicast".into(),
            messages: 1,
            receivers: 2,
            copies: 1,
            repeated: 1,
            asked: true,
            fell_back: Some("ru0: a reason".into()),
        }),
        placement: BTreeMap::from([("ru0".into(), 1)]),
        shaping: Some(Shaping {
            kind: "barrel-shifter".into(),
            step: Some("credit".into()),
            bytes: 1,
            lead_bytes: 1,
            slots: Slots { used: 1, empty: 1, passed: 1 },
            skew_us: Some(1.0),
        }),
        occupancy: Some(Occupancy {
            looks: 1,
            machine_busy: Some(0.5),
            readouts: vec![ReadoutOccupancy { filled: 0.5, waited_for: 1.0 }],
            builders: vec![BuilderOccupancy { building: 1.0, storing: 1.0 }],
        }),
        histograms: vec![Histogram {
            name: "charge of ru0".into(),
            source: "ru0".into(),
            field: "charge".into(),
            range: [0.0, 4096.0],
            channels: true,
            one_in: 1,
            entries: 1,
            mean: Some(1.0),
            underflow: 0,
            overflow: 0,
            fragments: 1,
            unfit: 0,
            missing: 0,
            bins: vec![1],
        }],
        filter: Some(Filtering {
            accepted: 1,
            rejected: 1,
            quarantined: 1,
            reasons: BTreeMap::from([("crashed".into(), 1)]),
            restarts: 1,
            joined: 1,
            lost: 1,
            decided_hz: 1.0,
            accepted_hz: 1.0,
            given: BTreeMap::from([("memory".into(), Given { events: 1, bytes: 1 })]),
            streams: vec![Stream {
                name: "physics".into(),
                copies: true,
                events: 1,
                bytes: 1,
                events_hz: 1.0,
                bytes_per_s: 1.0,
            }],
        }),
        stages: None,
        lost_nodes: vec!["ru0".into()],
        findings: vec![Finding::new(FindingKind::Failed, "bu0", "a message").hint("a hint")],
        good: true,
        verdict: Some(Outcome::Good),
        simulation: Some(Simulation {
            wall_seconds: 1.0,
            packets: 1,
            packet_hops: 1,
            efficiency: 1.0,
            goodput_efficiency: Some(1.0),
            warmup_seconds: 1.0,
            cpu: Some(CpuRecord {
                cores: 1,
                workers: vec![WorkerRecord { nodes: vec!["ru0".into()], load: 1.0 }],
                work: vec![work()],
                fit_error_percent: Some(1.0),
            }),
            background: vec![Background {
                name: "storage".into(),
                pattern: "assigned".into(),
                senders: 1,
                receivers: 1,
                from_s: 1.0,
                seconds: 1.0,
                sent: 1,
                sent_bytes: 1,
                messages: 1,
                bytes: 1,
                lost: 1,
                refused: 1,
                offered_bytes_per_s: Some(1.0),
                throughput_bytes_per_s: 1.0,
                latency_us: Latency { mean: Some(1.0), p50: 1.0, p99: 1.0, p999: 1.0, max: 1.0 },
            }],
            network: Network {
                preset: "ideal".into(),
                topology: "crossbar".into(),
                routing: "fixed".into(),
                flow: "cut-through".into(),
                hosts: 1,
                lost_packets: 1,
                corrupted_packets: 1,
                flooded_packets: 1,
                packets_left: 1,
                route_changes: 1,
                deadlock: vec!["a>b".into()],
                mapping: Some(Mapping {
                    messages: 1,
                    elections: 1,
                    surveys: 1,
                    maps: vec![KnownMap {
                        leader: "h0".into(),
                        made_s: 1.0,
                        known_s: 1.0,
                        known_to: 1,
                        switches: 1,
                        hosts: 1,
                        cables: 1,
                    }],
                }),
                faults: vec![NetworkFault {
                    target: "spine0".into(),
                    action: "fail".into(),
                    at_s: 1.0,
                    until_s: Some(1.0),
                    rerouted_s: Some(1.0),
                    rerouted_packets: 1,
                    lost_packets: 1,
                    cut_off: vec!["ru0".into()],
                    dip: Some(Dip {
                        before_hz: 1.0,
                        lowest_hz: 1.0,
                        recovered_after_s: Some(1.0),
                        after_hz: 1.0,
                        resolution_s: 1.0,
                    }),
                }],
                timeline: Some(Timeline { step_s: 1.0, rates_hz: vec![1.0] }),
                connections: Some(Connections {
                    count: 1,
                    segments: 1,
                    sent_again: 1,
                    timeouts: 1,
                    probes: 1,
                    recoveries: 1,
                    marked_bytes: 1,
                    notices: 1,
                    trimmed: 1,
                    most_senders: 1,
                    rates: ConnectionRates::of(vec![1.0]),
                    over_time: Some(ConnectionsOverTime {
                        step_s: 1.0,
                        goodput_bytes_per_s: vec![1.0],
                        sent_again: vec![1],
                        timeouts: vec![1],
                        outstanding: vec![1.0],
                        window_bytes: vec![Some(1.0)],
                        rate_bytes_per_s: vec![Some(1.0)],
                        marked_bytes: vec![1],
                        notices: vec![1],
                    }),
                }),
                links: vec![LinkRecord {
                    name: "h0>switch0".into(),
                    packets: 1,
                    bytes: 1,
                    background_bytes: 1,
                    used: 0.5,
                    blocked: 0.5,
                    mean_wait_us: 1.0,
                    most_waiting: 1,
                    most_bytes: 1,
                    dropped: 1,
                    marked: 1,
                    trimmed: 1,
                    pauses: 1,
                    most_headroom_bytes: 1,
                    ingress_dropped: 1,
                    paused: 0.5,
                    pause_chain: 1,
                    storms: 1,
                    watchdog_dropped: 1,
                }],
            },
        }),
    }
}

/// Appends the path of every leaf: `a.b` in an object, `a[]` in a list. The keys of a map are not fields.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match (path, value) {
        ("sweep", _) => drop(found.insert("sweep.KEY".into())),
        ("filter.reasons", _) => drop(found.insert("filter.reasons.REASON".into())),
        ("filter.given", Value::Object(ways)) => paths(&ways["memory"], "filter.given.WAY", found),
        ("stages.first" | "stages.second", _) => drop(found.insert(format!("{path}[]"))),
        ("items", Value::Object(_)) => drop(found.insert("items.ITEM[]".into())),
        ("counters[]", _) => drop(found.insert("counters[].COUNTER".into())),
        ("faults", _) => drop(found.insert("faults.KIND".into())),
        ("readouts[].faults", _) => drop(found.insert("readouts[].faults.KIND".into())),
        ("readouts[].apart_by_reason", _) => drop(found.insert("readouts[].apart_by_reason.REASON".into())),
        ("placement", _) => drop(found.insert("placement.NODE".into())),
        ("bundles.faults", _) => drop(found.insert("bundles.faults.SOURCE.KIND".into())),
        ("taken_from", Value::Object(origins)) => paths(&origins["latency_us"], "taken_from.NAME", found),
        (_, Value::Object(fields)) => fields.iter().for_each(|(name, field)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            paths(field, &path, found);
        }),
        (_, Value::Array(items)) if !items[0].is_string() => paths(&items[0], &format!("{path}[]"), found),
        _ => drop(found.insert(path.into())),
    }
}

/// The rows of all tables of the page: name, value, unit, meaning.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// A published value with something everywhere.
fn item() -> PaperItem {
    PaperItem {
        kind: RecordKind::Paper,
        paper: "a-paper".into(),
        item: "a-value".into(),
        what: "a value".into(),
        place: "table 1".into(),
        unit: "MB/s".into(),
        relation: Relation::Equal,
        published: Some(1.0),
        reproduced: Some(1.0),
        difference: Some(0.0),
        tolerance: Some(0.1),
        error_from: "its last digit".into(),
        class: Class::Implied,
        because: "a formula".into(),
        verdict: Verdict::Inside,
        theory: true,
        known: Some("a reason".into()),
        varies: true,
        measured_with: Some("a tool".into()),
        seed: 1,
        version: "0".into(),
    }
}

/// A parameter of a paper with something everywhere.
fn parameter() -> Sensitivity {
    Sensitivity {
        kind: RecordKind::Sensitivity,
        paper: "a-paper".into(),
        parameter: "a parameter".into(),
        basis: Basis::Calibrated,
        because: "a reason".into(),
        set_by: vec!["a-value".into()],
        values: vec!["1 us".into(), "2 us".into()],
        items: BTreeMap::from([("a-value".into(), vec![Some(1.0), Some(2.0)])]),
        seed: 1,
        version: "0".into(),
    }
}

/// A measurement of hardware with something everywhere.
fn measurement() -> HardwareMeasurement {
    HardwareMeasurement {
        kind: RecordKind::Hardware,
        bench: "link".into(),
        what: "latency".into(),
        unit: "cycles".into(),
        value: 1.0,
        tool: "a tool".into(),
    }
}

/// A benchmark with something everywhere.
fn benchmark() -> Benchmark {
    let times = Times { min: 1.0, p50: 1.0, p99: 1.0, p999: 1.0, max: 1.0, mean: 1.0, samples: 1 };
    let cores = CoreToCore { line_ns: 1.0, message_ns: 1.0 };
    Benchmark {
        kind: RecordKind::Benchmark,
        experiment: "bench".into(),
        seed: 1,
        version: "0".into(),
        pattern: "ping-pong".into(),
        transport: "tcp".into(),
        settings: settings(),
        cores: vec![0, 1],
        cycle_ns: Some(times),
        half_round_trip_ns: Some(times),
        messages_per_s: 1.0,
        bytes_per_s: 8.0,
        cpu_load: CpuLoad { senders: 1.0, receivers: 1.0 },
        launches: Launches {
            quantity: "cycle_ns".into(),
            values: vec![1.0],
            median: 1.0,
            low: 1.0,
            high: 1.0,
            confidence: 0.0,
        },
        longest_gap_us: 1.0,
        messages: 1,
        lost: 0,
        corrupted: 0,
        calibration: Some(Calibration { before: cores, after: cores }),
        trusted: true,
        notes: vec!["a note".into()],
        good: true,
    }
}

/// The test of a fabric with something everywhere.
fn qualification() -> Qualification {
    let speed = LinkSpeed {
        half_round_trip_ns: 1.0,
        mean_half_round_trip_ns: 1.0,
        least_round_trips_per_s: 1.0,
        bytes_per_s: 1.0,
    };
    let link = PairOfNodes {
        nodes: [0, 1],
        half_round_trip_ns: Times { min: 1.0, p50: 1.0, p99: 1.0, p999: 1.0, max: 1.0, mean: 1.0, samples: 1 },
        least_round_trips_per_s: 1.0,
        bytes_per_s: [1.0, 1.0],
        least_bytes_per_s: [1.0, 1.0],
        verdict: LinkVerdict::Disturbed,
        slower: Some(1.0),
        alone: vec![speed],
        lost: 1,
    };
    Qualification {
        kind: RecordKind::Qualification,
        experiment: "bench".into(),
        seed: 1,
        version: "0".into(),
        pattern: "all-pairs".into(),
        transport: "tcp".into(),
        nodes: 2,
        hosts: vec!["a".into(), "b".into()],
        size_bytes: 64,
        bulk_bytes: 65536,
        rounds: 1,
        seconds: 1.0,
        usual: speed,
        usual_alone: Some(speed),
        links: vec![link],
        counters: vec![BTreeMap::from([("eth0 rx_packets".into(), 1)])],
        not_accepted: vec!["a limit".into()],
        notes: vec!["a note".into()],
        good: false,
    }
}

fn work() -> WorkRecord {
    WorkRecord { item: "poll".into(), count: 1, spent_seconds: 1.0 }
}

/// A comparison of runs with their simulation, with something everywhere.
fn twin() -> Twin {
    let figure = || TwinFigure {
        figure: "event rate, Hz".into(),
        real: vec![1.0],
        simulated: 1.0,
        simulated_range: Some(Bounds { low: 1.0, high: 1.0 }),
        agrees: true,
    };
    Twin {
        kind: RecordKind::Twin,
        experiment: "a".into(),
        sweep: BTreeMap::from([("a".into(), "b".into())]),
        seed: 1,
        version: "0".into(),
        transport: "in-process".into(),
        turns: 1,
        band_percent: 1.0,
        fitted_reference_hz: 1.0,
        reference_hz: vec![1.0],
        figures: vec![figure()],
        simulated_work: vec![work()],
        agreement: Agreement::Agree,
        explanation: "a reason".into(),
        loads: vec![TwinLoad {
            load: 0.2,
            rate_hz: 1.0,
            reference_hz: vec![1.0],
            figures: vec![figure()],
            agreement: Agreement::Agree,
            explanation: "a reason".into(),
        }],
    }
}

/// A plan with something everywhere.
fn planning() -> Planning {
    let bounds = Bounds { low: 1.0, high: 2.0 };
    let level = PlanLevel { switch: "a".into(), switches: 1, down: 1, up: 1, up_bits_per_s: 1 };
    let text = || String::from("a");
    let line = BillLine { kind: "switch".into(), part: text(), count: 1, each: bounds, power_w: 1.0, source: text() };
    let judgement = Judgement {
        candidate: 1,
        choice: 0,
        verdict: PlanVerdict::Bound,
        reason: text(),
        carried: Some(1.0),
        bound: 1.0,
    };
    Planning {
        kind: RecordKind::Planning,
        plan: text(),
        seed: 1,
        version: "0".into(),
        goal: PlanningGoal {
            readout_units: 1,
            builder_units: 1,
            hosts: 2,
            event_bytes: bounds,
            rate_hz: bounds,
            growth: 0.0,
            headroom: 0.0,
            accept_loss: 0,
            latency_us: Some(1.0),
            survive: vec!["cable".into()],
        },
        parts_date: text(),
        currency: text(),
        choices: vec![BTreeMap::from([("KEY".into(), "none".into())])],
        candidates: vec![PlanCandidate {
            number: 1,
            network: text(),
            host_bits_per_s: 1,
            levels: vec![level],
            cost: bounds,
            power_w: 1.0,
            bill: vec![line],
        }],
        judgements: vec![judgement],
        front: vec![FrontEntry {
            candidate: 1,
            choice: 0,
            carries: 1.0,
            latency_p99_us: Some(1.0),
            busiest_link: text(),
            busiest_used: 1.0,
        }],
        notes: vec![text()],
        simulations: 1,
        advice: vec![advice()],
    }
}

/// The advice of a plan with something everywhere.
fn advice() -> Advice {
    let text = || String::from("a");
    let figures =
        PlanFigures { rate_hz: 1.0, offered_hz: 1.0, latency_p99_us: 1.0, busiest_link: text(), busiest_used: 1.0 };
    let answer = PlanAnswer { outcome: Outcome::Good, reason: text(), simulation: Some(figures) };
    let extra_cost = Bounds { low: 1.0, high: 2.0 };
    Advice {
        candidate: 1,
        choice: 0,
        changes: vec![PlanChange { what: text(), candidate: 1, choice: 0, extra_cost, answer: answer.clone() }],
        assumptions: vec![Assumption { what: text(), value: text(), factor: 1.1, answer }],
    }
}

/// Parameters, all of them known.
fn parameters() -> Parameters {
    let origin = Origin { rows: "ping-pong, 8 B, 2 nodes".into(), trusted: true };
    Parameters {
        kind: RecordKind::Parameters,
        transport: "tcp".into(),
        latency_us: Some(1.0),
        two_way_us: Some(1.0),
        overhead_us: Some(1.0),
        bandwidth_mb_per_s: Some(1.0),
        broadcast_quality: Some(1.0),
        funnel_us: Some(1.0),
        push_farm_us: Some(1.0),
        pull_farm_us: Some(1.0),
        overlap_percent: Some(1.0),
        half_peak_bytes: Some(1.0),
        peak_rate_m_per_s: Some(1.0),
        fixed_overhead_us: Some(1.0),
        rate_mb_per_s: Some(1.0),
        fit_error_percent: Some(1.0),
        taken_from: BTreeMap::from([("latency_us".into(), origin)]),
    }
}

/// The settings of a benchmark with something everywhere.
fn settings() -> BenchmarkSettings {
    BenchmarkSettings {
        size_bytes: 8,
        nodes: 2,
        compute_us: 0.0,
        window: 1,
        rate_hz: Some(1.0),
        gathers: Some((3, 20)),
        destinations: vec![0, 0, 1],
        wait: "yield".into(),
    }
}

/// A difference with something everywhere.
fn difference(quantity: &str) -> Difference {
    let interval = Interval { median: 1.0, low: 1.0, high: 1.0 };
    Difference {
        quantity: quantity.into(),
        old: Some(interval),
        new: Some(interval),
        change_percent: Some(0.0),
        change_low_percent: Some(0.0),
        change_high_percent: Some(0.0),
        seen_from_percent: Some(0.0),
        verdict: Change::Same,
        reason: Some("a reason".into()),
        good: true,
    }
}

/// A comparison with something everywhere.
fn comparison() -> Comparison {
    Comparison {
        kind: RecordKind::Comparison,
        transport: "tcp".into(),
        pattern: "ping-pong".into(),
        settings: settings(),
        difference: difference("cycle_ns"),
    }
}

/// A comparison of runs with something everywhere.
fn run_comparison() -> RunComparison {
    RunComparison {
        kind: RecordKind::RunComparison,
        experiment: "full".into(),
        sweep: BTreeMap::from([("builder.units".into(), "2".into())]),
        transports: ["tcp".into(), "simulated".into()],
        difference: difference("event_rate_hz"),
    }
}

#[test]
fn the_reference_page_names_every_field_and_no_other() {
    let page = fs::read_to_string(PAGE).expect("the reference page");
    let listed = rows(&page).iter().map(|row| row[0].trim_matches('`').to_owned()).collect::<Vec<_>>();
    let names: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(names.len(), listed.len(), "a name is listed twice");
    let mut fields = BTreeSet::new();
    let records = [
        serde_json::to_value(full()),
        serde_json::to_value(item()),
        serde_json::to_value(parameter()),
        serde_json::to_value(measurement()),
        serde_json::to_value(benchmark()),
        serde_json::to_value(parameters()),
        serde_json::to_value(comparison()),
        serde_json::to_value(run_comparison()),
        serde_json::to_value(qualification()),
        serde_json::to_value(planning()),
        serde_json::to_value(twin()),
    ];
    records.into_iter().for_each(|record| paths(&record.expect("a record is JSON"), "", &mut fields));
    let missing: Vec<_> = fields.difference(&names).collect();
    let unknown: Vec<_> = names.difference(&fields).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "the page lacks {missing:?} and has {unknown:?} too many");
}

#[test]
fn every_row_of_the_reference_page_is_whole_and_units_are_as_in_the_name() {
    let page = fs::read_to_string(PAGE).expect("the reference page");
    for row in rows(&page) {
        let &[name, value, unit, meaning] = &row[..] else { panic!("{row:?} has not four columns") };
        let expected = match name.trim_matches(['`', ']', '[']) {
            name if name.ends_with("seconds") || name.starts_with("window.") && name.ends_with("_s") => "s",
            name if name.starts_with("network.faults") && name.ends_with("_s") || name.ends_with(".step_s") => "s",
            name if ["from_s", "made_s", "known_s", "since_s", "last_s", "busy_s"]
                .iter()
                .any(|end| name.ends_with(end)) =>
            {
                "s"
            }
            name if name.ends_with("_hz") || name.contains("_hz.") => "Hz",
            name if name.ends_with("bytes_per_s") => "B/s",
            name if name.ends_with("mb_per_s") => "MB/s",
            name if name.ends_with("rate_m_per_s") => "million/s",
            name if name.ends_with("messages_per_s") || name.ends_with("round_trips_per_s") => "1/s",
            name if name.ends_with("bytes") => "B",
            name if name.ends_with("_percent") => "%",
            name if name.ends_with("power_w") => "W",
            name if name.ends_with("bits_per_s") => "bit/s",
            name if name.contains("_bytes.") => "B",
            name if name.ends_with(".samples") => "",
            name if name.contains("_ns.") || name.ends_with("_ns") => "ns",
            name if name.contains("latency_us.") || name.ends_with("_us") => "us",
            _ => "",
        };
        assert_eq!(unit, expected, "{name}");
        assert!(!value.is_empty() && !meaning.is_empty(), "{name}");
    }
}

#[test]
fn a_record_comes_back_from_json() {
    let text = serde_json::to_string(&full()).expect("a record is JSON");
    assert_eq!(serde_json::from_str::<Record>(&text).expect("a record"), full());
    let text = serde_json::to_string(&benchmark()).expect("a record is JSON");
    assert_eq!(serde_json::from_str::<Benchmark>(&text).expect("a record"), benchmark());
    let text = serde_json::to_string(&parameters()).expect("a record is JSON");
    assert_eq!(serde_json::from_str::<Parameters>(&text).expect("a record"), parameters());
    let text = serde_json::to_string(&comparison()).expect("a record is JSON");
    assert_eq!(serde_json::from_str::<Comparison>(&text).expect("a record"), comparison());
    let text = serde_json::to_string(&run_comparison()).expect("a record is JSON");
    assert_eq!(serde_json::from_str::<RunComparison>(&text).expect("a record"), run_comparison());
    let text = serde_json::to_string(&qualification()).expect("a record is JSON");
    assert_eq!(serde_json::from_str::<Qualification>(&text).expect("a record"), qualification());
    let text = serde_json::to_string(&twin()).expect("a record is JSON");
    assert_eq!(serde_json::from_str::<Twin>(&text).expect("a record"), twin());
    let text = serde_json::to_string(&planning()).expect("a record is JSON");
    assert_eq!(serde_json::from_str::<Planning>(&text).expect("a record"), planning());
}

#[test]
fn records_of_earlier_versions_have_a_verdict() {
    let earlier = |good: bool| {
        let mut json = serde_json::to_value(Record { good, ..full() }).expect("a record is JSON");
        json.as_object_mut().expect("an object").remove("verdict");
        serde_json::from_value::<Record>(json).expect("a record").outcome()
    };
    assert_eq!((earlier(true), earlier(false)), (Outcome::Good, Outcome::NotGood));
}
