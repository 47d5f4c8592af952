//! The `evb` command: the records that it prints, and its fits of this machine.

use serde_json::Value;
use std::{ffi::OsStr, fs, path::PathBuf, process::Command, time::Duration};
use xtask::{
    namespaces::Namespace,
    processes::Limited,
    workspace::{Workspace, run},
};

/// The costs of event building over a transport on this machine, fitted anew, as a file `NAME.toml`. `through` is the program that
/// starts `evb`, with its arguments.
pub(crate) fn fit(workspace: &Workspace, through: &[&str], transport: &str, name: &str) -> Result<PathBuf, String> {
    let file = folder(workspace)?.join(format!("{name}.toml"));
    let program = workspace.evb();
    let mut words = through.iter().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Command::new(words.next().unwrap_or_default());
    run(command.args(words).args(["twin", "--transport", transport, "--fit"]).arg(&file))?;
    Ok(file)
}

/// The folder of what measurements write.
pub(crate) fn folder(workspace: &Workspace) -> Result<PathBuf, String> {
    let folder = workspace.target.join("lab");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// The record of a command that prints one, and must end within `limit`.
pub(crate) fn record(command: &mut Command, limit: Duration) -> Result<Value, String> {
    let mut process = Limited::start(command, limit).map_err(|error| format!("evb: {error}"))?;
    let (_, output) = process.wait()?;
    parse(&output)
}

/// The records of a command that prints one per line, and must end within `limit`.
pub(crate) fn records(command: &mut Command, limit: Duration) -> Result<Vec<Value>, String> {
    let mut process = Limited::start(command, limit).map_err(|error| format!("evb: {error}"))?;
    let (_, output) = process.wait()?;
    output.lines().map(parse).collect()
}

/// A record.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("evb printed an invalid record: {error}"))
}

/// Adds the options that start a node of a benchmark in each namespace. The nodes share the cores, so none is pinned.
pub(crate) fn in_namespaces<'a>(command: &'a mut Command, nodes: &[Namespace], control: &str) -> &'a mut Command {
    let hosts = nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(",");
    command.args(["--json", "--quiet", "--no-pin", "--hosts", &hosts, "--shell", "ip netns exec", "--listen", control])
}
