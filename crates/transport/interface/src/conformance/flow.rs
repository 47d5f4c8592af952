//! Bounded queues, fair turns, and what a flush promises.

use super::{
    PATIENCE, Subject,
    harness::{expect, flush_all, message, pair, receive_exactly, send_through, until},
};
use crate::{Message, Received, SendError, Transport};
use evb_core::NodeId;
use std::time::{Duration, Instant};

/// Every queue is full before that many messages.
const ENDLESS: u64 = 1_000_000;

/// Sends until the queue is full, and gives how many it took and what came back.
fn fill(sender: &mut dyn Transport, to: NodeId) -> (u64, Message) {
    for number in 0..ENDLESS {
        match sender.send(to, message(sender.local(), number, 4096)) {
            Ok(()) => drop(sender.flush()),
            Err(SendError::Full(back)) => return (number, back),
            Err(error) => panic!("{to} refuses a message: {error}"),
        }
    }
    panic!("the queue is not bounded: it took {ENDLESS} messages");
}

pub(super) fn full_queue(subject: &Subject<'_>) {
    let mut nodes = (subject.connect)(2);
    let (sender, receiver) = pair(&mut nodes);
    let (taken, back) = fill(sender, NodeId(1));
    assert!(back == message(NodeId(0), taken, 4096), "another message came back");
    let mut sink = Vec::new();
    send_through(sender, NodeId(1), back, |sender| {
        receiver.receive(100, &mut sink);
        sender.flush();
    });
    until("the queue drains", || {
        receiver.receive(100, &mut sink);
        (sender.flush() && sink.len() as u64 > taken).then_some(())
    });
    (0..=taken).zip(&sink).for_each(|(number, item)| expect(item, NodeId(0), number));
    assert_eq!(sink.len() as u64, taken + 1);
}

pub(super) fn wait_for_room(subject: &Subject<'_>) {
    let mut nodes = (subject.connect)(2).into_iter();
    let (mut sender, mut receiver) = (nodes.next().expect("two nodes"), nodes.next().expect("two nodes"));
    let (taken, back) = fill(&mut *sender, NodeId(1));
    let drain = std::thread::spawn(move || (receive_exactly(&mut *receiver, taken as usize + 1), receiver));
    let start = Instant::now();
    send_through(&mut *sender, NodeId(1), back, |sender| {
        sender.wait(PATIENCE);
        sender.flush();
    });
    assert!(start.elapsed() < PATIENCE, "the wait for room was not ended");
    flush_all(&mut *sender);
    let (received, _receiver) = drain.join().expect("the receiver does not fail");
    expect(&received[taken as usize], NodeId(0), taken);
}

pub(super) fn fairness(subject: &Subject<'_>) {
    const SENDERS: usize = 4;
    const MESSAGES: usize = 8000;
    // A delayed acknowledgement of TCP can hold up a sender for 40 ms, and a busy machine for longer. So turns need not be equal
    // at once: a sender that is behind may catch up until `until` loses its patience.
    const LEAST_TIME: Duration = Duration::from_millis(200);
    let mut nodes = (subject.connect)(SENDERS + 1);
    let (receiver, senders) = nodes.split_first_mut().expect("there are nodes");
    let (mut counts, mut sink) = ([0; SENDERS], Vec::new());
    let (mut numbers, start) = ([0; SENDERS], Instant::now());
    until("each of many senders has half of an equal share", || {
        for (sender, number) in senders.iter_mut().zip(&mut numbers) {
            let (local, first) = (sender.local(), *number);
            while sender.send(NodeId(0), message(local, *number, 1500)).is_ok() {
                *number += 1;
                assert!(*number - first < ENDLESS, "the queue is not bounded");
            }
            sender.flush();
        }
        receiver.receive(128, &mut sink);
        for item in sink.drain(..) {
            let Received::Message { from, .. } = item else { panic!("no peer left, but {item:?}") };
            counts[from.index() - 1] += 1;
        }
        let sum: usize = counts.iter().sum();
        let is_fair = counts.iter().all(|&count| count >= sum / SENDERS / 2);
        (sum >= MESSAGES && start.elapsed() >= LEAST_TIME && is_fair).then_some(())
    });
}

pub(super) fn flushed_is_gone(subject: &Subject<'_>) {
    let mut nodes = (subject.connect)(2);
    let (sender, receiver) = pair(&mut nodes);
    assert!(sender.flush(), "nothing is left where nothing was");
    for number in 0..50 {
        sender.send(NodeId(1), message(NodeId(0), number, number as usize * 50)).expect("the queue is empty");
    }
    flush_all(sender);
    // The sender is not called any more.
    (0..50).zip(receive_exactly(receiver, 50)).for_each(|(number, item)| expect(&item, NodeId(0), number));
    assert!(sender.flush() && receiver.flush(), "nothing is left");
}

pub(super) fn slow_receiver(subject: &Subject<'_>) {
    // More than a connection holds at a time.
    const MOST: u64 = 1000;
    let mut nodes = (subject.connect)(2);
    let (mut sender, receiver) = (nodes.remove(1), &mut nodes[0]);
    let flushes = |number: &u64| sender.send(NodeId(0), message(NodeId(1), *number, 4000)).is_ok() && sender.flush();
    let flushed = (0..MOST).take_while(flushes).count();
    assert!(flushed > 0, "an empty queue is flushed at once");
    drop(sender);
    let (mut sink, mut count) = (Vec::new(), 0);
    until("the loss of the sender", || {
        receiver.receive(1, &mut sink);
        receiver.flush();
        let item = sink.pop()?;
        if matches!(item, Received::Lost { .. }) {
            return Some(());
        }
        expect(&item, NodeId(1), count);
        count += 1;
        // An answer to a node that has left changes nothing.
        let _left = receiver.send(NodeId(1), message(NodeId(0), count, 8));
        None
    });
    assert!(count as usize >= flushed, "{count} of {flushed} messages came");
}
