use super::{pool::PartitionPool, *};
use crate::statistics;
use evb_experiment::Experiment;
use evb_record::Record;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use runner::WindowStep;
use std::panic::{self, AssertUnwindSafe};

/// The same as that of the tests of whole records.
const EXPERIMENT: &str = include_str!("../../tests/partitions.toml");

/// Passes a plan to a test, and its record when it is simulated in one partition.
fn with_plan(test: impl FnOnce(&Plan, &Record)) {
    let experiment = Experiment::parse(EXPERIMENT, "test.toml", &[]).unwrap_or_else(|error| panic!("{error:#?}"));
    let [plan] = experiment.plans() else { panic!("a sweep") };
    let plan = crate::simulated(plan).unwrap_or_else(|error| panic!("{error}"));
    let whole = crate::unpartitioned(&plan, None, &mut |_| true, Packets::OneByOne);
    let whole = whole.unwrap_or_else(|error| panic!("{error}"));
    test(&plan, &statistics::record(&whole, 0.0));
}

/// A plan in this number of partitions.
fn partitions_of(plan: &Plan, partitions: usize) -> (Vec<PartitionRunner<'_>>, Arc<Partitioning>) {
    let divided = divide(plan, NonZeroUsize::new(partitions).expect("not 0")).unwrap_or_else(|error| panic!("{error}"));
    let (network, partitioning) = divided.expect("it has partitions");
    let runners = runners(plan, &network, &partitioning).unwrap_or_else(|error| panic!("{error}"));
    (runners.expect("nothing needs all partitions at once"), partitioning)
}

#[test]
fn the_record_does_not_depend_on_which_partition_goes_first() {
    with_plan(|plan, whole| {
        for seed in 0..20 {
            let (mut runners, partitioning) = partitions_of(plan, 2 + seed as usize % 3);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut left = runners.len();
            while left > 0 {
                let next = random.random_range(..runners.len());
                // A partition may go as far as it can, or only a step.
                for _ in 0..random.random_range(1..5) {
                    left -= usize::from(runners[next].step() == WindowStep::Ended);
                }
            }
            let partitions = runners.into_iter().map(|runner| runner.partition).collect();
            let record = statistics::record(&join(partitions, RunOutcome::Ended, &partitioning), 0.0);
            assert!(record == *whole, "seed {seed}");
        }
    });
}

#[test]
fn one_thread_simulates_all_partitions_if_there_are_no_others() {
    with_plan(|plan, whole| {
        let (runners, partitioning) = partitions_of(plan, 3);
        let (end, partitions) = PartitionPool::of(runners, 1).run(&mut |_| true);
        assert!(statistics::record(&join(partitions, end, &partitioning), 0.0) == *whole);
    });
}

#[test]
fn a_thread_takes_over_the_partitions_of_a_missing_one() {
    with_plan(|plan, whole| {
        let (runners, partitioning) = partitions_of(plan, 2);
        let pool = PartitionPool::of(runners, 2);
        pool.work(0, &mut |_| true);
        let (end, partitions) = pool.into_partitions();
        assert!(statistics::record(&join(partitions, end, &partitioning), 0.0) == *whole);
    });
}

#[test]
fn no_thread_waits_for_a_partition_that_has_panicked() {
    with_plan(|plan, _| {
        let pool = PartitionPool::of(partitions_of(plan, 2).0, 2);
        pool.poison(0);
        // The second thread waits for mail of the partition, and the first one for the partition itself.
        for thread in [1, 0] {
            let work = AssertUnwindSafe(|| pool.work(thread, &mut |_| true));
            assert!(panic::catch_unwind(work).is_err(), "thread {thread}");
        }
    });
}

#[test]
fn a_panic_in_a_thread_reaches_the_caller_of_the_simulation() {
    with_plan(|plan, _| {
        // One thread alone: with two, the other one may end the simulation before this one reports any progress.
        let pool = PartitionPool::of(partitions_of(plan, 2).0, 1);
        let run = AssertUnwindSafe(|| pool.run(&mut |_| panic!("as intended")));
        assert!(panic::catch_unwind(run).is_err());
    });
}
