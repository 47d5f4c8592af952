//! Peers that are not there, peers that leave, and waiting.

use super::{
    PATIENCE, Subject,
    harness::{expect, flush_all, message, receive_exactly, until, wait_for_one},
};
use crate::{Received, SendError, Transport};
use evb_core::NodeId;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

pub(super) fn unknown_nodes(subject: &Subject<'_>) {
    let mut nodes = (subject.connect)(2);
    for to in [0, 2, 63, 64, 1000, u16::MAX] {
        assert_eq!(nodes[0].send(NodeId(to), message(NodeId(0), 0, 1)), Err(SendError::Lost), "node {to}");
    }
    assert!(nodes[0].flush() && nodes[0].receive(10, &mut Vec::new()) == 0);
    assert_eq!([nodes[0].local(), nodes[1].local()], [NodeId(0), NodeId(1)]);
}

pub(super) fn peer_loss(subject: &Subject<'_>) {
    const MESSAGES: u64 = 500;
    let mut nodes = (subject.connect)(3);
    let mut leaving = nodes.remove(1);
    let (mut first, mut sink) = (nodes.remove(0), Vec::new());
    for number in 0..MESSAGES {
        leaving.send(NodeId(0), message(NodeId(1), number, 300)).expect("room for 500 small messages");
    }
    flush_all(&mut *leaving);
    drop(leaving);
    until("the news of a lost peer", || {
        first.receive(33, &mut sink);
        matches!(sink.last(), Some(Received::Lost { .. })).then_some(())
    });
    let Some(Received::Lost { peer: NodeId(1), reason }) = sink.pop() else { panic!("another node is lost: {sink:?}") };
    assert!(!reason.is_empty(), "a loss has a reason");
    assert_eq!(sink.len() as u64, MESSAGES, "all messages come before the loss");
    (0..MESSAGES).zip(&sink).for_each(|(number, item)| expect(item, NodeId(1), number));
    assert_eq!(first.send(NodeId(1), message(NodeId(0), 0, 1)), Err(SendError::Lost));
    the_others_go_on(&mut *first, &mut *nodes[0]);
}

/// Node 0 knows of the loss of node 1 already, node 2 may not.
fn the_others_go_on(first: &mut dyn Transport, third: &mut dyn Transport) {
    first.send(NodeId(2), message(NodeId(0), 5, 100)).expect("node 2 is there");
    flush_all(first);
    let news = receive_exactly(third, 2);
    let losses = news.iter().filter(|item| matches!(item, Received::Lost { peer: NodeId(1), .. })).count();
    assert_eq!(losses, 1, "node 2 hears of the loss once: {news:?}");
    third.send(NodeId(0), message(NodeId(2), 6, 100)).expect("node 0 is there");
    flush_all(third);
    let item = receive_exactly(first, 1);
    expect(&item[0], NodeId(2), 6);
}

pub(super) fn loss_ends_wait(subject: &Subject<'_>) {
    let mut nodes = (subject.connect)(2);
    let leaving = nodes.remove(1);
    let leaver = std::thread::spawn(move || drop(leaving));
    let news = wait_for_one(&mut *nodes[0]);
    assert!(matches!(news, Received::Lost { peer: NodeId(1), .. }), "{news:?}");
    leaver.join().expect("a drop does not fail");
}

pub(super) fn waker(subject: &Subject<'_>) {
    let mut nodes = (subject.connect)(2);
    let (waker, node) = (nodes[0].waker(), &mut nodes[0]);
    let start = Instant::now();
    waker();
    // There may be early returns before: what must not be is a wait to the end.
    node.wait(PATIENCE);
    for _ in 0..20 {
        let waker = waker.clone();
        let caller = std::thread::spawn(move || waker());
        node.wait(PATIENCE);
        caller.join().expect("a waker does not fail");
        // The call may have come after an early return.
        node.wait(Duration::ZERO);
    }
    assert!(start.elapsed() < PATIENCE, "the wait was not ended");
}

pub(super) fn arrival_ends_wait(subject: &Subject<'_>) {
    const MESSAGES: u64 = 200;
    let mut nodes = (subject.connect)(2);
    let mut other = nodes.remove(1);
    let echo = std::thread::spawn(move || {
        for number in 0..MESSAGES {
            expect(&wait_for_one(&mut *other), NodeId(0), number);
            other.send(NodeId(0), message(NodeId(1), number, 64)).expect("the queue is empty");
            flush_all(&mut *other);
        }
    });
    for number in 0..MESSAGES {
        nodes[0].send(NodeId(1), message(NodeId(0), number, 64)).expect("the queue is empty");
        flush_all(&mut *nodes[0]);
        expect(&wait_for_one(&mut *nodes[0]), NodeId(1), number);
    }
    echo.join().expect("the other side does not fail");
}

pub(super) fn wait_ends(subject: &Subject<'_>) {
    let mut nodes = (subject.connect)(2);
    let start = Instant::now();
    for timeout in [Duration::ZERO, Duration::from_micros(1), Duration::from_millis(3)] {
        nodes.iter_mut().for_each(|node| node.wait(timeout));
    }
    assert!(start.elapsed() < PATIENCE, "a wait has an end");
}

/// Processor time is what counts, so that a busy machine changes nothing.
pub(super) fn wait_rests(subject: &Subject<'_>) {
    const TIME: Duration = Duration::from_millis(60);
    let mut nodes = (subject.connect)(2);
    // What has been in use once may rest in another way than what is new.
    for (from, to) in [(0, 1), (1, 0)] {
        nodes[from].send(NodeId(to as u16), message(NodeId(from as u16), 0, 64)).expect("the queue is empty");
        flush_all(&mut *nodes[from]);
        receive_exactly(&mut *nodes[to], 1);
    }
    let (start, busy_before) = (Instant::now(), processor_time());
    while start.elapsed() < TIME {
        nodes[0].wait(TIME);
        assert_eq!(nodes[0].receive(1, &mut Vec::new()), 0, "no node has sent more");
    }
    let (busy, waited) = (processor_time() - busy_before, start.elapsed());
    assert!(busy < waited / 2, "{busy:?} of {waited:?} at work");
}

/// Time for which this thread has had a core.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
