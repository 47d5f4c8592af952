//! evb's side: an experiment file for each case, and its record. A byte is a phit, and it takes a cycle.

use super::{
    Programs,
    cases::{Case, Network},
};
use serde_json::Value;
use std::{fs, process::Command, time::Duration};
use xtask::processes::Limited;

/// Longest time of a simulation.
const LIMIT: Duration = Duration::from_secs(600);
/// Nanoseconds of a cycle. evb keeps times to a nanosecond and to a part in a thousand, so that waits of whole cycles are exact in
/// records up to 20 cycles.
const CYCLE_NS: u64 = 100;

/// The accepted load in per cent, or the mean wait in cycles.
pub(super) fn measure(programs: &Programs, index: usize, case: &Case, seed: u64) -> Result<f64, String> {
    let path = programs.scratch.join(format!("{index}.toml"));
    fs::write(&path, experiment(case)).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut command = Command::new(&programs.evb);
    command.arg("simulate").arg(&path).args(["--json", "--quiet", "--set", &format!("run.seed={seed}")]);
    let mut process = Limited::start(&mut command, LIMIT).map_err(|error| format!("evb: {error}"))?;
    let (_, output) = process.wait().map_err(|error| format!("evb: {error}"))?;
    read(&output, case)
}

/// The experiment file of a case. The links are the only source of delays.
fn experiment(case: &Case) -> String {
    let (senders, phits) = (case.network.senders(), case.phits);
    format!(
        r#"[network]
preset = "ideal"
topology = {topology}
link = {{ rate = "{rate} Mbit/s", delay = "0 s" }}
switch = {{ delay = "0 s", arbitration = "random" }}
flow = {flow}
routing = {routing}
nic = {{ packet = "{phits} B", header = "0 B", minimum = "0 B", overhead = "0 s", messages = 1 }}
control = {{ type = "separate", delay = "1 us", rate = "{rate} Mbit/s" }}
placement = {{ readout = 0, builder = {builder} }}

[workload]
type = "random"
{load}

[trigger]
duration = "{end} ns"

[run]
warmup = "{warmup} ns"

[readout]
units = {senders}
source = {{ type = "fixed", size = "{phits} B" }}

[builder]
units = {senders}
"#,
        rate = 8000 / CYCLE_NS,
        topology = topology(case.network),
        flow = flow(case),
        routing = routing(case.network),
        builder = case.network.hosts() - senders,
        load = load(case),
        end = CYCLE_NS * (case.warmup() + case.measured()),
        warmup = CYCLE_NS * case.warmup(),
    )
}

fn topology(network: Network) -> String {
    match network {
        Network::Crossbar { .. } => format!(r#"{{ type = "crossbar", ports = {} }}"#, network.hosts()),
        Network::Mesh { side } => format!(r#"{{ type = "grid", width = {side}, height = {side} }}"#),
        Network::Torus { side } => format!(r#"{{ type = "torus", width = {side}, height = {side} }}"#),
        Network::Clos { side } => {
            format!(r#"{{ type = "clos", leaves = {side}, ports_per_leaf = {side}, spines = {side} }}"#)
        }
        Network::FatTree { radix } => format!(r#"{{ type = "fat-tree", radix = {radix} }}"#),
    }
}

/// A torus has its buffers in two halves, for the two virtual channels that its rings need.
fn flow(case: &Case) -> String {
    let channels = if matches!(case.network, Network::Torus { .. }) { 2 } else { 1 };
    let buffer = case.buffer() / channels;
    format!(r#"{{ type = "cut-through", buffer = "{buffer} B", reaction = "0 s", virtual_channels = {channels} }}"#)
}

fn routing(network: Network) -> &'static str {
    match network {
        Network::Crossbar { .. } => r#"{ type = "fixed" }"#,
        Network::Mesh { .. } | Network::Torus { .. } => r#"{ type = "dimension-order" }"#,
        Network::Clos { .. } | Network::FatTree { .. } => r#"{ type = "adaptive" }"#,
    }
}

/// Packets of one phit arrive in slots, as in CAMINOS; longer ones at any time.
fn load(case: &Case) -> String {
    let arrivals = if case.phits == 1 { "slotted" } else { "poisson" };
    match case.load {
        Some(load) => format!("load = {load}\narrivals = \"{arrivals}\""),
        None => "window = 4".into(),
    }
}

/// The value of a case from a record.
fn read(text: &str, case: &Case) -> Result<f64, String> {
    let record: Value = serde_json::from_str(text.trim()).map_err(|error| format!("the record of evb: {error}"))?;
    if record["good"] != true {
        return Err(format!("the simulation of evb is not good: {}", record["findings"]));
    }
    let (cycle, senders) = (CYCLE_NS as f64, case.network.senders() as f64);
    let value = match case.load {
        Some(_) => record["latency_us"]["mean"].as_f64().map(|delay| 1000.0 * delay / cycle - case.empty()),
        None => record["throughput_bytes_per_s"].as_f64().map(|rate| 1e-7 * rate * cycle / senders),
    };
    value.ok_or_else(|| "the record of evb lacks its result".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(load: Option<f64>) -> Case {
        Case { network: Network::Crossbar { ports: 2 }, phits: 16, load }
    }

    #[test]
    fn a_record_has_the_load_and_the_wait() {
        let text = r#"{"good":true,"throughput_bytes_per_s":1e7,"latency_us":{"mean":2.0}}"#;
        assert_eq!(read(text, &case(None)), Ok(50.0));
        assert_eq!(read(text, &case(Some(0.1))), Ok(3.0));
    }

    #[test]
    fn bad_records_are_rejected() {
        let bad = r#"{"good":false,"findings":["deadlock"]}"#;
        assert_eq!(read(bad, &case(None)), Err("the simulation of evb is not good: [\"deadlock\"]".into()));
        assert_eq!(read(r#"{"good":true}"#, &case(None)), Err("the record of evb lacks its result".into()));
        assert!(read("no record", &case(None)).is_err());
    }
}
