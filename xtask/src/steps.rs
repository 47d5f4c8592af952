//! The steps of `cargo xtask test` and of `cargo xtask check`, the quickest first.

use crate::{deployment, editors, examples, kit, packages, papers, python, slurm, soak, tools};
use std::time::Instant;
use xtask::workspace::{Profile, Workspace, cargo, is_installed, run};

/// Runs all checks.
#[derive(Clone, Copy, Default, clap::Args)]
pub(crate) struct Options {
    /// Add what takes long: ten minutes of each soak test, the release profile, other seeds of the papers, and deeper hardware
    /// proofs
    #[arg(long = "soak")]
    pub(crate) long: bool,
    /// Repeat the checks of hardware and papers that have passed with the same inputs
    #[arg(long)]
    pub(crate) fresh: bool,
}

/// A step: its name and its function. The error names the failure and the remedy.
type Step = (&'static str, fn(&Workspace, Options) -> Result<(), String>);

const FORMAT: Step = ("format", |workspace, _| workspace.cargo(&["fmt", "--all", "--check"]));

const ARCHITECTURE: Step = ("architecture and hygiene", |workspace, _| {
    workspace.cargo(&["test", "--locked", "--quiet", "--package", "xtask", "--tests"])
});

/// All targets of the workspace, the fuzz targets among them.
const LINTS: Step = ("lints", |workspace, _| {
    workspace.cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"])
});

/// The steps that need only cargo and install nothing.
const CHECK: &[Step] =
    &[FORMAT, ARCHITECTURE, LINTS, ("fast tests", |workspace, _| workspace.cargo(&["test", "--locked", "--quiet"]))];

/// The programs that later steps run.
const BUILD: Step = ("build", |workspace, _| workspace.build());

const PYTHON: Step = ("python package and site", |workspace, _| python::test(workspace));

const TEST: &[Step] = &[
    ("tools", |_, _| tools::find()),
    FORMAT,
    ARCHITECTURE,
    LINTS,
    ("documentation", documentation),
    ("hardware", all_hardware),
    BUILD,
    ("examples", |workspace, _| examples::run_all(workspace)),
    ("front-end kit", |workspace, _| kit::run(workspace)),
    PYTHON,
    ("packages", |workspace, _| packages::test(workspace)),
    ("editors", |workspace, _| editors::run(workspace)),
    ("papers", papers::run),
    ("soak", soak::run),
    ("deployment", |workspace, _| deployment::run_if_possible(workspace, deployment::Options::SHORT)),
    ("cluster", |workspace, _| slurm::run_if_possible(workspace)),
    ("tests", tests),
];

/// The documentation of all libraries. Examples are included because they select the same features of foreign crates as the
/// lints do: otherwise cargo would check many of these crates again.
fn documentation(workspace: &Workspace, _: Options) -> Result<(), String> {
    let arguments = ["doc", "--locked", "--workspace", "--no-deps", "--lib", "--examples", "--quiet"];
    run(cargo(&workspace.root, &arguments).env("RUSTDOCFLAGS", "--deny warnings"))
}

fn all_hardware(_: &Workspace, options: Options) -> Result<(), String> {
    /// Programs without which no bench can be built and no source can be checked.
    const NEEDED: [&str; 3] = ["verilator", "yosys", "c++"];
    if let Some(tool) = NEEDED.iter().find(|program| !is_installed(program)) {
        return tools::skip_without(tool);
    }
    let options = [("--long", options.long), ("--fresh", options.fresh)];
    let options = options.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (*name).to_owned());
    hardware(&std::iter::once("all".to_owned()).chain(options).collect::<Vec<_>>())
}

/// Runs the tools of the hardware with these arguments.
pub(crate) fn hardware(arguments: &[String]) -> Result<(), String> {
    let workspace = Workspace::find(Profile::Dev)?;
    let mut command = cargo(&workspace.root, &["run", "--locked", "--quiet", "--package", "evb-hardware-tools", "--"]);
    run(command.args(arguments))
}

/// All tests, including the model checks of the lock-free parts and the corpora of the fuzz targets.
fn tests(workspace: &Workspace, options: Options) -> Result<(), String> {
    let arguments = ["test", "--locked", "--workspace", "--exclude", "xtask", "--no-fail-fast"];
    let mut command = cargo(&workspace.root, &arguments);
    if options.long {
        command.env("EVB_SOAK_SECONDS", "600");
    }
    run(tools::require(&mut command))
}

/// Runs the quick steps.
pub(crate) fn check() -> Result<(), String> {
    run_all(CHECK, Profile::Dev, Options::default())
}

/// Runs all steps.
pub(crate) fn test(options: Options) -> Result<(), String> {
    // The release profile takes minutes more to build, and differs in speed only.
    run_all(TEST, if options.long { Profile::Release } else { Profile::Dev }, options)
}

/// Reproduces the papers, or compares what moves with their parameters.
pub(crate) fn papers(sensitivity: bool) -> Result<(), String> {
    let step: Step = if sensitivity {
        ("sensitivity of the papers", |workspace, _| papers::sensitivity(workspace))
    } else {
        ("papers", papers::run)
    };
    run_all(&[BUILD, step], Profile::Release, Options { fresh: true, ..Options::default() })
}

/// Tests the Python package.
pub(crate) fn python() -> Result<(), String> {
    run_all(&[BUILD, PYTHON], Profile::Dev, Options::default())
}

/// Runs steps in order and stops at the first that fails.
fn run_all(steps: &[Step], profile: Profile, options: Options) -> Result<(), String> {
    let (workspace, start) = (Workspace::find(profile)?, Instant::now());
    for (index, (name, step)) in steps.iter().enumerate() {
        let (number, of, start) = (index + 1, steps.len(), Instant::now());
        eprintln!("xtask: {number}/{of} {name}");
        let result = step(&workspace, options);
        let seconds = start.elapsed().as_secs_f64();
        result.map_err(|message| format!("{name} failed after {seconds:.1} s: {message}"))?;
        eprintln!("xtask: {number}/{of} {name}: passed, {seconds:.1} s");
    }
    eprintln!("xtask: all {} steps passed, {:.0} s", steps.len(), start.elapsed().as_secs_f64());
    Ok(())
}
