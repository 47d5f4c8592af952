//! `cargo xtask hw test`: three tools accept the sources, and all benches pass.

use crate::{
    Hardware,
    bench::{BENCHES, Bench, Outcome},
    files,
    parallel::in_parallel,
};
use std::{collections::HashSet, process::Command};
use xtask::workspace::is_installed;

/// Modules that are checked separately, with parameters at the limits.
const CHECKED: &[(&str, &[&str])] = &[
    ("velo_node", &[]),
    ("velo_node", &["-GN=34", "-GT=20", "-GLINK=32"]),
    ("velo_node", &["-GN=34", "-GT=33", "-GLINK=96"]),
    ("velo_node", &["-GN=18", "-GT=16", "-GPOSTED=16", "-GWRITES=1"]),
    ("velo_switch", &[]),
    ("velo_switch", &["-GPORTS=4", "-GLINK=96"]),
    ("velo_switch", &["-GPORTS=5"]),
];

/// Checks the sources and runs all benches, with fewer messages if `quick`. Writes the measurements to `measured.jsonl` in
/// the build folder.
pub(crate) fn test(hardware: &Hardware, quick: bool) -> Result<(), String> {
    let inputs = hardware.inputs(&hardware.sources, &[("rtl", &["sv"])])?.and(CHECKED);
    hardware.cache.check("sources", &inputs, || check(hardware))?;
    let outputs = in_parallel(BENCHES, |bench| run(hardware, bench, quick))?.concat();
    // Benches of the same program print the same lines.
    let mut seen = HashSet::new();
    let measured = outputs.lines().filter(|line| line.starts_with('{') && seen.insert(*line));
    let text: String = measured.map(|line| format!("{line}\n")).collect();
    files::write(&hardware.built.join("measured.jsonl"), &text)
}

/// The output of a bench.
fn run(hardware: &Hardware, bench: &Bench, quick: bool) -> Result<String, String> {
    let Hardware { sources, built, cache, .. } = hardware;
    let vectors = hardware.inputs(sources, &[("vectors", &["vec"])])?.hash();
    let inputs = bench.inputs(hardware, sources)?.and((quick, vectors));
    cache.check(bench.name, &inputs, || match bench.run(hardware, sources, built, quick)? {
        Outcome::Passed(output) => Ok(output),
        Outcome::Failed(why) => Err(why),
    })
}

/// Verilator has no warnings, and Yosys and Icarus Verilog accept the sources.
fn check(hardware: &Hardware) -> Result<String, String> {
    let designs = files::designs(&hardware.sources)?;
    for (top, parameters) in CHECKED {
        let mut command = Command::new("verilator");
        command.args(["--lint-only", "-Wall", "--top-module", top]).args(*parameters);
        files::run(command.args(&designs)).map_err(|why| format!("{top} {}: {why}", parameters.join(" ")))?;
    }
    let names = files::design_names(&hardware.sources)?;
    for top in ["velo_node", "velo_switch"] {
        let script = format!("read_verilog -sv {names}; hierarchy -check -top {top}; proc; check -assert");
        files::yosys(&script, &hardware.sources).map_err(|why| format!("{top}: {why}"))?;
        if is_installed("iverilog") {
            files::run(Command::new("iverilog").args(["-g2012", "-t", "null", "-s", top]).args(&designs))?;
        }
    }
    Ok(String::new())
}
