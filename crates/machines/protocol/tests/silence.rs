//! A source that is silent under a time limit costs its own fragments, and no event waits for it again and again.

use evb_core::{EventId, Machine, NodeId, SourceId, Span, Time};
use evb_protocol::*;

const LIMIT: Span = Span::from_secs(1);
/// Time between two events: 250 Hz.
const PERIOD: Span = Span::from_millis(4);

/// A builder of two sources, with the events that have ended.
struct Bench {
    builder: BuilderMachine<()>,
    now: Time,
    ended: Vec<(u64, bool, Time)>,
}

impl Bench {
    fn new(deadline: Option<Span>) -> Self {
        let config = Config { deadline, builder_slots: 4096, ..Config::new(2, 1) };
        let mut builder = BuilderMachine::new(config, 0);
        builder.handle_command(Time::ZERO, BuilderCommand::Start);
        Self { builder, now: Time::ZERO, ended: Vec::new() }
    }

    /// Passes the time up to `at`.
    fn pass(&mut self, at: Time) {
        while let Some((due, _)) = self.builder.poll_timeout().filter(|(due, _)| *due <= at) {
            self.now = self.now.max(due);
            self.builder.handle_timeout(self.now);
            self.settle();
        }
        self.now = at;
    }

    fn grant(&mut self, event: u64) {
        let grant = Message::Grant([EventId(event)].into());
        self.builder.handle_message(self.now, Config::EVENT_MANAGER, grant);
    }

    fn send(&mut self, source: u16, event: u64) {
        self.send_with(source, event, FragmentStatus::Good);
    }

    fn send_with(&mut self, source: u16, event: u64, status: FragmentStatus) {
        let (source, event) = (SourceId(source), EventId(event));
        let fragment =
            Fragment { event, source, length: 0, checksum: 0, mark: None, counter: None, status, payload: () };
        self.builder.handle_message(self.now, NodeId(1 + source.0), Message::Fragment(fragment));
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(event) = self.builder.poll_event() {
            let BuilderEvent::Built(built) = event else { continue };
            self.ended.push((built.event.0, built.complete, self.now));
            self.builder.handle_command(self.now, BuilderCommand::Stored(built));
        }
        while self.builder.poll_transmit().is_some() {}
    }

    /// Events `from..=to` at their times: the first source sends, the second one if `both`.
    fn play(&mut self, from: u64, to: u64, both: bool) {
        for event in from..=to {
            self.pass(at(event));
            self.grant(event);
            (0..1 + u16::from(both)).for_each(|source| self.send(source, event));
        }
    }

    /// The waits of the events `from..=to` that have ended.
    fn waits(&self, from: u64, to: u64) -> impl Iterator<Item = Span> {
        let ends = self.ended.iter().filter(move |(event, ..)| (from..=to).contains(event));
        ends.map(|(event, _, end)| end.since(at(*event)))
    }

    /// The longest wait of the events `from..=to`, which have all ended, complete or not.
    fn longest(&self, from: u64, to: u64, complete: bool) -> Span {
        let ends = self.ended.iter().filter(|(event, ..)| (from..=to).contains(event));
        let waits: Vec<_> =
            ends.filter(|(_, whole, _)| *whole == complete).map(|(event, _, end)| end.since(at(*event))).collect();
        assert_eq!(waits.len() as u64, to - from + 1, "{:?}", self.ended);
        waits.into_iter().max().unwrap()
    }

    fn count(&self, fault: Fault) -> u64 {
        self.builder.counts().faults.get(fault)
    }
}

/// The time of the trigger of an event.
fn at(event: u64) -> Time {
    Time(event * PERIOD.0)
}

#[test]
fn events_do_not_wait_for_a_silent_source_again() {
    let mut bench = Bench::new(Some(LIMIT));
    bench.play(1, 100, true);
    bench.play(101, 3000, false);
    assert_eq!(bench.longest(1, 100, true), Span::ZERO);
    let waited = |bench: &Bench, from| bench.waits(from, 3000).filter(|wait| *wait > Span::ZERO).count() as u64;
    // Those of the first second wait for a part of it, until three have missed the limit. Then one in each second waits.
    assert_eq!((bench.longest(101, 2700, false), waited(&bench, 101)), (LIMIT, 252 + 10));
    bench.pass(at(4000));
    assert_eq!((bench.count(Fault::Cut), bench.count(Fault::Missing), bench.ended.len()), (2900, 0, 3000));
}

#[test]
fn a_source_that_sends_again_is_awaited_again_and_its_late_fragments_are_counted() {
    let mut bench = Bench::new(Some(LIMIT));
    bench.play(1, 1000, false);
    let ended = bench.ended.len();
    bench.send(1, 900);
    assert_eq!((bench.count(Fault::Late), ended), (1, 999));
    // The other source is first, and the event waits.
    bench.pass(at(1001));
    bench.grant(1001);
    bench.send(0, 1001);
    assert_eq!(bench.ended.len(), ended);
    bench.send(1, 1001);
    assert_eq!(bench.ended.last(), Some(&(1001, true, at(1001))));
    bench.play(1002, 1500, true);
    assert_eq!(bench.longest(1001, 1500, true), Span::ZERO);
    assert_eq!(bench.builder.counts().built, 500);
}

/// The fragments of all other events may be too late: the readout unit says that the source has passed the event that
/// waits.
#[test]
fn the_answer_of_a_readout_unit_is_a_sign_of_its_source() {
    let mut bench = Bench::new(Some(LIMIT));
    bench.play(1, 1000, false);
    let waits = (1..=1000).find(|event| bench.ended.iter().all(|(ended, ..)| ended != event)).unwrap();
    bench.send_with(1, waits, FragmentStatus::Missing);
    assert_eq!(bench.ended.last(), Some(&(waits, false, at(1000))));
    bench.pass(at(1001));
    bench.grant(1001);
    bench.send(0, 1001);
    assert_eq!(bench.ended.len(), 1000, "the source is awaited");
}

#[test]
fn one_lost_fragment_makes_no_source_silent() {
    let mut bench = Bench::new(Some(LIMIT));
    bench.play(1, 2, false);
    bench.pass(at(1000));
    assert_eq!(bench.longest(1, 2, false), LIMIT);
    bench.grant(1000);
    bench.send(0, 1000);
    assert_eq!(bench.ended.len(), 2, "it waits for the other source");
}

/// Slow is not broken.
#[test]
fn without_a_time_limit_events_wait() {
    let mut bench = Bench::new(None);
    bench.play(1, 1000, false);
    bench.pass(at(1_000_000));
    assert_eq!(bench.ended, []);
    (1..=1000).for_each(|event| bench.send(1, event));
    assert_eq!(bench.builder.counts().built, 1000);
}

/// The death of a silent source, and its return, are those of any other.
#[test]
fn a_silent_source_may_die_and_come_back() {
    let mut bench = Bench::new(Some(LIMIT));
    bench.play(1, 500, false);
    for alive in [false, true] {
        let message = Message::Unit { node: NodeId(2), alive };
        bench.builder.handle_message(bench.now, Config::EVENT_MANAGER, message);
        bench.settle();
    }
    bench.pass(at(501));
    bench.grant(501);
    bench.send(0, 501);
    assert_eq!(bench.ended.len(), 500, "it is awaited");
    bench.send(1, 501);
    assert_eq!(bench.ended.last(), Some(&(501, true, at(501))));
}
