//! The commands that start the processes of a launch of the benchmarks, or of traffic.

use crate::{
    failure::Failure,
    launcher::{self, Launcher},
    token::{self, TOKEN_VARIABLE},
};
use evb::{
    Token,
    bench::{LOCAL, Launch, LayerChoice},
};
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::{Command, Stdio},
};

/// The placeholder of a node's number.
const NODE: &str = "{node}";

/// The processes of a launch: `evb bench` with hidden arguments.
pub(crate) struct Members<'a> {
    layer: &'a LayerChoice,
    nodes: u16,
    /// Longest message in bytes.
    longest: usize,
    /// True if the processes are pinned to cores in turn.
    is_pinned: bool,
    /// The launcher of a message system that starts its own processes.
    launcher: Option<Launcher>,
    /// Words before the command of each node, with a placeholder for its number.
    before: Vec<String>,
    /// Address at which the nodes find the launch.
    listen: SocketAddr,
    program: PathBuf,
    token: Token,
}

impl<'a> Members<'a> {
    /// `launcher` is the user's own: of a message system that needs one, or what stands before the command of each node.
    /// The nodes find the launch at `listen`.
    pub(crate) fn new(
        layer: &'a LayerChoice,
        nodes: u16,
        longest: usize,
        is_pinned: bool,
        launcher: Option<&str>,
        listen: Option<IpAddr>,
    ) -> Result<Self, Failure> {
        let (launcher, before) = if layer.about().has_launcher {
            (Some(launcher::command(launcher, nodes)?), Vec::new())
        } else {
            (None, launcher.unwrap_or_default().split_whitespace().map(str::to_owned).collect())
        };
        let listen = listen.map_or(LOCAL, |address| (address, 0).into());
        let (program, token) = (std::env::current_exe()?, token::fresh()?);
        Ok(Self { layer, nodes, longest, is_pinned, launcher, before, listen, program, token })
    }

    /// The commands of all processes, which join the launch at this address.
    pub(crate) fn commands(&self, control: SocketAddr) -> Vec<Command> {
        match &self.launcher {
            Some(launcher) => vec![self.member(launcher.start(&self.program), control)],
            None => {
                let numbered = |node: u16| {
                    let mut command = self.member(self.numbered(node), control);
                    command.args(["--node", &node.to_string()]);
                    command
                };
                (0..self.nodes).map(numbered).collect()
            }
        }
    }

    /// A launch of these processes.
    pub(crate) fn launch<'l>(&self, commands: &'l dyn Fn(SocketAddr) -> Vec<Command>) -> Launch<'l> {
        Launch { nodes: self.nodes, listen: self.listen, token: self.token, commands }
    }

    /// The command that starts the program for a node.
    fn numbered(&self, node: u16) -> Command {
        let mut words = self.before.iter().map(|word| word.replace(NODE, &node.to_string()));
        let Some(first) = words.next() else { return Command::new(&self.program) };
        let mut command = Command::new(first);
        command.args(words).arg(&self.program);
        command
    }

    fn member(&self, mut command: Command, control: SocketAddr) -> Command {
        let layer = serde_json::to_string(self.layer).expect("names and settings are text");
        command.args(["bench", "--layer", &layer, "--nodes", &self.nodes.to_string()]);
        command.args(["--sizes", &format!("{}B", self.longest), "--join", &control.to_string()]);
        if !self.is_pinned {
            command.arg("--no-pin");
        }
        // In the environment, since everybody on the machine can read the arguments.
        command.env(TOKEN_VARIABLE, self.token.to_hex()).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }
}
