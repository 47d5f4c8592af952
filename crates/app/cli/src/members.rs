//! The commands that start the processes of a launch of the benchmarks, or of traffic.

use crate::{
    failure::Failure,
    hosts::Hosts,
    launcher::{self, Launcher},
    token::{self, TOKEN_VARIABLE},
};
use evb::{
    NodeId, Token,
    bench::{LOCAL, Launch, LayerChoice, START_TIMEOUT},
};
use std::{
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

/// The processes of a launch: `evb bench` with hidden arguments.
pub(crate) struct Members<'a> {
    /// The machines of the nodes, if they are not all on this one.
    hosts: Option<&'a Hosts>,
    layer: &'a LayerChoice,
    nodes: u16,
    /// Longest message in bytes.
    longest: usize,
    /// True if the processes are pinned to cores in turn.
    is_pinned: bool,
    /// The launcher of a message system that starts its own processes.
    launcher: Option<Launcher>,
    program: PathBuf,
    token: Token,
    /// Longest wait for the processes.
    patience: Duration,
}

impl<'a> Members<'a> {
    /// `launcher` is the user's own, for a message system that needs one.
    pub(crate) fn new(
        layer: &'a LayerChoice,
        nodes: u16,
        longest: usize,
        is_pinned: bool,
        launcher: Option<&str>,
    ) -> Result<Self, Failure> {
        let launcher = layer.info().has_launcher.then(|| launcher::command(launcher, nodes)).transpose()?;
        let (program, token) = (std::env::current_exe()?, token::fresh()?);
        let patience = START_TIMEOUT;
        Ok(Self { hosts: None, layer, nodes, longest, is_pinned, launcher, program, token, patience })
    }

    /// The same, with this longest wait for the processes.
    pub(crate) fn with_patience(self, patience: Option<Duration>) -> Self {
        Self { patience: patience.unwrap_or(self.patience), ..self }
    }

    /// The same on these machines.
    pub(crate) fn on(self, hosts: Option<&'a Hosts>) -> Result<Self, Failure> {
        let about = self.layer.info();
        let reason = match hosts {
            None => return Ok(self),
            Some(_) if self.launcher.is_some() => {
                "a launcher starts its nodes: give the machines to it, with --launcher"
            }
            Some(_) if self.layer.is_one_process() => "its nodes are threads of one process",
            Some(_) if self.layer.transport().info().is_local => "it joins processes of one machine",
            Some(_) => return Ok(Self { hosts, ..self }),
        };
        Err(Failure::new(format!("{} has no --hosts: {reason}", about.name)))
    }

    /// The commands of all processes, which join the launch at this address.
    pub(crate) fn commands(&self, control: SocketAddr) -> std::io::Result<Vec<Command>> {
        if let Some(launcher) = &self.launcher {
            return Ok(vec![self.here(launcher.start(&self.program), control)]);
        }
        let numbered = |node: u16| {
            let mut command = match self.hosts {
                Some(hosts) => self.there(hosts, NodeId(node), control)?,
                None => self.here(Command::new(&self.program), control),
            };
            command.args(["--node", &node.to_string()]);
            Ok(command)
        };
        (0..self.nodes).map(numbered).collect()
    }

    /// A launch of these processes.
    pub(crate) fn launch<'l>(&self, commands: &'l dyn Fn(SocketAddr) -> std::io::Result<Vec<Command>>) -> Launch<'l> {
        let listen = self.hosts.map_or(LOCAL, |hosts| hosts.listen);
        Launch { nodes: self.nodes, listen, token: self.token, patience: self.patience, commands }
    }

    /// A process on this machine. The token is in its environment, since everybody can read the arguments.
    fn here(&self, mut command: Command, control: SocketAddr) -> Command {
        self.describe(&mut command, control);
        command.args(["--layer", &self.layer()]).env(TOKEN_VARIABLE, self.token.to_hex()).stdin(Stdio::null());
        command
    }

    /// A process on another machine. A shell passes on no environment, and would read quotes in the arguments.
    fn there(&self, hosts: &Hosts, node: NodeId, control: SocketAddr) -> std::io::Result<Command> {
        let mut command = hosts.start(node, &format!("{}\n{}\n", self.token.to_hex(), self.layer()))?;
        self.describe(&mut command, control);
        command.arg("--from-stdin");
        Ok(command)
    }

    fn describe(&self, command: &mut Command, control: SocketAddr) {
        command.args(["bench", "--nodes", &self.nodes.to_string(), "--sizes", &format!("{}B", self.longest)]);
        command.args(["--join", &control.to_string()]).stdout(Stdio::null());
        if !self.is_pinned {
            command.arg("--no-pin");
        }
    }

    fn layer(&self) -> String {
        serde_json::to_string(self.layer).expect("names and settings are text")
    }
}

/// Token and layer that [`Members`] tell a process of another machine by its standard input.
pub(crate) fn from_stdin() -> Result<(Token, LayerChoice), Failure> {
    let token = token::from_stdin()?;
    let layer = std::io::stdin().lines().next().transpose()?;
    let layer = layer.ok_or_else(|| Failure::new("standard input named no message layer"))?;
    Ok((token, serde_json::from_str(&layer).map_err(Failure::new)?))
}
