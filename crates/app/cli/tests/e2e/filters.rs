//! Filters select events: built-in ones, programs in Python and C, libraries, and modules; a filter that fails costs the
//! event at fault its decision, and nothing else.

use crate::support::{Lab, PROCESSES, THREADS, good, not_good, read_all, recorded_data, shipped, stored_files};
use evb_record::{Filtering, FindingKind, Record};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

pub(crate) const EVENTS: u64 = 3000;

/// Fragments of many sizes; the sections of a test follow.
const BASE: &str = r#"
[trigger]
type = "free-running"
events = 3000
[readout]
units = 4
source = { type = "uniform", min = "500 B", max = "1500 B" }
[builder]
units = 2
"#;

const BY_SIZE: &str = "[[filter.step]]\ntype = \"size\"\nsource = 3\nat_least = \"1001 B\"\n";
pub(crate) const BY_PROGRAM: &str = "[filter]\nunits = 2\nprogram = [\"python3\", \"filter.py\"]\n";

/// The documented filter of one line.
pub(crate) const ONE_LINE: &str = "import evb_filter; evb_filter.run(lambda event: len(event[3]) > 1000)\n";

pub(crate) fn lab(filter: &str, python: &str) -> Lab {
    let lab = Lab::with(&format!("{BASE}{filter}"));
    fs::copy(of_repository("python/evb_filter.py"), lab.path("evb_filter.py")).unwrap();
    lab.write("filter.py", python);
    lab
}

pub(crate) fn of_repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../filters")).join(path)
}

/// Compiles a filter in C as the program `example` and the library `example.so`.
pub(crate) fn compile(lab: &Lab, source: PathBuf) {
    for options in [&["-DEVB_FILTER_PROGRAM", "-o", "example"][..], &["-shared", "-fPIC", "-o", "example.so"]] {
        let mut compiler = Command::new("gcc");
        compiler.args(["-Wall", "-Wextra", "-Werror", "-O2", "-I"]).arg(of_repository("c")).args(options);
        let status = compiler.arg(&source).current_dir(lab.path(".")).status();
        assert!(status.expect("gcc is there").success());
    }
}

/// The filters of a folder: in Python, in C as a program and as a library.
pub(crate) fn languages() -> Vec<&'static str> {
    vec!["program = [\"python3\", \"filter.py\"]", "program = [\"./example\"]", "library = \"./example.so\""]
}

/// The numbers of the stored events of a stream, each of which is stored once and with the right bytes.
fn stored(lab: &Lab, record: &Record, is_such: fn(&str) -> bool) -> BTreeSet<u64> {
    let mut files = stored_files(&lab.path("evb-data"));
    files.retain(|path| is_such(&path.file_name().unwrap().to_string_lossy()));
    let stored = read_all(&files);
    stored.check_generated(record.seed, 4);
    assert!(stored.copies().values().all(|copies| *copies == 1));
    stored.events.iter().map(|event| event.id.0).collect()
}

/// Events of a stream by the record.
fn events_of(filter: &Filtering, stream: &str) -> u64 {
    filter.stream(stream).expect("the stream").events
}

pub(crate) fn physics(lab: &Lab, record: &Record) -> BTreeSet<u64> {
    stored(lab, record, |name| !name.contains("quarantine") && !name.contains("calibration"))
}

fn quarantine(lab: &Lab, record: &Record) -> BTreeSet<u64> {
    stored(lab, record, |name| name.contains("quarantine"))
}

/// Selects events by size, and checks the account of the run.
pub(crate) fn selected(mode: &[&str]) -> BTreeSet<u64> {
    let lab = lab(BY_SIZE, "");
    let record = good(&lab.run(mode).run());
    let kept = physics(&lab, &record);
    let filter = record.filter.as_ref().expect("events were selected");
    assert_eq!((filter.accepted, filter.rejected), (record.events.built, record.events.rejected));
    assert_eq!((events_of(filter, "physics"), kept.len() as u64), (record.events.built, record.events.built));
    assert!(kept.len() > 1000 && kept.len() < 2000, "{}", kept.len());
    kept
}

#[test]
fn built_in_filters_select_the_same_in_every_protocol_and_simulation() {
    let kept = selected(THREADS);
    assert_eq!(selected(PROCESSES), kept);
    assert_eq!(selected(&["--set", "protocol.type=pull"]), kept);
    let simulated = good(&lab(BY_SIZE, "").simulate(&[]).run());
    assert_eq!((simulated.events.built, simulated.events.rejected), (kept.len() as u64, EVENTS - kept.len() as u64));
}

