//! The conformance suite: duties of every transport, as functions that any transport's tests can call.
//!
//! A test describes its transport with a [`Subject`] and calls [`run_all`], or the [`CASES`] one by one. A case panics
//! with what went wrong; random cases name their seed. Nothing depends on speed, only on an end within [`PATIENCE`].
//! For nodes that each need a process of their own, [`remote`] reaches those of the others.

mod broadcast;
mod delivery;
mod flow;
mod harness;
mod life;
mod lifetime;
pub mod remote;

use crate::{
    Transport,
    bond::{Bond, BondOptions, Stripe},
};
use evb_core::NodeId;
use std::time::Duration;

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
    ("a lost receiver of broadcasts holds up nobody", broadcast::lost_receiver),
    ("broadcasts of a node that leaves come before its loss", broadcast::lost_sender),
    ("broadcasts to nobody, to unknown nodes, and too large ones", broadcast::no_receivers),
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
    ("a node that was away itself gives nobody up", life::absent_observer),
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

/// Makes bonds of connected links, each of which is given as the endpoints of all nodes.
///
/// # Panics
/// If links have different numbers of nodes, or the system refuses a file.
pub fn bonds<T: Transport + 'static>(links: Vec<Vec<T>>, stripe: Stripe, max_body: usize) -> Vec<Bond<T>> {
    let names: Vec<_> = (0..links.len()).map(|link| format!("link {link}")).collect();
    let mut links: Vec<_> = links.into_iter().map(Vec::into_iter).collect();
    let nodes = links[0].len() as u16;
    let bond = |node| {
        let members = links.iter_mut().map(|link| link.next().expect("an endpoint for each node")).collect();
        let options = BondOptions { stripe, ..BondOptions::new(names.clone(), max_body) };
        let mut bond = Bond::new(members, options).expect("a bond");
        bond.expect((0..nodes).filter(|&peer| peer != node).map(NodeId));
        bond
    };
    (0..nodes).map(bond).collect()
}
