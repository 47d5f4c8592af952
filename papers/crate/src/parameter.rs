//! The parameters of the experiments of a paper: the source of each value, and the range over which it is varied.

use evb_record::Basis;
use serde::Deserialize;

/// A parameter of the experiments of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name, unique in its paper.
    pub name: String,
    /// The origin of its value.
    pub basis: Basis,
    /// Its value in the experiment files.
    pub value: String,
    /// The place in the paper, or the reason for the value and its range.
    pub because: String,
    /// The items that set it, if it is calibrated.
    #[serde(default)]
    pub set_by: Vec<String>,
    /// The experiments that depend on it; all if empty.
    #[serde(default)]
    pub experiments: Vec<String>,
    /// The values at which the sensitivity is looked up, each as a list of overrides `key.path=value`.
    #[serde(default)]
    pub vary: Vec<Vec<String>>,
}

impl Parameter {
    /// The value of the files, and those at which it is varied.
    pub fn values(&self) -> Vec<String> {
        [self.value.clone()].into_iter().chain(self.vary.iter().map(|overrides| label(overrides))).collect()
    }

    /// Returns true if this experiment depends on it.
    pub fn concerns(&self, experiment: &str) -> bool {
        self.experiments.is_empty() || self.experiments.iter().any(|name| name == experiment)
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let wrong = |reason: &str| Err(format!("parameter {}: {reason}", self.name));
        match self.basis {
            Basis::Stated if !self.vary.is_empty() => wrong("what is stated is not varied"),
            Basis::Calibrated if self.set_by.is_empty() => wrong("`set_by` must name the items that set it"),
            Basis::Stated | Basis::Assumed if !self.set_by.is_empty() => {
                wrong("only what is calibrated is set by items")
            }
            Basis::Calibrated | Basis::Assumed if self.vary.is_empty() => wrong("`vary` must give its range"),
            _ => Ok(()),
        }
    }
}

/// The values of some overrides, each once.
fn label(overrides: &[String]) -> String {
    let mut values = Vec::new();
    for text in overrides {
        let value = text.split_once('=').map_or(text.as_str(), |(_, value)| value).replace('"', "");
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_of_two_keys_are_named_once() {
        assert_eq!(label(&["host.send=5 us".into(), "host.receive=5 us".into()]), "5 us");
        assert_eq!(label(&["control={ type = \"shared\" }".into()]), "{ type = shared }");
    }
}
