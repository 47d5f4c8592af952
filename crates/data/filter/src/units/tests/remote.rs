//! Filter units that join over a connection: their loss, their silence, and strangers.

use super::*;
use crate::{
    remote::handshake,
    wire::{encode_alive, encode_end, encode_failed, encode_ready, encode_verdicts},
};
use evb_transport::Token;
use evb_transport_secure::Channel;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
};

const TOKEN: Token = Token::new([7; Token::BYTES]);

/// Filter units without any process of the builder.
fn listen(timeout: Span) -> ((Units, Receiver<()>), SocketAddr) {
    let plan = UnitsPlan { units: 0, code: None, listen: Some(String::new()), ..plan(&[], timeout) };
    let listener = RemoteListener::new(TcpListener::bind("127.0.0.1:0").unwrap(), TOKEN).unwrap();
    let address = listener.address();
    let (wake, woken) = channel();
    let wake = Mutex::new(wake);
    let waker: Waker = Arc::new(move || _ = wake.lock().unwrap().send(()));
    let hello = Hello { run: 1, builder: 0, unit: 0, streams: vec!["physics".into(), "quarantine".into()] };
    ((Units::start(&plan, &hello, Memory::Pipe, Some(listener), waker).unwrap(), woken), address)
}

/// A filter unit by hand.
struct Unit(Channel<TcpStream>);

impl Unit {
    /// Joins, reads the hello and says that it is ready.
    fn join(address: SocketAddr) -> Self {
        let joined = handshake::join(TcpStream::connect(address).unwrap(), &TOKEN, PATIENCE).unwrap();
        let mut unit = Self(joined.expect("a place"));
        unit.0.stream().set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(unit.read().0, 1, "the hello");
        unit.say(|out| encode_ready(false, out));
        unit
    }

    /// The kind and the body of the next message.
    fn read(&mut self) -> (u32, Vec<u8>) {
        let mut head = [0; 8];
        self.0.read_exact(&mut head).unwrap();
        let (length, kind) = (&head[..4], &head[4..]);
        let [length, kind] = [length, kind].map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()));
        let mut body = vec![0; length as usize];
        self.0.read_exact(&mut body).unwrap();
        (kind, body)
    }

    /// The numbers of the events of the next message.
    fn events(&mut self) -> Vec<u64> {
        let (kind, body) = self.read();
        assert_eq!(kind, 2, "events");
        crate::wire::decode_events(&body).unwrap().iter().map(|event| event.number).collect()
    }

    fn accept(&mut self, events: &[u64]) {
        let verdicts: Vec<_> = events.iter().map(|&event| (EventId(event), Some(0))).collect();
        self.say(|out| encode_verdicts(&verdicts, out));
    }

    fn say(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut message = Vec::new();
        encode(&mut message);
        self.0.write_all(&message).unwrap();
    }
}

/// Waits for this many answers.
fn wait_for((units, woken): &mut (Units, Receiver<()>), count: usize) -> Vec<Verdict> {
    let mut all = Vec::new();
    while all.len() < count {
        woken.recv_timeout(PATIENCE).expect("there are answers");
        units.take(&mut all);
    }
    all.into_iter().map(|answer| answer.verdict).collect()
}

/// Ends the filter units; the last one is asked to end.
fn finish(units: &mut Units) {
    let end = Instant::now() + PATIENCE;
    while !units.finish() {
        assert!(Instant::now() < end, "the units end");
        thread::yield_now();
    }
}

#[test]
fn a_lost_connection_gives_events_back_one_by_one_and_quarantines_none() {
    let (mut units, address) = listen(LONG);
    ask(&mut units.0, 1..=3);
    let mut lost = Unit::join(address);
    assert_eq!(lost.events(), [1, 2, 3]);
    drop(lost);
    let mut other = Unit::join(address);
    for event in 1..=3 {
        assert_eq!(other.events(), [event], "alone");
        other.accept(&[event]);
    }
    assert_eq!(wait_for(&mut units, 3), [Verdict::Accepted(StreamId::PHYSICS)].repeat(3));
    let report = units.0.report();
    assert_eq!((report.joined, report.lost, report.by_network.events), (2, 1, 6));
    assert!(report.reasons.is_empty(), "{report:?}");
    finish(&mut units.0);
    let mut end = Vec::new();
    encode_end(&mut end);
    assert_eq!(other.read(), (4, vec![]), "{end:?}");
}

/// Only the third loss with the same event alone is its fault.
#[test]
fn an_event_that_loses_every_unit_ends_in_quarantine() {
    let (mut units, address) = listen(LONG);
    ask(&mut units.0, 1..=1);
    for _ in 0..MOST_LOSSES {
        assert!(units.0.report().reasons.is_empty());
        assert_eq!(Unit::join(address).events(), [1]);
    }
    assert_eq!(wait_for(&mut units, 1), [Verdict::Quarantined]);
    assert_eq!(units.0.report().reasons, BTreeMap::from([("lost", 1)]));
    finish(&mut units.0);
}

#[test]
fn a_remote_program_that_crashes_or_hangs_costs_its_event() {
    let (mut units, address) = listen(Span::from_millis(100));
    ask(&mut units.0, 1..=1);
    let mut crashes = Unit::join(address);
    assert_eq!(crashes.events(), [1]);
    crashes.say(|out| encode_failed(Some("signal: 6"), out));
    drop(crashes);
    assert_eq!(wait_for(&mut units, 1), [Verdict::Quarantined]);
    ask(&mut units.0, 2..=2);
    let mut hangs = Unit::join(address);
    assert_eq!(hangs.events(), [2]);
    while !units.0.report().reasons.contains_key("hung") {
        let mut alive = Vec::new();
        encode_alive(&mut alive);
        // The builder may close the connection at any time.
        let _closed = hangs.0.write_all(&alive);
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(units.0.report().reasons, BTreeMap::from([("crashed", 1), ("hung", 1)]));
    assert_eq!(units.0.report().first_failures[0].1, Reason::Crashed("signal: 6".into()));
    let mut late = Vec::new();
    units.0.take(&mut late);
    finish(&mut units.0);
}

/// Without a filter unit events wait; at the end of the run they wait a moment longer.
#[test]
fn events_without_a_decision_end_in_quarantine_with_the_run() {
    let (mut units, _) = listen(Span::from_millis(50));
    ask(&mut units.0, 1..=2);
    let mut early = Vec::new();
    units.0.take(&mut early);
    assert!(early.is_empty() && units.0.is_busy());
    finish(&mut units.0);
    let mut late = Vec::new();
    units.0.take(&mut late);
    assert!(late.iter().all(|answer| answer.verdict == Verdict::Quarantined) && late.len() == 2);
    assert_eq!(units.0.report().reasons, BTreeMap::from([("nobody", 2)]));
}

#[test]
fn a_stranger_gets_no_token_and_the_others_go_on() {
    let (mut units, address) = listen(LONG);
    let wrong = TcpStream::connect(address).unwrap();
    let refused = handshake::join(wrong, &Token::new([8; Token::BYTES]), PATIENCE).unwrap();
    assert_eq!(refused.err(), Some(handshake::Refusal::Token));
    let silent: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut unit = Unit::join(address);
    ask(&mut units.0, 1..=1);
    assert_eq!(unit.events(), [1]);
    unit.accept(&[1]);
    assert_eq!(wait_for(&mut units, 1), [Verdict::Accepted(StreamId::PHYSICS)]);
    assert_eq!(units.0.report().joined, 1);
    drop(silent);
}
