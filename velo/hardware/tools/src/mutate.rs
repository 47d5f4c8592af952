//! `cargo xtask hw mutate`: each fault in `velo/hardware/mutations` makes the proofs and one of the benches fail that it names.
//!
//! A mutation is a patch of the sources. The lines before it describe the fault, and one of them is `benches: NAME NAME...`.
//! With a line `proofs: TOP TOP...` these proofs must fail, too.

use crate::{
    Hardware,
    bench::{BENCHES, Bench, Outcome},
    files,
    parallel::in_parallel,
    prove::{self, PROOFS},
};
use std::{path::Path, process::Command};

/// The folders of the sources, and the endings of their files.
const FOLDERS: [&str; 4] = ["rtl", "tb", "formal", "vectors"];
const ENDINGS: &[&str] = &["sv", "svh", "cpp", "hpp", "vec"];

/// Applies each mutation to a copy of the sources, and requires that one of its benches fails.
pub(crate) fn mutate(hardware: &Hardware) -> Result<(), String> {
    let patches = files::list(&hardware.sources.join("mutations"), &["patch"])?;
    if patches.is_empty() {
        return Err("velo/hardware/mutations has no patch: nothing shows that the benches can fail".into());
    }
    let scripts = PROOFS.iter().map(|proof| proof.script(false)).collect::<Vec<_>>();
    let inputs = hardware.inputs(&hardware.sources, &FOLDERS.map(|folder| (folder, ENDINGS)))?.and((BENCHES, scripts));
    let found = in_parallel(&patches, |patch| {
        let name = patch.file_stem().unwrap_or_default().to_string_lossy();
        let (copy, text) = (hardware.built.join("mutations").join(name.as_ref()), files::read(patch)?);
        hardware.cache.check(&format!("mutation {name}"), &inputs.clone().and(&text), || {
            apply(&hardware.sources, patch, &copy)?;
            let (bench, why) = find(hardware, &text, &copy)?;
            Ok(format!("  {name}: found by {bench}: {why}\n"))
        })
    })?;
    eprint!("{}", found.concat());
    Ok(())
}

/// Copies the sources and applies the patch.
fn apply(sources: &Path, patch: &Path, copy: &Path) -> Result<(), String> {
    for folder in FOLDERS {
        files::renew(&copy.join(folder))?;
        for file in files::list(&sources.join(folder), ENDINGS)? {
            let name = file.file_name().expect("a file has a name");
            files::write(&copy.join(folder).join(name), &files::read(&file)?)?;
        }
    }
    let mut command = Command::new("git");
    // Git must not take the copy for a part of the repository around it.
    let above = copy.parent().unwrap_or(copy);
    command.args(["apply", "-p3"]).arg(patch).current_dir(copy).env("GIT_CEILING_DIRECTORIES", above);
    files::run(&mut command)
}

/// The first bench that fails, and its message.
fn find(hardware: &Hardware, text: &str, copy: &Path) -> Result<(&'static str, String), String> {
    let named = |what: &str| text.lines().find_map(|line| line.strip_prefix(what));
    for top in named("proofs:").unwrap_or_default().split_whitespace() {
        if !prove::fails(copy, top)? {
            return Err(format!("the proof of {top} holds despite the fault"));
        }
    }
    let names = named("benches:").ok_or("no line `benches: NAME...`")?;
    for name in names.split_whitespace() {
        let bench = Bench::find(name)?;
        if let Outcome::Failed(why) = bench.run(hardware, copy, &copy.join("built"), true)? {
            return Ok((bench.name, why));
        }
    }
    Err(format!("no bench finds the fault: {} passed", names.trim()))
}
