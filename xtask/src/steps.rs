//! The steps of `cargo xtask test` and of `cargo xtask check`, cheapest first.

use crate::{
    deployment, examples, hw, papers, soak, tools,
    workspace::{Workspace, cargo, run},
};
use std::time::Instant;

/// A step: its name and its function. The error names the failure and the remedy.
type Step = (&'static str, fn(&Workspace, bool) -> Result<(), String>);

const FORMAT: Step = ("format", |workspace, _| {
    workspace.cargo(&["fmt", "--all", "--check"])?;
    workspace.cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"])
});

const HYGIENE: Step =
    ("architecture and hygiene", |workspace, _| workspace.cargo(&["test", "--quiet", "--package", "xtask"]));

const LINTS: Step = ("lints", |workspace, _| {
    workspace.cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"])
});

/// All tests.
const TESTS: &[&str] = &["test", "--workspace", "--exclude", "xtask", "--no-fail-fast"];
/// All tests, with the parts that are off by default. The compiler of WebAssembly takes minutes to build.
const LONG_TESTS: &[&str] =
    &["test", "--workspace", "--exclude", "xtask", "--no-fail-fast", "--features", "evb-cli/wasm"];

/// The steps that need nothing but cargo and install nothing.
const CHECK: &[Step] = &[FORMAT, HYGIENE, LINTS, ("fast tests", |workspace, _| workspace.cargo(&["test", "--quiet"]))];

/// The binary that some steps run.
const RELEASE: Step = ("release build", |workspace, _| workspace.cargo(&["build", "--release"]));

/// The model checks of the lock-free parts are tests like any other here, and so are the corpora of the fuzz targets.
const TEST: &[Step] = &[
    ("tools", |_, _| tools::find()),
    FORMAT,
    HYGIENE,
    LINTS,
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
    RELEASE,
    ("examples", |workspace, _| examples::run_all(workspace)),
    ("papers", papers::run),
    ("soak", soak::run),
    ("deployment", |workspace, _| deployment::run_if_possible(workspace, deployment::Options::SHORT)),
    ("tests", |workspace, long| {
        let mut command = cargo(&workspace.root, if long { LONG_TESTS } else { TESTS });
        run(if long { command.env("EVB_SOAK_SECONDS", "600") } else { &mut command })
    }),
];

/// Runs the quick steps.
pub(crate) fn check() -> Result<(), String> {
    run_all(CHECK, false)
}

/// Runs all steps.
pub(crate) fn test(long_soak: bool) -> Result<(), String> {
    run_all(TEST, long_soak)
}

/// Reproduces the papers, or looks up what moves with their parameters.
pub(crate) fn papers(sensitivity: bool) -> Result<(), String> {
    let step: Step = match sensitivity {
        true => ("sensitivity of the papers", |workspace, _| papers::sensitivity(workspace)),
        false => ("papers", papers::run),
    };
    run_all(&[RELEASE, step], false)
}

/// Runs steps in order and stops at the first that fails.
fn run_all(steps: &[Step], long_soak: bool) -> Result<(), String> {
    let (workspace, start) = (Workspace::find()?, Instant::now());
    for (index, (name, step)) in steps.iter().enumerate() {
        let (number, of, start) = (index + 1, steps.len(), Instant::now());
        eprintln!("xtask: {number}/{of} {name}");
        let result = step(&workspace, long_soak);
        let seconds = start.elapsed().as_secs_f64();
        result.map_err(|message| format!("{name} failed after {seconds:.1} s: {message}"))?;
        eprintln!("xtask: {number}/{of} {name}: good, {seconds:.1} s");
    }
    eprintln!("xtask: all {} steps are good, {:.0} s", steps.len(), start.elapsed().as_secs_f64());
    Ok(())
}
