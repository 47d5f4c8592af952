//! A simulated network fitted to measurements, and how well it simulates them.

use crate::{
    Error,
    simulated_bench::{BenchNetwork, simulate_suite},
};
use evb_bench::{Benchmark, FitErrors, Suite, fit_network};
use evb_record::Benchmark as BenchmarkRecord;
use std::sync::atomic::AtomicBool;

/// The patterns that a fit is made from.
const NEEDED: [Benchmark; 2] = [Benchmark::PingPong, Benchmark::OneWay];
/// Sizes that are measured when nobody says which, in bytes.
const SIZES: [usize; 6] = [8, 64, 256, 1024, 4096, 16384];

/// Makes a suite one for a fit: patterns and sizes that somebody chose are left as they are, and what is needed is added.
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

/// Fits a network to a transport, and simulates on it what was measured. Returns the text of the network's file, and how far
/// the simulation is off.
///
/// # Errors
/// The measurements give no network, or the simulation was stopped.
pub fn fit(
    transport: &str,
    suite: &Suite,
    measured: &[BenchmarkRecord],
    stop: &AtomicBool,
) -> Result<(String, FitErrors), Error> {
    let fit = fit_network(transport, measured).map_err(Error::NoFit)?;
    let suite = Suite { benchmarks: NEEDED.to_vec(), ..suite.clone() };
    let simulated = simulate_suite(&BenchNetwork::Fitted(fit), transport, &suite, stop)?;
    let errors = FitErrors::of(transport, measured, &simulated);
    let errors = errors.ok_or_else(|| Error::NoFit("nothing that was measured could be simulated".into()))?;
    Ok((fit.file(transport, &errors), errors))
}
