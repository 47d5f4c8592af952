//! Nodes in their own processes: the conformance suite, where node 0 is here and the others are remote-controlled, and
//! a node that is killed.
//!
//! The program starts itself again as a node: it runs the test `serve`, and finds its parent by an environment variable.

mod process;
mod support;

use evb_core::NodeId;
use evb_transport::{
    Connect, Message, Received, Transport,
    conformance::{PATIENCE, Subject, remote::Remote, run_all},
};
use evb_transport_ofi::{Ofi, OfiOptions};
use process::Process;
use std::time::{Duration, Instant};
use support::{PROVIDERS, options, there_is, with};

const MAX_BODY: usize = 1 << 20;

/// The other processes, which are not tests; without a parent there is nothing to do.
#[test]
fn serve() {
    process::serve(node_options);
}

fn node_options(provider: &str, nodes: u16, peer_timeout: Duration) -> OfiOptions {
    with(&options(provider), |endpoint| {
        endpoint.max_body = MAX_BODY;
        endpoint.nodes = nodes;
        endpoint.peer_timeout = peer_timeout;
    })
}

/// Node 0 is of this process, the others have their own.
fn start(provider: &str, count: usize, peer_timeout: Duration) -> (Ofi, Vec<Remote>) {
    let (nodes, local) = (count as u16, NodeId(0));
    let mut here = Ofi::open(local, node_options(provider, nodes, peer_timeout)).expect("an endpoint");
    let mut others: Vec<_> =
        (1..nodes).map(|node| Process::start("serve", provider, NodeId(node), nodes, peer_timeout)).collect();
    let mut addresses = vec![(local, here.address())];
    addresses.extend(others.iter_mut().map(|other| (other.local, other.address())));
    let peers = |of: NodeId| addresses.iter().filter(|peer| peer.0 != of).cloned().collect::<Vec<_>>();
    others.iter_mut().for_each(|other| other.begin_connect(&peers(other.local)));
    here.connect(&peers(local)).expect("the others are there");
    (here, others.into_iter().map(Process::end_connect).collect())
}

fn conforms(provider: &str) {
    if !there_is(provider) {
        return;
    }
    let connect = |count| {
        let (here, others) = start(provider, count, Duration::from_secs(30));
        let mut nodes: Vec<Box<dyn Transport>> = vec![Box::new(here)];
        nodes.extend(others.into_iter().map(|other| Box::new(other) as Box<dyn Transport>));
        nodes
    };
    run_all(&Subject { connect: &connect, max_body: MAX_BODY });
}

#[test]
fn tcp_conforms_between_processes() {
    conforms("tcp");
}

#[test]
fn net_conforms_between_processes() {
    conforms("net");
}

#[test]
fn shm_conforms_between_processes() {
    conforms("shm");
}

/// The reason of node 0 for the loss of node 1, and the number of messages before it.
fn loss(node: &mut Ofi) -> (String, usize) {
    let (begin, mut sink) = (Instant::now(), Vec::new());
    loop {
        node.receive(100, &mut sink);
        if let Some(Received::Lost { peer, reason }) = sink.last() {
            assert_eq!(*peer, NodeId(1));
            return (reason.clone(), sink.len() - 1);
        }
        assert!(begin.elapsed() < PATIENCE, "the death of the node is not found");
        node.wait(Duration::from_millis(10));
        node.flush();
    }
}

#[test]
fn a_killed_node_is_found() {
    for provider in PROVIDERS.into_iter().filter(|provider| there_is(provider)) {
        let (mut here, mut others) = start(provider, 2, Duration::from_secs(2));
        let message = |length| Message { head: [7; 32], body: vec![1; length].into() };
        others[0].send(NodeId(0), message(100)).expect("room");
        while !others[0].flush() {}
        // A body that the dead node will never make room for.
        here.send(NodeId(1), message(500_000)).expect("room");
        here.flush();
        others[0].kill();
        let begin = Instant::now();
        let (reason, before) = loss(&mut here);
        println!("{provider}: {reason:?} after {:?}", begin.elapsed());
        assert_eq!(before, 1, "what it sent before is given");
        assert!(!reason.is_empty() && reason != "it left", "{reason}");
        assert!(here.send(NodeId(1), message(1)).is_err() && here.flush(), "nothing waits for the dead");
    }
}
