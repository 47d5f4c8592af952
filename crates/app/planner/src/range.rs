//! Values that are known within a range.

use serde::{Deserialize, Deserializer, de::Error as _};

/// A value between two ends. A file has `value` or `[low, high]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range<T> {
    /// The lower end.
    pub low: T,
    /// The upper end.
    pub high: T,
}

impl<T: Copy> Range<T> {
    /// A range of one value.
    pub const fn exactly(value: T) -> Self {
        Self { low: value, high: value }
    }
}

impl<'de, T: Copy + PartialOrd + Deserialize<'de>> Deserialize<'de> for Range<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "write a value, or a list of the lowest and the highest value")]
        enum Text<T> {
            One(T),
            Two([T; 2]),
        }
        match Text::deserialize(deserializer)? {
            Text::One(value) => Ok(Self::exactly(value)),
            Text::Two([low, high]) if low <= high => Ok(Self { low, high }),
            Text::Two(_) => Err(D::Error::custom("the first value of a range must not be above the second")),
        }
    }
}
