//! Quantities that carry their unit in text: byte counts, frequencies and bandwidths. [`Span`](crate::Span) is such a
//! quantity, too.

use crate::{
    Span,
    unit::{Unit, text_quantity},
};

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

/// Picoseconds in which one byte passes at one bit per second.
const PS_PER_BYTE_AT_1_BIT_PER_S: u64 = 8_000_000_000_000;

impl Bandwidth {
    /// Time of one byte, rounded to picoseconds; what wormhole flow counts in.
    pub const fn byte_time(self) -> Span {
        let time = PS_PER_BYTE_AT_1_BIT_PER_S.saturating_add(self.0 / 2) / self.0;
        Span(if time > 0 { time } else { 1 })
    }

    /// Time of this many bytes, rounded up to picoseconds.
    #[inline]
    pub fn time_for(self, bytes: u64) -> Span {
        Span(match bytes.checked_mul(PS_PER_BYTE_AT_1_BIT_PER_S) {
            Some(product) => product.div_ceil(self.0),
            None => {
                let product = u128::from(bytes) * u128::from(PS_PER_BYTE_AT_1_BIT_PER_S);
                u64::try_from(product.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX)
            }
        })
    }

    /// The rate in bytes per second.
    pub const fn as_bytes_per_second(self) -> f64 {
        self.0 as f64 / 8.0
    }
}

const BYTE_UNITS: &[Unit] = &[
    Unit { name: "TB", scale: 1_000_000_000_000 },
    Unit { name: "GB", scale: 1_000_000_000 },
    Unit { name: "MB", scale: 1_000_000 },
    Unit { name: "kB", scale: 1_000 },
    Unit { name: "B", scale: 1 },
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

text_quantity!(ByteCount, "a byte count", "2 kB", printed: BYTE_UNITS, read: &[]);
text_quantity!(Frequency, "a frequency", "100 kHz", printed: FREQUENCY_UNITS, read: &[]);
text_quantity!(Bandwidth, "a bandwidth", "132 MB/s", printed: BIT_RATE_UNITS, read: BYTE_RATE_UNITS);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use alloc::format;

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
        assert_eq!(format!("{}", ByteCount(64 << 20)), "64 MiB");
        assert_eq!(format!("{}", ByteCount(1500)), "1.5 kB");
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
