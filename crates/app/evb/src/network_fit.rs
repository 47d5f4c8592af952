//! A simulated network fitted to measurements, and the quality of the fit.

use crate::{
    Error,
    simulated_bench::{BenchNetwork, simulate_suite},
};
use evb_bench::{Benchmark, FitErrors, Suite, fit_network};
use evb_record::Benchmark as BenchmarkRecord;
use std::sync::atomic::AtomicBool;

/// The patterns that a fit needs.
const NEEDED: [Benchmark; 2] = [Benchmark::PingPong, Benchmark::OneWay];
/// Default sizes of the measurements, in bytes.
const SIZES: [usize; 6] = [8, 64, 256, 1024, 4096, 16384];

/// Prepares a suite for a fit: chosen patterns and sizes stay, and missing ones are added.
pub fn prepare_fit(suite: &mut Suite, has_patterns: bool, has_sizes: bool) {
    if !has_patterns {
        suite.benchmarks.clear();
    }
    let missing: Vec<_> = NEEDED.into_iter().filter(|benchmark| !suite.benchmarks.contains(benchmark)).collect();
    suite.benchmarks.extend(missing);
    if !has_sizes {
        suite.sizes = SIZES.to_vec();
    }
}

/// Fits a network to a transport, and simulates the measurements on it. Returns the text of the network's file, and the
/// deviation of the simulation.
///
/// # Errors
/// The measurements give no network, or the simulation was stopped.
pub fn fit(
    transport: &str,
    suite: &Suite,
    measured: &[BenchmarkRecord],
    stop: &AtomicBool,
) -> Result<(String, FitErrors), Error> {
    let fit = fit_network(transport, measured)?;
    let suite = Suite { benchmarks: NEEDED.to_vec(), ..suite.clone() };
    let simulated = simulate_suite(&BenchNetwork::Fitted(fit), transport, &suite, stop)?;
    let errors = FitErrors::of(transport, measured, &simulated);
    let errors = errors.ok_or(Error::NothingSimulated)?;
    Ok((fit.file(transport, &errors), errors))
}
