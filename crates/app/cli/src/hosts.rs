//! Machines on which a command of this program is started, each by a shell such as `ssh`.

use crate::failure::Failure;
use clap::Args;
use evb::NodeId;
use std::{
    io::Write,
    net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket},
    path::PathBuf,
    process::Command,
};

/// Port to which the way to a host is looked up; nothing is sent there.
const ANY_PORT: u16 = 9;

/// Options of machines.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct HostArgs {
    /// Start the nodes on these machines, in turn, by ssh; one on each by default
    #[arg(long, value_name = "HOST,..", value_delimiter = ',')]
    hosts: Vec<String>,
    /// What starts a command on a machine of --hosts; the machine and the command follow
    #[arg(long, value_name = "COMMAND", default_value = "ssh -o BatchMode=yes", requires = "hosts")]
    shell: String,
    /// The path of evb on the machines of --hosts; that of this one by default
    #[arg(long, value_name = "PATH", requires = "hosts")]
    program: Option<PathBuf>,
}

/// Machines for nodes.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    names: Vec<String>,
    shell: Vec<String>,
    program: PathBuf,
    /// Address at which this machine listens.
    pub(crate) listen: SocketAddr,
}

impl HostArgs {
    /// True if there are machines.
    pub(crate) fn any(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// The machines; `None` if all nodes are on this one. This machine listens at `listen`, or at the address that it has on
    /// the way to the first of them.
    pub(crate) fn hosts(&self, listen: Option<SocketAddr>) -> Result<Option<Hosts>, Failure> {
        let [first, ..] = &self.hosts[..] else { return Ok(None) };
        if let Some(wrong) = self.hosts.iter().find(|host| host.is_empty() || host.starts_with('-')) {
            return Err(Failure::with_hint(
                format!("{wrong:?} is not a host"),
                "give their names, such as --hosts a,b,c",
            ));
        }
        let shell: Vec<_> = self.shell.split_whitespace().map(str::to_owned).collect();
        if shell.is_empty() {
            return Err(Failure::with_hint("--shell names no command", "such as --shell \"ssh -o BatchMode=yes\""));
        }
        let program = self.program.clone().map_or_else(std::env::current_exe, Ok)?;
        let listen = match listen {
            Some(listen) => listen,
            None => (towards(first)?, 0).into(),
        };
        Ok(Some(Hosts { names: self.hosts.clone(), shell, program, listen }))
    }
}

impl Hosts {
    /// Number of machines.
    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    /// The machine of a node.
    pub(crate) fn of(&self, node: NodeId) -> &str {
        &self.names[node.index() % self.names.len()]
    }

    /// The command that starts this program for a node; its arguments are still to come. The program gets `input` as its
    /// standard input: others on the machine can read arguments.
    pub(crate) fn start(&self, node: NodeId, input: &str) -> std::io::Result<Command> {
        let mut command = Command::new(&self.shell[0]);
        command.args(&self.shell[1..]).arg(self.of(node)).arg(&self.program);
        let (reader, mut writer) = std::io::pipe()?;
        writer.write_all(input.as_bytes())?;
        command.stdin(reader);
        Ok(command)
    }
}

/// The address of `HOST:PORT`, by name or by number; the first of version 4, if a name has several.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| format!("{error}; give HOST:PORT, such as 192.0.2.1:7000"))?;
    let found: Vec<_> = found.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| "the host has no address".into())
}

/// Any port of a host.
pub(crate) fn any_port(host: &str) -> Result<SocketAddr, Failure> {
    Ok((resolve(host)?.ip(), 0).into())
}

fn resolve(host: &str) -> Result<SocketAddr, Failure> {
    let unknown = |why: String| {
        Failure::with_hint(
            format!("the host {host} cannot be found: {why}"),
            "give the address of this one: --listen HOST",
        )
    };
    let mut found = (host, ANY_PORT).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    found.next().ok_or_else(|| unknown("it has no address".into()))
}

fn towards(host: &str) -> Result<IpAddr, Failure> {
    address_towards(resolve(host)?)
}

/// The address of this machine on the way to another one.
pub(crate) fn address_towards(other: SocketAddr) -> Result<IpAddr, Failure> {
    let any: IpAddr = match other {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(other)?;
    Ok(socket.local_addr()?.ip())
}