/// Phased building asks the same filter for the first phase, and the others send only what is accepted.
#[test]
fn phased_building_asks_the_same_filter() {
    let by_program = BY_PROGRAM.replace("[filter]", "[filter]\nevents = 3");
    for filter in [BY_SIZE, &by_program] {
        let filter = filter.replace("source = 3", "source = 0");
        let lab = lab(&filter, &ONE_LINE.replace("event[3]", "event[0]"));
        let outcome = lab.run(&["--set", "protocol={type='phased',first=1}"]).run();
        let record = good(&outcome);
        assert_eq!(physics(&lab, &record).len() as u64, record.events.built);
        assert_eq!(record.readouts[1].sent, record.events.built, "{outcome}");
        assert!(record.events.built > 1000 && record.events.rejected > 1000, "{outcome}");
    }
}

#[test]
fn streams_have_files_of_their_own() {
    let step = "[[filter.step]]\ntype = \"prescale\"\none_in = 5\nstream = \"calibration\"\n";
    let lab = lab(&format!("{step}{BY_SIZE}"), "");
    let record = good(&lab.run(THREADS).run());
    let calibration = stored(&lab, &record, |name| name.contains("calibration"));
    assert_eq!(calibration, (1..=EVENTS / 5).map(|event| 5 * event).collect());
    let kept = selected(THREADS).into_iter().filter(|event| event % 5 != 0).collect();
    assert_eq!(physics(&lab, &record), kept);
    let filter = record.filter.as_ref().unwrap();
    let counted = (events_of(filter, "calibration"), events_of(filter, "physics"));
    assert_eq!(counted, (EVENTS / 5, physics(&lab, &record).len() as u64));
    assert!(filter.stream("physics").unwrap().bytes > 0);
}

/// A copy changes nothing but its own stream: account and verification count each event once.
#[test]
fn a_monitor_gets_copies_of_kept_events() {
    let copy = "[[filter.step]]\ntype = \"prescale\"\none_in = 10\nstream = \"monitor\"\ncopy = true\n";
    let kept = selected(THREADS);
    for filter in [BY_SIZE, BY_PROGRAM] {
        let lab = lab(&format!("{filter}{copy}"), ONE_LINE);
        let record = good(&lab.run(THREADS).run());
        assert_eq!(stored(&lab, &record, |name| !name.contains("monitor")), kept);
        let copies = stored(&lab, &record, |name| name.contains("monitor"));
        assert_eq!(copies, kept.iter().copied().filter(|event| event % 10 == 0).collect());
        let monitor = record.filter.as_ref().and_then(|filter| filter.stream("monitor")).expect("the stream");
        assert_eq!((monitor.events, monitor.copies), (copies.len() as u64, true));
        assert_eq!(record.builders.iter().map(|builder| builder.stored).sum::<u64>(), kept.len() as u64);
        let verified = lab.verify(&lab.stored_files());
        assert_eq!(verified.code(), Some(0), "{verified}");
    }
}

/// Every language selects what the built-in filter selects.
#[test]
fn all_languages_select_the_same_events() {
    let kept = selected(THREADS);
    for language in languages() {
        for mode in [THREADS, PROCESSES] {
            let lab = lab(&format!("[filter]\nunits = 2\n{language}\n"), ONE_LINE);
            compile(&lab, of_repository("c/example.c"));
            let record = good(&lab.run(mode).run());
            assert_eq!(physics(&lab, &record), kept, "{language}");
            assert_eq!(record.filter.map(|filter| filter.quarantined), Some(0));
        }
    }
}

/// Built-in filters that select recorded events with data in fragment 1, and a bit of fragment 0 set.
const RECORDED: &str = "[[filter.step]]\ntype = \"size\"\nsource = 1\nat_least = \"49 B\"\n\
    [[filter.step]]\ntype = \"word\"\nsource = 0\nbits = \"8\"\nat = 24\nvalue = \"1\"\nmask = \"1\"\n";
const RECORDED_PYTHON: &str =
    "import evb_filter; evb_filter.run(lambda event: len(event[1]) > 48 and event[0][24] & 1)\n";
