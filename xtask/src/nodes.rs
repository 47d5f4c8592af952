//! Nodes of an event builder, each in a network namespace.

use crate::namespaces::Namespace;
use std::{
    fs::File,
    io::Read as _,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Longest time from the end of a run to that of its nodes.
const END: Duration = Duration::from_secs(20);

/// A node in its namespace. Dropping it ends it.
pub(crate) struct Node(Option<Child>);

impl Node {
    /// Starts the node whose role is the name of its namespace, behind `prefix`.
    pub(crate) fn start(
        evb: &Path,
        Namespace { name, address }: &Namespace,
        prefix: &str,
        control: &str,
        token: &str,
    ) -> Self {
        let mut command = Command::new("ip");
        let role = name.strip_prefix(prefix).unwrap_or(name);
        command.args(["netns", "exec", name]).arg(evb);
        command.args(["node", "--role", role, "--join", control, "--listen", &format!("{address}:0"), "--quiet"]);
        // A node that cannot start is missed by run control, which says so.
        Self(command.env("EVB_TOKEN", token).stdin(Stdio::null()).spawn().ok())
    }
}

impl Node {
    /// Waits until the node has ended, after its run.
    ///
    /// # Errors
    /// It does not end, or not well.
    pub(crate) fn end(mut self) -> Result<(), String> {
        let start = Instant::now();
        let Some(child) = &mut self.0 else { return Err("a node could not start".into()) };
        loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("a node ended with {status}")),
                None if start.elapsed() > END => return Err("a node does not end after its run".into()),
                None => thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _over = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// A secret that no other run has.
pub(crate) fn token() -> Result<String, String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).map_err(|error| error.to_string())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
