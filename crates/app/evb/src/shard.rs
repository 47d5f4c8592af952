//! Parts of a sweep for several machines.

use std::{fmt, str::FromStr};

/// A part of the points of a sweep, written as its number and the number of all parts: `3/10` is the third of ten.
///
/// The parts take the points in turn, because neighbours cost about the same: with the first tenth of the loads a machine would be
/// done long before the one with the last. Each turn begins one part later than the one before, so that a swept key with as many
/// values as there are parts does not give each part a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Counted from 0.
    index: usize,
    of: usize,
}

impl Shard {
    /// All parts, in order.
    pub fn all(of: usize) -> impl Iterator<Item = Self> {
        (0..of).map(move |index| Self { index, of })
    }

    /// The number of the part, counted from 1.
    pub const fn number(self) -> usize {
        self.index + 1
    }

    /// True if the point with this index is one of the part.
    pub const fn has(self, point: usize) -> bool {
        (point + point / self.of) % self.of == self.index
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number(), self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<usize>().ok();
        match text.split_once('/').and_then(|(part, of)| Some((number(part)?, number(of)?))) {
            Some((number, of)) if 1 <= number && number <= of => Ok(Self { index: number - 1, of }),
            _ => Err("write the number of a part and that of all parts, such as 3/10".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_as_fractions() {
        assert_eq!("3/10".parse(), Ok(Shard { index: 2, of: 10 }));
        assert_eq!(Shard::all(3).map(|part| part.to_string()).collect::<Vec<_>>(), ["1/3", "2/3", "3/3"]);
        for wrong in ["", "3", "0/10", "11/10", "1/0", "-1/3", "1/2/3", "a/b"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_point_is_in_one_part_and_the_parts_are_alike() {
        for of in 1..=12 {
            let parts: Vec<Shard> = (1..=of).map(|number| format!("{number}/{of}").parse().unwrap()).collect();
            for point in 0..200 {
                assert_eq!(parts.iter().filter(|part| part.has(point)).count(), 1, "{point} of {of}");
            }
            let sizes: Vec<_> = parts.iter().map(|part| (0..100).filter(|point| part.has(*point)).count()).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        }
        // Ten sizes in ten parts: a part has each of them once.
        let sizes: Vec<_> =
            (0..100).filter(|point| "3/10".parse::<Shard>().unwrap().has(*point)).map(|p| p % 10).collect();
        assert_eq!(sizes.iter().collect::<std::collections::BTreeSet<_>>().len(), 10, "{sizes:?}");
    }
}
