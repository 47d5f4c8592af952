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
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
};

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
    program: PathBuf,
    token: Token,
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
        let launcher = layer.about().has_launcher.then(|| launcher::command(launcher, nodes)).transpose()?;
        let (program, token) = (std::env::current_exe()?, token::fresh()?);
        Ok(Self { layer, nodes, longest, is_pinned, launcher, program, token })
    }

    /// The commands of all processes, which join the launch at this address.
    pub(crate) fn commands(&self, control: SocketAddr) -> Vec<Command> {
        match &self.launcher {
            Some(launcher) => vec![self.member(launcher.start(&self.program), control)],
            None => {
                let numbered = |node: u16| {
                    let mut command = self.member(Command::new(&self.program), control);
                    command.args(["--node", &node.to_string()]);
                    command
                };
                (0..self.nodes).map(numbered).collect()
            }
        }
    }

    /// A launch of these processes.
    pub(crate) fn launch<'l>(&self, commands: &'l dyn Fn(SocketAddr) -> Vec<Command>) -> Launch<'l> {
        Launch { nodes: self.nodes, listen: LOCAL, token: self.token, commands }
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
