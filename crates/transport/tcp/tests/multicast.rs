//! Reliable multicast over a group that loses, doubles and delays datagrams, by seeded draws.

use evb_core::NodeId;
use evb_transport::{
    Broadcasts, DEFAULT_MAX_BODY, HEAD_BYTES, Message, Received, SendError, Transport, Waker,
    conformance::{Subject, boxed, run_all},
};
use evb_transport_shm::in_process::{self, InProcess};
use evb_transport_tcp::multicast::{Datagrams, MulticastOptions, ReliableMulticast, Tag};
use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

/// Chances in a thousand of what happens to a datagram on its way to one member.
#[derive(Clone, Copy, Debug, Default)]
struct Harm {
    lost: u32,
    doubled: u32,
    /// It comes behind the next.
    delayed: u32,
    /// A stranger sends something, too.
    strange: u32,
}

#[derive(Default)]
struct Member {
    queue: VecDeque<Vec<u8>>,
    delayed: Vec<Vec<u8>>,
}

/// A group whose members are in this process.
struct Network {
    members: Vec<Member>,
    wakers: Vec<Waker>,
    harm: Harm,
    draws: u64,
    /// Datagrams that were sent.
    sent: u64,
    refuses: bool,
}

impl Network {
    /// True with this chance in a thousand.
    fn happens(&mut self, chance: u32) -> bool {
        self.draws = self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.draws >> 33) % 1000) < u64::from(chance)
    }

    fn carry(&mut self, to: usize, bytes: &[u8]) {
        let Harm { lost, doubled, delayed, strange } = self.harm;
        let late = std::mem::take(&mut self.members[to].delayed);
        if self.happens(delayed) {
            self.members[to].delayed.push(bytes.to_vec());
        } else if !self.happens(lost) {
            let times = 1 + usize::from(self.happens(doubled));
            self.members[to].queue.extend(std::iter::repeat_n(bytes.to_vec(), times));
        }
        self.members[to].queue.extend(late);
        if self.happens(strange) {
            let mut of_another_group = bytes.to_vec();
            of_another_group[0] ^= 1;
            self.members[to].queue.extend([vec![7; 200], of_another_group, Vec::new()]);
        }
    }
}

struct End {
    place: usize,
    network: Arc<Mutex<Network>>,
}

impl Datagrams for End {
    fn send(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let wakers = {
            let mut network = self.network.lock().unwrap();
            if network.refuses {
                return Err(io::Error::other("no route"));
            }
            network.sent += 1;
            // The sender hears itself, too.
            (0..network.members.len()).for_each(|to| network.carry(to, bytes));
            network.wakers.clone()
        };
        wakers.iter().for_each(|wake| wake());
        Ok(true)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let datagram = self.network.lock().unwrap().members[self.place].queue.pop_front()?;
        buffer[..datagram.len()].copy_from_slice(&datagram);
        Some(datagram.len())
    }
}

type Node = ReliableMulticast<InProcess, End>;

fn connect(count: usize, harm: Harm, seed: u64) -> (Vec<Node>, Arc<Mutex<Network>>) {
    let ends = in_process::connect(count, 512);
    let wakers = ends.iter().map(Transport::waker).collect();
    let members = (0..count).map(|_| Member::default()).collect();
    let network = Network { members, wakers, harm, draws: seed, sent: 0, refuses: false };
    let network = Arc::new(Mutex::new(network));
    let options = MulticastOptions {
        mark_after: Duration::from_millis(1),
        ..MulticastOptions::new(count as u16, DEFAULT_MAX_BODY)
    };
    let join = |(place, end)| {
        ReliableMulticast::joined(end, End { place, network: network.clone() }, Tag::new(*b"a random tag"), options)
    };
    (ends.into_iter().enumerate().map(join).collect(), network)
}

fn conforms(harm: Harm) {
    for seed in [1, 2] {
        println!("seed {seed}");
        run_all(&Subject { connect: &|nodes| boxed(connect(nodes, harm, seed).0), max_body: DEFAULT_MAX_BODY });
    }
}

#[test]
fn it_conforms_on_a_perfect_group() {
    conforms(Harm::default());
}

#[test]
fn it_conforms_when_datagrams_are_lost_doubled_late_and_strange() {
    conforms(Harm { lost: 100, doubled: 100, delayed: 100, strange: 100 });
}

#[test]
fn it_conforms_when_datagrams_are_lost_again_and_again() {
    conforms(Harm { lost: 600, ..Harm::default() });
}

#[test]
fn it_conforms_when_no_datagram_arrives() {
    conforms(Harm { lost: 1000, ..Harm::default() });
}

