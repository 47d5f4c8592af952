//! Filter units with small programs of the shell and of Python that work, crash, hang and answer nonsense.

use super::*;
use crate::Code;

mod remote;
use evb_core::Span;
use std::{
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

/// Longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(30);

fn plan(program: &[&str], timeout: Span) -> UnitsPlan {
    UnitsPlan {
        units: 1,
        code: Some(Code::Program(program.iter().map(ToString::to_string).collect())),
        listen: None,
        patience: timeout,
        timeout,
        events: 4,
        accept: None,
        time: Span::ZERO,
    }
}

/// A filter of Python: `body` makes a decision out of `event`.
fn python(body: &str) -> Vec<String> {
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../filters/python");
    let program = format!(
        "import sys, os, time; sys.path.insert(0, {module:?}); import evb_filter\n{body}\nevb_filter.run(decide)"
    );
    ["python3", "-c", &program].map(str::to_owned).to_vec()
}

fn start(program: &[&str], timeout: Span) -> (Units, Receiver<()>) {
    start_with(program, timeout, Memory::for_events(&plan(program, timeout), 2, MOST as u64))
}

fn start_with(program: &[&str], timeout: Span, memory: Memory) -> (Units, Receiver<()>) {
    let (wake, woken) = channel();
    let hello = Hello { run: 1, builder: 0, unit: 0, streams: vec!["physics".into(), "quarantine".into()] };
    let wake = Mutex::new(wake);
    let waker: Waker = Arc::new(move || _ = wake.lock().unwrap().send(()));
    (Units::start(&plan(program, timeout), &hello, memory, None, waker).unwrap(), woken)
}

/// Largest fragment of a test.
const MOST: usize = 1000;

/// An event with two fragments, whose bytes are all the last digits of its number. The second one grows with it.
fn event(number: u64) -> Built<Bytes> {
    crate::area::tests::event(number, &[3, number as usize * 7 % MOST])
}

fn ask(units: &mut Units, events: std::ops::RangeInclusive<u64>) {
    for number in events {
        units.ask(Question { built: event(number), is_phase: false });
    }
}

/// All answers to this many events, in the order of the events.
fn answers((units, woken): &mut (Units, Receiver<()>), count: u64) -> Vec<Verdict> {
    let mut all = Vec::new();
    ask(units, 1..=count);
    while (all.len() as u64) < count {
        woken.recv_timeout(PATIENCE).expect("there are answers");
        units.take(&mut all);
    }
    assert!(!units.is_busy());
    all.sort_by_key(|answer| answer.question.built.event);
    all.into_iter().map(|answer| answer.verdict).collect()
}

fn decide(body: &str, timeout: Span, count: u64) -> (Vec<Verdict>, UnitsReport) {
    let program = python(body);
    let program: Vec<_> = program.iter().map(String::as_str).collect();
    let mut units = start(&program, timeout);
    let verdicts = answers(&mut units, count);
    (verdicts, units.0.report())
}

/// The events in quarantine, and the one reason for all of them.
fn quarantined(verdicts: &[Verdict], report: &UnitsReport, name: &str) -> Vec<u64> {
    let events = (1..).zip(verdicts).filter(|(_, verdict)| **verdict == Verdict::Quarantined);
    let events: Vec<u64> = events.map(|(event, _)| event).collect();
    assert_eq!(report.reasons, BTreeMap::from([(name, events.len() as u64)]));
    events
}

const LONG: Span = Span::from_secs(30);

#[test]
fn a_filter_accepts_and_rejects_and_ends() {
    let body = "decide = lambda event: event.number % 3 == 0 and 'physics'";
    let program = python(body);
    let program: Vec<_> = program.iter().map(String::as_str).collect();
    let mut units = start(&program, LONG);
    let expected = |event: u64| match event % 3 {
        0 => Verdict::Accepted(StreamId::PHYSICS),
        _ => Verdict::Rejected,
    };
    assert_eq!(answers(&mut units, 100), (1..=100).map(expected).collect::<Vec<_>>());
    let report = units.0.report();
    assert_eq!(report, UnitsReport { in_memory: given(1..=100), ..UnitsReport::default() });
    let end = std::time::Instant::now() + PATIENCE;
    while !units.0.finish() {
        assert!(std::time::Instant::now() < end, "the process ends when its input does");
        thread::yield_now();
    }
}

fn given(events: std::ops::RangeInclusive<u64>) -> Given {
    let bytes = |event| (3 + event as usize * 7 % MOST) as u64;
    Given { events: events.clone().count() as u64, bytes: events.map(bytes).sum() }
}

/// Accepts events whose bytes are right.
const CHECKS_BYTES: &str = "decide = lambda event: [bytes(fragment.bytes) for fragment in event.fragments] == \
    [bytes([event.number % 256]) * length for length in (3, event.number * 7 % 1000)]";

/// The bytes are right and the report says how they went: in memory, through a pipe to a process that maps no memory,
/// through a pipe without shared memory, and with room for some of the events only.
#[test]
fn events_come_whole_in_memory_and_through_pipes() {
    let old = format!("evb_filter._map = lambda hello: None\n{CHECKS_BYTES}");
    let (small, none) = (Memory::Area(600), UnitsReport::default());
    let plan = plan(&[], LONG);
    for (body, memory, in_memory) in [
        (CHECKS_BYTES, Memory::for_events(&plan, 2, MOST as u64), 300),
        (&old, Memory::for_events(&plan, 2, MOST as u64), 0),
        (CHECKS_BYTES, Memory::Pipe, 0),
        (CHECKS_BYTES, Memory::Area(u64::MAX), 0),
        (CHECKS_BYTES, small, 1),
    ] {
        let program = python(body);
        let program: Vec<_> = program.iter().map(String::as_str).collect();
        let mut units = start_with(&program, LONG, memory);
        let verdicts = answers(&mut units, 300);
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Accepted(StreamId::PHYSICS)), "{body} {memory:?}");
        let report = units.0.report();
        let mut all = report.in_memory;
        all += report.by_pipe;
        assert_eq!(all, given(1..=300));
        let is_as_expected = if memory == small {
            report.in_memory.events > 0 && report.by_pipe.events > 0
        } else {
            report.in_memory.events == in_memory
        };
        assert!(is_as_expected, "{report:?}");
        assert_eq!(report.no_memory.is_some(), memory == Memory::Area(u64::MAX), "{report:?}");
        assert_eq!(report.reasons, none.reasons);
    }
}

