//! The engine against a simulator that moves single bytes, on random networks and traffic: every packet is delivered at
//! the same time, or is blocked for good in both.
//!
//! `EVB_CASES` sets the number of random cases, `EVB_FIRST` the number of the first.

mod case;
mod generate;
mod reference;

use case::Case;
use evb_fabric::{Flow, WhenFull};
use evb_sim::testing;
use reference::ReferenceOutcome;

/// Random cases, unless `EVB_CASES` says otherwise.
const CASES: u64 = 2200;

#[test]
fn random_cases_agree() {
    let first = number_from("EVB_FIRST").unwrap_or(0);
    for number in first..first + number_from("EVB_CASES").unwrap_or(CASES) {
        let case = generate::case(number);
        if difference(&case).is_some() {
            let small = shrink(case);
            let difference = difference(&small).expect("it was kept for that");
            panic!("case {number}: {difference}\nkeep this as a file in tests/flits/cases:\n\n{}", small.text());
        }
    }
}

#[test]
fn kept_cases_agree() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flits/cases");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("there are cases").map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let case = Case::parse(&std::fs::read_to_string(&file).expect("it can be read"));
        assert_eq!(difference(&case), None, "{}", file.display());
    }
}

#[test]
fn cases_have_a_text_form() {
    for number in 0..200 {
        let case = generate::case(number);
        assert_eq!(Case::parse(&case.text()), case, "case {number}");
    }
}

/// The differences between the engine and the reference.
fn difference(case: &Case) -> Option<String> {
    let network = case.build();
    let probes = case.probes();
    let expected = reference::send(&network, case.seed.into(), &probes);
    let drops = matches!(network.config.flow, Flow::StoreAndForward { full: WhenFull::Drop, .. });
    let outcome = testing::send(network, case.seed.into(), &probes).expect("a good network");
    for (place, times) in outcome.delivered.iter().zip(&expected.delivered).enumerate() {
        if times.0 != times.1 {
            return Some(format!("packet {place} came at {:?}, by the bytes at {:?}", times.0, times.1));
        }
    }
    if outcome.packet_hops != expected.hops {
        return Some(format!("{} links were granted, by the bytes {}", outcome.packet_hops, expected.hops));
    }
    if outcome.deadlock.is_empty() == (expected.blocked > 0) {
        return Some(format!("{} packets are blocked, and the deadlock is {:?}", expected.blocked, outcome.deadlock));
    }
    (drops && expected.blocked > 0).then(|| format!("{} packets are blocked where full queues drop", expected.blocked))
}

/// Leaves out packets as long as there is a difference.
fn shrink(mut case: Case) -> Case {
    let mut place = case.probes.len();
    while place > 0 {
        place -= 1;
        let mut smaller = case.clone();
        smaller.probes.remove(place);
        if difference(&smaller).is_some() {
            case = smaller;
        }
    }
    case
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}, not a number")))
}

/// The generator would be of little use without contention.
#[test]
fn cases_are_not_trivial() {
    let expected: Vec<_> = (0..400).map(generate::case).map(|case| (expected(&case), case)).collect();
    let share = |what: &dyn Fn(&ReferenceOutcome, &Flow) -> bool| {
        expected.iter().filter(|(expected, case)| what(expected, &case.network.flow)).count()
    };
    let counts = [
        ("waits", share(&|expected, _| expected.waits > 0), 250),
        ("stalls", share(&|expected, _| expected.stalls > 0), 80),
        ("stretches", share(&|expected, _| expected.stretch > 2), 25),
        ("deadlocks", share(&|expected, _| expected.blocked > 0), 8),
        ("drops", share(&|expected, _| expected.lost > 0), 15),
        ("pauses", share(&|expected, _| expected.pauses > 0), 30),
        ("full headroom", share(&|expected, _| expected.lost_in_pause > 0), 8),
    ];
    eprintln!("{counts:?}");
    for (what, count, least) in counts {
        assert!(count >= least, "{what} in {count} of 400 cases");
    }
}

fn expected(case: &Case) -> ReferenceOutcome {
    reference::send(&case.build(), case.seed.into(), &case.probes())
}
