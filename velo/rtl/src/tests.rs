//! Host and lockstep over the model of the hardware.

use crate::{CYCLE, Pace, RtlError, RtlLayer, RtlOptions, cluster_of, fake::Fake};
use evb_core::{NodeId, Span, Time};
use evb_transport::{MessageLayer, Refused};
use std::{thread, time::Duration};

const FIRST: NodeId = NodeId(0);
const SECOND: NodeId = NodeId(1);
/// Polls after which nothing more comes.
const MOST_POLLS: u32 = 1_000_000;

fn nodes(count: usize, options: &RtlOptions) -> Vec<RtlLayer> {
    cluster_of(Box::new(Fake::new(count)), count, options).expect("a cluster")
}

fn pair() -> (RtlLayer, RtlLayer) {
    let [first, second] = <[_; 2]>::try_from(nodes(2, &RtlOptions::default())).expect("two nodes");
    (first, second)
}

fn now(layer: &RtlLayer) -> Time {
    layer.virtual_time().expect("it has one").now()
}

fn cycles(count: u64) -> Span {
    Span(count * CYCLE.0)
}

/// Takes `count` messages.
fn receive(layer: &mut RtlLayer, count: usize) -> Vec<(NodeId, Vec<u8>, Time)> {
    let mut messages = Vec::new();
    for poll in 0.. {
        if messages.len() == count {
            break;
        }
        assert!(poll < MOST_POLLS, "{} of {count} messages came", messages.len());
        let before = messages.len();
        layer.receive(count - before, &mut |from, bytes| messages.push((from, bytes.to_vec(), Time::ZERO)));
        let now = now(layer);
        messages[before..].iter_mut().for_each(|message| message.2 = now);
    }
    messages
}

fn send(layer: &mut RtlLayer, to: NodeId, bytes: &[u8]) {
    while let Err(refused) = layer.send(to, bytes) {
        assert_eq!(refused, Refused::Full);
    }
}

/// Delays the thread as a scheduler may between two calls.
fn dawdle(rounds: usize) {
    (0..rounds).for_each(|_| thread::yield_now());
}

#[test]
fn clusters_that_cannot_be_are_refused() {
    let refused = |count, options: RtlOptions| cluster_of(Box::new(Fake::new(2)), count, &options).err();
    let usual = RtlOptions::default;
    assert!(matches!(refused(1, usual()), Some(RtlError::Nodes { nodes: 1 })));
    let text = refused(17, usual()).expect("too many").to_string();
    assert_eq!(text, "17 nodes: the hardware joins 2 back to back, and up to 16 by a switch");
    let text = refused(2, RtlOptions { link: 17, ..usual() }).expect("no such link").to_string();
    assert_eq!(text, "a link of 17 wires: use 16, 32 or 96");
    assert!(matches!(refused(2, RtlOptions { pages: 3, ..usual() }), Some(RtlError::Mailbox(_))));
}

#[test]
fn a_run_is_the_same_whatever_the_threads_do() {
    let run = |rounds: [usize; 2]| {
        let (mut first, mut second) = pair();
        let answers = thread::spawn(move || {
            for number in 0..50 {
                let message = receive(&mut second, 1).remove(0);
                dawdle(number % (rounds[1] + 1));
                send(&mut second, FIRST, &message.1);
            }
        });
        let mut times = Vec::new();
        for number in 0..50_u8 {
            send(&mut first, SECOND, &vec![number; 1 + usize::from(number) * 7]);
            dawdle(rounds[0]);
            times.extend(receive(&mut first, 1));
        }
        answers.join().expect("the other node answers");
        times
    };
    let usual = run([0, 0]);
    assert!(usual.iter().enumerate().all(|(number, (_, bytes, _))| bytes == &vec![number as u8; 1 + number * 7]));
    assert_eq!(run([30, 0]), usual);
    assert_eq!(run([0, 50]), usual);
}

/// More than a ring and all credits hold, from two senders whose pieces come in turns.
#[test]
fn messages_of_every_length_come_whole_and_in_order() {
    let options = RtlOptions { pages: 1, ..RtlOptions::default() };
    let mut layers = nodes(3, &options).into_iter();
    let mut receiver = layers.next().expect("a node");
    thread::scope(|scope| {
        for mut sender in layers {
            scope.spawn(move || {
                for length in 1..=200_usize {
                    send(&mut sender, FIRST, &vec![length as u8; length]);
                }
                // Its other messages are on their way still.
            });
        }
        let mut lengths = [0; 3];
        for (from, bytes, _) in receive(&mut receiver, 400) {
            lengths[from.index()] += 1;
            assert_eq!(bytes, vec![lengths[from.index()] as u8; lengths[from.index()]]);
        }
        assert_eq!(lengths, [0, 200, 200]);
    });
}

#[test]
fn computing_takes_its_time_and_nothing_else() {
    let (mut first, mut second) = pair();
    let other = thread::spawn(move || {
        send(&mut second, FIRST, &[1]);
        second.pass(cycles(10));
        now(&second)
    });
    first.pass(cycles(1000));
    assert_eq!(now(&first), Time::ZERO + cycles(1000), "what has come does not end it");
    assert_eq!(other.join().expect("it goes on alone"), Time::ZERO + cycles(10));
    assert_eq!(receive(&mut first, 1)[0].2, Time::ZERO + cycles(1001), "one poll");
}

