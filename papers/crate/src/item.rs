//! A published value, its class as far as the folder of the paper declares it, and its tolerance.

use evb_record::{Class, Relation};
use serde::Deserialize;

/// The tolerance of a value without its own error: 5 %.
const RULE_RELATIVE: f64 = 0.05;
/// The tolerance of a value in per cent of saturation: 3 points.
const RULE_POINTS: f64 = 3.0;

/// A single value. With none of `published`, `at_least` and `at_most`, the reproduced value is only shown.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) place: String,
    #[serde(default)]
    pub(crate) unit: String,
    /// True if the value is the result of a theory, in a paper of measurements.
    #[serde(default)]
    pub(crate) theory: bool,
    /// The finding that the value belongs to, if other values come from the same experiment.
    pub(crate) finding: Option<String>,
    pub(crate) published: Option<f64>,
    pub(crate) at_least: Option<f64>,
    pub(crate) at_most: Option<f64>,
    /// The paper's own error or spread, which is the tolerance in place of the rule for all papers.
    pub(crate) error: Option<Error>,
    /// The class, if it is known without the sensitivity.
    pub(crate) class: Option<Declared>,
    /// The reason for the class.
    #[serde(default)]
    pub(crate) because: String,
}

/// An error that the paper states itself, and where.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Error {
    pub(crate) value: f64,
    pub(crate) from: String,
}

/// The classes that a folder declares; the others follow from its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Declared {
    Implied,
    Words,
    Different,
    NotModelled,
}

impl From<Declared> for Class {
    fn from(declared: Declared) -> Self {
        match declared {
            Declared::Implied => Self::Implied,
            Declared::Words => Self::Words,
            Declared::Different => Self::Different,
            Declared::NotModelled => Self::NotModelled,
        }
    }
}

impl Item {
    /// The relation and the value to compare with.
    pub(crate) fn expected(&self) -> (Relation, Option<f64>) {
        let relations =
            [(Relation::Equal, self.published), (Relation::AtLeast, self.at_least), (Relation::AtMost, self.at_most)];
        let given = relations.into_iter().find(|(_, value)| value.is_some());
        given.unwrap_or((Relation::Shown, None))
    }

    /// Largest difference of a value that is inside. A bound has none: it is the value with its error.
    pub(crate) fn tolerance(&self) -> f64 {
        match (&self.error, self.published) {
            (Some(error), _) => error.value,
            (None, Some(_)) if self.unit.starts_with('%') => RULE_POINTS,
            (None, Some(published)) => published.abs() * RULE_RELATIVE,
            (None, None) => 0.0,
        }
    }

    /// Returns true if this reproduced value is inside. NaN is not.
    pub(crate) fn is_inside(&self, reproduced: f64) -> bool {
        let (relation, published) = self.expected();
        relation.holds(reproduced, published.unwrap_or_default(), self.tolerance())
    }

    /// Returns true if there is a reproduced value.
    pub(crate) fn is_modelled(&self) -> bool {
        self.class != Some(Declared::NotModelled)
    }

    /// Returns true if the reproduced value is compared with a published one.
    pub(crate) fn is_judged(&self) -> bool {
        let compares = !matches!(self.class, Some(Declared::NotModelled | Declared::Different));
        compares && self.expected().1.is_some()
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let given = [self.published, self.at_least, self.at_most].iter().flatten().count();
        match () {
            () if given > 1 => Err(format!("{}: published, at_least and at_most exclude each other", self.name)),
            () if self.class.is_some() == self.because.is_empty() => {
                Err(format!("{}: a class needs its reason, `because`, and nothing else has one", self.name))
            }
            () if self.error.as_ref().is_some_and(|error| error.from.is_empty()) => {
                Err(format!("{}: an error needs its place in the paper, `from`", self.name))
            }
            () => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(unit: &str, published: f64) -> Item {
        Item { unit: unit.into(), published: Some(published), ..Item::default() }
    }

    #[test]
    fn the_rule_is_5_per_cent_or_3_points() {
        assert!(item("us", 100.0).is_inside(105.0) && !item("us", 100.0).is_inside(105.1));
        assert!(item("%", 40.0).is_inside(43.0) && !item("%", 40.0).is_inside(36.9));
        let error = Some(Error { value: 10.0, from: "80 to 100".into() });
        assert!(Item { error, ..item("us", 90.0) }.is_inside(100.0));
    }

    #[test]
    fn a_bound_is_inside_and_nan_is_outside() {
        let most = Item { at_most: Some(5.0), ..Item::default() };
        assert!(most.is_inside(5.0) && !most.is_inside(5.1));
        let least = Item { at_least: Some(5.0), ..Item::default() };
        assert!(least.is_inside(6.0) && !least.is_inside(4.9) && !least.is_inside(f64::NAN));
    }
}
