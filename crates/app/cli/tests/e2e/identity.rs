//! What is in an event was recorded for that event: recordings and live boards whose numbers do not fit each other.

use crate::{
    live::encoded,
    support::{Lab, Numbers, Outcome, THREADS, check_accounts, free_tcp_port, good, not_good, read_all, wait_until},
};
use evb_record::{FindingKind, Record};
use evb_sources::{FedHeader, Frame, check_fragment, write_fragment};
use std::{io::Write as _, net::TcpStream, ops::RangeInclusive, thread};

/// One recorded fragment: its header, and the trigger that it was recorded for, from its payload.
#[derive(Clone, Copy)]
struct Recorded {
    header: FedHeader,
    trigger: u64,
}

/// Two recordings of the same triggers.
fn recordings(triggers: u64) -> [Vec<Recorded>; 2] {
    [841, 843].map(|source_id| (1..=triggers).map(|trigger| recorded(source_id, trigger)).collect())
}

fn recorded(source_id: u16, trigger: u64) -> Recorded {
    let bunch_crossing = (trigger.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u16 % 3564;
    let header = FedHeader { event_type: 1, level1_id: trigger as u32, bunch_crossing, source_id, version: 0 };
    Recorded { header, trigger }
}

/// Runs two recordings; `keys` are those of the first source.
fn replay(files: &[Vec<Recorded>; 2], keys: &str) -> (Lab, Outcome) {
    let lab = Lab::with(&format!(
        r#"
        [[readout.unit]]
        source = {{ type = "cms-fed", file = "0.raw"{keys} }}
        [[readout.unit]]
        source = {{ type = "cms-fed", file = "1.raw" }}
        [builder]
        units = 2
        "#
    ));
    for (name, file) in ["0.raw", "1.raw"].into_iter().zip(files) {
        let mut bytes = Vec::new();
        file.iter().for_each(|one| write_fragment(&mut bytes, one.header, &one.trigger.to_le_bytes()));
        lab.write(name, bytes);
    }
    let outcome = lab.run(THREADS).run();
    (lab, outcome)
}

/// No complete event has fragments of two triggers, and every fragment is accounted for.
fn check(lab: &Lab, outcome: &Outcome) -> Record {
    let record = outcome.record();
    check_accounts(&record);
    for event in &read_all(&lab.stored_files()).events {
        let trigger = |bytes: &[u8]| u64::from_le_bytes(*bytes[8..].first_chunk().expect("a payload"));
        let mut good = event.fragments.iter().filter(|fragment| check_fragment(&fragment.bytes).is_ok());
        let whole = event.fragments.iter().all(|fragment| fragment.status == evb_events::Status::Good);
        let first = good.next().map(|fragment| trigger(&fragment.bytes));
        let mixed = good.any(|fragment| Some(trigger(&fragment.bytes)) != first);
        assert!(!(whole && mixed), "event {} mixes triggers: {outcome}", event.id);
    }
    for readout in &record.readouts {
        assert_eq!(readout.came, readout.fragments + readout.apart, "{outcome}");
    }
    record
}

fn has(record: &Record, kind: FindingKind) -> bool {
    record.findings.iter().any(|finding| finding.kind == kind)
}

/// A case: what is done to the recordings, events that are built and that are incomplete, and what is said of it.
type Case = (fn(&mut [Vec<Recorded>; 2]), u64, u64, FindingKind);

/// Fragments that were lost, came twice, changed places or have a wrong number cost their own events and no other.
#[test]
fn recordings_are_joined_by_their_numbers() {
    let cases: [Case; 7] = [
        (
            |files| {
                files[0].remove(0);
                files[1].pop();
            },
            1998,
            1,
            FindingKind::Unmatched,
        ),
        (|files| files[0].insert(70, files[0][70]), 2000, 0, FindingKind::Unmatched),
        (|files| files[0].swap(70, 71), 2000, 0, FindingKind::NoSteadyState),
        (|files| files[0].swap(70, 1000), 1998, 2, FindingKind::IncompleteEvents),
        (|files| files[0][70].header.level1_id += 1, 1999, 1, FindingKind::IncompleteEvents),
        (|files| _ = files[0].drain(400..1490), 910, 1090, FindingKind::IncompleteEvents),
        (|files| files[0][100].header.level1_id += 4000, 1999, 1, FindingKind::IncompleteEvents),
    ];
    for (index, (damage, built, incomplete, kind)) in cases.into_iter().enumerate() {
        let mut files = recordings(2000);
        damage(&mut files);
        let (lab, outcome) = replay(&files, "");
        let record = check(&lab, &outcome);
        assert_eq!((record.events.built, record.events.incomplete), (built, incomplete), "case {index}: {outcome}");
        assert!(has(&record, kind) || record.good, "case {index}: {outcome}");
        assert_eq!(outcome.code(), Some(i32::from(!record.good)), "case {index}: {outcome}");
    }
}

/// A front-end driver whose bunch crossings are wrong is of no event, unless its file says that they are.
#[test]
fn a_second_identity_that_disagrees_spoils_the_event() {
    let mut files = recordings(300);
    files[0].iter_mut().for_each(|one| one.header.bunch_crossing ^= 1);
    let (lab, outcome) = replay(&files, "");
    let record = not_good(&outcome);
    assert_eq!((check(&lab, &outcome).events.built, record.faults["mismatch"]), (0, 600), "{outcome}");
    let mismatch = record.findings.iter().find(|finding| finding.kind == FindingKind::Mismatch);
    assert!(
        mismatch.is_some_and(|found| found.message.contains("ru1 says") && found.message.contains("where ru0 says"))
    );
    let (_lab, outcome) = replay(&files, r#", identity = "tolerant""#);
    let record = good(&outcome);
    assert_eq!((record.events.built, record.faults["mismatch"]), (300, 300), "{outcome}");
}

/// A file of another front-end driver is refused where its number is given, and the same one twice is reported.
#[test]
fn a_wrong_front_end_driver_is_noticed() {
    let (_lab, outcome) = replay(&recordings(50), ", source_id = 840");
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("the fragments are those of FED 841, not of FED 840"), "{outcome}");
    let [one, _] = recordings(50);
    let (_lab, outcome) = replay(&[one.clone(), one], "");
    assert!(has(&not_good(&outcome), FindingKind::WrongSource), "{outcome}");
}

/// Random damage to two recordings: no complete event mixes triggers. `EVB_CASES` tries more.
#[test]
fn no_damage_to_recordings_mixes_triggers() {
    let cases = std::env::var("EVB_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(60);
    for seed in 1..=cases {
        let mut numbers = Numbers(seed);
        let mut files = recordings(150);
        for _ in 0..1 + numbers.below(6) {
            let file = &mut files[numbers.below(2)];
            let (at, other) = (numbers.below(file.len()), numbers.below(file.len()));
            match numbers.below(6) {
                0 => _ = file.remove(at),
                1 => file.insert(at, file[other]),
                2 => file.swap(at, other),
                3 => file[at].header.level1_id = numbers.below(160) as u32,
                4 => file[at].header.level1_id = numbers.below(1 << 24) as u32,
                _ => _ = file.drain(at.min(other)..at.max(other).min(at.min(other) + 20)),
            }
        }
        let (lab, outcome) = replay(&files, "");
        assert!(matches!(outcome.code(), Some(0 | 1)), "seed {seed}: {outcome}");
        check(&lab, &outcome);
    }
}

/// What a board sends: its counter from here on, and the triggers.
pub(crate) type Sent = (u64, RangeInclusive<u64>);

/// Builds events of boards that send by hand; `marks` says whether frames carry one.
fn boards(sent: &[Vec<Sent>], marks: bool) -> (Lab, Outcome) {
    boards_with(sent, marks, "")
}

/// The same with more sections of the file.
pub(crate) fn boards_with(sent: &[Vec<Sent>], marks: bool, sections: &str) -> (Lab, Outcome) {
    let ports: Vec<_> = sent.iter().map(|_| free_tcp_port()).collect();
    let unit = |port: &u16| format!("[[readout.unit]]\nsource = {{ type = \"tcp\", listen = \"127.0.0.1:{port}\" }}\n");
    let units: String = ports.iter().map(unit).collect();
    let lab = Lab::with(&format!("{units}[builder]\nunits = 2\n{sections}"));
    let run = lab.run(THREADS).start();
    thread::scope(|scope| {
        for (source, (port, sent)) in ports.iter().zip(sent).enumerate() {
            scope.spawn(move || send(source as u16, *port, sent, marks));
        }
    });
    let outcome = run.wait();
    (lab, outcome)
}

/// The mark of a trigger.
pub(crate) fn mark_of(trigger: u64) -> u32 {
    trigger.wrapping_mul(0x9e37_79b9) as u32
}

pub(crate) fn send(source: u16, port: u16, sent: &[Sent], marks: bool) {
    let mut stream = wait_until("the source listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    let mut count = 0;
    for (first, triggers) in sent {
        for (counter, trigger) in (*first..).zip(triggers.clone()) {
            let mark = marks.then(|| mark_of(trigger));
            let payload = trigger.to_le_bytes();
            let (end_of_run, resynchronised, good) = (false, false, true);
            let counter = counter & 0xffff_ffff;
            let frame = Frame { source, counter, end_of_run, resynchronised, good, mark, payload: &payload[..] };
            stream.write_all(&encoded(frame)).unwrap();
            count += 1;
        }
    }
    let (last, mark) =
        (sent.last().map_or(0, |(first, triggers)| first + triggers.clone().count() as u64 - 1), Some(count));
    let end =
        Frame { source, counter: last, end_of_run: true, resynchronised: false, good: true, mark, payload: &[][..] };
    stream.write_all(&encoded(end)).unwrap();
}

/// The triggers of complete events; none of them mixes two.
fn complete(lab: &Lab, outcome: &Outcome) -> Vec<u64> {
    let mut complete = Vec::new();
    for event in &read_all(&lab.stored_files()).events {
        if event.fragments.iter().all(|fragment| fragment.status == evb_events::Status::Good) {
            let trigger = |bytes: &[u8]| u64::from_le_bytes(*bytes.first_chunk().expect("a payload"));
            let triggers: Vec<_> = event.fragments.iter().map(|fragment| trigger(&fragment.bytes)).collect();
            assert!(triggers.iter().all(|trigger| *trigger == triggers[0]), "{triggers:?}: {outcome}");
            complete.push(triggers[0]);
        }
    }
    complete.sort_unstable();
    complete
}

/// Three boards with separate counters, of which one joins late and one is power-cycled twice: every event that all
/// boards have is complete, and the verdict tells of the rest.
#[test]
fn boards_that_count_in_their_own_ways_come_together() {
    for first in [0, 1, 500, 4097, (1 << 32) - 5] {
        let cycled = vec![(first + 7, 1..=300), (0, 306..=600), (1, 603..=900)];
        let (lab, outcome) = boards(&[vec![(first, 1..=900)], vec![(17, 40..=900)], cycled], true);
        let record = check_record(&outcome);
        let all: Vec<_> = (40..=900).filter(|trigger| !matches!(trigger, 301..=305 | 601..=602)).collect();
        assert_eq!(complete(&lab, &outcome), all, "counters from {first}: {outcome}");
        assert_eq!((record.faults["resynchronised"], record.faults["early"]), (2, 39 + 39), "{outcome}");
        assert_eq!((record.events.incomplete, record.good), (7, false), "{outcome}");
    }
}

/// Counters that start anywhere, alike in all boards, are aligned by value, which is not confirmed; no event is made up
/// before the first.
#[test]
fn counters_without_marks_are_not_confirmed() {
    for first in [0, 500, 4097, (1 << 32) - 5] {
        let (lab, outcome) = boards(&[vec![(first, 1..=400)], vec![(first, 1..=400)]], false);
        // Nothing tells whether the boards began to count at the same trigger.
        let record = outcome.record();
        assert_eq!((outcome.code(), record.verdict), (Some(3), Some(evb_record::Outcome::CannotTell)), "{outcome}");
        assert_eq!((record.events.triggered, complete(&lab, &outcome).len()), (400, 400), "{outcome}");
        let not_confirmed = record.findings.iter().find(|finding| finding.kind == FindingKind::NotConfirmed);
        assert!(not_confirmed.is_some_and(|found| found.message.contains(&format!("from {first} to"))), "{outcome}");
    }
}

/// A board that starts to count again without anything beside its counter is set apart, and never mixed in.
#[test]
fn a_restart_without_marks_is_out_of_step() {
    let (lab, outcome) = boards(&[vec![(1, 1..=3000)], vec![(1, 1..=100), (1, 101..=3000)]], false);
    let record = check_record(&outcome);
    assert_eq!(complete(&lab, &outcome), (1..=100).collect::<Vec<_>>());
    assert!(has(&record, FindingKind::OutOfStep) && !record.good, "{outcome}");
}

/// Foreign bytes and silence are reported with their sender and their first bytes.
#[test]
fn a_source_that_gives_nothing_is_told() {
    let port = free_tcp_port();
    let unit = format!("[[readout.unit]]\nsource = {{ type = \"tcp\", listen = \"127.0.0.1:{port}\" }}\n");
    let lab = Lab::with(&format!("{unit}[trigger]\ntype = \"data\"\nduration = \"1 s\"\n[builder]\nunits = 1\n"));
    let run = lab.run(THREADS).start();
    let mut stream = wait_until("the source listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let outcome = run.wait();
    let record = not_good(&outcome);
    assert!(has(&record, FindingKind::NothingTriggered) && has(&record, FindingKind::SilentSource), "{outcome}");
    let refused = record.findings.iter().find(|finding| finding.kind == FindingKind::Refused);
    assert!(refused.is_some_and(|refused| refused.message.contains("GET / HTTP/1.1")), "{outcome}");
}

/// The end of run says how many fragments there were; fewer is a fault.
#[test]
fn fewer_fragments_than_announced_are_told() {
    let port = free_tcp_port();
    let lab = Lab::with(&format!(
        "[[readout.unit]]\nsource = {{ type = \"tcp\", listen = \"127.0.0.1:{port}\" }}\n[builder]\nunits = 1\n"
    ));
    let run = lab.run(THREADS).start();
    let mut stream = wait_until("the source listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    let frame = |counter, end_of_run, mark, payload| Frame {
        source: 0,
        counter,
        end_of_run,
        resynchronised: false,
        good: true,
        mark,
        payload,
    };
    (1..=20).for_each(|counter| stream.write_all(&encoded(frame(counter, false, None, &b"x"[..]))).unwrap());
    stream.write_all(&encoded(frame(20, true, Some(23), &[][..]))).unwrap();
    let record = not_good(&run.wait());
    assert!(has(&record, FindingKind::MissedEnd), "{record:?}");
}

fn check_record(outcome: &Outcome) -> Record {
    let record = outcome.record();
    check_accounts(&record);
    for readout in &record.readouts {
        assert_eq!(readout.came, readout.fragments + readout.apart, "{outcome}");
    }
    record
}
