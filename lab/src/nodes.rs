//! Nodes of an event builder, each in a network namespace.

use std::{fs::File, io::Read as _, path::Path, process::Command, time::Duration};
use xtask::{namespaces::Namespace, processes::Limited};

/// A node in its namespace. Dropping it kills it.
pub(crate) struct Node(Option<Limited>);

impl Node {
    /// Starts a node, which must end within `limit`. Its role is the name of its namespace without `prefix`.
    pub(crate) fn start(
        evb: &Path,
        namespace: &Namespace,
        prefix: &str,
        control: &str,
        token: &str,
        limit: Duration,
    ) -> Self {
        let role = namespace.name.strip_prefix(prefix).unwrap_or(&namespace.name);
        Self::start_as(role, &[], evb, namespace, control, token, limit)
    }

    /// Starts a node with this role. `through` is the program that starts it in the namespace, with its arguments.
    pub(crate) fn start_as(
        role: &str,
        through: &[&str],
        evb: &Path,
        Namespace { name, address }: &Namespace,
        control: &str,
        token: &str,
        limit: Duration,
    ) -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name]).args(through).arg(evb);
        command.args(["node", "--role", role, "--join", control, "--listen", &format!("{address}:0"), "--quiet"]);
        // Run control reports a node that cannot start.
        Self(Limited::start(command.env("EVB_TOKEN", token), limit).ok())
    }

    /// Waits for the end of the node.
    ///
    /// # Errors
    /// The node could not start, hangs, or reports a failure.
    pub(crate) fn end(self) -> Result<(), String> {
        let mut process = self.0.ok_or("a node could not start")?;
        match process.wait().map_err(|error| format!("a node: {error}"))? {
            (status, _) if status.success() => Ok(()),
            (status, _) => Err(format!("a node ended with {status}")),
        }
    }
}

/// A random secret.
pub(crate) fn token() -> Result<String, String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).map_err(|error| error.to_string())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
