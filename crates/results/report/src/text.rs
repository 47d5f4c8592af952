//! Numbers and words in tables.

use evb_record::Record;

/// Heights of a bar, from the lowest on.
const HEIGHTS: [char; 8] =
    ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
/// A step with nothing.
const NOTHING: char = '.';

/// A number with a metric prefix and three significant digits: `12.3 k`.
pub fn metric(value: f64) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (scale, prefix) = prefixes.into_iter().find(|(scale, _)| value >= *scale).unwrap_or((1.0, ""));
    let scaled = value / scale;
    let decimals = if scaled >= 100.0 || value < 1.0 && value == 0.0 {
        0
    } else if scaled >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.decimals$} {prefix}")
}

/// A time in microseconds with three significant digits, without its unit.
pub(crate) fn micros(value: f64) -> String {
    let decimals = if value >= 100.0 || value == 0.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

/// A time in nanoseconds with three significant digits, in the unit that fits: `12.3 us`.
pub(crate) fn nanos(value: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| value >= *scale).unwrap_or((1.0, "ns"));
    format!("{} {unit}", micros(value / scale))
}

/// A number with `count` significant digits, or all digits before the point, without trailing zeros after it.
pub(crate) fn significant(value: f64, count: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = count - 1 - value.abs().log10().floor() as i32;
    let text = format!("{value:.*}", digits.clamp(0, 9) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The beginning of a text of more than `most` characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['\u{2026}']).collect()
}

/// A part of one as a percentage, without its sign.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.1}", part * 100.0)
}

/// Mean, least and most payload per second of all destinations; `None` without destinations.
pub(crate) fn per_destination(record: &Record) -> Option<(f64, f64, f64)> {
    let rates = &record.per_destination_bytes_per_s;
    let least = rates.iter().copied().reduce(f64::min)?;
    let most = rates.iter().copied().reduce(f64::max)?;
    Some((rates.iter().sum::<f64>() / rates.len() as f64, least, most))
}

/// The value in each step as the height of a bar. Bars of `most` and more are full, which `full` says in words.
pub(crate) fn bars(values: &[f64], step_s: f64, most: f64, full: &str) -> String {
    let bar = |value: &f64| match (value / most * HEIGHTS.len() as f64).ceil() as usize {
        _ if *value <= 0.0 => NOTHING,
        height => HEIGHTS[height.clamp(1, HEIGHTS.len()) - 1],
    };
    let bars: String = values.iter().map(bar).collect();
    format!("{bars} {}, a full bar is {full}", nanos(step_s * values.len() as f64 * 1e9))
}

/// Names and their values in lines. Values longer than `width` allows are wrapped between words.
pub(crate) fn aligned(rows: &[(&str, String)], width: usize) -> String {
    rows.iter().map(|(name, value)| hanging(&format!("{name:<NAME$}"), value, width)).collect()
}

/// Columns of the names in [`aligned`].
const NAME: usize = 14;

/// A text behind the first columns of a line. Further lines are indented to its beginning.
pub(crate) fn hanging(first: &str, text: &str, width: usize) -> String {
    let indent = first.chars().count();
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one line");
        let filled = indent + line.chars().count();
        match line.is_empty() {
            true => line.push_str(word),
            false if filled + 1 + word.chars().count() <= width => line.extend([" ", word]),
            false => lines.push(word.to_owned()),
        }
    }
    format!("{first}{}\n", lines.join(&format!("\n{:indent$}", "")))
}
