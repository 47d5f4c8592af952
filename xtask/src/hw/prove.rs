//! `cargo xtask hw prove`: proofs of the properties in `velo/hardware/formal`, for any input at the ports.
//!
//! The synthesizer's own solver does it: by induction over time for all time, or for all that can happen within so many cycles.

use super::bench::quietly;
use crate::workspace::Workspace;
use std::{path::Path, process::Command, time::Instant};

/// Most cycles that an induction may look back.
const MOST_STEPS: u32 = 6;

/// The properties that are proven.
struct Proof {
    /// The module, whose properties are read with it.
    top: &'static str,
    /// Files below `velo/hardware`.
    sources: &'static [&'static str],
    /// Cycles from reset on that are looked at, and more when there is time; `None` for all time.
    cycles: Option<(u32, u32)>,
}

const PROOFS: &[Proof] = &[
    Proof { top: "velo_requester", sources: &["rtl/velo_requester.sv"], cycles: None },
    Proof { top: "velo_completer", sources: &["rtl/velo_completer.sv"], cycles: None },
    Proof {
        top: "link_properties",
        sources: &["rtl/velo_fifo.sv", "rtl/velo_link.sv", "formal/link_properties.sv"],
        cycles: Some((14, 22)),
    },
];

/// Proves everything; `long` looks farther where time is bounded.
pub(crate) fn prove(workspace: &Workspace, long: bool) -> Result<(), String> {
    let hardware = workspace.root.join("velo/hardware");
    PROOFS.iter().try_for_each(|proof| {
        let start = Instant::now();
        let cycles = proof.cycles.map(|(few, many)| if long { many } else { few });
        proof.run(&hardware, cycles).map_err(|why| format!("{} cannot be proven: {why}", proof.top))?;
        let reach = cycles.map_or("for all time".to_owned(), |cycles| format!("for {cycles} cycles"));
        eprintln!("  {}: proven {reach}, {:.1} s", proof.top, start.elapsed().as_secs_f64());
        Ok(())
    })
}

impl Proof {
    fn run(&self, hardware: &Path, cycles: Option<u32>) -> Result<(), String> {
        let how = match cycles {
            None => format!("-tempinduct -maxsteps {MOST_STEPS}"),
            Some(cycles) => format!("-tempinduct -tempinduct-baseonly -maxsteps {cycles}"),
        };
        let script = format!(
            "read_verilog -formal -sv -Iformal rtl/velo_pkg.sv {}; hierarchy -check -top {1}; prep -flatten -nordff -top {1}; \
             async2sync; opt -full; dffunmap; memory_map -formal; opt -full; \
             sat -verify -prove-asserts -set-assumes -seq 1 {how}",
            self.sources.join(" "),
            self.top,
        );
        quietly(Command::new("yosys").args(["-q", "-p", &script]).current_dir(hardware))
    }
}

/// True when the proof of `top` fails for the sources in `hardware`, which have a fault.
pub(crate) fn fails(hardware: &Path, top: &str) -> Result<bool, String> {
    let proof = PROOFS.iter().find(|proof| proof.top == top).ok_or_else(|| format!("nothing is proven of {top}"))?;
    Ok(proof.run(hardware, proof.cycles.map(|(few, _)| few)).is_err())
}
