//! `evb twin`: runs beside their simulation, and the fit of a machine.

use crate::support::Lab;
use serde_json::Value;
use std::fs;

const EXPERIMENT: &str = r#"
[trigger]
events = 2000
[readout]
units = 2
source = { type = "fixed", size = "1 kB" }
[builder]
units = 2
[storage]
keep = "none"
"#;

/// A machine that was a thousand times slower when it was fitted.
const MACHINE: &str = r#"
[network]
preset = "ideal"
fitted_to = "in-process"
[network.cpu]
cores = 2
computers = "one"
messages = "memory"
poll = "100 ns"
readout.fragment = "300 ns"
builder.fragment = "300 ns"
fit = { error = 10, reference = "500 Hz" }
"#;

fn lab() -> Lab {
    let lab = Lab::with(EXPERIMENT);
    fs::write(lab.path("machine.toml"), MACHINE).expect("a file");
    lab
}

const HELD: [&str; 6] = ["twin", "experiment.toml", "--network", "machine.toml", "--turns", "2"];

#[test]
fn a_machine_that_is_not_the_one_of_the_fit_is_not_compared() {
    let lab = lab();
    let outcome = lab.evb(&[&HELD[..], &["--json"]].concat()).run();
    assert_eq!(outcome.code(), Some(3), "{outcome}");
    let record = outcome.json();
    assert_eq!((&record["kind"], &record["agreement"]), (&"twin".into(), &"not_comparable".into()), "{record}");
    let names: Vec<_> = record["figures"].as_array().expect("figures").iter().map(|one| &one["figure"]).collect();
    assert_eq!(names[..2], ["event rate, Hz", "throughput, B/s"], "{record}");
    let rate = &record["figures"][0];
    assert_eq!(rate["real"].as_array().map(Vec::len), Some(2), "{rate}");
    // Four pieces of work of 0.3 us for an event, by two workers.
    let simulated = rate["simulated"].as_f64().expect("a rate");
    assert!((1.2e6..1.7e6).contains(&simulated), "{rate}");
    assert!(rate["simulated_range"]["low"].as_f64() < Some(simulated), "{rate}");
    assert!(record["simulated_work"].as_array().is_some_and(|work| work.len() > 5), "{record}");
    let outcome = lab.evb(&HELD).run();
    assert_eq!(outcome.code(), Some(3), "{outcome}");
    assert!(outcome.stdout.contains("\nnot comparable: the reference run had"), "{outcome}");
}

/// Two points: the machine was another one when it was fitted, so that neither is comparable.
#[test]
fn each_point_of_a_sweep_is_run_and_simulated_and_goes_on_where_it_ended() {
    let lab = lab();
    lab.write("experiment.toml", format!("{EXPERIMENT}[sweep]\n\"readout.source.size\" = [\"1 kB\", \"4 kB\"]\n"));
    let held = |more: &[&str]| {
        let outcome = lab.evb(&[&HELD[..], more].concat()).run();
        assert_eq!(outcome.code(), Some(3), "{outcome}");
        outcome
    };
    let outcome = held(&["--out", "out"]);
    assert!(outcome.stdout.ends_with("\nnot comparable: 2 of 2 points\n"), "{outcome}");
    let read = |file: &str| fs::read_to_string(lab.path("out").join(file)).expect("a file");
    let plot = read("event-rate.svg");
    assert!(plot.contains("fragment size (bytes)") && plot.contains("band of the fit"), "{plot}");
    let table = read("points.csv");
    assert!(table.starts_with("readout.source.size,experiment,") && table.lines().count() == 3, "{table}");
    let records = read("records.jsonl");
    let sizes = records.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    let sizes: Vec<_> = sizes.map(|record| record["sweep"]["readout.source.size"].clone()).collect();
    assert_eq!(sizes, ["1 kB", "4 kB"]);

    // A point that was comparable is kept, and the other one is measured again.
    let (first, second) = records.split_once('\n').expect("two records");
    let kept = first.replace("\"not_comparable\"", "\"agree\"");
    fs::write(lab.path("out").join("records.jsonl"), format!("{kept}\n{second}")).expect("records");
    let outcome = held(&["--out", "out", "--resume", "--json"]);
    assert_eq!(outcome.stdout, read("records.jsonl"));
    let (now, again) = outcome.stdout.split_once('\n').expect("two records");
    assert_eq!(now, kept);
    assert!(again != second && again.contains("\"not_comparable\""), "{again}");
}

