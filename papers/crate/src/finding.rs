//! Independent findings: predicted values, of which those from one experiment count once.
//!
//! The predicted cells of a column of a table are one finding, and so is every other predicted value. The key `finding`
//! of a column or an item joins it with others.

use crate::{item::Item, published::Published};
use evb_record::{Class, PaperFinding, PaperItem, Verdict};
use std::collections::BTreeMap;

/// The findings of a paper, in the order of their first items.
pub(crate) fn findings(published: &Published, items: &[PaperItem]) -> Vec<PaperFinding> {
    let mut findings = Vec::<PaperFinding>::new();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| item.class == Class::Predicted) {
        let name = published.item(&item.item).and_then(|item| item.finding.as_ref()).unwrap_or(&item.item);
        let place = findings.iter().position(|finding| finding.name == *name).unwrap_or(findings.len());
        if place == findings.len() {
            findings.push(PaperFinding { name: name.clone(), items: Vec::new(), causes: Vec::new() });
        }
        let finding = &mut findings[place];
        finding.items.push(index);
        let known = published.known(&item.item).filter(|one| one.varies || item.verdict == Verdict::Outside);
        let cause = known.map(|difference| difference.cause().to_owned());
        finding.causes.extend(cause.filter(|cause| !finding.causes.contains(cause)));
    }
    findings
}

/// Checks that each finding is either a measurement or theory.
pub(crate) fn check(items: &[Item]) -> Result<(), String> {
    let mut known = BTreeMap::new();
    for item in items {
        let Some(finding) = &item.finding else { continue };
        if *known.entry(finding).or_insert(item.theory) != item.theory {
            return Err(format!("the finding {finding} is both a measurement and theory"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report_builder::ReportBuilder;

    const PUBLISHED: &str = r#"
title = "A paper"
year = 2000
item = [
  { name = "alone", what = "a number", place = "", published = 10.0 },
  { name = "first", what = "a number", place = "", published = 10.0, finding = "curve" },
  { name = "sum", what = "a number", place = "", published = 10.0, class = "implied", because = "a sum" },
  { name = "second", what = "a number", place = "", published = 10.0, finding = "curve" },
]
difference = [
  { items = ["first"], because = "the 2.5 us are assumed; others would do" },
  { items = ["t.b.2"], because = "a long reason", cause = "a cause" },
]

[[table]]
name = "t"
what = "two rows"
place = ""
rows = { name = "N", values = [1, 2] }
column = [{ name = "a", published = [10.0, 10.0], implied = { "1" = "one is one" } }, { name = "b", published = [10.0, 10.0] }]
"#;

    #[test]
    fn the_predicted_values_of_one_experiment_are_one_finding() {
        let mut report = ReportBuilder::new("slug", Published::parse(PUBLISHED).unwrap(), 7, "0");
        for (name, value) in [("alone", 10.0), ("first", 20.0), ("sum", 10.0), ("second", 10.0)] {
            report.item(name, value).unwrap();
        }
        report.column("t", "a", &[10.0, 10.0]).unwrap();
        report.column("t", "b", &[10.0, 20.0]).unwrap();
        let findings = report.finish(&[]).unwrap().findings;
        let found = findings.iter().map(|finding| (finding.name.as_str(), finding.items.as_slice()));
        let expected: [(&str, &[usize]); 4] = [("alone", &[0]), ("curve", &[1, 3]), ("t.a", &[5]), ("t.b", &[6, 7])];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        let causes: Vec<_> = findings.iter().flat_map(|finding| &finding.causes).collect();
        assert_eq!(causes, ["the 2.5 us are assumed", "a cause"]);
    }

    #[test]
    fn a_finding_that_mixes_measurements_and_theory_is_rejected() {
        let text = PUBLISHED.replacen("finding = \"curve\"", "finding = \"curve\", theory = true", 1);
        let reason = Published::parse(&text).err();
        assert_eq!(reason.as_deref(), Some("the finding curve is both a measurement and theory"));
    }
}