/// Broadcasts from node 0 to all others and lets them receive, until all have `count` messages. Returns the state of the
/// sender.
fn exchange(nodes: &mut [Node], count: usize) -> Broadcasts {
    let to: Vec<_> = (1..nodes.len() as u16).map(NodeId).collect();
    let mut sinks: Vec<Vec<Received>> = nodes.iter().map(|_| Vec::new()).collect();
    for number in 0..count {
        let message = Message { head: [number as u8; HEAD_BYTES], body: vec![number as u8; 100].into() };
        nodes[0].broadcast(&to, message, &mut |node, error| panic!("{node}: {error}"));
        step(nodes, &mut sinks);
    }
    while sinks[1..].iter().any(|sink| sink.len() < count) {
        step(nodes, &mut sinks);
    }
    for sink in &sinks[1..] {
        for (number, item) in sink.iter().enumerate() {
            let Received::Message { from: NodeId(0), message } = item else { panic!("{item:?}") };
            assert_eq!((message.head[0], message.body.len()), (number as u8, 100));
        }
    }
    nodes[0].broadcasts()
}

fn step(nodes: &mut [Node], sinks: &mut [Vec<Received>]) {
    for (node, sink) in nodes.iter_mut().zip(sinks) {
        node.receive(100, sink);
        node.flush();
    }
}

#[test]
fn a_broadcast_is_one_datagram_for_all_receivers() {
    let (mut nodes, network) = connect(9, Harm::default(), 1);
    let state = exchange(&mut nodes, 1000);
    assert_eq!((state.saved, state.repeated, state.fell_back), (7000, 0, None));
    assert_eq!(network.lock().unwrap().sent, 1000, "not 8000");
}

#[test]
fn what_is_lost_now_and_then_comes_again_and_nothing_falls_back() {
    let (mut nodes, network) = connect(4, Harm { lost: 20, ..Harm::default() }, 7);
    let state = exchange(&mut nodes, 2000);
    assert_eq!((network.lock().unwrap().sent, state.fell_back), (2000, None));
    assert!((60..240).contains(&state.repeated), "{} of 6000, 2 % were lost", state.repeated);
}

#[test]
fn late_datagrams_cost_at_most_a_repetition() {
    let (mut nodes, _) = connect(3, Harm { delayed: 50, doubled: 50, ..Harm::default() }, 7);
    assert_eq!(exchange(&mut nodes, 1000).fell_back, None);
}

#[test]
fn a_group_without_listeners_is_given_up_and_reported() {
    let (mut nodes, network) = connect(3, Harm { lost: 1000, ..Harm::default() }, 1);
    let state = exchange(&mut nodes, 5000);
    let reason = state.fell_back.expect("a reason");
    assert!(reason.ends_with("misses one broadcast after the other"), "{reason}");
    let sent = network.lock().unwrap().sent;
    assert!(sent < 5000, "{sent} datagrams");
    exchange(&mut nodes, 100);
    assert_eq!(network.lock().unwrap().sent, sent, "no more datagrams");
}

#[test]
fn a_system_that_refuses_datagrams_gets_copies() {
    let (mut nodes, network) = connect(3, Harm::default(), 1);
    network.lock().unwrap().refuses = true;
    let state = exchange(&mut nodes, 100);
    assert_eq!(state.fell_back.as_deref(), Some("the system refuses to send to the group: no route"));
    assert_eq!((state.saved, state.repeated), (0, 0));
}

/// Without receivers the kept broadcasts stay bounded, and so do the messages behind an unconfirmed broadcast.
#[test]
fn a_receiver_that_does_not_listen_is_given_copies_until_its_queue_is_full() {
    let (mut nodes, network) = connect(3, Harm::default(), 1);
    let message = || Message { head: [1; HEAD_BYTES], body: vec![0; 100].into() };
    let mut full = 0;
    for _ in 0..2000 {
        nodes[0].broadcast(&[NodeId(1), NodeId(2)], message(), &mut |_, error| {
            assert!(matches!(error, SendError::Full(_)));
            full += 1;
        });
    }
    assert_eq!(network.lock().unwrap().sent, 256);
    // The queue of 512 has a mark and copies.
    assert_eq!(full, 2 * (2000 - 256 - 511));
    let (mut count, mut sink) = (0, Vec::new());
    while count < 256 + 511 {
        count += nodes[1].receive(100, &mut sink);
        nodes[1].flush();
    }
    assert_eq!(nodes[1].receive(100, &mut sink), 0);
}
