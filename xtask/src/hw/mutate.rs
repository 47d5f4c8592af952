//! `cargo xtask hw mutate`: each fault in `velo/hardware/mutations` makes one of the benches fail that it names.
//!
//! A mutation is a patch of the sources. The lines before it say what is wrong then, and one of them is
//! `benches: NAME NAME...`. With a line `proofs: TOP TOP...` these must fail, too.

use super::{
    bench::{self, Bench, Outcome, Runtime},
    prove,
};
use crate::workspace::Workspace;
use std::{path::Path, process::Command, time::Instant};

/// Applies each mutation to a copy of the sources, and demands that one of its benches fails.
pub(crate) fn mutate(workspace: &Workspace) -> Result<(), String> {
    let (hardware, built) = (workspace.root.join("velo/hardware"), bench::built(workspace));
    let runtime = Runtime::prepare(&built.join("runtime"))?;
    let patches = bench::files(&hardware.join("mutations"), &["patch"])?;
    if patches.is_empty() {
        return Err("velo/hardware/mutations has no patch: nothing shows that the benches can fail".into());
    }
    for patch in &patches {
        let (name, start) = (patch.file_stem().unwrap_or_default().to_string_lossy(), Instant::now());
        let copy = built.join("mutations").join(name.as_ref());
        let seen = apply(&hardware, patch, &copy).and_then(|()| is_seen(patch, &copy, &runtime));
        let (bench, why) = seen.map_err(|why| format!("mutation {name}: {why}"))?;
        eprintln!("  {name}: seen by {bench}, {:.1} s: {why}", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// A copy of the sources with the patch.
fn apply(hardware: &Path, patch: &Path, copy: &Path) -> Result<(), String> {
    for folder in ["rtl", "tb", "formal", "vectors"] {
        bench::renew(&copy.join(folder))?;
        for file in bench::files(&hardware.join(folder), &["sv", "svh", "cpp", "hpp", "vec"])? {
            let name = file.file_name().expect("a file has a name");
            bench::write(&copy.join(folder).join(name), &bench::read(&file)?)?;
        }
    }
    let mut command = Command::new("git");
    // The copy may lie within a clone, whose ways must not matter.
    command
        .args(["apply", "-p3"])
        .arg(patch)
        .current_dir(copy)
        .env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap_or(copy));
    bench::quietly(&mut command)
}

/// The first bench that fails, and what it says.
fn is_seen(patch: &Path, copy: &Path, runtime: &Runtime) -> Result<(&'static str, String), String> {
    let text = bench::read(patch)?;
    let named = |what: &str| text.lines().find_map(|line| line.strip_prefix(what));
    for top in named("proofs:").unwrap_or_default().split_whitespace() {
        if !prove::fails(copy, top)? {
            return Err(format!("{top} is proven all the same"));
        }
    }
    let names = named("benches:").ok_or("no line `benches: NAME...`")?;
    for name in names.split_whitespace() {
        let bench = Bench::find(name)?;
        if let Outcome::Failed(why) = bench.run(copy, &copy.join("built"), runtime, true)? {
            return Ok((bench.name, why));
        }
    }
    Err(format!("nobody sees it: {} passed", names.trim()))
}
