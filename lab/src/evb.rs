//! The records that the `evb` command prints.

use serde_json::Value;
use std::{process::Command, time::Duration};
use xtask::{namespaces::Namespace, processes::Limited};

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
