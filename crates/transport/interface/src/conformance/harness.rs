//! Helpers that the cases share: bodies that can be verified, and waiting with an end.

use super::PATIENCE;
use crate::{HEAD_BYTES, Message, Received, SendError, Transport};
use bytes::Bytes;
use evb_core::NodeId;
use std::time::Instant;

/// A message whose every byte follows from these numbers.
pub(super) fn message(from: NodeId, number: u64, length: usize) -> Message {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&number.to_le_bytes());
    head[8..16].copy_from_slice(&(length as u64).to_le_bytes());
    head[16..24].copy_from_slice(&u64::from(from.0).to_le_bytes());
    head[24..].copy_from_slice(&mix(number).to_le_bytes());
    Message { head, body: body(key(from, number), length) }
}

/// Verifies every byte of a [`message`] and gives its number.
pub(super) fn verify(from: NodeId, message: &Message) -> u64 {
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| message.head[at + index]));
    let number = word(0);
    assert_eq!(word(24), mix(number), "head of message {number} from {from}");
    assert_eq!(word(16), u64::from(from.0), "message {number} came from another node");
    assert_eq!(word(8), message.body.len() as u64, "length of message {number} from {from}");
    assert!(message.body == body(key(from, number), message.body.len()), "body of message {number} from {from}");
    number
}

/// Verifies that this is the message of this number.
pub(super) fn expect(received: &Received, from: NodeId, number: u64) {
    let Received::Message { from: sender, message } = received else { panic!("expected a message, got {received:?}") };
    assert_eq!((*sender, verify(*sender, message)), (from, number), "sender and number");
}

fn key(from: NodeId, number: u64) -> u64 {
    mix(number ^ u64::from(from.0) << 48)
}

fn body(key: u64, length: usize) -> Bytes {
    let mut words = vec![0; length.next_multiple_of(8)];
    for (index, word) in words.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&mix(key.wrapping_add(index as u64)).to_le_bytes());
    }
    words.truncate(length);
    words.into()
}

/// A cheap hash: the output function of splitmix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ value >> 27
}

/// Calls `step` until it gives something.
pub(super) fn until<T>(what: &str, mut step: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(result) = step() {
            return result;
        }
        assert!(start.elapsed() < PATIENCE, "no end of: {what}");
        std::thread::yield_now();
    }
}

/// Receives from one node until `count` messages or losses are there.
pub(super) fn receive_exactly(node: &mut dyn Transport, count: usize) -> Vec<Received> {
    let mut sink = Vec::new();
    until(&format!("{} receives {count} messages", node.local()), || {
        node.receive(count - sink.len(), &mut sink);
        (sink.len() >= count).then_some(())
    });
    assert_eq!(sink.len(), count, "receive gave more than was asked for");
    sink
}

/// Sends a message that must be taken, or comes back because the queue is full: then `make_room` is called.
pub(super) fn send_through(
    node: &mut dyn Transport,
    to: NodeId,
    message: Message,
    mut make_room: impl FnMut(&mut dyn Transport),
) {
    let mut waiting = Some(message);
    until("room for one message", || {
        match node.send(to, waiting.take()?) {
            Ok(()) => return Some(()),
            Err(SendError::Full(message)) => waiting = Some(message),
            Err(error) => panic!("{to} refuses a message: {error}"),
        }
        make_room(node);
        None
    });
}

/// Works like a node that has nothing else to do, until something is there.
pub(super) fn wait_for_one(node: &mut dyn Transport) -> Received {
    let (start, mut sink) = (Instant::now(), Vec::new());
    while node.receive(1, &mut sink) == 0 {
        node.flush();
        node.wait(PATIENCE);
        assert!(start.elapsed() < PATIENCE, "the wait was not ended");
    }
    sink.remove(0)
}

/// Flushes until nothing is left.
pub(super) fn flush_all(node: &mut dyn Transport) {
    until("a flush", || node.flush().then_some(()));
}

/// The first two nodes of a set.
pub(super) fn pair(nodes: &mut [Box<dyn Transport>]) -> (&mut dyn Transport, &mut dyn Transport) {
    let (first, rest) = nodes.split_first_mut().expect("a case asks for two nodes at least");
    (&mut **first, &mut *rest[0])
}

/// Seeded random draws, good enough to choose what happens next.
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        (mix(self.0) >> 24) as usize % bound
    }
}
