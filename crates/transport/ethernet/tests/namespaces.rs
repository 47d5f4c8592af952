//! The transport on real interfaces: nodes in separate network namespaces, joined by a bridge. Without the privilege to
//! make namespaces, the tests are skipped with a message.

mod support;

use evb_core::NodeId;
use evb_transport::{
    HEAD_BYTES, Message, Received, SendError, Transport,
    conformance::{Subject, changed, run_all, run_life},
};
use evb_transport_bond::Stripe;
use evb_transport_ethernet::{EthernetOptions, Interface, InterfaceError, open_interface};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::{
    fs::File,
    os::fd::AsFd,
    process::{self, Command},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};
use support::{Faults, Relay, TOKEN, bond, join, options};

/// Nodes of the largest case.
const NODES: usize = 5;

/// Namespaces of a test: one for each node, with the interface `eth0`, and one for the bridge between them.
struct Lab {
    name: String,
}

impl Lab {
    /// Makes the namespaces; `None` if that is not allowed here.
    fn new(mtu: usize) -> Option<Self> {
        static LABS: AtomicUsize = AtomicUsize::new(0);
        let lab = Self { name: format!("evb-{}-{}", process::id(), LABS.fetch_add(1, Ordering::Relaxed)) };
        let name = &lab.name;
        if !ip(&format!("netns add {name}-b")) {
            eprintln!("skipped: `ip netns add` is not allowed here");
            return None;
        }
        let mut done = ip(&format!("-n {name}-b link add bridge mtu {mtu} type bridge"));
        done &= ip(&format!("-n {name}-b link set bridge up"));
        for node in 0..NODES {
            done &= ip(&format!("netns add {name}-{node}"));
            done &= ip(&format!(
                "-n {name}-b link add n{node} mtu {mtu} type veth peer name eth0 mtu {mtu} netns {name}-{node}"
            ));
            done &= ip(&format!("-n {name}-b link set n{node} master bridge up"));
            done &= ip(&format!("-n {name}-{node} link set eth0 up"));
        }
        if !done {
            eprintln!("skipped: `ip link` cannot join namespaces here");
        }
        done.then_some(lab)
    }

    /// What `work` returns in the namespace of a node.
    fn inside<T: Send + 'static>(&self, node: u16, work: impl FnOnce() -> T + Send + 'static) -> T {
        let file = File::open(format!("/run/netns/{}-{node}", self.name)).expect("the namespace");
        let inside = move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("the namespace");
            work()
        };
        thread::spawn(inside).join().expect("work does not panic")
    }

    /// The interface of a node.
    fn open(&self, node: u16) -> Result<Interface, InterfaceError> {
        self.inside(node, move || open_interface("eth0", NodeId(node), &TOKEN))
    }

    /// The interfaces of nodes in their namespaces.
    fn wires(&self, nodes: usize) -> Vec<Interface> {
        let open = |node| self.open(node).unwrap_or_else(|error| panic!("{error}"));
        (0..nodes as u16).map(open).collect()
    }

    fn nodes(&self, nodes: usize, options: &EthernetOptions) -> Vec<Box<dyn Transport>> {
        join(self.wires(nodes), options)
    }

    fn spoilt(&self, nodes: usize, faults: Faults, options: &EthernetOptions) -> Vec<Box<dyn Transport>> {
        let relays = self.wires(nodes).into_iter().zip(1..);
        join(relays.map(|(wire, seed)| Relay::new(wire, faults, seed)).collect(), options)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for node in 0..NODES {
            ip(&format!("netns del {}-{node}", self.name));
        }
        ip(&format!("netns del {}-b", self.name));
    }
}