/// A filter of Python that keeps events finds the bytes that it has asked for, and errors in place of bytes of others.
#[test]
fn bytes_that_are_kept_stay_right() {
    let body = r#"
kept = []
def refuses(use):
    try: use()
    except ValueError: return True
def decide(event):
    good = event.view(0) == event[0] and len(event.fragments[0]) == 3 and [*event.fragments[0]][2] == event[0]
    for old, view in kept:
        good = good and old[0] == bytes([old.number % 256] * 3)
        good = good and refuses(lambda: old[1]) and refuses(lambda: old.view(1)) and refuses(lambda: view[0])
    kept.append((event, event.view(1)))
    return good"#;
    let (verdicts, report) = decide(body, LONG, 20);
    assert_eq!(verdicts, [Verdict::Accepted(StreamId::PHYSICS)].repeat(20), "{report:?}");
}

/// A process that writes where it reads ends at that, and so does its event.
#[test]
fn a_process_that_writes_to_its_memory_harms_only_itself() {
    let body = "import ctypes, mmap, struct\n\
        real = evb_filter._map\n\
        def keep(hello):\n  \
        evb_filter._descriptor, evb_filter._area = struct.unpack_from('<I', hello, 20)[0], real(hello)\n  \
        return evb_filter._area\n\
        evb_filter._map = keep\n\
        def write():\n  \
        view = evb_filter._area\n  \
        for way in (lambda: view.__setitem__(0, 1), lambda: os.pwrite(evb_filter._descriptor, b'x', 0),\n    \
                    lambda: mmap.mmap(evb_filter._descriptor, 0), lambda: os.ftruncate(evb_filter._descriptor, 0)):\n    \
            try: way()\n    \
            except (TypeError, OSError): continue\n    \
            return True\n  \
        libc = ctypes.CDLL(None)\n  \
        libc.mmap.restype = ctypes.c_void_p\n  \
        at = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, evb_filter._descriptor, ctypes.c_size_t(0))\n  \
        if libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(4096), 3) == 0: return True\n  \
        ctypes.memset(at, 0, 4096)\n\
        decide = lambda event: event.number == 7 and write()";
    let (verdicts, report) = decide(body, LONG, 12);
    let lost = quarantined(&verdicts, &report, "crashed");
    assert_eq!(lost, [7]);
    assert!(report.first_failures[0].1.to_string().contains("signal: 11"), "{report:?}");
}