#[test]
fn a_wait_is_a_poll_in_each_cycle() {
    let run = |waits: bool| {
        let (mut first, mut second) = pair();
        let other = thread::spawn(move || {
            second.pass(cycles(77));
            send(&mut second, FIRST, &[1; 20]);
            second.pass(cycles(500));
        });
        let mut arrived = None;
        while arrived.is_none() {
            if waits {
                first.wait(Duration::from_micros(1));
            }
            first.receive(1, &mut |_, bytes| arrived = Some(bytes.len()));
        }
        let time = now(&first);
        drop(first);
        other.join().expect("it goes on alone");
        time
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn a_wait_ends_by_itself() {
    let (mut first, second) = pair();
    drop(second);
    assert_eq!(first.receive(1, &mut |_, _| panic!("no node sent anything")), 0);
    assert_eq!(first.lost(), Some(SECOND));
    let start = now(&first);
    first.wait(Duration::from_micros(3));
    assert_eq!(now(&first).since(start), cycles(300));
    first.wait(Duration::ZERO);
    assert_eq!(now(&first).since(start), cycles(301), "one cycle at least");
}

#[test]
fn a_message_without_room_costs_a_cycle() {
    let options = RtlOptions { queue_words: 18, ..RtlOptions::default() };
    let mut layers = nodes(2, &options);
    drop(layers.pop());
    let mut sender = layers.pop().expect("a node");
    let limit = options.max_bytes;
    assert_eq!(sender.send(SECOND, &vec![0; limit + 1]), Err(Refused::TooLarge { limit }));
    assert_eq!(sender.send(SECOND, &[]), Err(Refused::TooLarge { limit }));
    assert_eq!(sender.send(FIRST, &[1]), Err(Refused::Lost), "oneself");
    assert_eq!(sender.send(NodeId(2), &[1]), Err(Refused::Lost), "no such node");
    // The loss of the other is reported at the next edge.
    let results: Vec<_> = (0..4).map(|_| sender.send(SECOND, &[7; 64])).collect();
    assert_eq!(results, [Ok(()), Ok(()), Err(Refused::Full), Err(Refused::Lost)]);
    assert_eq!(now(&sender), Time::ZERO + cycles(1));
}

#[test]
fn a_loss_is_reported_after_the_messages_and_the_others_continue() {
    let mut layers = nodes(3, &RtlOptions::default()).into_iter();
    let (mut first, mut leaving) = (layers.next().expect("a node"), layers.next().expect("a node"));
    let mut third = layers.next().expect("a node");
    thread::scope(|scope| {
        scope.spawn(move || (0..40).for_each(|number| send(&mut leaving, FIRST, &[number; 100])));
        scope.spawn(move || {
            receive(&mut third, 1);
            send(&mut third, FIRST, &[99]);
        });
        for number in 0..40 {
            assert_eq!(first.lost(), None, "before message {number}");
            assert_eq!(receive(&mut first, 1)[0].1, [number; 100]);
        }
        let mut polls = 0;
        while first.lost() != Some(SECOND) {
            assert_eq!(first.receive(1, &mut |_, _| panic!("all was there")), 0);
            polls += 1;
        }
        assert!(polls <= 2, "the loss was reported {polls} cycles after the messages");
        assert_eq!(first.send(SECOND, &[1]), Err(Refused::Lost));
        send(&mut first, NodeId(2), &[2]);
        assert_eq!(receive(&mut first, 1)[0].1, [99]);
    });
}

/// The clock would stop forever.
#[test]
fn a_panic_is_the_loss_of_all() {
    let (mut first, mut second) = pair();
    let other = thread::spawn(move || {
        second.receive(1, &mut |_, _| ());
        let _node = second;
        std::panic::resume_unwind(Box::new("a test of what follows"));
    });
    while first.lost() != Some(SECOND) {
        first.receive(1, &mut |_, _| ());
    }
    assert_eq!(first.send(SECOND, &[1]), Err(Refused::Lost));
    assert!(other.join().is_err());
}

#[test]
fn a_node_that_does_not_come_is_the_loss_of_all() {
    let options = RtlOptions { patience: Duration::from_millis(20), ..RtlOptions::default() };
    let mut layers = nodes(3, &options).into_iter();
    let (mut first, _absent) = (layers.next().expect("a node"), layers.next().expect("a node"));
    let mut third = layers.next().expect("a node");
    let other = thread::spawn(move || {
        third.pass(cycles(1_000_000));
        third.lost()
    });
    assert_eq!(first.receive(1, &mut |_, _| ()), 0);
    assert_eq!([first.lost(), first.lost(), first.lost()], [Some(SECOND), Some(NodeId(2)), None]);
    assert_eq!(other.join().expect("it does not wait for ever"), Some(FIRST));
    first.wait(Duration::from_secs(1000));
    assert_eq!(now(&first), Time::ZERO, "the clock has stopped");
}

#[test]
fn nodes_that_are_free_share_a_thread() {
    let options = RtlOptions { pace: Pace::Free, ..RtlOptions::default() };
    let mut layers = nodes(2, &options);
    layers[1].send(FIRST, &[5; 150]).expect("room");
    assert_eq!(receive(&mut layers[0], 1)[0].1, [5; 150]);
    let start = now(&layers[0]);
    layers[0].receive(1, &mut |_, _| ());
    layers[1].receive(1, &mut |_, _| ());
    assert_eq!(now(&layers[0]).since(start), cycles(2), "each poll is a cycle for all");
}
