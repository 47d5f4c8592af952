//! The conformance suite: duties of every transport, as functions that any transport's tests can call.
//!
//! A test describes its transport with a [`Subject`] and calls [`run_all`], or the [`CASES`] one by one. A case panics
//! with what went wrong; random cases name their seed. Nothing depends on speed, only on an end within [`PATIENCE`].
//! For nodes that each need their own process, [`remote`] reaches those of the others.

mod broadcast;
mod delivery;
mod flow;
mod harness;
mod life;
mod lifetime;
pub mod remote;

use crate::{Connect, EndpointOptions, Transport};
use evb_core::NodeId;
use std::{thread, time::Duration};

/// Time after which a case that makes no progress has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A transport under test. Its queues must take 500 small messages for one peer.
pub struct Subject<'a> {
    /// Makes this number of nodes, with ids from 0 on and in this order, all connected with each other.
    pub connect: &'a dyn Fn(usize) -> Vec<Box<dyn Transport>>,
    /// Longest body of these nodes in bytes.
    pub max_body: usize,
}

/// One case: its name and what runs it.
pub type Case = (&'static str, fn(&Subject<'_>));

/// All cases.
pub const CASES: &[Case] = &[
    ("messages of a pair arrive once, in order", delivery::order_and_exactly_once),
    ("bodies of every size arrive", delivery::every_size),
    ("random traffic between all nodes arrives", delivery::random_traffic),
    ("a body above the limit is refused", delivery::too_large),
    ("receive gives at most what was asked for", delivery::receive_keeps_its_limit),
    ("random broadcasts arrive, in order with other messages", broadcast::random_traffic),
    ("a full queue holds up a broadcast, and loses none", broadcast::full_queue),
    ("a lost receiver of broadcasts holds up no other node", broadcast::lost_receiver),
    ("broadcasts of a node that leaves come before its loss", broadcast::lost_sender),
    ("broadcasts without receivers, to unknown nodes, and too large ones", broadcast::no_receivers),
    ("a broadcast ends a wait", broadcast::ends_wait),
    ("a full queue gives the message back and recovers", flow::full_queue),
    ("a node that waits for room is woken", flow::wait_for_room),
    ("many senders have equal turns", flow::fairness),
    ("what was flushed arrives without the sender", flow::flushed_is_gone),
    ("what was flushed arrives after the sender has left, however slowly", flow::slow_receiver),
    ("there is no way to unknown nodes and to oneself", lifetime::unknown_nodes),
    ("a lost peer is reported once, after its messages", lifetime::peer_loss),
    ("a loss ends a wait", lifetime::loss_ends_wait),
    ("the waker ends a wait, also the next one", lifetime::waker),
    ("an arrival ends a wait", lifetime::arrival_ends_wait),
    ("a wait ends by itself", lifetime::wait_ends),
    ("a wait leaves the core to others", lifetime::wait_rests),
];

/// A case for nodes that give up peers after a silence, and how long that is.
pub type LifeCase = (&'static str, fn(&Subject<'_>, Duration));

/// All cases of slow nodes, which are not to be taken for dead ones.
pub const LIFE_CASES: &[LifeCase] = &[
    ("a node that is never idle is not given up", life::busy_node),
    ("a node that was away for less than the timeout is not given up", life::absent_node),
    ("a node that was away itself gives no peer up", life::absent_observer),
];

/// Runs all cases of slow nodes and prints their names. The nodes of the subject give up peers after a silence of
/// `peer_timeout`.
///
/// # Panics
/// If the transport fails a case.
pub fn run_life(subject: &Subject<'_>, peer_timeout: Duration) {
    for (name, case) in LIFE_CASES {
        println!("{name}");
        case(subject, peer_timeout);
    }
}

/// Runs all cases and prints their names.
///
/// # Panics
/// If the transport fails a case.
pub fn run_all(subject: &Subject<'_>) {
    run_all_but(subject, &[]);
}

/// Runs all cases but those with one of these names, and prints their names.
///
/// # Panics
/// If the transport fails a case, or no case has a name that is left out.
pub fn run_all_but(subject: &Subject<'_>, but: &[&str]) {
    for left_out in but {
        assert!(CASES.iter().any(|(name, _)| name == left_out), "no case: {left_out}");
    }
    for (name, case) in CASES.iter().filter(|(name, _)| !but.contains(name)) {
        println!("{name}");
        case(subject);
    }
}

/// The options after a change.
#[must_use]
pub fn changed(mut options: EndpointOptions, change: impl FnOnce(&mut EndpointOptions)) -> EndpointOptions {
    change(&mut options);
    options
}

/// Puts the nodes behind pointers, as a [`Subject`] wants them.
pub fn boxed<T: Transport + 'static>(nodes: Vec<T>) -> Vec<Box<dyn Transport>> {
    nodes.into_iter().map(|node| Box::new(node) as Box<dyn Transport>).collect()
}

/// Connects these nodes, which have ids from 0 on, with each other, each in its own thread.
///
/// # Panics
/// If a node cannot join its peers.
pub fn joined<T: Connect + Send + 'static>(nodes: Vec<T>) -> Vec<T> {
    let addresses: Vec<_> = (0..).map(NodeId).zip(nodes.iter().map(Connect::address)).collect();
    let join = |(mut node, local): (T, u16)| {
        let peers: Vec<_> = addresses.iter().filter(|peer| peer.0.0 != local).cloned().collect();
        thread::spawn(move || node.connect(&peers).map(|()| node).unwrap_or_else(|error| panic!("{error}")))
    };
    let joining: Vec<_> = nodes.into_iter().zip(0..).map(join).collect();
    joining.into_iter().map(|node| node.join().expect("a thread that joins")).collect()
}
