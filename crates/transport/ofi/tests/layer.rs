//! The message layer over each provider, within one process.

mod support;

use evb_core::NodeId;
use evb_transport::{MessageLayer, Refused, conformance::PATIENCE};
use evb_transport_ofi::{OfiLayer, OfiOptions};
use std::{
    thread,
    time::{Duration, Instant},
};
use support::{PROVIDERS, joined_layers, options, there_is};

/// Runs a case for each provider that is there.
fn with_each(case: impl Fn(&OfiOptions)) {
    for provider in PROVIDERS.into_iter().filter(|provider| there_is(provider)) {
        println!("{provider}");
        case(&options(provider));
    }
}

fn until<T>(what: &str, mut step: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(result) = step() {
            return result;
        }
        assert!(start.elapsed() < PATIENCE, "no end of: {what}");
        thread::yield_now();
    }
}

/// Bytes that follow from sender and number.
fn message(from: NodeId, number: u64, length: usize) -> Vec<u8> {
    let seed = number.wrapping_mul(31).wrapping_add(u64::from(from.0));
    (0..length as u64).map(|index| (seed.wrapping_add(index.wrapping_mul(7))) as u8).collect()
}

/// Sends with the help of the receiver, which is polled when there is no room.
fn send(nodes: &mut [OfiLayer], from: usize, to: usize, bytes: &[u8], received: &mut Vec<(NodeId, Vec<u8>)>) {
    until("room for a message", || match nodes[from].send(NodeId(to as u16), bytes) {
        Ok(()) => Some(()),
        Err(refused) => {
            assert_eq!(refused, Refused::Full);
            nodes[from].flush();
            nodes[to].receive(10, &mut |from, bytes| received.push((from, bytes.to_vec())));
            None
        }
    });
}

#[test]
fn messages_of_every_size_arrive_once_and_in_order() {
    with_each(|options| {
        let mut nodes = joined_layers(2, options);
        let powers = (3..=20).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]);
        let limit = nodes[0].max_bytes();
        assert_eq!(limit, 1 << 20);
        let sizes: Vec<usize> = (1..=80).chain(powers).filter(|&size| size <= limit).collect();
        let mut received = Vec::new();
        for (number, &size) in sizes.iter().enumerate() {
            send(&mut nodes, 0, 1, &message(NodeId(0), number as u64, size), &mut received);
        }
        until("the last message", || {
            nodes[0].flush();
            nodes[1].receive(3, &mut |from, bytes| received.push((from, bytes.to_vec())));
            (received.len() == sizes.len()).then_some(())
        });
        for (number, (&size, (from, bytes))) in sizes.iter().zip(&received).enumerate() {
            assert!(*from == NodeId(0) && *bytes == message(NodeId(0), number as u64, size), "{size} bytes");
        }
        assert!(nodes[0].flush() && nodes[1].receive(1, &mut |_, _| ()) == 0);
    });
}

#[test]
fn all_talk_to_all() {
    const NODES: usize = 4;
    const MESSAGES: u64 = 500;
    with_each(|options| {
        let mut nodes = joined_layers(NODES, options);
        let (mut sent, mut received) = ([[0; NODES]; NODES], [[0; NODES]; NODES]);
        until("all messages", || {
            for node in 0..NODES {
                for to in (0..NODES).filter(|&to| to != node) {
                    let number = sent[node][to];
                    let bytes = message(NodeId(node as u16), number, 1 + number as usize % 300 * 40);
                    if number < MESSAGES && nodes[node].send(NodeId(to as u16), &bytes).is_ok() {
                        sent[node][to] += 1;
                    }
                }
                nodes[node].receive(7, &mut |from, bytes| {
                    let number = &mut received[from.index()][node];
                    assert!(bytes == message(from, *number, 1 + *number as usize % 300 * 40), "{from}: {number}");
                    *number += 1;
                });
            }
            let done = |node: usize| (0..NODES).all(|to| to == node || received[node][to] == MESSAGES);
            (0..NODES).all(done).then_some(())
        });
    });
}

#[test]
fn the_queue_is_bounded_and_recovers() {
    with_each(|options| {
        let mut nodes = joined_layers(2, options);
        let bytes = message(NodeId(0), 0, 100);
        let mut taken = 0;
        while nodes[0].send(NodeId(1), &bytes).is_ok() {
            nodes[0].flush();
            taken += 1;
            assert!(taken <= options.credits, "more messages than credits");
        }
        assert_eq!(nodes[0].send(NodeId(1), &bytes), Err(Refused::Full));
        let mut count = 0;
        until("the queue drains", || {
            count += nodes[1].receive(5, &mut |_, got| assert_eq!(got, bytes));
            (count == usize::from(taken)).then_some(())
        });
        until("room again", || nodes[0].flush().then(|| nodes[0].send(NodeId(1), &bytes).ok()).flatten());
    });
}

#[test]
fn what_cannot_be_sent_is_refused() {
    with_each(|options| {
        let mut nodes = joined_layers(2, options);
        let limit = nodes[0].max_bytes();
        assert_eq!(nodes[0].send(NodeId(1), &vec![0; limit + 1]), Err(Refused::TooLarge { limit }));
        for to in [0, 2, 1000] {
            assert_eq!(nodes[0].send(NodeId(to), &[1]), Err(Refused::Lost));
        }
        assert!(!nodes[0].has_broadcast() && nodes[0].rejected() == 0 && nodes[0].local() == NodeId(0));
    });
}

#[test]
fn a_peer_that_leaves_is_lost_after_its_messages() {
    with_each(|options| {
        let mut nodes = joined_layers(2, options);
        let mut leaving = nodes.pop().unwrap();
        for number in 0..20 {
            leaving.send(NodeId(0), &message(NodeId(1), number, 50)).unwrap();
        }
        until("a flush", || leaving.flush().then_some(()));
        drop(leaving);
        let mut numbers = 0;
        let lost = until("the loss", || {
            nodes[0].receive(3, &mut |from, bytes| {
                assert!(bytes == message(from, numbers, 50));
                numbers += 1;
            });
            nodes[0].lost()
        });
        assert_eq!((lost, numbers), (NodeId(1), 20));
        assert_eq!(nodes[0].send(NodeId(1), &[1]), Err(Refused::Lost));
        assert_eq!(nodes[0].lost(), None);
    });
}

#[test]
fn an_arrival_ends_a_wait() {
    with_each(|options| {
        let mut nodes = joined_layers(2, options);
        let mut other = nodes.pop().unwrap();
        let sender = thread::spawn(move || {
            other.send(NodeId(0), &[5]).unwrap();
            until("a flush", || other.flush().then_some(()));
            other
        });
        let (start, mut got) = (Instant::now(), 0);
        while got == 0 {
            nodes[0].wait(PATIENCE);
            got = nodes[0].receive(1, &mut |_, bytes| assert_eq!(bytes, [5]));
        }
        assert!(start.elapsed() < PATIENCE);
        nodes[0].wait(Duration::ZERO);
        drop(sender.join().unwrap());
    });
}
