//! The verdict on a result.

use serde::{Deserialize, Serialize};

/// The verdict on a result, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The run did what the experiment file asked for.
    #[default]
    Good,
    /// Whether the result is good cannot be told.
    CannotTell,
    /// The run did not do what the experiment file asked for.
    NotGood,
}

impl Outcome {
    /// The verdict in words: `good`, `cannot tell` or `not good`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::CannotTell => "cannot tell",
            Self::NotGood => "not good",
        }
    }

    /// The verdict in records: `good`, `cannot_tell` or `not_good`.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::CannotTell => "cannot_tell",
            Self::NotGood => "not_good",
        }
    }

    /// The verdict with this name in records; `None` for another text.
    pub fn from_key(key: &str) -> Option<Self> {
        [Self::Good, Self::CannotTell, Self::NotGood].into_iter().find(|outcome| outcome.key() == key)
    }

    /// The worst of several verdicts; good if there are none.
    pub fn worst(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().max().unwrap_or_default()
    }
}

/// Good or not good, where every result can be told.
impl From<bool> for Outcome {
    fn from(good: bool) -> Self {
        if good { Self::Good } else { Self::NotGood }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_verdict_decides() {
        let (good, open, bad) = (Outcome::Good, Outcome::CannotTell, Outcome::NotGood);
        assert_eq!(Outcome::worst([]), good);
        assert_eq!(Outcome::worst([good, open, good]), open);
        assert_eq!(Outcome::worst([open, bad, good]), bad);
    }

    #[test]
    fn names_in_records_are_read_again() {
        for outcome in [Outcome::Good, Outcome::CannotTell, Outcome::NotGood] {
            assert_eq!(serde_json::to_value(outcome).expect("JSON"), outcome.key());
            assert_eq!(Outcome::from_key(outcome.key()), Some(outcome));
        }
    }
}
