//! `cargo xtask hw measure`: the numbers of the hardware, which `evb paper velo-2008` shows beside the published ones.
//!
//! They stand in `papers/velo-2008/measured.jsonl`, a record each line: cycles from the benches, flip-flops and LUTs from a synthesis
//! for the FPGA family of the paper, and a clock from a place-and-route tool for another, as there is none for that one.

use super::bench;
use crate::{tools::is_there, workspace::Workspace};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};

/// The units of table 1 of the paper, and a whole node.
const UNITS: &[&str] = &["velo_requester", "velo_completer", "velo_register_file", "velo_node"];

/// Cells of the family that are counted, by what their names begin with: an inverter takes a LUT.
const COUNTED: &[(&str, &[&str])] =
    &[("flip-flops", &["FD"]), ("LUTs", &["LUT", "INV"]), ("block memories", &["RAMB"])];

/// The bench whose numbers are kept when the tool for them is not there.
const TIMING: &str = "timing";

/// The bench of what a synthesis counts, and how far that may be off.
const SYNTHESIS: &str = "synthesis";
const MOST_OFF: f64 = 0.05;

/// The place-and-route tool.
const PLACER: &str = "nextpnr-ice40";

/// Measures, and writes the file; `check` compares with it instead.
pub(crate) fn measure(workspace: &Workspace, check: bool) -> Result<(), String> {
    let path = workspace.root.join("papers/velo-2008/measured.jsonl");
    let known = fs::read_to_string(&path).unwrap_or_default();
    let known = known.lines().map(parse).collect::<Result<Vec<_>, _>>()?;
    let mut found = benches(workspace)?;
    found.extend(synthesis(&workspace.root.join("velo/hardware"))?);
    if check {
        return compare(&known, &found);
    }
    match clock(workspace) {
        Some(clock) => found.push(clock?),
        None => {
            eprintln!("  there is no {PLACER}: the clock stays as it was");
            found.extend(known.into_iter().filter(|line| line["bench"] == TIMING));
        }
    }
    bench::write(&path, &found.iter().map(|line| format!("{line}\n")).collect::<String>())
}

fn parse(line: &str) -> Result<Value, String> {
    serde_json::from_str(line).map_err(|error| format!("measured.jsonl: {error}"))
}

fn record(bench: &str, what: &str, unit: &str, value: f64, tool: &str) -> Value {
    json!({ "kind": "hardware", "bench": bench, "what": what, "unit": unit, "value": value, "tool": tool })
}

