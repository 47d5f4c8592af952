//! Network namespaces on a bridge: machines with their own interfaces and addresses on this one. Needs root and `ip`.

use crate::workspace::run;
use std::process::{Command, Stdio};

/// Namespaces on a bridge, to which this machine is connected, too. Dropping it removes them.
pub struct Namespaces {
    bridge: &'static str,
    nodes: Vec<Namespace>,
}

/// A namespace. Its interface is `e0`; the interface of the bridge to it has the name of the namespace.
pub struct Namespace {
    /// The name for `ip netns`.
    pub name: String,
    /// The address on the bridge.
    pub address: String,
}

impl Namespaces {
    /// Creates namespaces with these names of at most 15 bytes. `network` is the first three numbers of their addresses.
    ///
    /// # Errors
    /// A call of `ip` fails, for example without root.
    pub fn create(
        bridge: &'static str,
        network: &str,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Self, String> {
        let node = |(name, number): (String, usize)| Namespace { name, address: format!("{network}.{number}") };
        let namespaces = Self { bridge, nodes: names.into_iter().zip(1..).map(node).collect() };
        namespaces.remove();
        ip(&format!("link add {bridge} type bridge")).map_err(|error| format!("{error}: are you root?"))?;
        ip(&format!("link set {bridge} up"))?;
        ip(&format!("addr add {}/24 dev {bridge}", control(network)))?;
        namespaces.nodes.iter().try_for_each(|node| node.create(bridge))?;
        Ok(namespaces)
    }

    /// The namespaces.
    #[must_use]
    pub fn nodes(&self) -> &[Namespace] {
        &self.nodes
    }

    /// Sets the most bytes of a packet on all links.
    ///
    /// # Errors
    /// A call of `ip` fails.
    pub fn set_mtu(&self, bytes: u32) -> Result<(), String> {
        self.nodes.iter().try_for_each(|Namespace { name, .. }| {
            ip(&format!("link set {name} mtu {bytes}"))?;
            ip(&format!("-n {name} link set e0 mtu {bytes}"))
        })
    }

    /// Limits each link to this rate in both directions. Rate and burst are written as for `tc`. A burst of 5 kB is enough for
    /// 100 Mbit/s; faster links need one that lasts until the timer of the system comes again. The queues are those of the bridge to
    /// a node and of a node to the bridge, in bytes.
    ///
    /// # Errors
    /// A call of `tc` fails.
    pub fn shape(&self, rate: &str, burst: &str, [to_node, of_node]: [&str; 2]) -> Result<(), String> {
        let shape = |device: &str, queue: &str| {
            format!("qdisc add dev {device} root tbf rate {rate} burst {burst} limit {queue}")
        };
        self.nodes.iter().try_for_each(|node| {
            call("tc", &shape(&node.name, to_node))?;
            node.call(&format!("tc {}", shape("e0", of_node)))
        })
    }

    fn remove(&self) {
        let quiet = |line: &str| {
            let _may_be_missing = Command::new("ip").args(line.split(' ')).stderr(Stdio::null()).status();
        };
        for Namespace { name, .. } in &self.nodes {
            // The end of a namespace removes its links, but not at once.
            quiet(&format!("link del {name}"));
            quiet(&format!("netns del {name}"));
        }
        quiet(&format!("link del {}", self.bridge));
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Namespace {
    fn create(&self, bridge: &str) -> Result<(), String> {
        let Self { name, address } = self;
        ip(&format!("netns add {name}"))?;
        ip(&format!("link add {name} type veth peer name e0 netns {name}"))?;
        ip(&format!("link set {name} master {bridge} up"))?;
        ip(&format!("-n {name} link set lo up"))?;
        ip(&format!("-n {name} addr add {address}/24 dev e0"))?;
        ip(&format!("-n {name} link set e0 up"))
    }

    /// Runs a command line in the namespace; its words have no spaces.
    ///
    /// # Errors
    /// The command fails.
    pub fn call(&self, line: &str) -> Result<(), String> {
        ip(&format!("netns exec {} {line}", self.name))
    }
}

/// The address of this machine on the bridge.
#[must_use]
pub fn control(network: &str) -> String {
    format!("{network}.254")
}

/// Runs `ip` with arguments that have no spaces.
///
/// # Errors
/// The command fails.
pub fn ip(line: &str) -> Result<(), String> {
    call("ip", line)
}

/// Runs a program with arguments that have no spaces.
///
/// # Errors
/// The command fails.
pub fn call(program: &str, line: &str) -> Result<(), String> {
    run(Command::new(program).args(line.split(' ')))
}
