//! The programs that the steps need beside cargo, and their installation.

use std::{
    env,
    process::{Command, Stdio},
};
use xtask::workspace::{is_installed, run};

/// The environment variable that makes a missing tool fail a test instead of skipping it; `evb_os::tools` reads it.
const REQUIRE_TOOLS: &str = "EVB_REQUIRE_TOOLS";

/// A program that the tests use, and the Debian packages that contain it and its dependencies. The `evb` command itself
/// needs none of them: it finds message systems when it runs.
const PACKAGES: &[(&str, &[&str])] = &[
    ("mpicc.openmpi", &["openmpi-bin", "libopenmpi-dev"]),
    ("mpicc.mpich", &["mpich", "libmpich-dev"]),
    ("fi_pingpong", &["libfabric1", "libfabric-dev", "libfabric-bin"]),
    ("pkg-config", &["pkg-config"]),
    ("gcc", &["gcc"]),
    ("c++", &["g++"]),
    ("python3", &["python3-minimal"]),
    ("python3-config", &["python3-dev"]),
    ("pip3", &["python3-pip", "python3-venv"]),
    ("openssl", &["openssl"]),
    ("ip", &["iproute2"]),
    ("taskset", &["util-linux"]),
    ("dpkg-shlibdeps", &["dpkg-dev"]),
    ("prometheus", &["prometheus"]),
    ("chromium", &["chromium"]),
    ("verilator", &["verilator"]),
    ("yosys", &["yosys"]),
    ("iverilog", &["iverilog"]),
    ("slurmctld", &["slurmctld"]),
    ("slurmd", &["slurmd"]),
    ("sbatch", &["slurm-client"]),
    ("munged", &["munge"]),
];

/// Finds the programs that the other steps need, and installs the missing ones.
pub(crate) fn find() -> Result<(), String> {
    if !works("cc", &["--version"]) {
        return Err("no C compiler is installed\nhint: install one, such as the package `gcc` or `clang`".into());
    }
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !works("cargo", &[subcommand, "--version"]) {
            eprintln!("xtask: installing {component}");
            run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    let packages = missing().flat_map(|(_, packages)| *packages).copied().collect::<Vec<_>>();
    if packages.is_empty() {
        return Ok(());
    }
    if works("apt-get", &["--version"]) {
        install(&packages)?;
    } else if !are_required() {
        eprintln!("xtask: not installed: Debian's {}; tests that need them are skipped", packages.join(" "));
        return Ok(());
    }
    match missing().map(|(program, _)| *program).collect::<Vec<_>>().as_slice() {
        [] => Ok(()),
        programs => Err(format!("not installed: {}\nhint: Debian's {}", programs.join(" "), packages.join(" "))),
    }
}

fn install(packages: &[&str]) -> Result<(), String> {
    eprintln!("xtask: installing {}", packages.join(" "));
    let is_root = works("test", &["-w", "/"]);
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
        if !is_root {
            command.args(["--non-interactive", "apt-get"]);
        }
        run(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "--quiet"])?;
    apt(&[&["install", "--yes", "--quiet", "--no-install-recommends"], packages].concat())
}

fn missing() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    PACKAGES.iter().filter(|(program, _)| !is_installed(program))
}

/// True if a missing tool must fail a test: in continuous integration, and where all tools are installed.
pub(crate) fn are_required() -> bool {
    let is_set = |name| env::var(name).is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
    is_set("CI") || is_set(REQUIRE_TOOLS) || missing().next().is_none()
}

/// Tells the tests whether tools are required.
pub(crate) fn require(command: &mut Command) -> &mut Command {
    if are_required() { command.env(REQUIRE_TOOLS, "1") } else { command }
}

/// Reports that a part of a step is skipped because a tool is missing.
///
/// # Errors
/// Tools are required.
pub(crate) fn skip_without(tool: &str) -> Result<(), String> {
    if are_required() {
        return Err(format!("{tool} is not installed, but tools are required (CI or {REQUIRE_TOOLS} is set)"));
    }
    println!("  skipped: {tool} is not installed");
    Ok(())
}

/// True if a program runs and reports success.
fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