fn ip(arguments: &str) -> bool {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn interfaces_conform() {
    let Some(lab) = Lab::new(1500) else { return };
    let options = EthernetOptions::new(changed(options(2).endpoint, |endpoint| endpoint.max_body = 1 << 20));
    run_all(&Subject { connect: &|nodes| lab.nodes(nodes, &options), max_body: options.endpoint.max_body });
}

#[test]
fn interfaces_with_jumbo_frames_and_priority_conform() {
    let Some(lab) = Lab::new(9000) else { return };
    let options = EthernetOptions {
        priority: 5,
        ..EthernetOptions::new(changed(options(2).endpoint, |endpoint| endpoint.max_body = 1 << 20))
    };
    run_all(&Subject { connect: &|nodes| lab.nodes(nodes, &options), max_body: options.endpoint.max_body });
}

#[test]
fn interfaces_behind_a_relay_with_faults_conform() {
    let Some(lab) = Lab::new(1500) else { return };
    let options = EthernetOptions::new(changed(options(2).endpoint, |endpoint| endpoint.max_body = 300_000));
    let faults = Faults { lost: 20, doubled: 20, swapped: 20, harmed: 20 };
    run_all(&Subject { connect: &|nodes| lab.spoilt(nodes, faults, &options), max_body: options.endpoint.max_body });
}

#[test]
fn slow_nodes_are_not_given_up() {
    const SILENCE: Duration = Duration::from_millis(400);
    let Some(lab) = Lab::new(1500) else { return };
    let options = EthernetOptions::new(changed(options(2).endpoint, |endpoint| endpoint.peer_timeout = SILENCE));
    run_life(&Subject { connect: &|nodes| lab.nodes(nodes, &options), max_body: options.endpoint.max_body }, SILENCE);
}

/// Each node has an interface in both.
fn two_labs() -> Option<[Lab; 2]> {
    Some([Lab::new(1500)?, Lab::new(1500)?])
}

#[test]
fn bonds_of_two_interfaces_conform() {
    let Some(labs) = two_labs() else { return };
    let options = EthernetOptions::new(changed(options(2).endpoint, |endpoint| endpoint.max_body = 1 << 20));
    for stripe in Stripe::ALL {
        let connect = |nodes| bond(labs.iter().map(|lab| lab.wires(nodes)).collect(), stripe, &options);
        run_all(&Subject { connect: &connect, max_body: options.endpoint.max_body });
    }
}

/// An interface goes down in the middle of a stream.
#[test]
fn a_bond_loses_nothing_with_an_interface() {
    const MESSAGES: u64 = 60_000;
    let Some(labs) = two_labs() else { return };
    let options =
        EthernetOptions::new(changed(options(2).endpoint, |endpoint| endpoint.peer_timeout = Duration::from_secs(1)));
    let mut nodes = bond(labs.iter().map(|lab| lab.wires(2)).collect(), Stripe::Message, &options).into_iter();
    let (mut sender, mut receiver) = (nodes.next().expect("two nodes"), nodes.next().expect("two nodes"));
    let (mut sent, mut received, mut sink, begin) = (0, 0, Vec::new(), Instant::now());
    while received < MESSAGES || sender.dead_links().is_empty() {
        while sent < MESSAGES && sent < received + 5000 && sender.send(NodeId(1), numbered(sent)).is_ok() {
            sent += 1;
            if sent == MESSAGES / 3 {
                assert!(ip(&format!("-n {}-1 link set eth0 down", labs[1].name)));
            }
        }
        sender.flush();
        sender.wait(Duration::ZERO);
        receiver.wait(Duration::from_millis(1));
        receiver.receive(1000, &mut sink);
        for item in sink.drain(..) {
            let Received::Message { from: NodeId(0), message } = item else { panic!("{item:?} at {received}") };
            assert!(message == numbered(received), "message {received}");
            received += 1;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{received} messages came: {:?}", sender.dead_links());
    }
    assert_eq!(sender.dead_links()[0].link, "link 1");
}

/// A message whose head and body follow from its number.
fn numbered(number: u64) -> Message {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&number.to_le_bytes());
    Message { head, body: vec![number as u8; 1 + number as usize % 90].into() }
}

/// 5 % of the frames are lost, as many come twice, and as many late.
#[test]
fn a_million_messages_arrive_once_and_in_order_through_faults() {
    const MESSAGES: u64 = 1_000_000;
    let Some(lab) = Lab::new(1500) else { return };
    let faults = Faults { lost: 50, doubled: 50, swapped: 50, harmed: 0 };
    let mut nodes = lab.spoilt(2, faults, &options(2)).into_iter();
    let (mut sender, mut receiver) = (nodes.next().expect("two nodes"), nodes.next().expect("two nodes"));
    let begin = Instant::now();
    let sending = thread::spawn(move || {
        for number in 0..MESSAGES {
            let mut message = numbered(number);
            while let Err(error) = sender.send(NodeId(1), message) {
                let SendError::Full(back) = error else { panic!("{error}") };
                message = back;
                sender.flush();
                sender.wait(Duration::from_millis(100));
            }
        }
        while !sender.flush() {
            sender.wait(Duration::from_millis(100));
        }
        sender
    });
    let (mut next, mut sink) = (0, Vec::new());
    while next < MESSAGES {
        receiver.wait(Duration::from_secs(10));
        receiver.receive(1000, &mut sink);
        for item in sink.drain(..) {
            let Received::Message { from: NodeId(0), message } = item else { panic!("{item:?} at {next}") };
            assert!(message == numbered(next), "message {next}");
            next += 1;
        }
    }
    assert_eq!(receiver.receive(10, &mut sink), 0, "nothing comes twice");
    drop(sending.join().expect("the sender does not fail"));
    println!("{MESSAGES} messages in {:?}", begin.elapsed());
}

/// Two nodes on one interface hear each other's frames as they leave.
#[test]
fn nodes_of_one_machine_can_share_an_interface() {
    use evb_transport::Connect;
    use evb_transport_ethernet::Endpoint;
    let Some(lab) = Lab::new(1500) else { return };
    let nodes = [0, 1].map(|node| {
        let wire = lab.inside(0, move || open_interface("eth0", NodeId(node), &TOKEN));
        let wire = wire.unwrap_or_else(|error| panic!("{error}"));
        Endpoint::open(NodeId(node), options(2), wire).expect("an endpoint")
    });
    let addresses = nodes.each_ref().map(Connect::address);
    let joining = nodes.into_iter().zip([1, 0]).map(|(mut node, other)| {
        let peers = [(NodeId(other), addresses[usize::from(other)].clone())];
        thread::spawn(move || {
            Connect::connect(&mut node, &peers).map(|()| node).unwrap_or_else(|error| panic!("{error}"))
        })
    });
    let joining: Vec<_> = joining.collect();
    let mut nodes: Vec<_> = joining.into_iter().map(|node| node.join().expect("joining does not fail")).collect();
    nodes[0].send(NodeId(1), numbered(7)).expect("the peer is there");
    nodes[0].flush();
    let mut sink = Vec::new();
    while nodes[1].receive(1, &mut sink) == 0 {
        nodes[1].wait(Duration::from_secs(1));
    }
    assert_eq!(sink, [Received::Message { from: NodeId(0), message: numbered(7) }]);
}
