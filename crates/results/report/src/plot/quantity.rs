//! Values of swept keys as numbers.

use evb_core::{Bandwidth, ByteCount, Frequency, Span};

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    None,
    Bytes,
    Seconds,
    Hertz,
    BytesPerSecond,
}

/// Largest number that is drawn: an axis that reaches further shows nothing else.
const LARGEST: f64 = 1e18;

/// Returns true if a number can be drawn.
pub(super) fn is_drawable(value: f64) -> bool {
    value == 0.0 || (1.0 / LARGEST..LARGEST).contains(&value.abs())
}

/// Reads `2 kB`, `0.5` or `100 kHz` in its base unit; `None` for any other text.
pub(super) fn parse(text: &str) -> Option<(f64, Unit)> {
    let plain = || text.trim().replace('_', "").parse().ok().map(|value| (value, Unit::None));
    let bytes = || text.parse().ok().map(|ByteCount(bytes)| (bytes as f64, Unit::Bytes));
    let span = || text.parse().ok().map(|span: Span| (span.as_secs_f64(), Unit::Seconds));
    let frequency = || text.parse().ok().map(|rate: Frequency| (rate.as_hertz(), Unit::Hertz));
    let bandwidth = || text.parse().ok().map(|rate: Bandwidth| (rate.as_bytes_per_second(), Unit::BytesPerSecond));
    let read = plain().or_else(bytes).or_else(span).or_else(frequency).or_else(bandwidth);
    read.filter(|(value, _)| is_drawable(*value))
}

/// A number for an axis, with three significant digits: `512 B`, `2 kB`, `0.5`.
pub(super) fn short(value: f64, unit: Unit) -> String {
    const PREFIXES: [(f64, &str); 7] =
        [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u")];
    let symbol = match unit {
        Unit::None => return rounded(value),
        Unit::Bytes => "B",
        Unit::Seconds => "s",
        Unit::Hertz => "Hz",
        Unit::BytesPerSecond => "B/s",
    };
    let nano = (1e-9, "n");
    let fits = |(scale, _): &(f64, &str)| value.abs() >= *scale * (1.0 - 1e-9);
    let (scale, prefix) = if value == 0.0 { (1.0, "") } else { PREFIXES.into_iter().find(fits).unwrap_or(nano) };
    format!("{} {prefix}{symbol}", rounded(value / scale))
}

/// The key of an experiment file as the title of an axis: `readout.source.size` is `fragment size (bytes)`. Keys
/// without a separate title are split into words.
pub(super) fn in_words(key: &str, unit: Unit) -> String {
    const WORDS: [(&str, &str); 6] = [
        ("readout.source.size", "fragment size"),
        ("readout.source.mean", "mean fragment size"),
        ("workload.load", "load (part of the rate of a link)"),
        ("network.nic.packet", "packet size"),
        ("trigger.rate", "trigger rate"),
        ("run.seed", "seed"),
    ];
    let known = WORDS.iter().find(|(known, _)| *known == key).map(|(_, words)| (*words).to_owned());
    let words = known.unwrap_or_else(|| key.replace(['.', '_'], " "));
    let counted = match unit {
        Unit::None => "",
        Unit::Bytes => " (bytes)",
        Unit::Seconds => " (seconds)",
        Unit::Hertz => " (hertz)",
        Unit::BytesPerSecond => " (bytes per second)",
    };
    words + counted
}

/// Three significant digits, without zeros at the end.
fn rounded(value: f64) -> String {
    let rounded: f64 = format!("{value:.2e}").parse().expect("a number that was just written");
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_all_kinds_are_read() {
        let cases = [
            ("16", 16.0, Unit::None),
            ("0.5", 0.5, Unit::None),
            ("1_000", 1000.0, Unit::None),
            ("2 kB", 2000.0, Unit::Bytes),
            ("2 KiB", 2048.0, Unit::Bytes),
            ("4 us", 4e-6, Unit::Seconds),
            ("100 kHz", 1e5, Unit::Hertz),
            ("132 MB/s", 132e6, Unit::BytesPerSecond),
        ];
        for (text, value, unit) in cases {
            let (read, read_unit) = parse(text).unwrap();
            assert!((read - value).abs() <= value * 1e-9, "{text}: {read}");
            assert_eq!(read_unit, unit, "{text}");
        }
        for text in ["", "push", "inf", "NaN", "[1, 2]", "2 elephants", "1e300", "-1e-300"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn short_numbers_keep_three_digits() {
        let cases = [
            (0.0, Unit::None, "0"),
            (0.30000000000000004, Unit::None, "0.3"),
            (20000.0, Unit::None, "20000"),
            (2048.0, Unit::Bytes, "2.05 kB"),
            (0.0, Unit::Seconds, "0 s"),
            (4e-6, Unit::Seconds, "4 us"),
            (3e-12, Unit::Seconds, "0.003 ns"),
            (1e5, Unit::Hertz, "100 kHz"),
        ];
        for (value, unit, text) in cases {
            assert_eq!(short(value, unit), text);
        }
    }
}
