//! The histograms of a run, for its summary.

use evb_record::{Histogram, Record};

/// Histograms with a row of their own; the record has more.
const NAMED: usize = 8;

/// A row for each histogram: entries and mean, and what was not counted.
pub(crate) fn rows(record: &Record) -> Vec<(&'static str, String)> {
    let mut rows: Vec<_> = record.histograms.iter().take(NAMED).map(|one| ("histogram", row(one))).collect();
    let more = record.histograms.len() - rows.len();
    if more > 0 {
        rows.push(("histogram", format!("{more} more, which `--json` shows")));
    }
    rows
}

fn row(histogram: &Histogram) -> String {
    let counted = |count: u64, what: &str| if count > 0 { format!(", {count} {what}") } else { String::new() };
    let mean = histogram.mean.map_or_else(String::new, |mean| format!(", mean {}", four_digits(mean)));
    format!(
        "{}: {} entries{}{}{}{}",
        histogram.name,
        histogram.entries,
        mean,
        counted(histogram.outside(), "outside"),
        counted(histogram.unfit, "do not fit"),
        counted(histogram.missing, "missing or bad"),
    )
}

/// A number with four significant digits, or with all digits before its point.
fn four_digits(value: f64) -> String {
    let digits = if value == 0.0 { 0.0 } else { 3.0 - value.abs().log10().floor() };
    format!("{value:.*}", digits.clamp(0.0, 12.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_was_counted_and_what_was_not() {
        let charge =
            Histogram { name: "charge of ru3".into(), entries: 12, mean: Some(511.25), ..Histogram::default() };
        assert_eq!(row(&charge), "charge of ru3: 12 entries, mean 511.2");
        let means: Vec<_> = [0.0, -12345.6, 0.00123456].map(four_digits).into();
        assert_eq!(means, ["0", "-12346", "0.001235"]);
        let odd = Histogram { mean: None, underflow: 4, overflow: 8, unfit: 1, missing: 2, ..charge };
        assert_eq!(row(&odd), "charge of ru3: 12 entries, 12 outside, 1 do not fit, 2 missing or bad");
    }
}
