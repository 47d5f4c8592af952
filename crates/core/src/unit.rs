//! Numbers with units in text: reading, printing and errors. Every quantity is an integer in its smallest unit, so that
//! text, value and text again agree to the last digit.

use alloc::{borrow::ToOwned, format, string::String};
use core::fmt;

/// The reason why a text is not the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// No number at the start of the text.
    #[error("{text:?} is not {kind}: write a number and a unit, such as {example:?}")]
    NotANumber {
        /// The text as given.
        text: String,
        /// The expected quantity, with its article.
        kind: &'static str,
        /// A valid example.
        example: &'static str,
    },
    /// A number without a unit.
    #[error("{text:?} has no unit: write {kind} such as {example:?}")]
    NoUnit {
        /// The text as given.
        text: String,
        /// The expected quantity, with its article.
        kind: &'static str,
        /// A valid example.
        example: &'static str,
    },
    /// A unit of another quantity, or an unknown one.
    #[error("{unit:?} is not a unit of {kind}: use one of {known}")]
    WrongUnit {
        /// The unit as given.
        unit: String,
        /// The expected quantity, with its article.
        kind: &'static str,
        /// The known units.
        known: String,
    },
    /// A value that is negative, too large or too fine for the quantity.
    #[error("{text:?} is out of range for {kind}: it must be positive or zero and below 2^64 of its smallest unit")]
    OutOfRange {
        /// The text as given.
        text: String,
        /// The expected quantity, with its article.
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

/// Writes the value exactly: in a binary unit of which it is a whole multiple, else in the first decimal unit that needs
/// at most three decimals.
pub(crate) fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let is_binary = |unit: &&Unit| unit.scale > 1 && unit.scale.is_power_of_two();
    let whole = |unit: &&Unit| value >= unit.scale && value.is_multiple_of(unit.scale);
    let short = |unit: &&Unit| value >= unit.scale && (u128::from(value) * 1000).is_multiple_of(u128::from(unit.scale));
    let binary = units.iter().filter(is_binary).find(whole);
    let decimal = || units.iter().filter(|unit| !is_binary(unit)).find(short);
    let smallest = || units.iter().min_by_key(|unit| unit.scale);
    let unit = binary.or_else(decimal).or_else(smallest).expect("a table of units is never empty");
    let thousandths = u128::from(value) * 1000 / u128::from(unit.scale);
    let (whole, fraction) = (thousandths / 1000, thousandths % 1000);
    if fraction == 0 {
        return write!(f, "{whole} {}", unit.name);
    }
    let digits = format!("{fraction:03}");
    write!(f, "{whole}.{} {}", digits.trim_end_matches('0'), unit.name)
}

/// Implements the text form of a quantity that is an integer in its smallest unit: `FromStr`, `Display` and serde as
/// text.
macro_rules! text_quantity {
    ($quantity:ty, $kind:literal, $example:literal, printed: $printed:expr, read: $read:expr) => {
        impl core::str::FromStr for $quantity {
            type Err = $crate::QuantityError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::unit::parse_scaled(text, &[$printed, $read], $kind, $example).map(Self)
            }
        }

        impl core::fmt::Display for $quantity {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                $crate::unit::write_scaled(f, self.0, $printed)
            }
        }

        impl serde::Serialize for $quantity {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $quantity {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <alloc::string::String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use text_quantity;
