//! A lane and its bells under a model checker: interleavings, and every value that the memory model lets a load see.
//! A torn or lost message fails an assertion, a lost wake-up is a deadlock.
#![cfg(target_os = "linux")]

mod sync {
    //! The primitives of loom under the names that the lane uses.
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
}

#[path = "../src/shm/bell.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod bell;
#[path = "../src/shm/lane.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod lane;
#[path = "../src/shm/record.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod record;

use bell::{Ringer, fall_asleep, wake_up};
use lane::{CONTROL_WORDS, Consumer, Producer};
use loom::{
    sync::{
        Arc, Notify,
        atomic::{AtomicU64, Ordering, fence},
    },
    thread,
};
use record::RecordKind;

const RING_WORDS: usize = 16;

#[derive(Clone)]
struct Memory(Arc<Vec<AtomicU64>>);

impl AsRef<[AtomicU64]> for Memory {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0
    }
}

/// An empty lane: both sides, and the credit between them.
fn lane(first: u64) -> (Producer<Memory>, Consumer<Memory>, Arc<AtomicU64>) {
    let memory = Memory(Arc::new((0..CONTROL_WORDS + RING_WORDS).map(|_| AtomicU64::new(0)).collect()));
    (Producer::new(memory.clone(), first), Consumer::new(memory, first), Arc::new(AtomicU64::new(first)))
}

/// A message of two words with its number.
fn message(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes[8..].copy_from_slice(&(!number).to_ne_bytes());
    bytes
}

/// Takes a record, if there is one, which must be the message of this number. Returns true if the sender has new room.
fn take(consumer: &mut Consumer<Memory>, credit: &AtomicU64, number: u64) -> Option<bool> {
    let record = consumer.next().expect("a header")?;
    let mut bytes = [0; 16];
    assert_eq!((record.kind, record.length), (RecordKind::Whole, 16));
    consumer.read(record, 0, &mut bytes);
    assert_eq!(bytes, message(number));
    Some(consumer.advance(record, credit))
}

/// Runs a case with three preemptions, which are enough to find the faults, and keep the search short.
fn model(case: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.max_branches = 20_000;
    model.check(case);
}

/// From near the end of the ring: over its end with a pad, and into the next lap.
#[test]
fn messages_arrive_whole_and_in_order() {
    const MESSAGES: u64 = 7;
    model(|| {
        let (mut producer, mut consumer, credit) = lane(11);
        let theirs = Arc::clone(&credit);
        let sender = thread::spawn(move || {
            for number in 0..MESSAGES {
                while !producer.push(RecordKind::Whole, &[], &message(number), &theirs) {
                    thread::yield_now();
                }
                // In batches of two; a full ring cuts them.
                if number % 2 == 0 {
                    producer.publish();
                }
            }
        });
        for number in 0..MESSAGES {
            while take(&mut consumer, &credit, number).is_none() {
                thread::yield_now();
            }
        }
        sender.join().unwrap();
        assert!(!consumer.has_next());
    });
}

#[test]
fn a_receiver_that_sleeps_is_woken() {
    model(|| {
        let (mut producer, mut consumer, credit) = lane(0);
        let (word, socket) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
        let (their_credit, their_word, their_socket) = (Arc::clone(&credit), Arc::clone(&word), Arc::clone(&socket));
        let sender = thread::spawn(move || {
            let ringer = Ringer::default();
            for number in 0..2 {
                assert!(producer.push(RecordKind::Whole, &[], &message(number), &their_credit));
                producer.publish();
                fence(Ordering::SeqCst);
                if ringer.must_ring(&their_word) {
                    their_socket.notify();
                }
            }
        });
        for number in 0..2 {
            while take(&mut consumer, &credit, number).is_none() {
                fall_asleep(&word);
                if !consumer.has_next() {
                    socket.wait();
                }
                wake_up(&word);
            }
        }
        sender.join().unwrap();
    });
}

#[test]
fn a_sender_that_waits_for_room_is_woken() {
    const MESSAGES: u64 = 7;
    model(|| {
        let (mut producer, mut consumer, credit) = lane(0);
        let (word, socket) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
        let (their_credit, their_word, their_socket) = (Arc::clone(&credit), Arc::clone(&word), Arc::clone(&socket));
        let sender = thread::spawn(move || {
            for number in 0..MESSAGES {
                while !producer.push(RecordKind::Whole, &[], &message(number), &their_credit) {
                    fall_asleep(&their_word);
                    if !producer.has_room(16, &their_credit) {
                        their_socket.wait();
                    }
                    wake_up(&their_word);
                }
                producer.publish();
            }
        });
        let ringer = Ringer::default();
        for number in 0..MESSAGES {
            let due = loop {
                match take(&mut consumer, &credit, number) {
                    Some(due) => break due,
                    None => thread::yield_now(),
                }
            };
            if due {
                fence(Ordering::SeqCst);
                if ringer.must_ring(&word) {
                    socket.notify();
                }
            }
        }
        sender.join().unwrap();
    });
}