const RECORDED_C: &str = r#"#include "evb_filter.h"
    void *evb_filter_open(const evb_run *run) { return (void *)run; }
    void evb_filter_close(void *self) { (void)self; }
    int evb_filter_decide(void *self, const evb_event *event) {
        const evb_fragment *fragment = event->fragment;
        (void)self;
        return fragment[1].length > 48 && fragment[0].bytes[24] & 1 ? EVB_ACCEPT : EVB_REJECT;
    }
"#;
/// The recordings of CMS: every language selects what a reading of the files selects, which knows no event builder.
#[test]
fn all_languages_select_the_same_recorded_events() {
    let Some(data) = recorded_data() else { return };
    let expected = recorded_selection(&data);
    assert_eq!(expected.len(), 38);
    let experiment = fs::read_to_string(shipped("cms-csc-replay.toml")).unwrap();
    let own = languages().into_iter().map(|language| format!("[filter]\nunits = 2\n{language}\n"));
    for filter in own.chain([RECORDED.to_owned()]) {
        let lab = Lab::with(&format!("{experiment}\n{filter}"));
        fs::copy(of_repository("python/evb_filter.py"), lab.path("evb_filter.py")).unwrap();
        lab.write("filter.py", RECORDED_PYTHON);
        compile(&lab, lab.write("example.c", RECORDED_C));
        let record = good(&lab.run(THREADS).env("EVB_DATA", &data).run());
        assert_eq!((record.events.built, record.events.rejected), (38, 4685 - 38), "{filter}");
        let mut stored = read_all(&lab.stored_files()).events;
        stored.sort_by_key(|event| event.id);
        let bytes = stored.into_iter().map(|event| event.fragments.into_iter().map(|one| one.bytes.to_vec()).collect());
        assert!(bytes.collect::<Vec<Vec<_>>>() == expected, "{filter}");
    }
}

/// The fragments of the recorded events that are to be selected, in their order, by a walk from trailer to trailer.
fn recorded_selection(data: &Path) -> Vec<Vec<Vec<u8>>> {
    let fragments = |name: &str| {
        let (file, mut start, mut all) = (fs::read(data.join(name)).unwrap(), 0, Vec::new());
        for end in (16..=file.len()).step_by(8) {
            let trailer = u64::from_le_bytes(file[end - 8..end].try_into().unwrap());
            if trailer >> 60 == 0xa && (trailer >> 32 & 0xff_ffff) * 8 == (end - start) as u64 {
                all.push(file[start..end].to_vec());
                start = end;
            }
        }
        all
    };
    let [one, other] = ["cms-csc-run307511-fed841.raw", "cms-csc-run307511-fed843.raw"].map(fragments);
    let events = one.into_iter().zip(other).filter(|(one, other)| other.len() > 48 && one[24] & 1 == 1);
    events.map(|(one, other)| vec![one, other]).collect()
}

/// Runs a filter of Python that fails at some events.
fn fails(python: &str, more: &str, events: &[u64], reason: &str) {
    check_failure(&lab(&format!("{BY_PROGRAM}{more}"), python), events, reason);
}

/// Runs a filter that fails at some events: all others are selected as usual.
pub(crate) fn check_failure(lab: &Lab, events: &[u64], reason: &str) {
    let kept = selected(THREADS);
    let outcome = lab.run(THREADS).run();
    let record = not_good(&outcome);
    let filter = record.filter.as_ref().expect("events were selected");
    let held = quarantine(lab, &record);
    assert_eq!(held, events.iter().copied().collect(), "{outcome}");
    assert_eq!(physics(lab, &record), kept.difference(&held).copied().collect(), "{outcome}");
    assert_eq!((filter.reasons[reason], filter.quarantined), (held.len() as u64, held.len() as u64), "{outcome}");
    assert_eq!(filter.accepted + filter.rejected + filter.quarantined, EVENTS);
    assert_eq!((record.events.triggered, record.events.incomplete, record.events.lost), (EVENTS, 0, 0));
    assert_eq!(events_of(filter, "quarantine"), held.len() as u64);
    let is_quarantine = |finding: &evb_record::Finding| finding.kind == FindingKind::Quarantined;
    assert!(record.findings.iter().any(is_quarantine), "{outcome}");
}

#[test]
fn a_filter_that_crashes_costs_its_event_its_decision() {
    let crash = "import os; import evb_filter\ndef decide(event):\n  if event.number % 700 == 0: os.abort()\n  return len(event[3]) > 1000\nevb_filter.run(decide)\n";
    fails(crash, "", &[700, 1400, 2100, 2800], "crashed");
}

