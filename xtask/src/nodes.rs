//! Nodes of an event builder, each in a network namespace.

use crate::{namespaces::Namespace, processes::Limited};
use std::{fs::File, io::Read as _, path::Path, process::Command, time::Duration};

/// A node in its namespace. Dropping it ends it.
pub(crate) struct Node(Option<Limited>);

impl Node {
    /// Starts the node whose role is the name of its namespace, behind `prefix`. It must end within `limit`.
    pub(crate) fn start(
        evb: &Path,
        Namespace { name, address }: &Namespace,
        prefix: &str,
        control: &str,
        token: &str,
        limit: Duration,
    ) -> Self {
        let mut command = Command::new("ip");
        let role = name.strip_prefix(prefix).unwrap_or(name);
        command.args(["netns", "exec", name]).arg(evb);
        command.args(["node", "--role", role, "--join", control, "--listen", &format!("{address}:0"), "--quiet"]);
        // A node that cannot start is missed by run control, which says so.
        Self(Limited::start(command.env("EVB_TOKEN", token), limit).ok())
    }

    /// Waits until the node has ended, after its run.
    ///
    /// # Errors
    /// It could not start, does not end, or not well.
    pub(crate) fn end(self) -> Result<(), String> {
        let mut process = self.0.ok_or("a node could not start")?;
        match process.wait().map_err(|error| format!("a node: {error}"))? {
            (status, _) if status.success() => Ok(()),
            (status, _) => Err(format!("a node ended with {status}")),
        }
    }
}

/// A secret that no other run has.
pub(crate) fn token() -> Result<String, String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).map_err(|error| error.to_string())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
