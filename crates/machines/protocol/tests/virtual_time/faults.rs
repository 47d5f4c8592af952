//! Schedules of faults drawn from seeds: the promises of an event builder must hold under all faults.
//!
//! `cargo xtask faults` runs any number of them. `EVB_SEEDS` sets the number of schedules (500), `EVB_FIRST_SEED` sets
//! the first seed, and `EVB_BUG` plants a mistake.

use crate::{
    base_config,
    driver::Driver,
    end_of_triggers,
    planted::Bug,
    promises,
    scenario::Scenario,
    schedule::{Draw, random},
};
use evb_core::{ByteCount, Span};
use evb_protocol::{Config, Filter};
use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

/// Seeds within which a planted mistake must be found.
const WITHIN: u64 = 100;

fn number(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The scenario of a seed.
fn scenario(seed: u64, bug: Option<Bug>) -> Scenario {
    let mut random = random(seed, 9);
    let mut draw = Draw(&mut random);
    let config = draw.config(base_config());
    let buffer_bytes = ByteCount(draw.pick(&[1000, 10_000, 1 << 20]));
    let max_fragment = ByteCount(draw.pick(&[100, buffer_bytes.0]));
    let patience = draw.pick(&[Span::from_micros(60), Span::from_micros(400), Span::from_millis(2)]);
    let events = Some(draw.pick(&[20, 100, 300]));
    let config = Config { buffer_bytes, max_fragment, patience, events, ..config };
    let trigger_period = draw.pick(&[Span::from_micros(5), Span::from_micros(20)]);
    let (delay, faults) = (Span::from_micros(20), draw.schedule(&config));
    let accept = draw.pick(&[0.2, 0.5, 0.0, 1.0]);
    Scenario {
        seed,
        filter: Filter { seed, accept },
        harm_one_in: draw.pick(&[0, 0, 20, 100]),
        runs: draw.runs(),
        faults,
        delay,
        trigger_period,
        stop_at: end_of_triggers(&config, trigger_period, delay),
        bug,
        config,
    }
}

/// The promise that the history of a seed breaks, if any.
fn failure(seed: u64, bug: Option<Bug>) -> Option<String> {
    let scenario = scenario(seed, bug);
    match catch_unwind(AssertUnwindSafe(|| Driver::new(scenario.clone()).run())) {
        Ok(history) => promises::broken(&scenario, &history),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
        }
    }
}

/// Tries seeds on all cores; the lowest one that fails.
fn first_failure(first: u64, count: u64, bug: Option<Bug>) -> Option<(u64, String)> {
    let (next, failed) = (AtomicU64::new(first), AtomicU64::new(u64::MAX));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count || seed > failed.load(Ordering::Relaxed) {
                        return;
                    }
                    if failure(seed, bug).is_some() {
                        failed.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let seed = failed.into_inner();
    (seed < u64::MAX).then(|| (seed, failure(seed, bug).unwrap_or_default()))
}

#[test]
fn promises_hold_under_any_faults() {
    let (first, count) = (number("EVB_FIRST_SEED", 0), number("EVB_SEEDS", 500));
    let bug = env::var("EVB_BUG").ok().map(|name| {
        let planted = Bug::ALL.into_iter().find(|(known, _)| *known == name);
        planted.unwrap_or_else(|| panic!("no mistake is called {name}")).1
    });
    println!("schedules of seeds {first} to {}", first + count - 1);
    if let Some((seed, why)) = first_failure(first, count, bug) {
        panic!("seed {seed}: {why}\nagain: cargo xtask faults --first {seed} --seeds 1\n{:#?}", scenario(seed, bug));
    }
}

#[test]
fn planted_mistakes_are_found() {
    for (name, bug) in Bug::ALL {
        let found = first_failure(0, WITHIN, Some(bug));
        println!("{name}: {found:?}");
        assert!(found.is_some(), "the mistake in the {name} is not found within {WITHIN} schedules");
    }
}
