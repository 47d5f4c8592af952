//! A mailbox and its bell under a model checker: interleavings, and every value that the memory model lets a load see.
//! A torn or lost message fails an assertion, a lost wake-up is a deadlock.
#![cfg(target_os = "linux")]

mod layout;
mod segment;
mod sync;

#[path = "../../src/bell.rs"]
mod bell;
#[expect(unreachable_pub, reason = "it is public in the library")]
#[allow(dead_code, reason = "the library uses the rest")]
#[path = "../../src/fetch.rs"]
mod fetch;
#[expect(unreachable_pub, reason = "it is public in the library")]
#[allow(dead_code, reason = "the library uses the rest")]
#[path = "../../src/mailbox.rs"]
mod mailbox;

use evb_velo::mailbox::HEADER_AT;
use fetch::Span;
use layout::{SLOTS, SLOTS_AT, TAIL_AT};
use loom::{
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, JoinHandle},
};
use mailbox::{Body, Content, Envelope, Incoming};
use segment::Segment;
use std::{sync::Arc, time::Duration};

/// Words of a message: more than its slot holds.
const WORDS: usize = 3;
/// Messages from each of two senders that fit the ring together.
const FIT: u64 = SLOTS as u64 / 2;
/// Longer than a case takes.
const LONG: Duration = Duration::from_secs(3600);

/// The message of a sender with its number.
fn message(sender: u16, number: u64) -> Vec<u8> {
    let word = |index: u64| (u64::from(sender) << 32 | number << 8 | index).to_ne_bytes();
    (1..=WORDS as u64).flat_map(word).collect()
}

fn envelope(sender: u16, number: u64) -> Envelope {
    Envelope { length: WORDS as u64 * 8, tag: number, data: !number, flags: sender }
}

/// Sends a message, if there is room.
fn push(segment: &Segment, sender: u16, number: u64) -> bool {
    let (bytes, envelope) = (message(sender, number), envelope(sender, number));
    let header = mailbox::header(sender, bytes.len());
    mailbox::push(segment, sender, header, &envelope, Content::Line(&[Span::of(&bytes)]))
}

/// A sender of some messages, which waits for room unless they fit.
fn sender(segment: &Segment, sender: u16, messages: u64) -> JoinHandle<()> {
    let segment = segment.clone();
    thread::spawn(move || {
        for number in 0..messages {
            while !push(&segment, sender, number) {
                assert!(messages > FIT, "a ring that is not full");
                thread::yield_now();
            }
        }
    })
}

/// The owner of a mailbox.
struct Owner {
    segment: Segment,
    position: u64,
    /// Messages of each sender so far.
    taken: [u64; 2],
}

impl Owner {
    fn new() -> Self {
        Self { segment: Segment::new(), position: 0, taken: [0; 2] }
    }

    fn is_there(&self) -> bool {
        mailbox::is_there(&self.segment, self.position)
    }

    /// Takes a message that is there, which must be the next one of its sender, and frees its slot.
    fn take(&mut self) {
        let mut incoming = Incoming::default();
        mailbox::read(&self.segment, self.position, &mut incoming);
        mailbox::release(&self.segment, self.position);
        self.position += 1;
        let (sender, Body::Line(line)) = (incoming.sender, incoming.body) else { panic!("{incoming:?}") };
        let number = self.taken[usize::from(sender)];
        assert_eq!(incoming.envelope, envelope(sender, number));
        assert_eq!(line[..WORDS * 8], message(sender, number));
        self.taken[usize::from(sender)] += 1;
    }

    /// Frees a slot in which nothing will be, and tells whether this is one.
    fn passes_over(&mut self, is_dead: impl Fn(u16) -> bool) -> bool {
        let is_abandoned = mailbox::is_abandoned(&self.segment, self.position, is_dead);
        if is_abandoned {
            mailbox::release(&self.segment, self.position);
            self.position += 1;
        }
        is_abandoned
    }

