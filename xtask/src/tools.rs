//! Tools that the steps need beside cargo, and their installation.

use crate::workspace::run;
use std::process::{Command, Stdio};

/// A program that the tests use, and the packages of Debian that bring it and its dependencies. The `evb` command
/// itself needs none of them: it finds the message systems when it runs.
const PACKAGES: &[(&str, &[&str])] = &[
    ("mpicc.openmpi", &["openmpi-bin", "libopenmpi-dev"]),
    ("mpicc.mpich", &["mpich", "libmpich-dev"]),
    ("fi_pingpong", &["libfabric1", "libfabric-dev", "libfabric-bin"]),
    ("NPtcp", &["netpipe-tcp"]),
    ("ucx_perftest", &["ucx-utils"]),
    ("gcc", &["gcc"]),
    ("c++", &["g++"]),
    ("python3", &["python3-minimal"]),
    ("prometheus", &["prometheus"]),
    ("chromium", &["chromium"]),
    ("igzip", &["isal", "libisal-dev"]),
    ("verilator", &["verilator"]),
    ("yosys", &["yosys"]),
    ("iverilog", &["iverilog"]),
];

/// Finds the programs that the other steps need, and installs the missing ones.
pub(crate) fn find() -> Result<(), String> {
    if !works("cc", &["--version"]) {
        return Err("there is no C compiler\nhint: install one, such as the package `gcc` or `clang`".into());
    }
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if !works("cargo", &[subcommand, "--version"]) {
            eprintln!("xtask: {component} is missing: installing it");
            run(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    let missing: Vec<_> = PACKAGES.iter().filter(|(program, _)| !is_there(program)).flat_map(|entry| entry.1).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.iter().map(|name| **name).collect::<Vec<_>>();
    if !works("apt-get", &["--version"]) {
        eprintln!(
            "xtask: not here: what the packages {} of Debian have; tests that need it are skipped",
            list.join(" ")
        );
        return Ok(());
    }
    eprintln!("xtask: installing {}", list.join(" "));
    let install = |command: &mut Command| run(command.env("DEBIAN_FRONTEND", "noninteractive"));
    let apt = || {
        // A user other than root must be allowed to become root.
        let mut command = Command::new(if works("test", &["-w", "/"]) { "apt-get" } else { "sudo" });
        if command.get_program() == "sudo" {
            command.args(["--non-interactive", "apt-get"]);
        }
        command
    };
    install(apt().args(["update", "--quiet"]))?;
    install(apt().args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(&list))
}

/// True when a program answers.
fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// True when a program is on the path.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
