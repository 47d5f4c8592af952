//! Quantities that carry their unit in text: byte counts, frequencies, bandwidths and (in [`crate::Span`]) times.
//!
//! Each is an integer in its smallest unit, so that text, value and text again agree to the last digit.

use crate::time::Span;
use alloc::{borrow::ToOwned, format, string::String};
use core::{fmt, str::FromStr};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A number of bytes; kB = 1000 B, KiB = 1024 B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(pub u64);

/// A frequency in millihertz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frequency(pub u64);

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(pub u64);

impl Frequency {
    /// The frequency in hertz.
    pub const fn as_hertz(self) -> f64 {
        self.0 as f64 * 1e-3
    }
}

impl Bandwidth {
    /// The rate in bytes per second.
    pub const fn as_bytes_per_second(self) -> f64 {
        self.0 as f64 / 8.0
    }
}

/// Why a text is not the quantity that was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// No number at the start of the text.
    #[error("{text:?} is not {kind}: write a number and a unit, such as {example:?}")]
    NotANumber {
        /// The text as given.
        text: String,
        /// What was expected, with its article.
        kind: &'static str,
        /// A good example.
        example: &'static str,
    },
    /// A number without a unit.
    #[error("{text:?} has no unit: write {kind} such as {example:?}")]
    NoUnit {
        /// The text as given.
        text: String,
        /// What was expected, with its article.
        kind: &'static str,
        /// A good example.
        example: &'static str,
    },
    /// A unit of another quantity, or none that is known.
    #[error("{unit:?} is not a unit of {kind}: use one of {known}")]
    WrongUnit {
        /// The unit as given.
        unit: String,
        /// What was expected, with its article.
        kind: &'static str,
        /// The units that are known.
        known: String,
    },
    /// A sign or a size that the quantity cannot have.
    #[error("{text:?} is out of range for {kind}: it must be positive or zero and below 2^64 of its smallest unit")]
    OutOfRange {
        /// The text as given.
        text: String,
        /// What was expected, with its article.
        kind: &'static str,
    },
}

/// One unit: its name and its size in the smallest unit.
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) scale: u64,
}

/// Reads `"<number> <unit>"` into the smallest unit. The number is decimal, with `_` allowed between digits.
pub(crate) fn parse_scaled(
    text: &str,
    units: &[&[Unit]],
    kind: &'static str,
    example: &'static str,
) -> Result<u64, QuantityError> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !matches!(c, '0'..='9' | '.' | '_' | '-' | '+')).unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].trim(), trimmed[split..].trim());
    let owned = || text.to_owned();
    let out_of_range = || QuantityError::OutOfRange { text: owned(), kind };
    let digits = number.strip_prefix('+').unwrap_or(number);
    if digits.starts_with('-') {
        return Err(out_of_range());
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return Err(QuantityError::NotANumber { text: owned(), kind, example });
    }
    if unit.is_empty() {
        return Err(QuantityError::NoUnit { text: owned(), kind, example });
    }
    let mut known = units.iter().flat_map(|table| table.iter());
    let Some(scale) = known.find(|candidate| candidate.name == unit).map(|found| found.scale) else {
        return Err(QuantityError::WrongUnit { unit: unit.to_owned(), kind, known: unit_names(units) });
    };
    scale_decimal(whole, fraction, scale).ok_or_else(out_of_range)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

/// `whole.fraction * scale`, rounded down, or `None` when it does not fit.
fn scale_decimal(whole: &str, fraction: &str, scale: u64) -> Option<u64> {
    let (mut value, mut denominator) = (0_u128, 1_u128);
    for digit in whole.bytes().filter(u8::is_ascii_digit) {
        value = value.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
    }
    // Digits beyond the eighteenth are below the resolution of every quantity.
    for digit in fraction.bytes().filter(u8::is_ascii_digit).take(18) {
        value = value.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
        denominator *= 10;
    }
    u64::try_from(value.checked_mul(u128::from(scale))? / denominator).ok()
}

fn unit_names(units: &[&[Unit]]) -> String {
    let mut names = String::new();
    for unit in units.iter().flat_map(|table| table.iter()) {
        let separator = if names.is_empty() { "" } else { ", " };
        names.push_str(&format!("{separator}{:?}", unit.name));
    }
    names
}

/// Writes the value in the largest unit that needs at most three decimals, exactly.
pub(crate) fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let fits = |unit: &&Unit| value >= unit.scale && (u128::from(value) * 1000).is_multiple_of(u128::from(unit.scale));
    let smallest = units.last().expect("a table of units is never empty");
    let unit = units.iter().find(fits).unwrap_or(smallest);
    let thousandths = u128::from(value) * 1000 / u128::from(unit.scale);
    let (whole, fraction) = (thousandths / 1000, thousandths % 1000);
    if fraction == 0 {
        return write!(f, "{whole} {}", unit.name);
    }
    let digits = format!("{fraction:03}");
    write!(f, "{whole}.{} {}", digits.trim_end_matches('0'), unit.name)
}

