//! The steps of `cargo xtask test`, cheapest first.

use crate::{examples, hw, papers, soak, tools};
use serde_json::Value;
use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

/// What a step needs to know of the repository.
pub(crate) struct Workspace {
    /// The root of the repository.
    pub(crate) root: PathBuf,
    /// Where cargo builds.
    pub(crate) target: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self, String> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository").to_owned();
        let mut command = cargo(&root, &["metadata", "--no-deps", "--format-version", "1"]);
        let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo: {error}"))?;
        let metadata: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
        let target = metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?;
        Ok(Self { root, target: target.into() })
    }

    /// The released `evb` command.
    pub(crate) fn evb(&self) -> PathBuf {
        self.target.join("release").join("evb").with_extension(env::consts::EXE_EXTENSION)
    }

    pub(crate) fn cargo(&self, arguments: &[&str]) -> Result<(), String> {
        run(&mut cargo(&self.root, arguments))
    }
}

/// A name, and what is done; the error says what failed and what to do.
type Step = (&'static str, fn(&Workspace, bool) -> Result<(), String>);

/// The model checks of the lock-free parts are tests like any other here, and so are the corpora of the fuzz targets.
const STEPS: &[Step] = &[
    ("tools", |_, _| tools::find()),
    ("format", |workspace, _| {
        workspace.cargo(&["fmt", "--all", "--check"])?;
        workspace.cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"])
    }),
    ("architecture and hygiene", |workspace, _| workspace.cargo(&["test", "--quiet", "--package", "xtask"])),
    ("lints", |workspace, _| {
        workspace.cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"])
    }),
    ("documentation", |workspace, _| {
        let mut command = cargo(&workspace.root, &["doc", "--workspace", "--no-deps", "--quiet"]);
        run(command.env("RUSTDOCFLAGS", "--deny warnings"))
    }),
    ("fuzz targets", |workspace, _| {
        let target = workspace.target.join("fuzz");
        let arguments = ["check", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--no-default-features"];
        run(cargo(&workspace.root, &arguments).env("CARGO_TARGET_DIR", target))
    }),
    ("hardware", hw::test_all),
    ("release build", |workspace, _| workspace.cargo(&["build", "--release"])),
    ("examples", |workspace, _| examples::run_all(workspace)),
    ("papers", papers::run),
    ("soak", soak::run),
    ("tests", |workspace, long| {
        let mut command = cargo(&workspace.root, &["test", "--workspace", "--exclude", "xtask", "--no-fail-fast"]);
        run(if long { command.env("EVB_SOAK_SECONDS", "600") } else { &mut command })
    }),
];

/// Runs all steps and stops at the first that fails.
pub(crate) fn test(long_soak: bool) -> Result<(), String> {
    let (workspace, start) = (Workspace::find()?, Instant::now());
    for (index, (name, step)) in STEPS.iter().enumerate() {
        let (number, of, start) = (index + 1, STEPS.len(), Instant::now());
        eprintln!("xtask: {number}/{of} {name}");
        let result = step(&workspace, long_soak);
        let seconds = start.elapsed().as_secs_f64();
        result.map_err(|message| format!("{name} failed after {seconds:.1} s: {message}"))?;
        eprintln!("xtask: {number}/{of} {name}: good, {seconds:.1} s");
    }
    eprintln!("xtask: all {} steps are good, {:.0} s", STEPS.len(), start.elapsed().as_secs_f64());
    Ok(())
}

fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root);
    command
}

pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{line}: {status}")),
        Err(error) => Err(format!("{line}: {error}")),
    }
}
