//! The command that starts the ranks of an MPI job.

use crate::{failure::Failure, token::TOKEN_VARIABLE};
use std::{
    ffi::OsStr,
    process::{Command, Stdio},
};

/// The placeholder of the number of nodes.
const NODES: &str = "{nodes}";

/// A launcher and its arguments.
pub(crate) struct Launcher(Vec<String>);

/// The given launcher, or the `mpirun` of this machine.
pub(crate) fn command(given: Option<&str>, nodes: u16) -> Result<Launcher, Failure> {
    let words: Vec<String> = match given {
        Some(text) => text.split_whitespace().map(|word| word.replace(NODES, &nodes.to_string())).collect(),
        None => mpirun(nodes)?,
    };
    match words.is_empty() {
        true => Err(Failure::with_hint("--launcher names no command", "such as --launcher \"srun -n {nodes}\"")),
        false => Ok(Launcher(words)),
    }
}

impl Launcher {
    /// The command that starts `program` on all ranks; its arguments are still to come.
    pub(crate) fn start(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]).arg(program);
        command
    }
}

/// The `mpirun` command with the options for more ranks than cores. The nodes pin themselves.
fn mpirun(nodes: u16) -> Result<Vec<String>, Failure> {
    let mut ask = Command::new("mpirun");
    let version = ask.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let version = version.map_err(|error| {
        let hint = "install an MPI, such as the packages openmpi-bin and libopenmpi-dev, or give --launcher";
        Failure::with_hint(format!("mpirun: {error}"), hint)
    })?;
    let mut words = vec!["mpirun".to_owned(), "-n".to_owned(), nodes.to_string()];
    if String::from_utf8_lossy(&version.stdout).contains("Open MPI") {
        words.extend(["--oversubscribe", "--bind-to", "none", "-x", TOKEN_VARIABLE].map(str::to_owned));
        // It refuses to start programs for root, the usual user in a container, without both of these.
        if is_root() {
            words.push("--allow-run-as-root".into());
        }
    }
    Ok(words)
}

fn is_root() -> bool {
    let mut ask = Command::new("id");
    let answer = ask.arg("-u").stdin(Stdio::null()).output();
    answer.is_ok_and(|answer| answer.stdout.trim_ascii() == b"0")
}
