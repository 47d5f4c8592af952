//! The class of an item: what its agreement would prove. Folders declare it only where no simulation can find it.
//!
//! An item is *predicted* unless something speaks against it:
//!
//! 1. nothing is published, or the folder declares another class;
//! 2. the item sets a parameter: it is calibrated;
//! 3. it is the same number as an item that sets a parameter, since their ratio (or product) stays the same wherever
//!    the parameters are varied: it is implied;
//! 4. it is inside, but outside at every other value of an assumption: it is calibrated.

use crate::{item::Item, published::Published};
use evb_record::{Basis, Class, Relation, Sensitivity};

/// Two items are the same number if their logarithms differ by at most this at all values of all parameters.
const SAME: f64 = 0.001;
/// Two items that move less than this at all of them are not compared.
const MOVES: f64 = 0.01;

/// The class of an item and the reason for it.
pub(crate) fn classify(item: &Item, published: &Published, sensitivity: &[Sensitivity]) -> (Class, String) {
    if let Some(declared) = item.class {
        return (declared.into(), item.because.clone());
    }
    if item.expected().0 == Relation::Shown {
        return (Class::Unpublished, String::new());
    }
    if let Some(parameter) = published.parameters.iter().find(|one| one.set_by.contains(&item.name)) {
        return (Class::Calibrated, format!("sets {}", parameter.name));
    }
    let setters = published.parameters.iter().flat_map(|parameter| &parameter.set_by);
    if let Some(setter) = setters.clone().find(|setter| is_same(&item.name, setter, sensitivity)) {
        return (Class::Implied, format!("the same number as {setter}, which sets a parameter"));
    }
    match sensitivity.iter().find(|parameter| holds_only_here(item, parameter)) {
        Some(parameter) => (Class::Calibrated, format!("holds only at this value of {}", parameter.parameter)),
        None => (Class::Predicted, String::new()),
    }
}

/// The logarithms of an item at all values of all parameters, relative to its value in the files.
fn moves(item: &str, sensitivity: &[Sensitivity]) -> Vec<f64> {
    let of_parameter = |parameter: &Sensitivity| -> Vec<f64> {
        let others = parameter.values.len().saturating_sub(1);
        match parameter.items.get(item).map(Vec::as_slice) {
            Some([Some(here), rest @ ..]) => rest.iter().map(|it| (it.unwrap_or(f64::NAN) / here).ln()).collect(),
            _ => vec![0.0; others],
        }
    };
    sensitivity.iter().flat_map(of_parameter).collect()
}

fn is_same(item: &str, setter: &str, sensitivity: &[Sensitivity]) -> bool {
    let (one, other) = (moves(item, sensitivity), moves(setter, sensitivity));
    let agree = |sign: f64| one.iter().zip(&other).all(|(one, other)| (one - sign * other).abs() <= SAME);
    other.iter().any(|change| change.abs() >= MOVES) && (agree(1.0) || agree(-1.0))
}

/// Returns true if the item is inside at the assumed value of a parameter and at no other.
fn holds_only_here(item: &Item, parameter: &Sensitivity) -> bool {
    let inside = |value: &Option<f64>| item.is_inside(value.unwrap_or(f64::NAN));
    let Some([here, others @ ..]) = parameter.items.get(&item.name).map(Vec::as_slice) else { return false };
    parameter.basis == Basis::Assumed && !others.is_empty() && inside(here) && !others.iter().any(inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_record::RecordKind;
    use std::collections::BTreeMap;

    const PUBLISHED: &str = r#"
title = "A paper"
year = 2000
item = [
  { name = "set", what = "", place = "", published = 100 },
  { name = "same", what = "", place = "", published = 50 },
  { name = "inverse", what = "", place = "", published = 0.01 },
  { name = "free", what = "", place = "", published = 10 },
  { name = "hangs", what = "", place = "", published = 10 },
  { name = "reading", what = "", place = "", published = 1, class = "words", because = "linear" },
  { name = "ours", what = "", place = "" },
]
parameter = [
  { name = "rate", basis = "calibrated", value = "1", because = "fit", set_by = ["set"], vary = [["a=0.9"], ["a=1.1"]] },
  { name = "delay", basis = "assumed", value = "1", because = "cable", vary = [["b=0"], ["b=2"]] },
]
"#;

    fn sensitivity(parameter: &str, basis: Basis, items: &[(&str, [f64; 3])]) -> Sensitivity {
        let items = items.iter().map(|(name, values)| ((*name).into(), values.map(Some).to_vec()));
        Sensitivity {
            kind: RecordKind::Sensitivity,
            paper: "slug".into(),
            parameter: parameter.into(),
            basis,
            because: String::new(),
            set_by: Vec::new(),
            values: ["1", "0", "2"].map(String::from).to_vec(),
            items: BTreeMap::from_iter(items),
            seed: 1,
            version: "0".into(),
        }
    }

    #[test]
    fn the_class_follows_from_which_items_move_with_which() {
        let published = Published::parse(PUBLISHED).expect("valid");
        let calibrated = [
            ("set", [100.0, 90.0, 110.0]),
            ("same", [50.0, 45.0, 55.0]),
            ("inverse", [0.01, 0.01 / 0.9, 0.01 / 1.1]),
            ("free", [10.0, 9.5, 10.5]),
        ];
        let rows = [
            sensitivity("rate", Basis::Calibrated, &calibrated),
            sensitivity("delay", Basis::Assumed, &[("hangs", [10.0, 9.0, 11.0]), ("free", [10.0, 10.2, 11.0])]),
        ];
        let found = published.items.iter().map(|item| classify(item, &published, &rows).0);
        use Class::*;
        let expected = [Calibrated, Implied, Implied, Predicted, Calibrated, Words, Unpublished];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