#[test]
fn latencies_are_compared_at_parts_of_the_full_rate() {
    let lab = lab();
    let held = |more: &[&str]| lab.evb(&[&HELD[..], &["--load", "0.2,0.5"], more].concat()).run();
    let outcome = held(&["--json"]);
    assert_eq!(outcome.code(), Some(3), "{outcome}");
    let record = outcome.json();
    let number = |value: &Value| value.as_f64().expect("a number");
    let full: Vec<_> = record["figures"][0]["real"].as_array().expect("rates").iter().map(number).collect();
    let full = f64::midpoint(full[0], full[1]);
    let loads = record["loads"].as_array().expect("loads");
    assert_eq!(loads.iter().map(|load| number(&load["load"])).collect::<Vec<_>>(), [0.2, 0.5]);
    for load in loads {
        let part = number(&load["rate_hz"]) / full;
        assert!((part - number(&load["load"])).abs() < 1e-3, "{part}: {load}");
        assert_eq!(load["figures"][2]["figure"], "latency median, us");
        assert_eq!(load["figures"][2]["real"].as_array().map(Vec::len), Some(2), "{load}");
        assert!(number(&load["figures"][2]["simulated"]) > 0.0, "{load}");
        assert_eq!(load["agreement"], "not_comparable");
    }
    let outcome = held(&[]);
    assert!(outcome.stdout.contains("\nat 20 %: not comparable: "), "{outcome}");
    let at_a_rate = held(&["--set", "trigger.type=rate", "--set", "trigger.rate=1 kHz"]);
    assert_eq!(at_a_rate.code(), Some(2), "{at_a_rate}");
    assert!(at_a_rate.stderr.contains("there is no load without a full rate"), "{at_a_rate}");
    let too_much = lab.evb(&[&HELD[..], &["--load", "1.5"]].concat()).run();
    assert!(too_much.stderr.contains("between 0 and 1"), "{too_much}");
}

#[test]
fn what_cannot_be_held_against_its_simulation_is_refused() {
    let lab = lab();
    let network = |text: &str| {
        fs::write(lab.path("machine.toml"), text).expect("a file");
        let outcome = lab.evb(&HELD).run();
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        outcome.stderr
    };
    let no_costs = network("[network]\npreset = \"ideal\"\n");
    assert!(
        no_costs.contains("the work of nodes takes no time in it") && no_costs.contains("evb twin --fit"),
        "{no_costs}"
    );
    let other = network(&MACHINE.replace("in-process", "tcp"));
    assert!(other.contains("the costs were fitted to tcp, and this experiment runs over in-process"), "{other}");
    let slots = lab.evb(&["twin", "experiment.toml"]).run();
    assert_eq!(slots.code(), Some(2), "{slots}");
}

#[test]
fn a_machine_is_fitted_and_simulated() {
    let lab = lab();
    let outcome = lab.evb(&["twin", "--fit", "fitted.toml", "--transport", "shm", "--turns", "1"]).run();
    assert_eq!(outcome.code(), Some(0), "{outcome}");
    assert!(outcome.stderr.contains("fitted.toml holds the costs; nine in ten of the"), "{outcome}");
    let fitted = fs::read_to_string(lab.path("fitted.toml")).expect("a fit");
    let rows = fitted.lines().filter(|line| line.starts_with('#') && line.contains(" kHz ")).count();
    assert!(rows > 15 && fitted.contains("nodes = \"processes\""), "{fitted}");
    let outcome = lab.evb(&["simulate", "experiment.toml", "--network", "fitted.toml", "--json"]).run();
    assert_eq!(outcome.code(), Some(0), "{outcome}");
    let record = outcome.json();
    assert_eq!(record["events"]["built"], 2000);
    assert_eq!(record["cpu"]["workers"].as_array().map(Vec::len), Some(5), "{record}");
    assert!(record["cpu"]["fit_error_percent"].as_f64().is_some_and(f64::is_finite), "{record}");
    let findings = record["findings"].as_array().cloned().unwrap_or_default();
    assert!(findings.iter().all(|one: &Value| one["kind"] != "not_modelled"), "{record}");
}