/// Every tenth event kills the process, which is started again each time.
#[test]
fn a_crash_costs_its_event_and_nothing_else() {
    let (verdicts, report) = decide("decide = lambda event: event.number % 10 or os.abort()", LONG, 40);
    let lost = quarantined(&verdicts, &report, "crashed");
    assert_eq!(lost, [10, 20, 30, 40]);
    assert!(report.first_failures[0].1.to_string().contains("signal: 6"), "{report:?}");
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Rejected).count(), 0);
    assert!(report.given_up.is_empty());
}

#[test]
fn a_hang_costs_its_event() {
    let body = "decide = lambda event: event.number != 7 or time.sleep(1000)";
    let (verdicts, report) = decide(body, Span::from_millis(800), 12);
    let lost = quarantined(&verdicts, &report, "hung");
    assert_eq!(lost, [7]);
}

/// A program that answers, and never about an event, is given up by what it answers.
#[test]
fn endless_messages_without_verdicts_are_nonsense() {
    let body = "import struct\nout = os.dup(1)\ndef decide(event):\n  while True: os.write(out, struct.pack('<IIQ', 8, 17, 0))";
    let (verdicts, report) = decide(body, LONG, 30);
    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Quarantined));
    // Several events at first, and then one after the other.
    assert_eq!(report.reasons, BTreeMap::from([("nonsense", 4), ("given_up", 26)]));
    assert!(report.first_failures[0].1.to_string().contains("without verdicts"), "{report:?}");
    assert_eq!(report.given_up.len(), 1, "{report:?}");
}

#[test]
fn nonsense_costs_its_event() {
    let body = "decide = lambda event: True\nreal = evb_filter._verdict\nevb_filter._verdict = lambda number, *rest: real(1000 if number == 7 else number, *rest)";
    let (verdicts, report) = decide(body, LONG, 12);
    let lost = quarantined(&verdicts, &report, "nonsense");
    assert_eq!(lost, [7]);
    assert!(report.first_failures[0].1.to_string().contains("event 1000"), "{report:?}");
}

#[test]
fn a_filter_that_closes_its_output_is_started_again() {
    let body = "decide = lambda event: event.number != 7 or os._exit(0)";
    let (verdicts, report) = decide(body, LONG, 12);
    let lost = quarantined(&verdicts, &report, "closed");
    assert_eq!(lost, [7]);
}

/// Everything goes into quarantine when no process ever decides.
#[test]
fn a_filter_that_never_works_is_given_up() {
    for (program, why) in [
        (&["/no/such/program"][..], "cannot be started"),
        (&["false"], "does not get ready"),
        // It goes on to read, or else it might be gone before it is heard.
        (&["sh", "-c", "echo this is not what a builder wants to hear; cat > /dev/null"], "nonsense"),
    ] {
        let mut units = start(program, LONG);
        let verdicts = answers(&mut units, 30);
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Quarantined));
        let report = units.0.report();
        assert_eq!(report.reasons, BTreeMap::from([("given_up", 30)]));
        assert!(report.given_up.len() == 1 && report.given_up[0].contains(why), "{report:?}");
    }
}

/// A process that hangs is killed when the node does not wait any more.
#[test]
fn a_node_that_leaves_takes_its_processes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pid");
    let body = format!("open({path:?}, 'w').write(str(os.getpid()))\ndecide = lambda event: time.sleep(1000)");
    let program = python(&body);
    let program: Vec<_> = program.iter().map(String::as_str).collect();
    let (mut units, _woken) = start(&program, LONG);
    ask(&mut units, 1..=1);
    let shared = Arc::downgrade(&units.shared);
    let end = std::time::Instant::now() + PATIENCE;
    while std::fs::read_to_string(&path).map_or(true, |pid| pid.is_empty()) {
        assert!(std::time::Instant::now() < end, "it starts");
        thread::yield_now();
    }
    drop(units);
    while shared.strong_count() > 0 {
        assert!(std::time::Instant::now() < end, "the thread ends");
        thread::yield_now();
    }
    let pid = std::fs::read_to_string(&path).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid).exists(), "the process is gone");
}
