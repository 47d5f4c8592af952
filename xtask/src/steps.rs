//! The steps of `cargo xtask test`, cheapest first.

use std::{process::Command, time::Instant};

/// One command with its arguments and what it adds to the environment.
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const STEPS: &[Step] = &[
    Step { name: "format", arguments: &["fmt", "--all", "--check"], environment: &[] },
    Step {
        name: "lints",
        arguments: &["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"],
        environment: &[],
    },
    Step { name: "tests", arguments: &["test", "--workspace", "--no-fail-fast"], environment: &[] },
    Step {
        name: "documentation",
        arguments: &["doc", "--workspace", "--no-deps", "--quiet"],
        environment: &[("RUSTDOCFLAGS", "--deny warnings")],
    },
    Step { name: "release build", arguments: &["build", "--release"], environment: &[] },
];

/// Runs all steps; the name of the one that failed.
pub(crate) fn test(soak: bool) -> Result<(), String> {
    STEPS.iter().try_for_each(run)
}

fn run(step: &Step) -> Result<(), String> {
    eprintln!("xtask: {}", step.name);
    let start = Instant::now();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(step.arguments).envs(step.environment.iter().copied());
    let good = command.status().is_ok_and(|status| status.success());
    eprintln!("xtask: {} took {:.0} s", step.name, start.elapsed().as_secs_f64());
    good.then_some(()).ok_or_else(|| step.name.to_owned())
}
