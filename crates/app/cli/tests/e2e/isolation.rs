//! Nodes whose data network is cut while run control still reaches them: each node and the bridges are in their own
//! network namespaces. Without the privilege to make namespaces, the tests are skipped with a message.

use crate::support::{Lab, Outcome, Running, not_good, stored_files, wait_until};
use rustix::process::Signal;
use std::{
    fs,
    process::{self, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

const EXPERIMENT: &str = r#"
[trigger]
type = "rate"
rate = "1 kHz"
duration = "55 s"
[readout]
units = 4
source = { type = "fixed", size = "200 B" }
[builder]
units = 3
[transport]
type = "tcp"
[run]
peer_timeout = "3 s"
"#;
const ROLES: [&str; 8] = ["evm", "ru0", "ru1", "ru2", "ru3", "bu0", "bu1", "bu2"];
const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
/// Run control, on the network of run control.
const CONTROL: &str = "10.78.1.254";

/// A namespace for each node with an interface to the data network and one to the network of run control, and one with
/// the bridges of both.
struct Networks {
    name: String,
}

impl Networks {
    /// Makes the namespaces; `None` if that is not allowed here.
    fn new() -> Option<Self> {
        static NETWORKS: AtomicUsize = AtomicUsize::new(0);
        let count = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let networks = Self { name: format!("evb-i{}-{count}", process::id()) };
        if !ip(&format!("netns add {}", networks.hub())) {
            eprintln!("skipped: `ip netns add` is not allowed here");
            return None;
        }
        let hub = networks.hub();
        let mut done = ["data", "control"].iter().all(|bridge| {
            ip(&format!("-n {hub} link add {bridge} type bridge")) && ip(&format!("-n {hub} link set {bridge} up"))
        });
        done &= ip(&format!("-n {hub} addr add {CONTROL}/24 dev control"));
        done &= (0..ROLES.len()).all(|node| networks.add(node));
        if !done {
            eprintln!("skipped: `ip link` cannot join namespaces here");
        }
        done.then_some(networks)
    }

    fn add(&self, node: usize) -> bool {
        let (hub, name) = (self.hub(), self.node(node));
        let join = |(network, bridge): (usize, &str)| {
            let address = format!("10.78.{network}.{}", node + 1);
            ip(&format!("-n {hub} link add {bridge}{node} type veth peer name {bridge} netns {name}"))
                && ip(&format!("-n {hub} link set {bridge}{node} master {bridge} up"))
                && ip(&format!("-n {name} addr add {address}/24 dev {bridge}"))
                && ip(&format!("-n {name} link set {bridge} up"))
        };
        ip(&format!("netns add {name}")) && ["data", "control"].into_iter().enumerate().all(join)
    }

    fn hub(&self) -> String {
        format!("{}-h", self.name)
    }

    fn node(&self, node: usize) -> String {
        format!("{}-{node}", self.name)
    }

    /// Cuts the data link of a node.
    fn cut(&self, node: usize) {
        assert!(ip(&format!("-n {} link set data{node} down", self.hub())), "the link of the node is there");
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.hub()));
        (0..ROLES.len()).for_each(|node| _ = ip(&format!("netns del {}", self.node(node))));
    }
}

/// Runs `ip` with arguments that have no spaces; false if it fails.
fn ip(line: &str) -> bool {
    let status = Command::new("ip").args(line.split(' ')).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// A run over the networks, at full rate.
fn start(lab: &Lab, networks: &Networks) -> (Running, Vec<Running>) {
    let address = format!("{CONTROL}:7000");
    let run = lab.run(&["--listen", &address, "--patience", "50"]);
    let run = run.under(&["ip", "netns", "exec", &networks.hub()]).env("EVB_TOKEN", TOKEN).start();
    let node = |(number, role): (usize, &&str)| {
        let listen = format!("10.78.0.{}:0", number + 1);
        let node = lab.evb(&["node", "--role", role, "--join", &address, "--listen", &listen, "--patience", "50"]);
        node.under(&["ip", "netns", "exec", &networks.node(number)]).env("EVB_TOKEN", TOKEN).start()
    };
    let nodes = ROLES.iter().enumerate().map(node).collect();
    wait_for_events(lab);
    (run, nodes)
}

/// Waits until more events are stored.
fn wait_for_events(lab: &Lab) {
    let size = || stored_files(&lab.path("evb-data")).iter().map(|path| fs::metadata(path).unwrap().len()).sum::<u64>();
    let before = size();
    wait_until("events are stored", || (size() > before + 200_000).then_some(()));
}

/// Cuts the data link of a node during a run.
fn run_with_cut_link(role: &str) -> Option<Outcome> {
    let (lab, networks) = (Lab::with(EXPERIMENT), Networks::new()?);
    let (mut run, _nodes) = start(&lab, &networks);
    let node = ROLES.iter().position(|known| *known == role).expect("a role of this experiment");
    networks.cut(node);
    run.wait_for(&format!("{role} is lost to its peers"));
    if role != "evm" {
        wait_for_events(&lab);
        run.signal(Signal::INT);
    }
    Some(run.wait())
}

#[test]
fn only_a_node_whose_data_link_is_cut_is_lost() {
    thread::scope(|scope| {
        for role in ["ru2", "bu0", "evm"] {
            scope.spawn(move || {
                let Some(outcome) = run_with_cut_link(role) else { return };
                let record = not_good(&outcome);
                assert_eq!(record.lost_nodes, [role], "{outcome}");
                let finding = record.findings.iter().find(|finding| finding.subject == role);
                assert!(finding.is_some_and(|it| it.message.contains(" connections are lost")), "{outcome}");
                if role.starts_with("bu") {
                    assert_eq!((record.events.incomplete, record.events.lost), (0, 0), "{outcome}");
                }
            });
        }
    });
}
