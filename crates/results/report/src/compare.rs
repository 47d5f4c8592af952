//! Comparison of two files of benchmarks, row by row.

mod ratio;
mod runs;
mod table;

use evb_record::{Benchmark, Calibration, Change, Comparison, CoreToCore, Interval, RecordKind, SIMULATED};
use ratio::LogRatio;
pub use runs::{compare_runs, run_comparison_table};
pub use table::comparison_table;

/// Largest ratio of the core-to-core times of two files.
const MOST_DRIFT: f64 = 1.25;
/// The quantity of which less is better.
const CYCLE: &str = "cycle_ns";

/// Compares the launches of rows of the same measurement: those with one transport, pattern, size, number of nodes,
/// computing time, window, rate, senders of an event and way of waiting. The rows of the old file come first, in their order, then the new
/// ones.
///
/// The verdict depends on the interval that holds the true ratio of new and old with 95 %. A row is the same if the
/// whole interval lies within `tolerance`, a part of the lesser value. It is faster or slower if the interval excludes
/// no change, and the medians differ by more than `tolerance`. In all other cases there is no verdict. A row is
/// untrusted if a file says so, or if the core-to-core times of the machine have changed by more than 25 %. A row is
/// not good if it is trusted and slower, or missing though the old one was trusted, or if messages were lost or
/// corrupted that were not before.
///
/// Each measurement may occur once in a file; of several the first counts.
#[must_use]
pub fn compare(old: &[Benchmark], new: &[Benchmark], tolerance: f64) -> Vec<Comparison> {
    let of_old = old.iter().map(|before| {
        let after = new.iter().find(|after| is_same_measurement(before, after));
        after.map_or_else(|| missing(before), |after| both(before, after, tolerance))
    });
    let is_new = |after: &&Benchmark| !old.iter().any(|before| is_same_measurement(before, after));
    let of_new = new.iter().filter(is_new).map(|after| {
        let old = None;
        Comparison { old, ..row(after, Change::New, None, true) }
    });
    of_old.chain(of_new).collect()
}

/// Returns true if two rows differ in their results only.
#[must_use]
pub fn is_same_measurement(one: &Benchmark, other: &Benchmark) -> bool {
    let texts = |row: &Benchmark| [row.transport.clone(), row.pattern.clone(), row.wait.clone()];
    let numbers = |row: &Benchmark| (row.size_bytes, row.nodes, row.compute_us, row.window, row.rate_hz, row.gathers);
    numbers(one) == numbers(other) && texts(one) == texts(other) && one.destinations == other.destinations
}

/// The comparison of a row that the old file does not have.
fn row(new: &Benchmark, verdict: Change, reason: Option<String>, good: bool) -> Comparison {
    Comparison {
        kind: RecordKind::Comparison,
        transport: new.transport.clone(),
        pattern: new.pattern.clone(),
        size_bytes: new.size_bytes,
        nodes: new.nodes,
        compute_us: new.compute_us,
        window: new.window,
        rate_hz: new.rate_hz,
        gathers: new.gathers,
        destinations: new.destinations.clone(),
        wait: new.wait.clone(),
        quantity: new.launches.quantity.clone(),
        old: None,
        new: Some(interval(new)),
        change_percent: None,
        change_low_percent: None,
        change_high_percent: None,
        seen_from_percent: None,
        verdict,
        reason,
        good,
    }
}

fn missing(old: &Benchmark) -> Comparison {
    let is_expected = old.trusted && old.good;
    let reason = (!is_expected).then(|| "the old row could not be trusted".into());
    Comparison { old: Some(interval(old)), new: None, ..row(old, Change::Missing, reason, !is_expected) }
}

fn both(old: &Benchmark, new: &Benchmark, tolerance: f64) -> Comparison {
    let is_lost = old.good && !new.good;
    let less_is_better = new.launches.quantity == CYCLE;
    let judged = Evidence {
        change: new.launches.median / old.launches.median - 1.0,
        harm: is_lost.then(|| format!("{} messages lost, {} corrupted", new.lost, new.corrupted)),
        doubt: doubt(old, new),
        ratio: ratio(old, new),
    }
    .judge(tolerance, less_is_better);
    Comparison {
        old: Some(interval(old)),
        change_percent: judged.change_percent,
        change_low_percent: judged.low_percent,
        change_high_percent: judged.high_percent,
        seen_from_percent: judged.seen_from_percent,
        ..row(new, judged.verdict, judged.reason, !matches!(judged.verdict, Change::NotGood | Change::Slower))
    }
}

/// What is known of the change of one quantity.
struct Evidence {
    /// The new median over the old one, less one.
    change: f64,
    /// What was lost in the new file only.
    harm: Option<String>,
    /// Why the values cannot be trusted.
    doubt: Option<String>,
    /// The ratio of new and old, or the reason why there is none.
    ratio: Result<LogRatio, String>,
}

/// The verdict on a change, and its numbers in percent of the old value.
struct Judged {
    verdict: Change,
    reason: Option<String>,
    change_percent: Option<f64>,
    low_percent: Option<f64>,
    high_percent: Option<f64>,
    seen_from_percent: Option<f64>,
}

impl Evidence {
    fn judge(self, tolerance: f64, less_is_better: bool) -> Judged {
        let Self { change, harm, doubt, ratio } = self;
        let (verdict, reason) = match (harm, doubt, &ratio) {
            (Some(harm), ..) => (Change::NotGood, Some(harm)),
            (None, Some(why), _) => (Change::Untrusted, Some(why)),
            (None, None, Err(why)) => (Change::CannotTell, Some(why.clone())),
            (None, None, Ok(ratio)) => {
                let verdict = verdict(ratio, change.ln_1p(), tolerance.ln_1p(), less_is_better);
                (verdict, (verdict == Change::CannotTell).then(|| ratio.too_few()).flatten())
            }
        };
        let percent = |log: f64| Some(log.exp_m1() * 100.0).filter(|percent| percent.is_finite());
        let limits = ratio.ok();
        Judged {
            verdict,
            reason,
            change_percent: change.is_finite().then_some(change * 100.0),
            low_percent: limits.and_then(|limits| percent(limits.low)),
            high_percent: limits.and_then(|limits| percent(limits.high)),
            seen_from_percent: limits.and_then(|limits| percent(limits.resolution())),
        }
    }
}

/// The ratio of new and old, or the reason why there is none. Simulated time is the same in each launch, so one launch
/// is enough.
fn ratio(old: &Benchmark, new: &Benchmark) -> Result<LogRatio, String> {
    if new.wait == SIMULATED {
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
            let note = row.notes.first().map_or("it does not say why", String::as_str);
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

/// The verdict of the launches. `medians` is the logarithm of the ratio of their medians, `margin` that of the
/// tolerance.
fn verdict(ratio: &LogRatio, medians: f64, margin: f64, less_is_better: bool) -> Change {
    let is_less = ratio.high < 0.0 && medians < -margin;
    let is_more = ratio.low > 0.0 && medians > margin;
    match (is_less, is_more) {
        (false, false) if ratio.is_within(margin) => Change::Same,
        (false, false) => Change::CannotTell,
        _ if is_less == less_is_better => Change::Faster,
        _ => Change::Slower,
    }
}
