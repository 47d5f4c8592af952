//! Network namespaces on a bridge: machines with interfaces and addresses of their own, on this one. Needs root and `ip`.

use crate::workspace::run;
use std::process::{Command, Stdio};

/// Namespaces on one bridge; this machine is on it, too. They end with this.
pub(crate) struct Namespaces {
    bridge: &'static str,
    nodes: Vec<Namespace>,
}

/// A namespace. Its interface is `e0`; that of the bridge to it has the name of the namespace.
pub(crate) struct Namespace {
    /// Its name for `ip netns`.
    pub(crate) name: String,
    /// Its address on the bridge.
    pub(crate) address: String,
}

impl Namespaces {
    /// Makes namespaces of these names, at most 15 bytes each. `network` is the first three numbers of their addresses.
    pub(crate) fn make(
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
        namespaces.nodes.iter().try_for_each(|node| node.make(bridge))?;
        Ok(namespaces)
    }

    /// The namespaces.
    pub(crate) fn nodes(&self) -> &[Namespace] {
        &self.nodes
    }

    /// Gives each link this rate in both directions, as `tc` writes it, with a shallow bucket. The queues are those of the bridge
    /// to a node and of a node to the bridge, in bytes.
    pub(crate) fn shape(&self, rate: &str, [to_node, of_node]: [&str; 2]) -> Result<(), String> {
        let shape =
            |device: &str, queue: &str| format!("qdisc add dev {device} root tbf rate {rate} burst 5kb limit {queue}");
        self.nodes.iter().try_for_each(|node| {
            call("tc", &shape(&node.name, to_node))?;
            node.call(&format!("tc {}", shape("e0", of_node)))
        })
    }

    fn remove(&self) {
        let quiet = |line: &str| {
            let _may_not_be_there = Command::new("ip").args(line.split(' ')).stderr(Stdio::null()).status();
        };
        for Namespace { name, .. } in &self.nodes {
            // The end of a namespace takes its links away, but not at once.
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
    fn make(&self, bridge: &str) -> Result<(), String> {
        let Self { name, address } = self;
        ip(&format!("netns add {name}"))?;
        ip(&format!("link add {name} type veth peer name e0 netns {name}"))?;
        ip(&format!("link set {name} master {bridge} up"))?;
        ip(&format!("-n {name} link set lo up"))?;
        ip(&format!("-n {name} addr add {address}/24 dev e0"))?;
        ip(&format!("-n {name} link set e0 up"))
    }

    /// Runs a command there.
    pub(crate) fn call(&self, line: &str) -> Result<(), String> {
        ip(&format!("netns exec {} {line}", self.name))
    }
}

/// The address of this machine on the bridge.
pub(crate) fn control(network: &str) -> String {
    format!("{network}.254")
}

pub(crate) fn ip(line: &str) -> Result<(), String> {
    call("ip", line)
}

/// Runs a program with arguments that have no spaces.
pub(crate) fn call(program: &str, line: &str) -> Result<(), String> {
    run(Command::new(program).args(line.split(' ')))
}
