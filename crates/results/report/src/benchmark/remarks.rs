//! Remarks on a suite: notes, waiting, placement, and core-to-core times.

use super::case::distinct;
use crate::text::{aligned, nanos};
use evb_record::{Benchmark, CoreToCore, SIMULATED};

/// Layers whose messages go through memory, so that the core-to-core time is their limit.
const THROUGH_MEMORY: [&str; 2] = ["threads", "shm"];

/// The notes, each once, then the conditions; empty without records.
pub(super) fn remarks(records: &[Benchmark], width: usize) -> String {
    if records.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ("waiting", joined(records, |row| row.settings.wait.clone())),
        ("pinning", joined(records, |row| pinning(row).to_owned())),
        ("launches", joined(records, |row| row.launches.values.len().to_string())),
    ];
    rows.extend(core_to_core(records));
    rows.extend(THROUGH_MEMORY.iter().filter_map(|transport| ratio(records, transport)).map(|ratio| ("", ratio)));
    notes(records) + &aligned(&rows, width)
}

/// The distinct values of the rows, separated by commas.
fn joined(records: &[Benchmark], value: impl Fn(&Benchmark) -> String) -> String {
    distinct(records.iter().map(value)).join(", ")
}

fn pinning(row: &Benchmark) -> &'static str {
    if row.cores.is_empty() { "none" } else { "each node to one core, in turn" }
}

fn notes(records: &[Benchmark]) -> String {
    titled("notes", records.iter().flat_map(|row| &row.notes).map(String::as_str))
}

/// Texts under a title, and an empty line; empty without texts. Texts that differ in numbers only are shown once, with
/// the number of their rows.
pub(crate) fn titled<'a>(title: &str, texts: impl Iterator<Item = &'a str>) -> String {
    let mut kinds: Vec<(String, &str, usize)> = Vec::new();
    for text in texts {
        let kind = without_numbers(text);
        match kinds.iter_mut().find(|known| known.0 == kind) {
            Some(known) => known.2 += 1,
            None => kinds.push((kind, text, 1)),
        }
    }
    let line = |(_, text, count): &(String, &str, usize)| match count {
        1 => format!("  {text} (1 row)\n"),
        _ => format!("  {text} ({count} rows are like this)\n"),
    };
    let lines: String = kinds.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("{title}\n{lines}\n") }
}

fn without_numbers(text: &str) -> String {
    text.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()).collect()
}

/// Core-to-core times: of each quantity the median over all rows before and after them, and the extremes.
fn core_to_core(records: &[Benchmark]) -> Vec<(&'static str, String)> {
    let calibrations: Vec<_> = records.iter().filter_map(|row| row.calibration).collect();
    let describe = |what: &str, of: fn(&CoreToCore) -> f64| {
        let before: Vec<_> = calibrations.iter().map(|calibration| of(&calibration.before)).collect();
        let after: Vec<_> = calibrations.iter().map(|calibration| of(&calibration.after)).collect();
        let (least, most) = before.iter().chain(&after).fold((f64::MAX, 0.0_f64), |(l, m), &x| (l.min(x), m.max(x)));
        let [before, after, least, most] = [middle(before), middle(after), least, most].map(nanos);
        format!("{what}: {before} before, {after} after, all within {least} to {most}")
    };
    match calibrations.is_empty() {
        true if records.iter().all(|row| row.settings.wait == SIMULATED) => Vec::new(),
        true => vec![("core to core", "not measured: there are no two cores".into())],
        false => vec![
            ("core to core", describe("a word", |cores| cores.line_ns)),
            ("", describe("a word and 64 B", |cores| cores.message_ns)),
        ],
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Ratio of the half round trip of the smallest message to the limit.
fn ratio(records: &[Benchmark], transport: &str) -> Option<String> {
    let of_layer = records.iter().filter(|row| row.transport == transport && row.pattern == "ping-pong");
    let row = of_layer.min_by_key(|row| row.settings.size_bytes)?;
    let (calibration, time) = (row.calibration?, row.half_round_trip_ns?.p50);
    let limit = f64::midpoint(calibration.before.line_ns, calibration.after.line_ns);
    let times = time / limit;
    (limit > 0.0).then(|| {
        format!(
            "{transport}: half of the round trip of {} B takes {times:.2} times as long as a word",
            row.settings.size_bytes
        )
    })
}
