//! A simulated network fitted to measurements, and how well it simulates them.

use crate::{failure::Failure, folder::unwritable, simulated_bench::simulate_on};
use evb_bench::{Benchmark, FitErrors, NOT_MODELLED, Suite, fit_network};
use evb_experiment::Other;
use evb_record::Benchmark as BenchmarkRecord;
use std::{fs, path::Path, sync::atomic::AtomicBool};

/// The patterns that a fit is made from.
const NEEDED: [Benchmark; 2] = [Benchmark::PingPong, Benchmark::OneWay];
/// Sizes that are measured when nobody says which, in bytes.
const SIZES: [usize; 6] = [8, 64, 256, 1024, 4096, 16384];

/// Makes a suite one for a fit: patterns and sizes that somebody chose are left as they are, and what is needed is added.
pub(crate) fn prepare(suite: &mut Suite, has_patterns: bool, has_sizes: bool) {
    if !has_patterns {
        suite.benchmarks.clear();
    }
    let missing = NEEDED.into_iter().filter(|benchmark| !suite.benchmarks.contains(benchmark));
    let missing: Vec<_> = missing.collect();
    suite.benchmarks.extend(missing);
    if !has_sizes {
        suite.sizes = SIZES.to_vec();
    }
}

/// Fits a network to a transport, simulates on it what was measured, and writes it to a file that says how far that is off, as
/// people are told.
pub(crate) fn write(
    file: &Path,
    transport: &str,
    suite: &Suite,
    measured: &[BenchmarkRecord],
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let wrong = |why| Failure::new(format!("no network fits: {why}"));
    let fit = fit_network(transport, measured).map_err(wrong)?;
    let network = Other::new("the fitted network", fit.table(transport));
    let suite = Suite { benchmarks: NEEDED.to_vec(), ..suite.clone() };
    let simulated = simulate_on(&network, transport, &suite, stop)?;
    let errors = FitErrors::of(transport, measured, &simulated);
    let errors = errors.ok_or_else(|| wrong("nothing that was measured could be simulated".into()))?;
    fs::write(file, fit.file(transport, &errors)).map_err(|error| unwritable(file, &error))?;
    let file = file.display();
    eprintln!("evb: {file} holds the network");
    eprintln!("evb: {errors}");
    eprintln!("evb: {NOT_MODELLED}");
    eprintln!("evb: try it with `evb simulate FILE --network {file}`");
    Ok(())
}
