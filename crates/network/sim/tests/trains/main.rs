//! Trains of packets against single packets: both make the same record, to the last digit.

mod case;

use case::Case;
use evb_experiment::Experiment;
use evb_record::Record;
use proptest::{prelude::*, test_runner::RngSeed};
use std::num::NonZeroUsize;

/// Both records of an experiment, with trains and packet by packet; `None` if it is invalid.
fn both(text: &str) -> Option<(Record, Record)> {
    let experiment = Experiment::parse(text, "test.toml", &[]).inspect_err(|error| println!("{error:?}")).ok()?;
    let [plan] = experiment.plans() else { panic!("a sweep") };
    let one_by_one = evb_sim::testing::simulate_one_by_one(plan).inspect_err(|error| println!("{error:?}")).ok()?;
    let in_trains = evb_sim::simulate(plan, NonZeroUsize::MIN, None, &mut |_| true)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    Some((without_wall_time(in_trains), without_wall_time(one_by_one)))
}

fn without_wall_time(mut record: Record) -> Record {
    if let Some(simulation) = &mut record.simulation {
        simulation.wall_seconds = 0.0;
    }
    record
}

/// The lines in which two records differ.
fn differences(one: &Record, other: &Record) -> String {
    let lines = |record: &Record| format!("{record:#?}").lines().map(str::to_owned).collect::<Vec<_>>();
    let pairs = lines(one).into_iter().zip(lines(other));
    pairs.filter(|(one, other)| one != other).take(20).map(|(one, other)| format!("{one} | {other}\n")).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_record_does_not_depend_on_trains(case in case::any()) {
        let text = case.text();
        let Some((in_trains, one_by_one)) = both(&text) else { return Err(TestCaseError::reject(text)) };
        prop_assert!(in_trains == one_by_one, "{}\n{}", text, differences(&in_trains, &one_by_one));
    }
}

/// A few cases, always the same; or as many as `EVB_CASES` says, others each time.
fn config() -> ProptestConfig {
    let wanted = std::env::var("EVB_CASES").ok().and_then(|cases| cases.parse().ok());
    let (cases, rng_seed) = wanted.map_or((40, RngSeed::Fixed(1)), |cases| (cases, RngSeed::Random));
    ProptestConfig { cases, rng_seed, ..ProptestConfig::default() }
}

/// Keeps the case of a long message over an empty network in sight.
#[test]
fn long_messages_between_pairs_give_the_same_record() {
    let case = Case::default();
    let (in_trains, one_by_one) = both(&case.text()).expect("an experiment");
    assert_eq!(in_trains, one_by_one);
}

/// A train that is split must not plan for the past, which debug builds assert.
#[test]
fn a_train_with_gaps_gives_the_same_record() {
    let (in_trains, one_by_one) = both(&Case::from_a_slow_interface().text()).expect("an experiment");
    assert_eq!(in_trains, one_by_one);
}

/// What the progress of a simulation tells of the packets that go one by one, the same all the time.
fn why_one_by_one(text: &str) -> Option<&'static str> {
    let experiment = Experiment::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let mut told = Vec::new();
    let mut observe = |now: &evb_sim::Progress| {
        told.push(now.why_one_by_one);
        true
    };
    evb_sim::simulate(&experiment.plans()[0], NonZeroUsize::MIN, None, &mut observe).expect("a good plan");
    told.dedup();
    let [why] = told[..] else { panic!("told {told:?}") };
    why
}

#[test]
fn progress_tells_why_long_messages_do_not_go_in_trains() {
    let text = Case::default().text();
    let [long, short] = ["100 ms", "5 ms"].map(|time| text.replace("1000 us", time));
    assert_eq!(why_one_by_one(&long), None);
    let several = |text: &str| text.replace("nic = { ", "nic = { messages = 4, ");
    assert_eq!(why_one_by_one(&several(&short)), Some("network.nic.messages is not 1"));
    let connected = short.replace("nic = { ", "transport = { type = \"rdma\" }\nnic = { ");
    assert_eq!(why_one_by_one(&connected), Some("network.transport has connections"));
    // Trains of two packets would not save much.
    assert_eq!(why_one_by_one(&several(&short).replace("1 MiB", "8 KiB")), None);
}
