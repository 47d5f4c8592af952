//! Comparison of two files of benchmarks, row by row.

mod evidence;
mod ratio;
mod runs;
mod table;

use evb_record::{Benchmark, Calibration, Change, Comparison, CoreToCore, Difference, Interval, RecordKind, SIMULATED};
use evidence::{Evidence, one_sided};
use ratio::LogRatio;
pub use runs::{compare_runs, run_comparison_table};
pub use table::comparison_table;

/// Largest ratio of the core-to-core times of two files.
const MOST_DRIFT: f64 = 1.25;
/// The quantity of which less is better.
const CYCLE: &str = "cycle_ns";

/// Compares the launches of rows of the same measurement: those with the same transport, pattern and settings. The rows
/// of the old file come first, in their order, then the new ones.
///
/// The verdict depends on the interval that holds the true ratio of new and old with 95 %. A row is the same if the
/// whole interval lies within `tolerance`, a part of the lesser value. It is faster or slower if the interval excludes
/// no change, and the medians differ by more than `tolerance`. All other rows are undecided. A row is
/// untrusted if a file says so, or if the core-to-core times of the machine have changed by more than 25 %. A row is
/// not good if it is trusted and slower, or missing though the old one was trusted, or if messages were lost or
/// corrupted that were not before.
///
/// Each measurement may occur once in a file; the first of several counts.
#[must_use]
pub fn compare(old: &[Benchmark], new: &[Benchmark], tolerance: f64) -> Vec<Comparison> {
    let of_old = old.iter().map(|before| {
        let after = new.iter().find(|after| is_same_measurement(before, after));
        after.map_or_else(|| missing(before), |after| both(before, after, tolerance))
    });
    let is_new = |after: &&Benchmark| !old.iter().any(|before| is_same_measurement(before, after));
    let of_new = new.iter().filter(is_new).map(|after| {
        row(after, one_sided(&after.launches.quantity, [None, Some(interval(after))], Change::New, None, true))
    });
    of_old.chain(of_new).collect()
}

/// Returns true if two rows differ in their results only.
#[must_use]
pub fn is_same_measurement(one: &Benchmark, other: &Benchmark) -> bool {
    one.settings == other.settings && one.transport == other.transport && one.pattern == other.pattern
}

fn row(measured: &Benchmark, difference: Difference) -> Comparison {
    Comparison {
        kind: RecordKind::Comparison,
        transport: measured.transport.clone(),
        pattern: measured.pattern.clone(),
        settings: measured.settings.clone(),
        difference,
    }
}

fn missing(old: &Benchmark) -> Comparison {
    let is_expected = old.trusted && old.good;
    let reason = (!is_expected).then(|| "the old row could not be trusted".into());
    row(old, one_sided(&old.launches.quantity, [Some(interval(old)), None], Change::Missing, reason, !is_expected))
}

fn both(old: &Benchmark, new: &Benchmark, tolerance: f64) -> Comparison {
    let is_lost = old.good && !new.good;
    let quantity = &new.launches.quantity;
    let evidence = Evidence {
        change: new.launches.median / old.launches.median - 1.0,
        harm: is_lost.then(|| format!("{} messages lost, {} corrupted", new.lost, new.corrupted)),
        doubt: doubt(old, new),
        ratio: ratio(old, new),
    };
    row(new, evidence.judge(quantity, [interval(old), interval(new)], tolerance, quantity == CYCLE))
}

/// The ratio of new and old, or the reason why there is none. Simulated time is the same in each launch, so one launch
/// is enough.
fn ratio(old: &Benchmark, new: &Benchmark) -> Result<LogRatio, String> {
    if new.settings.wait == SIMULATED {
        return Ok(LogRatio::exact(old.launches.median, new.launches.median));
    }
    let [old, new] = [old, new].map(|row| {
        let values = row.launches.values.iter().copied();
        values.filter(|value| value.is_finite() && *value > 0.0).collect::<Vec<_>>()
    });
    LogRatio::of_launches(&old, &new)
}

fn interval(row: &Benchmark) -> Interval {
    let launches = &row.launches;
    Interval { median: launches.median, low: launches.low, high: launches.high }
}

/// The reason why two rows cannot be compared.
fn doubt(old: &Benchmark, new: &Benchmark) -> Option<String> {
    let has_value = |row: &Benchmark| row.launches.median.is_finite() && row.launches.median > 0.0;
    for (row, file) in [(old, "old"), (new, "new")] {
        if !row.good {
            return Some(format!("messages were lost or corrupted in the {file} file"));
        }
        if !row.trusted {
            let note = row.notes.first().map_or("the reason is unknown", String::as_str);
            return Some(format!("{file} file: {note}"));
        }
        if !has_value(row) {
            return Some(format!("the {file} file has no median"));
        }
    }
    if old.launches.quantity != new.launches.quantity {
        return Some(format!("{} cannot be compared with {}", new.launches.quantity, old.launches.quantity));
    }
    drift(&old.calibration?, &new.calibration?)
}

/// The change of the core-to-core times, if it is too large.
fn drift(old: &Calibration, new: &Calibration) -> Option<String> {
    let middle = |both: &Calibration, of: fn(&CoreToCore) -> f64| f64::midpoint(of(&both.before), of(&both.after));
    let change = |what: &str, of: fn(&CoreToCore) -> f64| {
        let (before, after) = (middle(old, of), middle(new, of));
        let has_drifted = before.max(after) > MOST_DRIFT * before.min(after);
        has_drifted.then(|| {
            format!("the machine has changed: {what} took {before:.0} ns between two cores, now {after:.0} ns")
        })
    };
    change("a word", |cores| cores.line_ns).or_else(|| change("a word and 64 B", |cores| cores.message_ns))
}