#[test]
fn a_filter_that_hangs_costs_its_event_its_decision() {
    let hang = "import time; import evb_filter\ndef decide(event):\n  if event.number == 700: time.sleep(1000)\n  return len(event[3]) > 1000\nevb_filter.run(decide)\n";
    fails(hang, "timeout = \"1 s\"\n", &[700], "hung");
}

#[test]
fn a_filter_that_answers_nonsense_costs_its_event_its_decision() {
    let nonsense = "import os; import evb_filter\nout = os.dup(1)\ndef decide(event):\n  if event.number == 700: os.write(out, b'what does this mean?')\n  return len(event[3]) > 1000\nevb_filter.run(decide)\n";
    fails(nonsense, "", &[700], "nonsense");
}

/// A filter that never works rejects nothing: the run goes on, and says so.
#[test]
fn without_a_working_filter_all_events_are_kept() {
    let lab = lab(BY_PROGRAM, "import sys; sys.exit('this filter never works')\n");
    let outcome = lab.run(THREADS).run();
    let record = not_good(&outcome);
    assert_eq!(quarantine(&lab, &record), (1..=EVENTS).collect(), "{outcome}");
    assert!(record.findings.iter().any(|finding| finding.kind == FindingKind::FilterFailed), "{outcome}");
    assert_eq!(record.filter.unwrap().reasons["given_up"], EVENTS);
}

#[test]
fn a_filter_that_is_not_there_ends_the_run_before_it_begins() {
    for key in ["program = [\"./nowhere\"]", "library = \"./nowhere\""] {
        let outcome = lab(&format!("[filter]\n{key}\n"), "").run(THREADS).run();
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        assert!(outcome.stderr.contains("the filter ./nowhere does not exist"), "{outcome}");
    }
}

/// A simulation needs the accepted part of a program.
#[test]
fn a_program_is_simulated_by_its_part_and_its_time() {
    let lab = lab(BY_PROGRAM, ONE_LINE);
    let refused = lab.simulate(&[]).run();
    assert_eq!(refused.code(), Some(2), "{refused}");
    assert!(refused.stderr.contains("filter.accept=0.1"), "{refused}");
    let time = |time: &str| {
        let evb = lab.simulate(&[]).set("filter.accept=0.25").set(&format!("filter.time=\"{time}\""));
        let record = good(&evb.run());
        assert!(record.events.built.abs_diff(EVENTS / 4) < 200, "{}", record.events.built);
        record.seconds
    };
    // Two builders with two processes each decide about 4 events in 1 ms.
    assert!(time("0 s") < 0.1 && (0.7..0.9).contains(&time("1 ms")));
}

#[test]
fn a_word_of_a_fragment_selects_events() {
    let step = "[[filter.step]]\ntype = \"word\"\nsource = 2\nbits = \"8\"\nvalue = \"0\"\nmask = \"0x3\"\nat = 1\n";
    let lab = lab(step, "");
    let record = good(&lab.run(THREADS).run());
    let files = read_all(&lab.stored_files());
    assert_eq!(files.events.len() as u64, record.events.built);
    assert!(files.events.iter().all(|event| event.fragments[2].bytes[1] & 3 == 0));
    assert!(record.events.built.abs_diff(EVENTS / 4) < 200);
    let refused = lab.simulate(&[]).run();
    assert!(refused.stderr.contains("filter.step.0.accept=0.1"), "{refused}");
}

/// Several sources in a readout unit and events in blocks: filters see single events and their sources, as without.
#[test]
fn bundles_are_filtered_event_by_event() {
    let bundled = ["readout.units=2", "readout.sources=4", "trigger.block=8", "trigger.events=3000"];
    let plain = lab(BY_SIZE, "");
    let record = good(&plain.run(THREADS).run());
    let kept = physics(&plain, &record);
    for filter in [BY_SIZE, BY_PROGRAM] {
        for mode in [THREADS, PROCESSES] {
            let lab = lab(filter, ONE_LINE);
            let record = good(&bundled.iter().fold(lab.run(mode), |run, change| run.set(change)).run());
            assert_eq!(physics(&lab, &record), kept, "{filter}");
            assert_eq!(record.events.built + record.events.rejected, EVENTS, "{filter}");
        }
    }
    let lab = lab(BY_SIZE, "");
    let simulated = good(&bundled.iter().fold(lab.simulate(&[]), |run, change| run.set(change)).run());
    assert_eq!(simulated.events.built, kept.len() as u64);
}