    /// Takes as many messages by looking for them again and again.
    fn poll(&mut self, messages: u64) {
        for _ in 0..messages {
            while !self.is_there() {
                thread::yield_now();
            }
            self.take();
        }
    }

    /// Takes as many messages and sleeps before each that is not there.
    fn wait(&mut self, messages: u64) {
        for _ in 0..messages {
            assert!(bell::wait(&self.segment, LONG, || self.is_there()));
            self.take();
        }
    }
}

/// Runs a case with this many preemptions, which are enough to find the faults, and keep the search short.
fn model(preemptions: usize, case: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 20_000;
    model.check(case);
}

/// More than fit: the sender finds the ring full, and sees the room that the owner makes.
#[test]
fn messages_arrive_whole_once_and_in_order() {
    model(4, || {
        let mut owner = Owner::new();
        let sender = sender(&owner.segment, 0, 6);
        owner.poll(6);
        sender.join().unwrap();
        assert!(!owner.is_there());
    });
}

#[test]
fn two_senders_do_not_disturb_each_other() {
    model(3, || {
        let mut owner = Owner::new();
        let senders = [0, 1].map(|number| sender(&owner.segment, number, FIT));
        owner.poll(2 * FIT);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert!(!owner.is_there());
    });
}

/// The ring is full. Each sender tries twice while the owner empties it, and what it got in arrives.
#[test]
fn two_senders_share_the_room_that_the_owner_makes() {
    model(3, || {
        let mut owner = Owner::new();
        (0..SLOTS as u64).for_each(|number| assert!(push(&owner.segment, 0, number)));
        assert!(!push(&owner.segment, 1, 0));
        let senders = [(0, SLOTS as u64), (1, 0)].map(|(sender, first)| {
            let segment = owner.segment.clone();
            thread::spawn(move || (0..2).fold(first, |number, _| number + u64::from(push(&segment, sender, number))))
        });
        (0..SLOTS).for_each(|_| owner.take());
        let sent = senders.map(|sender| sender.join().unwrap());
        while owner.is_there() {
            owner.take();
        }
        assert_eq!(owner.taken, sent);
    });
}

#[test]
fn an_owner_that_sleeps_is_woken() {
    model(4, || {
        let mut owner = Owner::new();
        let sender = sender(&owner.segment, 0, 3);
        owner.wait(3);
        sender.join().unwrap();
    });
}

#[test]
fn an_owner_that_sleeps_is_woken_by_each_of_two_senders() {
    model(2, || {
        let mut owner = Owner::new();
        let senders = [0, 1].map(|number| sender(&owner.segment, number, FIT));
        owner.wait(2 * FIT);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

/// The owner doubts a sender that publishes its message and ends meanwhile.
#[test]
fn the_last_message_of_a_sender_is_not_passed_over() {
    model(4, || {
        let (mut owner, is_dead) = (Owner::new(), Arc::new(AtomicBool::new(false)));
        let (segment, their_death) = (owner.segment.clone(), Arc::clone(&is_dead));
        let sender = thread::spawn(move || {
            assert!(push(&segment, 0, 0));
            their_death.store(true, Ordering::Release);
        });
        while !owner.is_there() {
            assert!(!owner.passes_over(|_| is_dead.load(Ordering::Acquire)));
            thread::yield_now();
        }
        owner.take();
        sender.join().unwrap();
    });
}

/// A sender has died when it had claimed the first slot, and had neither published a message nor moved the tail on.
#[test]
fn the_slot_of_a_dead_sender_is_passed_over() {
    model(3, || {
        let mut owner = Owner::new();
        assert!(push(&owner.segment, 1, 0));
        owner.segment.word(SLOTS_AT + HEADER_AT as usize).store(0, Ordering::Relaxed);
        owner.segment.word(TAIL_AT).store(0, Ordering::Relaxed);
        let sender = sender(&owner.segment, 0, 5);
        for _ in 0..5 {
            while !owner.is_there() {
                owner.passes_over(|sender| sender == 1);
                thread::yield_now();
            }
            owner.take();
        }
        sender.join().unwrap();
        assert!(!owner.is_there());
    });
}
