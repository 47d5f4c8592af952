//! `cargo xtask hw measure`: the numbers of the hardware, which `evb paper velo-2008` shows beside the published ones.
//!
//! They are in `papers/velo-2008/measured.jsonl`, one record per line: cycles from the benches, flip-flops and LUTs from a
//! synthesis for the FPGA family of the paper, and a clock from a place-and-route tool for another family, since none is
//! available for that one.

use crate::{Hardware, files, parallel::in_parallel};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};
use xtask::workspace::is_installed;

/// The units of table 1 of the paper, and a whole node.
const UNITS: &[&str] = &["velo_requester", "velo_completer", "velo_register_file", "velo_node"];

/// Cells of the family that are counted, by the beginnings of their names: an inverter needs a LUT.
const COUNTED: &[(&str, &[&str])] =
    &[("flip-flops", &["FD"]), ("LUTs", &["LUT", "INV"]), ("block memories", &["RAMB"])];

/// The bench whose numbers are kept if its tool is missing.
const TIMING: &str = "timing";

/// The bench of the counts of a synthesis, and their relative tolerance.
const SYNTHESIS: &str = "synthesis";
const TOLERANCE: f64 = 0.05;

/// The place-and-route tool.
const PLACER: &str = "nextpnr-ice40";

/// Writes the measurements.
pub(crate) fn store(hardware: &Hardware) -> Result<(), String> {
    let mut found = measure(hardware)?;
    if is_installed(PLACER) {
        found.push(clock(hardware)?);
    } else {
        eprintln!("  {PLACER} is not installed: the stored clock is kept");
        found.extend(known(hardware)?.into_iter().filter(|line| line["bench"] == TIMING));
    }
    files::write(&hardware.measured, &found.iter().map(|line| format!("{line}\n")).collect::<String>())
}