/// The last measurements of the benches; several of them may tell the same.
fn benches(workspace: &Workspace) -> Result<Vec<Value>, String> {
    let tool = bench::quiet_output(Command::new("verilator").arg("--version"))?;
    // "Verilator 5.006 2023-01-22 rev ...": name and version are enough.
    let tool = tool.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let mut found: Vec<Value> = Vec::new();
    for line in bench::read(&bench::built(workspace).join("measured.jsonl"))?.lines().map(parse) {
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

/// Parts of an FPGA of the paper's family that the units take.
fn synthesis(hardware: &Path) -> Result<Vec<Value>, String> {
    let (sources, mut found) = (bench::design_names(hardware)?, Vec::new());
    for unit in UNITS {
        let script = format!(
            "read_verilog -sv {sources}; \
             synth_xilinx -family xc4v -noiopad -nowidelut -flatten -top {unit}; tee -q -o /dev/stdout stat -json"
        );
        let text =
            bench::quiet_output(Command::new("yosys").args(["-Q", "-T", "-q", "-p", &script]).current_dir(hardware))?;
        let statistics: Value = text
            .find('{')
            .and_then(|start| serde_json::Deserializer::from_str(&text[start..]).into_iter().next()?.ok())
            .ok_or_else(|| format!("{unit}: yosys gives no statistics"))?;
        // "Yosys 0.23 (git sha1 ...)": the version is enough.
        let tool = statistics["creator"].as_str().unwrap_or("yosys").split(" (").next().unwrap_or_default().to_owned();
        let cells = statistics["design"]["num_cells_by_type"].as_object().ok_or_else(|| format!("{unit}: no cells"))?;
        for (what, beginnings) in COUNTED {
            let counted =
                cells.iter().filter(|(name, _)| beginnings.iter().any(|beginning| name.starts_with(beginning)));
            let sum: u64 = counted.filter_map(|(_, count)| count.as_u64()).sum();
            found.push(record(SYNTHESIS, &format!("{what}, {unit}"), "", sum as f64, &tool));
        }
    }
    Ok(found)
}

/// Clock of a node in the chip that there is a free place-and-route tool for; `None` without it.
fn clock(workspace: &Workspace) -> Option<Result<Value, String>> {
    is_there(PLACER).then(|| {
        let folder = bench::built(workspace).join(TIMING);
        bench::renew(&folder)?;
        let report = place(&workspace.root.join("velo/hardware"), &folder)?;
        let clocks = report["fmax"].as_object().ok_or("its report has no clock")?;
        let megahertz = clocks.values().find_map(|clock| clock["achieved"].as_f64()).ok_or("it tells no clock")?;
        let megahertz = (megahertz * 10.0).round() / 10.0;
        Ok(record(TIMING, "clock of velo_node, 16 wires", "MHz", megahertz, &placer()))
    })
}

/// Name and version of the tool, which it tells on standard error: `"nextpnr-ice40" -- ... (Version 0.4)`.
fn placer() -> String {
    let said = Command::new(PLACER).arg("--version").output().map(|output| output.stderr).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let version = said.split_once("Version ").map_or("", |(_, rest)| rest.trim_end().trim_end_matches(')'));
    format!("{PLACER} {version}")
}

/// Places a node, and gives the report of that.
fn place(hardware: &Path, folder: &Path) -> Result<Value, String> {
    let (netlist, report) = (folder.join("node.json"), folder.join("report.json"));
    let script = format!(
        "read_verilog -sv {} syn/velo_timing.sv; synth_ice40 -top velo_timing -json {}",
        bench::design_names(hardware)?,
        netlist.display()
    );
    bench::quietly(Command::new("yosys").args(["-q", "-p", &script]).current_dir(hardware))?;
    let mut command = Command::new(PLACER);
    command.args(["--hx8k", "--package", "ct256", "--pcf-allow-unconstrained", "--timing-allow-fail", "--seed", "1"]);
    bench::quietly(command.arg("--json").arg(&netlist).arg("--report").arg(&report))?;
    serde_json::from_str(&bench::read(&report)?).map_err(|error| format!("{}: {error}", report.display()))
}

/// Compares each number that was found with the known one. Numbers by other versions of a tool are not compared.
fn compare(known: &[Value], found: &[Value]) -> Result<(), String> {
    let mut stale = Vec::new();
    for line in found {
        match known.iter().find(|known| is_same(known, line)) {
            Some(known) if known["tool"] != line["tool"] => {
                eprintln!("  not compared, as {} is not {}: {}", line["tool"], known["tool"], line["what"]);
            }
            Some(known) if is_near(known, line) => {}
            Some(known) => stale.push(format!("{line}, known is {}", known["value"])),
            None => stale.push(format!("{line} is not known")),
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    let hint = "if that is right, write it down with `cargo xtask hw measure`, then `UPDATE_PAPERS=1 cargo xtask test`";
    Err(format!("papers/velo-2008/measured.jsonl is stale:\n  {}\nhint: {hint}", stale.join("\n  ")))
}

/// True when the values are the same. Those of a synthesis need only be about the same: another name or line of a source
/// changes a few LUTs.
fn is_near(known: &Value, found: &Value) -> bool {
    let off = match (known["value"].as_f64(), found["value"].as_f64()) {
        (Some(known), Some(found)) => (found - known).abs() / known.max(1.0),
        _ => return false,
    };
    off <= if found["bench"] == SYNTHESIS { MOST_OFF } else { 0.0 }
}
