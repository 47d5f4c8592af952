//! The values that move with a parameter.

use crate::{Paper, PaperError, Parameter};
use evb_record::{PaperReport, RecordKind, Relation, Sensitivity};

/// Items that move by less than this part of their value do not count as moved.
const STILL: f64 = 1e-3;
/// Differences of sums of decimal fractions.
const DUST: f64 = 1e-9;

impl Paper {
    /// The sensitivity to a parameter: `here` is the report with its value in the files, and `varied` has one report
    /// for each value at which it is varied.
    ///
    /// # Errors
    /// The folder of the paper is invalid.
    pub fn sensitivity(
        &self,
        parameter: &Parameter,
        here: &PaperReport,
        varied: &[PaperReport],
    ) -> Result<Sensitivity, PaperError> {
        let missing = || PaperError::Missing { name: parameter.name.clone() };
        let first = here.items.first().ok_or_else(missing)?;
        let compared = here.items.iter().enumerate().filter(|(_, item)| item.relation != Relation::Shown);
        let values = |index: usize| -> Vec<Option<f64>> {
            [here].into_iter().chain(varied).map(|report| report.items[index].reproduced).collect()
        };
        let moved = compared.map(|(index, item)| (item.item.clone(), values(index)));
        Ok(Sensitivity {
            kind: RecordKind::Sensitivity,
            paper: self.slug.to_owned(),
            parameter: parameter.name.clone(),
            basis: parameter.basis,
            because: parameter.because.clone(),
            set_by: parameter.set_by.clone(),
            values: parameter.values(),
            items: moved.filter(|(_, values)| moves(values)).collect(),
            seed: first.seed,
            version: first.version.clone(),
        })
    }
}

/// Returns true if one of the values differs from the first one.
fn moves(values: &[Option<f64>]) -> bool {
    let Some((here, others)) = values.split_first() else { return false };
    others.iter().any(|other| match (here, other) {
        (Some(here), Some(other)) => (other - here).abs() > STILL * here.abs() + DUST,
        _ => here.is_some() != other.is_some(),
    })
}
