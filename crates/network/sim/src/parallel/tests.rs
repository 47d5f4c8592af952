use super::{pool::PartitionPool, *};
use crate::statistics;
use evb_experiment::Experiment;
use evb_record::Record;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use runner::WindowStep;
use std::panic::{self, AssertUnwindSafe};

/// The same as that of the tests of whole records.
const EXPERIMENT: &str = include_str!("../../tests/parts.toml");

/// Gives a plan to a test, and its record when it is simulated in one part.
fn with_plan(test: impl FnOnce(&Plan, &Record)) {
    let experiment = Experiment::parse(EXPERIMENT, "test.toml", &[]).unwrap_or_else(|error| panic!("{error:#?}"));
    let [plan] = experiment.plans() else { panic!("a sweep") };
    let plan = crate::simulated(plan).unwrap_or_else(|error| panic!("{error}"));
    let whole = crate::in_one_part(&plan, None, &mut |_| true, Packets::OneByOne);
    let whole = whole.unwrap_or_else(|error| panic!("{error}"));
    test(&plan, &statistics::record(&whole, 0.0));
}

/// A plan in this number of parts.
fn parts_of(plan: &Plan, parts: usize) -> (Vec<PartitionRunner<'_>>, Arc<Partitioning>) {
    let divided = divide(plan, NonZeroUsize::new(parts).expect("not 0")).unwrap_or_else(|error| panic!("{error}"));
    let (network, partition) = divided.expect("it has parts");
    let runners = runners(plan, &network, &partition).unwrap_or_else(|error| panic!("{error}"));
    (runners.expect("nothing needs all parts at once"), partition)
}

#[test]
fn the_record_does_not_depend_on_which_part_goes_first() {
    with_plan(|plan, whole| {
        for seed in 0..20 {
            let (mut runners, partition) = parts_of(plan, 2 + seed as usize % 3);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut left = runners.len();
            while left > 0 {
                let next = random.random_range(..runners.len());
                // A part may go as far as it can, or only a step.
                for _ in 0..random.random_range(1..5) {
                    left -= usize::from(runners[next].step() == WindowStep::Ended);
                }
            }
            let parts = runners.into_iter().map(|runner| runner.part).collect();
            let record = statistics::record(&join(parts, RunOutcome::Ended, &partition), 0.0);
            assert!(record == *whole, "seed {seed}");
        }
    });
}

#[test]
fn one_thread_simulates_all_parts_if_there_are_no_others() {
    with_plan(|plan, whole| {
        let (runners, partition) = parts_of(plan, 3);
        let (end, parts) = PartitionPool::of(runners, 1).run(&mut |_| true);
        assert!(statistics::record(&join(parts, end, &partition), 0.0) == *whole);
    });
}

#[test]
fn a_thread_takes_on_the_parts_of_one_that_does_not_come() {
    with_plan(|plan, whole| {
        let (runners, partition) = parts_of(plan, 2);
        let pool = PartitionPool::of(runners, 2);
        pool.work(0, &mut |_| true);
        let (end, parts) = pool.into_parts();
        assert!(statistics::record(&join(parts, end, &partition), 0.0) == *whole);
    });
}

#[test]
fn no_thread_waits_for_a_part_that_has_panicked() {
    with_plan(|plan, _| {
        let pool = PartitionPool::of(parts_of(plan, 2).0, 2);
        pool.poison(0);
        // The second thread waits for mail of the part, and the first one for the part itself.
        for thread in [1, 0] {
            let work = AssertUnwindSafe(|| pool.work(thread, &mut |_| true));
            assert!(panic::catch_unwind(work).is_err(), "thread {thread}");
        }
    });
}

#[test]
fn a_panic_in_a_thread_reaches_whoever_runs_the_simulation() {
    with_plan(|plan, _| {
        // One thread alone: with two, the other one may end the simulation before this one tells any progress.
        let pool = PartitionPool::of(parts_of(plan, 2).0, 1);
        let run = AssertUnwindSafe(|| pool.run(&mut |_| panic!("as told")));
        assert!(panic::catch_unwind(run).is_err());
    });
}
