//! Namespaces with two links each, `e0` and `e1`, which have a limited rate and separate bridges.

use std::{fs, path::Path};
use xtask::namespaces::{Namespace, Namespaces, call, control, ip};

/// The first three numbers of the addresses on each link.
pub(super) const NETWORKS: [&str; 2] = ["10.78.0", "10.78.1"];
const BRIDGES: [&str; 2] = ["evb-bond0", "evb-bond1"];
/// Bytes of the queue of a bridge to a node, and of a node's own queue.
const QUEUES: [u32; 2] = [2_000_000, 2_000_000];

/// Namespaces on two bridges. Dropping them removes them.
pub(super) struct Links {
    first: Namespaces,
}

impl Links {
    /// Creates namespaces with these names of at most 13 bytes, with links of this rate.
    pub(super) fn create(names: &[&str], megabits: u32) -> Result<Self, String> {
        let links = Self { first: Namespaces::create(BRIDGES[0], NETWORKS[0], names.iter().map(ToString::to_string))? };
        links.remove_second();
        let bridge = BRIDGES[1];
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("link set {bridge} up"))?;
        ip(&format!("addr add {}/24 dev {bridge}", control(NETWORKS[1])))?;
        for (node, number) in links.nodes().iter().zip(1..) {
            add_second(node, number)?;
            shape(node, megabits)?;
        }
        Ok(links)
    }

    /// The namespaces.
    pub(super) fn nodes(&self) -> &[Namespace] {
        self.first.nodes()
    }

    /// Cuts the second link of all nodes.
    pub(super) fn cut_second(&self) -> Result<(), String> {
        self.nodes().iter().try_for_each(|node| ip(&format!("-n {} link set e1 down", node.name)))
    }

    /// The bytes that these nodes have received over each link.
    pub(super) fn carried(&self, prefix: &str) -> [u64; 2] {
        let nodes = || self.nodes().iter().filter(|node| node.name.starts_with(prefix));
        [nodes().map(|node| sent(&node.name)).sum(), nodes().map(|node| sent(&second(node))).sum()]
    }

    fn remove_second(&self) {
        for node in self.nodes() {
            let _may_be_missing = ip_quietly(&format!("link del {}", second(node)));
        }
        let _may_be_missing = ip_quietly(&format!("link del {}", BRIDGES[1]));
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.remove_second();
    }
}

/// The bridge's interface to the second link of a node.
fn second(node: &Namespace) -> String {
    format!("{}-1", node.name)
}

fn add_second(node: &Namespace, number: usize) -> Result<(), String> {
    let (name, outside) = (&node.name, second(node));
    ip(&format!("link add {outside} type veth peer name e1 netns {name}"))?;
    ip(&format!("link set {outside} master {} up", BRIDGES[1]))?;
    ip(&format!("-n {name} addr add {}.{number}/24 dev e1", NETWORKS[1]))?;
    ip(&format!("-n {name} link set e1 up"))
}

/// Limits the rate of both links of a node in both directions.
fn shape(node: &Namespace, megabits: u32) -> Result<(), String> {
    let rate = |device: &str, queue: u32| {
        format!("qdisc add dev {device} root tbf rate {megabits}mbit burst 16kb limit {queue}")
    };
    for (outside, inside) in [(node.name.clone(), "e0"), (second(node), "e1")] {
        call("tc", &rate(&outside, QUEUES[0]))?;
        node.call(&format!("tc {}", rate(inside, QUEUES[1])))?;
    }
    Ok(())
}

/// The number of bytes that an interface of this machine has sent.
fn sent(interface: &str) -> u64 {
    let file = Path::new("/sys/class/net").join(interface).join("statistics/tx_bytes");
    fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

fn ip_quietly(line: &str) -> Option<()> {
    let mut command = std::process::Command::new("ip");
    command.args(line.split(' ')).stderr(std::process::Stdio::null()).status().ok().map(drop)
}
