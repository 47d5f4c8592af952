//! Event counters of live front ends that skip, repeat, restart and go wild, sent by hand.

use crate::{
    live::{encoded, end_of_run},
    support::{Lab, Numbers, Outcome, THREADS, check_accounts, free_tcp_port, read_all, wait_until},
};
use evb_sources::Frame;
use std::{io::Write as _, net::TcpStream};

/// One readout unit, fed by hand with these frames; what became of them.
fn by_hand(frames: impl Iterator<Item = (u64, bool, bool)>, last: u64) -> (Lab, Outcome, evb_record::Record) {
    let port = free_tcp_port();
    let lab = Lab::with(&format!(
        r#"
        [readout]
        source = {{ type = "tcp", listen = "127.0.0.1:{port}", counter_bits = 24 }}
        units = 1
        [builder]
        units = 2
        "#
    ));
    let run = lab.run(THREADS).start();
    let mut stream = wait_until("the source listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    for (counter, resynchronised, good) in frames {
        let payload = format!("fragment {counter}{}", if resynchronised { " after a restart" } else { "" });
        let payload = payload.as_bytes();
        let frame = Frame { source: 0, counter, end_of_run: false, resynchronised, good, mark: None, payload };
        stream.write_all(&encoded(frame)).unwrap();
    }
    stream.write_all(&end_of_run(0, last)).unwrap();
    let outcome = run.wait();
    assert!(matches!(outcome.code(), Some(0 | 1)), "{outcome}");
    let record = outcome.record();
    check_accounts(&record);
    (lab, outcome, record)
}

/// Skipped, repeated, restarted and damaged: each is counted by kind, and no fragment lands in another event.
#[test]
fn sequence_faults_are_counted_and_merge_nothing() {
    let (lab, outcome, record) = by_hand(sequence(), 30);
    let events = (record.events.triggered, record.events.built, record.events.incomplete, record.events.lost);
    assert_eq!(events, (30, 27, 3, 0), "{outcome}");
    let count = |kind: &str| record.faults.get(kind).copied().unwrap_or(0);
    // The gap, and a fragment that says that its counter started again and finds no successor; and the repeated one.
    assert_eq!((count("out_of_sequence"), count("duplicate")), (2, 1), "{outcome}");
    assert_eq!((count("missing"), count("corrupted")), (2, 1), "{outcome}");
    assert_eq!((record.readouts[0].came, record.readouts[0].apart), (30, 2), "{outcome}");
    for event in &read_all(&lab.stored_files()).events {
        let (id, fragment) = (event.id.0, &event.fragments[0]);
        let wanted = if id == 11 || id == 12 { String::new() } else { format!("fragment {id}") };
        assert_eq!(fragment.bytes, wanted.as_bytes(), "event {id}");
    }
}

/// A front end may count from anywhere: its first fragment is event 1.
#[test]
fn a_front_end_that_counts_from_zero_is_as_good_as_any() {
    let (lab, outcome, record) = by_hand((0..=20).map(|counter| (counter, false, true)), 20);
    assert_eq!((record.events.built, record.events.incomplete), (21, 0), "{outcome}");
    assert!(record.faults.is_empty(), "{outcome}");
    for event in &read_all(&lab.stored_files()).events {
        assert_eq!(event.fragments[0].bytes, format!("fragment {}", event.id.0 - 1).as_bytes());
    }
}

/// Counters far from what is due, any of them, never end a run.
#[test]
fn wild_counters_do_not_end_a_run() {
    let mut numbers = Numbers(24);
    let wild = (0..2000).map(move |_| (numbers.below(1 << 24) as u64, numbers.below(4) == 0, numbers.below(9) > 0));
    let near = (0..200).map(|n| (n * 7919 % 300, n % 5 == 0, true));
    let (lab, outcome, record) = by_hand(near.chain(wild), 1);
    assert_eq!(record.events.lost, 0, "{outcome}");
    let readout = &record.readouts[0];
    assert_eq!((readout.came, readout.fragments + readout.apart), (2200, 2200), "{outcome}");
    assert!(read_all(&lab.stored_files()).events.len() as u64 <= record.events.triggered, "{outcome}");
}

/// Counter, restarted, good: 11 and 12 are skipped, 15 comes twice, 1 is a restart, 25 is damaged.
fn sequence() -> impl Iterator<Item = (u64, bool, bool)> {
    let counters = (1..=10).chain(13..=20).chain([15]).map(|counter| (counter, false));
    let counters = counters.chain([(1, true)]).chain((21..=30).map(|counter| (counter, false)));
    counters.map(|(counter, restarted)| (counter, restarted, counter != 25))
}