const BYTE_UNITS: &[Unit] = &[
    Unit { name: "TB", scale: 1_000_000_000_000 },
    Unit { name: "GB", scale: 1_000_000_000 },
    Unit { name: "MB", scale: 1_000_000 },
    Unit { name: "kB", scale: 1_000 },
    Unit { name: "B", scale: 1 },
];

const BINARY_BYTE_UNITS: &[Unit] = &[
    Unit { name: "TiB", scale: 1 << 40 },
    Unit { name: "GiB", scale: 1 << 30 },
    Unit { name: "MiB", scale: 1 << 20 },
    Unit { name: "KiB", scale: 1 << 10 },
];

const FREQUENCY_UNITS: &[Unit] = &[
    Unit { name: "GHz", scale: 1_000_000_000_000 },
    Unit { name: "MHz", scale: 1_000_000_000 },
    Unit { name: "kHz", scale: 1_000_000 },
    Unit { name: "Hz", scale: 1_000 },
    Unit { name: "mHz", scale: 1 },
];

const BIT_RATE_UNITS: &[Unit] = &[
    Unit { name: "Tbit/s", scale: 1_000_000_000_000 },
    Unit { name: "Gbit/s", scale: 1_000_000_000 },
    Unit { name: "Mbit/s", scale: 1_000_000 },
    Unit { name: "kbit/s", scale: 1_000 },
    Unit { name: "bit/s", scale: 1 },
];

const BYTE_RATE_UNITS: &[Unit] = &[
    Unit { name: "GB/s", scale: 8_000_000_000 },
    Unit { name: "MB/s", scale: 8_000_000 },
    Unit { name: "kB/s", scale: 8_000 },
    Unit { name: "B/s", scale: 8 },
];

impl FromStr for ByteCount {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse_scaled(text, &[BYTE_UNITS, BINARY_BYTE_UNITS], "a byte count", "2 kB").map(Self)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = BINARY_BYTE_UNITS.iter().find(|u| self.0 >= u.scale && self.0.is_multiple_of(u.scale));
        match binary {
            Some(unit) => write!(f, "{} {}", self.0 / unit.scale, unit.name),
            None => write_scaled(f, self.0, BYTE_UNITS),
        }
    }
}

impl FromStr for Frequency {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse_scaled(text, &[FREQUENCY_UNITS], "a frequency", "100 kHz").map(Self)
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, FREQUENCY_UNITS)
    }
}

impl FromStr for Bandwidth {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse_scaled(text, &[BIT_RATE_UNITS, BYTE_RATE_UNITS], "a bandwidth", "132 MB/s").map(Self)
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, BIT_RATE_UNITS)
    }
}

macro_rules! serde_as_text {
    ($($quantity:ty),*) => {$(
        impl Serialize for $quantity {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    )*};
}

serde_as_text!(ByteCount, Frequency, Bandwidth, Span);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_value_agree() {
        for (text, bytes) in [("2 kB", 2000), ("2KiB", 2048), ("1.5 MB", 1_500_000), ("46 B", 46), ("1_000 B", 1000)] {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)), "{text}");
        }
        assert_eq!("4 us".parse(), Ok(Span(4_000_000)));
        assert_eq!("0.5 Hz".parse(), Ok(Frequency(500)));
        assert_eq!("132 MB/s".parse(), Ok(Bandwidth(1_056_000_000)));
    }

    #[test]
    fn printing_is_exact_and_reads_back() {
        let values = [0, 1, 999, 1000, 1001, 2048, 1_234_567, 1_500_000, 123_456_789_012_345, u64::MAX];
        for value in values {
            let (bytes, span) = (ByteCount(value), Span(value));
            assert_eq!(format!("{bytes}").parse(), Ok(bytes));
            assert_eq!(format!("{span}").parse(), Ok(span));
            assert_eq!(format!("{}", Frequency(value)).parse(), Ok(Frequency(value)));
            assert_eq!(format!("{}", Bandwidth(value)).parse(), Ok(Bandwidth(value)));
        }
        assert_eq!(format!("{}", ByteCount(2000)), "2 kB");
        assert_eq!(format!("{}", Span(1_500_000_000_000)), "1.5 s");
    }

    #[test]
    fn errors_say_what_to_write() {
        let error = |text: &str| format!("{}", text.parse::<ByteCount>().unwrap_err());
        assert_eq!(error("2"), r#""2" has no unit: write a byte count such as "2 kB""#);
        assert!(error("2 kHz").starts_with(r#""kHz" is not a unit of a byte count"#));
        assert!(error("-2 kB").contains("positive"));
        assert!(error("kB").contains("write a number"));
        assert!(error("99999999999999999999 TB").contains("out of range"));
    }
}
