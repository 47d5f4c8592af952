//! `evb plan` and `evb explain` of its plan.

use crate::support::{Lab, Outcome};
use serde_json::Value;

const EXPERIMENT: &str = r#"
[network]
preset = "roce-100g-clos"
placement = { readout = 0, builder = 4 }
control = { type = "separate", delay = "5 us", rate = "10 Gbit/s" }
[trigger]
type = "rate"
rate = "20 kHz"
block = 1
duration = "1 ms"
[readout]
units = 4
source = { type = "log-normal", mean = "60 kB", rms = "10 kB" }
[builder]
units = 2
[protocol]
type = "push"
group_timeout = "20 us"
[storage]
keep = "none"
"#;

const PARTS: &str = r#"
date = "2026-11"
currency = "EUR"
[[switch]]
name = "switch"
ports = [{ count = 8, rate = "100 Gbit/s" }]
cost = 10
power_w = 100
source = "assumed"
[[cable]]
name = "cable"
rate = "100 Gbit/s"
reach_m = 100
cost = 0.5
source = "assumed"
[[interface]]
name = "25G"
rate = "25 Gbit/s"
cost = 1
source = "assumed"
[[interface]]
name = "100G"
rate = "100 Gbit/s"
cost = 3
source = "assumed"
"#;

const PLAN: &str = r#"
experiment = "experiment.toml"
parts = "parts.toml"
[search]
triggers = [100, 300]
loads = [1]
"#;

fn lab() -> Lab {
    let lab = Lab::new();
    for (name, text) in [("experiment.toml", EXPERIMENT), ("parts.toml", PARTS), ("plan.toml", PLAN)] {
        lab.write(name, text);
    }
    lab
}

fn plan(lab: &Lab, arguments: &[&str], code: i32) -> Outcome {
    let outcome = lab.evb(&["plan", "plan.toml", "--out", "plan", "--progress=none"]).args(arguments).run();
    assert_eq!(outcome.code(), Some(code), "{outcome}");
    outcome
}

#[test]
fn a_plan_is_explained_with_its_advice_or_with_the_way_to_it() {
    let lab = lab();
    plan(&lab, &[], 0);
    let explained = |arguments: &[&str]| lab.evb(&["explain", "plan/plan.json"]).args(arguments).run();
    let without = explained(&[]);
    assert_eq!(without.code(), Some(0), "{without}");
    for text in ["is the cheapest that is enough", "the plan was made without advice"] {
        assert!(without.stdout.contains(text), "{text}: {without}");
    }
    assert_eq!(explained(&["--json"]).stdout, "[]\n");

    let advised = plan(&lab, &["--resume", "--advice"], 0);
    let with = explained(&[]);
    for text in ["what gains 10 %", "what the result hangs on"] {
        assert!(advised.stdout.contains(text) && with.stdout.contains(text), "{text}: {advised}{with}");
    }
    assert!(!with.stdout.contains("without advice"), "{with}");
    let advice: Value = serde_json::from_str(&explained(&["--json"]).stdout).unwrap();
    let [changes, assumptions] = ["changes", "assumptions"].map(|name| advice[0][name].as_array().unwrap());
    let whats: Vec<_> = changes.iter().map(|change| &change["what"]).collect();
    assert_eq!(whats, ["no change", "faster interfaces"]);
    assert!(assumptions.iter().any(|one| one["what"] == "spread of sizes" && one["value"] == "rms 10 kB"), "{advice}");
}

#[test]
fn a_plan_without_a_network_is_explained_as_one() {
    let lab = lab();
    lab.write("experiment.toml", EXPERIMENT.replace("20 kHz", "200 kHz"));
    plan(&lab, &["--advice"], 1);
    let explained = lab.evb(&["explain", "plan/plan.json"]).run();
    assert_eq!(explained.code(), Some(1), "{explained}");
    assert!(explained.stdout.contains("no network of these parts is enough"), "{explained}");
}

#[test]
fn plans_are_not_compared() {
    let lab = lab();
    plan(&lab, &[], 0);
    let compared = lab.evb(&["compare", "plan/plan.json", "plan/plan.json"]).run();
    assert_eq!(compared.code(), Some(2), "{compared}");
    assert!(compared.stderr.contains("plans are not compared"), "{compared}");
}