/// Compares the measurements with the stored ones. Numbers from another version of a tool are not compared.
pub(crate) fn compare(hardware: &Hardware) -> Result<(), String> {
    let (known, mut stale) = (known(hardware)?, Vec::new());
    for line in measure(hardware)? {
        match known.iter().find(|known| is_same(known, &line)) {
            Some(known) if known["tool"] != line["tool"] => {
                eprintln!("  not compared, as {} is not {}: {}", line["tool"], known["tool"], line["what"]);
            }
            Some(known) if is_near(known, &line) => {}
            Some(known) => stale.push(format!("{line}, stored is {}", known["value"])),
            None => stale.push(format!("{line} is not stored")),
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    let hint =
        "store it with `cargo xtask hw measure`, then `UPDATE_PAPERS=1 cargo xtask papers`, and review the change";
    Err(format!("papers/velo-2008/measured.jsonl is stale:\n  {}\nhint: {hint}", stale.join("\n  ")))
}

fn measure(hardware: &Hardware) -> Result<Vec<Value>, String> {
    let mut found = benches(hardware)?;
    found.extend(synthesis(hardware)?);
    Ok(found)
}

/// The stored measurements.
fn known(hardware: &Hardware) -> Result<Vec<Value>, String> {
    fs::read_to_string(&hardware.measured).unwrap_or_default().lines().map(parse).collect()
}

fn parse(line: &str) -> Result<Value, String> {
    serde_json::from_str(line).map_err(|error| format!("measured.jsonl: {error}"))
}

fn record(bench: &str, what: &str, unit: &str, value: f64, tool: &str) -> Value {
    json!({ "kind": "hardware", "bench": bench, "what": what, "unit": unit, "value": value, "tool": tool })
}

/// The last measurements of the benches; several of them may measure the same.
fn benches(hardware: &Hardware) -> Result<Vec<Value>, String> {
    let tool = files::output(Command::new("verilator").arg("--version"))?;
    // "Verilator 5.006 2023-01-22 rev ...": name and version are enough.
    let tool = tool.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let mut found: Vec<Value> = Vec::new();
    for line in files::read(&hardware.built.join("measured.jsonl"))?.lines().map(parse) {
        let mut line = line?;
        line["kind"] = "hardware".into();
        line["tool"] = tool.as_str().into();
        line["value"] = json!(line["value"].as_f64());
        match found.iter().find(|other| is_same(other, &line)) {
            Some(other) if other["value"] != line["value"] => {
                return Err(format!("two benches disagree: {other} and {line}"));
            }
            Some(_) => {}
            None => found.push(line),
        }
    }
    found.sort_by_key(|line| (line["bench"].to_string(), line["what"].to_string()));
    Ok(found)
}

fn is_same(one: &Value, other: &Value) -> bool {
    one["bench"] == other["bench"] && one["what"] == other["what"]
}

/// The resources that the units need in an FPGA of the paper's family.
fn synthesis(hardware: &Hardware) -> Result<Vec<Value>, String> {
    let inputs = hardware.inputs(&hardware.sources, &[("rtl", &["sv"])])?;
    let sources = files::design_names(&hardware.sources)?;
    let units = in_parallel(UNITS, |unit| {
        let script = format!(
            "read_verilog -sv {sources}; \
             synth_xilinx -family xc4v -noiopad -nowidelut -flatten -top {unit}; tee -q -o /dev/stdout stat -json"
        );
        let (name, inputs) = (format!("synthesis of {unit}"), inputs.clone().and(&script));
        let text = hardware.cache.check(&name, &inputs, || files::yosys(&script, &hardware.sources))?;
        resources(unit, &text)
    })?;
    Ok(units.concat())
}

/// The records of a unit from the output of its synthesis.
fn resources(unit: &str, text: &str) -> Result<Vec<Value>, String> {
    let statistics: Value = text
        .find('{')
        .and_then(|start| serde_json::Deserializer::from_str(&text[start..]).into_iter().next()?.ok())
        .ok_or_else(|| format!("{unit}: yosys prints no statistics"))?;
    // "Yosys 0.23 (git sha1 ...)": the version is enough.
    let tool = statistics["creator"].as_str().unwrap_or("yosys").split(" (").next().unwrap_or_default();
    let cells = statistics["design"]["num_cells_by_type"].as_object().ok_or_else(|| format!("{unit}: no cells"))?;
    let count = |(what, beginnings): &(&str, &[&str])| {
        let counted = cells.iter().filter(|(name, _)| beginnings.iter().any(|beginning| name.starts_with(beginning)));
        let sum: u64 = counted.filter_map(|(_, count)| count.as_u64()).sum();
        record(SYNTHESIS, &format!("{what}, {unit}"), "", sum as f64, tool)
    };
    Ok(COUNTED.iter().map(count).collect())
}

/// The clock of a node in the chip that the place-and-route tool supports.
fn clock(hardware: &Hardware) -> Result<Value, String> {
    let folder = hardware.built.join(TIMING);
    files::renew(&folder)?;
    let report = place(&hardware.sources, &folder)?;
    let clocks = report["fmax"].as_object().ok_or("the report of the placer has no clock")?;
    let megahertz = clocks.values().find_map(|clock| clock["achieved"].as_f64()).ok_or("the clock has no frequency")?;
    let megahertz = (megahertz * 10.0).round() / 10.0;
    Ok(record(TIMING, "clock of velo_node, 16 wires", "MHz", megahertz, &placer()))
}

/// Name and version of the tool, which it prints to standard error: `"nextpnr-ice40" -- ... (Version 0.4)`.
fn placer() -> String {
    let printed = Command::new(PLACER).arg("--version").output().map(|output| output.stderr).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed);
    let version = printed.split_once("Version ").map_or("", |(_, rest)| rest.trim_end().trim_end_matches(')'));
    format!("{PLACER} {version}")
}

/// Places a node. Returns the report.
fn place(hardware: &Path, folder: &Path) -> Result<Value, String> {
    let (netlist, report) = (folder.join("node.json"), folder.join("report.json"));
    let script = format!(
        "read_verilog -sv {} syn/velo_timing.sv; synth_ice40 -top velo_timing -json {}",
        files::design_names(hardware)?,
        netlist.display()
    );
    files::yosys(&script, hardware)?;
    let mut command = Command::new(PLACER);
    command.args(["--hx8k", "--package", "ct256", "--pcf-allow-unconstrained", "--timing-allow-fail", "--seed", "1"]);
    files::run(command.arg("--json").arg(&netlist).arg("--report").arg(&report))?;
    serde_json::from_str(&files::read(&report)?).map_err(|error| format!("{}: {error}", report.display()))
}

/// True if the values are the same, within a tolerance for a synthesis: another name or line of a source changes a few LUTs.
fn is_near(known: &Value, found: &Value) -> bool {
    let (Some(before), Some(now)) = (known["value"].as_f64(), found["value"].as_f64()) else { return false };
    (now - before).abs() / before.max(1.0) <= if found["bench"] == SYNTHESIS { TOLERANCE } else { 0.0 }
}
