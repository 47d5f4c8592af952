//! A simulated network fitted to measurements, and how well it simulates them.

use crate::{failure::Failure, folder::unwritable, simulated_bench::Simulated};
use evb_bench::{Benchmark, Suite, fit_network};
use evb_record::Benchmark as BenchmarkRecord;
use std::{collections::BTreeMap, fs, path::Path, sync::atomic::AtomicBool};

/// The patterns that a fit is made from.
const NEEDED: [Benchmark; 2] = [Benchmark::PingPong, Benchmark::OneWay];
/// Sizes that are measured when nobody says which, in bytes.
const SIZES: [usize; 6] = [8, 64, 256, 1024, 4096, 16384];

/// Adds what a fit needs to a suite. Sizes that somebody chose are left as they are.
pub(crate) fn prepare(suite: &mut Suite, has_sizes: bool) {
    let missing = NEEDED.into_iter().filter(|benchmark| !suite.benchmarks.contains(benchmark));
    let missing: Vec<_> = missing.collect();
    suite.benchmarks.extend(missing);
    if !has_sizes {
        suite.sizes = SIZES.to_vec();
    }
}

/// Writes the network of a transport to a file, simulates on it what was measured, and says how far that is off.
pub(crate) fn write(
    file: &Path,
    transport: &str,
    suite: &Suite,
    measured: &[BenchmarkRecord],
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let network = fit_network(transport, measured).map_err(|why| Failure::new(format!("no network fits: {why}")))?;
    fs::write(file, network.preset(transport)).map_err(|error| unwritable(file, &error))?;
    let suite = Suite { benchmarks: NEEDED.to_vec(), ..suite.clone() };
    let simulated = Simulated(file.to_string_lossy().into_owned()).run(&suite, stop)?;
    eprintln!("evb: {} holds the network; a simulation on it misses", file.display());
    for (pattern, errors) in errors(transport, measured, &simulated) {
        let (least, most) = errors.iter().fold((f64::MAX, f64::MIN), |(l, m), &error| (l.min(error), m.max(error)));
        eprintln!("evb:   {pattern} by {:+.0} to {:+.0} %", least * 100.0, most * 100.0);
    }
    eprintln!("evb: try it with `evb simulate FILE --network {}`", file.display());
    Ok(())
}

/// The relative errors of the simulated times, by pattern.
fn errors<'a>(
    transport: &str,
    measured: &'a [BenchmarkRecord],
    simulated: &[BenchmarkRecord],
) -> BTreeMap<&'a str, Vec<f64>> {
    let mut errors = BTreeMap::<_, Vec<_>>::new();
    for row in measured.iter().filter(|row| row.transport == transport && row.rate_hz.is_none()) {
        let same = |other: &&BenchmarkRecord| {
            (&other.pattern, other.size_bytes, other.nodes) == (&row.pattern, row.size_bytes, row.nodes)
        };
        if let Some(other) = simulated.iter().find(same) {
            errors.entry(&*row.pattern).or_default().push(time(other) / time(row) - 1.0);
        }
    }
    errors
}

/// What a fit is made from: half of a round trip, or the time between two messages.
fn time(row: &BenchmarkRecord) -> f64 {
    row.half_round_trip_ns.map_or(1e9 / row.messages_per_s, |times| times.p50)
}
