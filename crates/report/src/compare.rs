//! Two files of benchmarks compared, row by row.

mod table;

use evb_record::{Benchmark, Calibration, Change, Comparison, CoreToCore, Interval, Kind};
pub use table::comparison_table;

/// What cores can tell each other must not differ by more than this factor between two files.
const MOST_DRIFT: f64 = 1.25;
/// Of this quantity less is better.
const CYCLE: &str = "cycle_ns";

/// Compares the medians of the launches of rows that measured the same: those with one transport, pattern, size, number of nodes,
/// time of computing, window, rate and way to wait. The rows of the old file come first, in their order, then what is new.
///
/// A row is the same when the intervals of both files overlap, or when the medians differ by at most `tolerance`, a part of the
/// old one. It is untrusted when a file says so, or when the cores of the machine have come nearer to each other, or
/// farther away, by more than 25 %. It is no success when it is trusted and slower, or missing though the old one was
/// trusted, or when messages were lost or corrupted that were not before.
///
/// No two rows of one file may measure the same; of those that do the first counts.
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

/// Whether two rows differ in nothing but what came out.
#[must_use]
pub fn is_same_measurement(one: &Benchmark, other: &Benchmark) -> bool {
    let texts = |row: &Benchmark| [row.transport.clone(), row.pattern.clone(), row.wait.clone()];
    let numbers = |row: &Benchmark| (row.size_bytes, row.nodes, row.compute_us, row.window, row.rate_hz);
    numbers(one) == numbers(other) && texts(one) == texts(other)
}

/// A comparison with nothing in the old file.
fn row(new: &Benchmark, verdict: Change, reason: Option<String>, good: bool) -> Comparison {
    Comparison {
        kind: Kind::Comparison,
        transport: new.transport.clone(),
        pattern: new.pattern.clone(),
        size_bytes: new.size_bytes,
        nodes: new.nodes,
        compute_us: new.compute_us,
        window: new.window,
        rate_hz: new.rate_hz,
        wait: new.wait.clone(),
        quantity: new.launches.quantity.clone(),
        old: None,
        new: Some(interval(new)),
        change_percent: None,
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
    let (before, after) = (interval(old), interval(new));
    let change = after.median / before.median - 1.0;
    let (verdict, reason) = match (old.good && !new.good, doubt(old, new)) {
        (true, _) => (Change::NotGood, Some(format!("{} messages lost, {} corrupted", new.lost, new.corrupted))),
        (false, Some(why)) => (Change::Untrusted, Some(why)),
        (false, None) => (verdict(&before, &after, change, tolerance, new.launches.quantity == CYCLE), None),
    };
    let good = !matches!(verdict, Change::NotGood | Change::Slower);
    let change_percent = change.is_finite().then_some(change * 100.0);
    Comparison { old: Some(before), change_percent, ..row(new, verdict, reason, good) }
}

fn interval(row: &Benchmark) -> Interval {
    let launches = &row.launches;
    Interval { median: launches.median, low: launches.low, high: launches.high }
}

/// Why two rows cannot be compared.
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

/// How the cores have changed, if they have.
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

fn verdict(old: &Interval, new: &Interval, change: f64, tolerance: f64, less_is_better: bool) -> Change {
    let overlap = old.low <= new.high && new.low <= old.high;
    if overlap || change.abs() <= tolerance {
        return Change::Same;
    }
    if (change < 0.0) == less_is_better { Change::Faster } else { Change::Slower }
}
