//! A small question, and planners that answer it.

use evb::{Plan, Record, SimulateError};
use evb_planner::{Planner, PlannerError, Store};
use evb_record::{Outcome, Planning};
use std::{fs, num::NonZeroUsize, path::Path};

pub(crate) const EXPERIMENT: &str = r#"
[network]
preset = "roce-100g-clos"
placement = { readout = 0, builder = 8 }
control = { type = "separate", delay = "5 us", rate = "10 Gbit/s" }
[trigger]
type = "rate"
rate = "1 kHz"
block = 1
duration = "1 ms"
[readout]
units = 8
source = { type = "log-normal", mean = "60 kB", rms = "10 kB" }
[builder]
units = 8
[protocol]
type = "push"
group_timeout = "20 us"
[storage]
keep = "none"
"#;

pub(crate) const PARTS: &str = r#"
date = "2026-11"
currency = "EUR"
[[switch]]
name = "small"
ports = [{ count = 8, rate = "100 Gbit/s" }]
cost = 10
power_w = 100
source = "assumed"
[[switch]]
name = "large"
ports = [{ count = 20, rate = "100 Gbit/s" }]
cost = 100
power_w = 600
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

pub(crate) const PLAN: &str = r#"
experiment = "experiment.toml"
parts = "parts.toml"
[goal]
rate = "42 kHz"
[search]
triggers = [150, 500, 2000]
"#;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Planner(#[from] PlannerError),
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

pub(crate) fn write(folder: &Path, plan: &str) -> Planner {
    for (name, text) in [("experiment.toml", EXPERIMENT), ("parts.toml", PARTS), ("plan.toml", plan)] {
        fs::write(folder.join(name), text).unwrap();
    }
    Planner::load(&folder.join("plan.toml")).unwrap()
}

pub(crate) fn simulate(plan: &Plan) -> Result<Record, SimulateError> {
    evb::simulate(plan, NonZeroUsize::MIN, None, &mut |_| true)
}

pub(crate) fn search(planner: &Planner, store: &mut Store) -> (Planning, usize) {
    let mut simulated = 0;
    let planning = planner.search::<Failure>(store, &mut |plans, take| {
        simulated += plans.len();
        plans.iter().enumerate().try_for_each(|(index, plan)| take.ended(index, &simulate(plan)?))
    });
    (planning.unwrap(), simulated)
}

pub(crate) fn simulate_candidate(planner: &Planner, candidate: u32, choice: usize) -> Outcome {
    let experiment = planner.experiment(candidate, choice).unwrap();
    simulate(&experiment.plans()[0]).unwrap().outcome()
}
