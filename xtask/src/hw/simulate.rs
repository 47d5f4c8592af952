//! `cargo xtask hw test`: the sources are what three tools take, and all benches pass.

use super::bench::{self, BENCHES, Bench, Outcome, Runtime};
use crate::{tools::is_there, workspace::Workspace};
use std::{
    collections::HashSet,
    path::Path,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Instant,
};

/// Benches that are built and run at a time.
const WORKERS: usize = 2;

/// Modules that are looked at by themselves, with parameters at the ends of what they may be.
const CHECKED: &[(&str, &[&str])] = &[
    ("velo_node", &[]),
    ("velo_node", &["-GN=34", "-GT=20", "-GLINK=32"]),
    ("velo_node", &["-GN=34", "-GT=33", "-GLINK=96"]),
    ("velo_node", &["-GN=18", "-GT=16", "-GPOSTED=16", "-GWRITES=1"]),
    ("velo_switch", &[]),
    ("velo_switch", &["-GPORTS=4", "-GLINK=96"]),
    ("velo_switch", &["-GPORTS=5"]),
];

/// Checks the sources and runs all benches; `quick` has them do less. Measurements go to `measured.jsonl`.
pub(crate) fn test(workspace: &Workspace, quick: bool) -> Result<(), String> {
    let (hardware, built, start) = (workspace.root.join("velo/hardware"), bench::built(workspace), Instant::now());
    check(&hardware)?;
    eprintln!("  sources: good, {:.1} s", start.elapsed().as_secs_f64());
    let runtime = Runtime::prepare(&built.join("runtime"))?;
    let next = AtomicUsize::new(0);
    let work = || {
        let mine = std::iter::from_fn(|| BENCHES.get(next.fetch_add(1, Ordering::Relaxed)));
        mine.map(|bench| (bench.name, run(bench, &hardware, &built, &runtime, quick))).collect::<Vec<_>>()
    };
    let mut results = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        let results = workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic"));
        results.collect::<Vec<_>>()
    });
    results.sort_by_key(|(name, _)| *name);
    let outputs = results.into_iter().map(|(_, result)| result).collect::<Result<String, _>>()?;
    // Two maps measure the same.
    let mut seen = HashSet::new();
    let measured = outputs.lines().filter(|line| line.starts_with('{') && seen.insert(*line));
    bench::write(&built.join("measured.jsonl"), &measured.map(|line| format!("{line}\n")).collect::<String>())
}

/// One line, and what the bench printed.
fn run(bench: &Bench, hardware: &Path, built: &Path, runtime: &Runtime, quick: bool) -> Result<String, String> {
    let start = Instant::now();
    let result = bench.run(hardware, built, runtime, quick).and_then(|outcome| match outcome {
        Outcome::Passed(output) => Ok(output),
        Outcome::Failed(why) => Err(why),
    });
    let verdict = if result.is_ok() { "good" } else { "failed" };
    eprintln!("  {}: {verdict}, {:.1} s", bench.name, start.elapsed().as_secs_f64());
    result.map_err(|why| format!("bench {}: {why}", bench.name))
}

/// Verilator finds nothing to warn of, and the synthesizer takes everything. A third opinion is asked for where it can be.
fn check(hardware: &Path) -> Result<(), String> {
    let designs = bench::designs(hardware)?;
    for (top, parameters) in CHECKED {
        let mut command = Command::new("verilator");
        command.args(["--lint-only", "-Wall", "--top-module", top]).args(*parameters);
        bench::quietly(command.args(&designs)).map_err(|why| format!("{top} {}: {why}", parameters.join(" ")))?;
    }
    let names = bench::design_names(hardware)?;
    for top in ["velo_node", "velo_switch"] {
        let script = format!("read_verilog -sv {names}; hierarchy -check -top {top}; proc; check -assert");
        bench::quietly(Command::new("yosys").args(["-q", "-p", &script]).current_dir(hardware))
            .map_err(|why| format!("{top}: {why}"))?;
        if is_there("iverilog") {
            bench::quietly(Command::new("iverilog").args(["-g2012", "-t", "null", "-s", top]).args(&designs))?;
        }
    }
    Ok(())
}
