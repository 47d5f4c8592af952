//! `cargo xtask hw prove`: proofs of the properties in `velo/hardware/formal`, for any input at the ports.
//!
//! The solver of Yosys proves them by induction for all time, or for everything that can happen within a number of cycles.

use crate::{Hardware, files, parallel::in_parallel};
use std::path::Path;

/// Most cycles of an induction.
const MOST_STEPS: u32 = 6;

/// The constants, which every proof reads.
const PACKAGE: &str = "rtl/velo_pkg.sv";

/// The properties of a module.
pub(crate) struct Proof {
    /// The module, whose properties are read with it.
    pub(crate) top: &'static str,
    /// Files below `velo/hardware`.
    sources: &'static [&'static str],
    /// Cycles from reset that are proven, and their number in a long proof; `None` for all time.
    cycles: Option<(u32, u32)>,
}

pub(crate) const PROOFS: &[Proof] = &[
    Proof {
        top: "link_properties",
        sources: &["rtl/velo_fifo.sv", "rtl/velo_link.sv", "formal/link_properties.sv"],
        cycles: Some((14, 22)),
    },
    Proof { top: "velo_requester", sources: &["rtl/velo_requester.sv"], cycles: None },
    Proof { top: "velo_completer", sources: &["rtl/velo_completer.sv"], cycles: None },
];

/// Proves everything, for more cycles if `long`.
pub(crate) fn prove(hardware: &Hardware, long: bool) -> Result<(), String> {
    in_parallel(PROOFS, |proof| {
        let script = proof.script(long);
        let mut inputs = hardware.inputs(&hardware.sources, &[("formal", &["svh"])])?.and(&script);
        for source in [PACKAGE].iter().chain(proof.sources) {
            inputs = inputs.and_file(&hardware.sources.join(source))?;
        }
        let reach = proof.cycles(long).map_or("for all time".into(), |cycles| format!("for {cycles} cycles"));
        let name = format!("proof of {} {reach}", proof.top);
        hardware.cache.check(&name, &inputs, || files::yosys(&script, &hardware.sources))
    })?;
    Ok(())
}

impl Proof {
    fn cycles(&self, long: bool) -> Option<u32> {
        self.cycles.map(|(few, many)| if long { many } else { few })
    }

    /// The script for Yosys, which runs in `velo/hardware`.
    pub(crate) fn script(&self, long: bool) -> String {
        let how = match self.cycles(long) {
            None => format!("-tempinduct -maxsteps {MOST_STEPS}"),
            Some(cycles) => format!("-tempinduct -tempinduct-baseonly -maxsteps {cycles}"),
        };
        format!(
            "read_verilog -formal -sv -Iformal {PACKAGE} {}; hierarchy -check -top {1}; prep -flatten -nordff -top {1}; \
             async2sync; opt -full; dffunmap; memory_map -formal; opt -full; \
             sat -verify -prove-asserts -set-assumes -seq 1 {how}",
            self.sources.join(" "),
            self.top,
        )
    }
}

/// True if the proof of `top` fails for the sources in `hardware`, which have a fault.
pub(crate) fn fails(hardware: &Path, top: &str) -> Result<bool, String> {
    let proof = PROOFS.iter().find(|proof| proof.top == top).ok_or_else(|| format!("no proof of {top}"))?;
    Ok(files::yosys(&proof.script(false), hardware).is_err())
}
