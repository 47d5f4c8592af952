//! Nodes of an event builder, each in a network namespace.

use std::{fs::File, io::Read as _, path::PathBuf, process::Command, time::Duration};
use xtask::{
    namespaces::{Namespace, control},
    processes::Limited,
};

/// What starts the nodes of a run: what all of them have in common.
pub(crate) struct Launcher {
    evb: PathBuf,
    /// The address of run control.
    control: String,
    token: String,
    /// Longest time of a node, and of the run.
    limit: Duration,
}

/// A node in its namespace. Dropping it kills it.
pub(crate) struct Node(Option<Limited>);

impl Launcher {
    /// For a run whose run control is on the bridge of a network, given by its first three numbers.
    pub(crate) fn new(evb: PathBuf, network: &str, limit: Duration) -> Result<Self, String> {
        Ok(Self { evb, control: format!("{}:7000", control(network)), token: token()?, limit })
    }

    /// Starts a node, whose role is the name of its namespace without `prefix`.
    pub(crate) fn start(&self, namespace: &Namespace, prefix: &str) -> Node {
        let role = namespace.name.strip_prefix(prefix).unwrap_or(&namespace.name);
        self.start_as(role, &[], namespace)
    }

    /// Starts a node with this role. `through` is the program that starts it in the namespace, with its arguments.
    pub(crate) fn start_as(&self, role: &str, through: &[&str], Namespace { name, address }: &Namespace) -> Node {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name]).args(through).arg(&self.evb);
        command.args(["node", "--role", role, "--join", &self.control, "--listen", &format!("{address}:0"), "--quiet"]);
        // Run control reports a node that cannot start.
        Node(Limited::start(command.env("EVB_TOKEN", &self.token), self.limit).ok())
    }

    /// Makes a command the run control of these nodes.
    pub(crate) fn controlled_by<'a>(&self, run: &'a mut Command) -> &'a mut Command {
        run.args(["--listen", &self.control]).env("EVB_TOKEN", &self.token)
    }
}

impl Node {
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
fn token() -> Result<String, String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).map_err(|error| error.to_string())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
