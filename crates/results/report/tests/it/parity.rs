//! How well papers are predicted: findings, their errors, and the plot of published against predicted values.

use crate::papers::report;
use evb_record::{Class, PaperFinding, PaperReport, Relation};
use evb_report::{paper_parity, papers_differences, papers_figure, papers_findings, papers_sentences};

/// The report, with one finding of all its predicted values.
fn joined() -> PaperReport {
    let items = vec![0, 1, 8];
    PaperReport {
        findings: vec![PaperFinding { name: "all".into(), items, causes: vec!["a cause".into()] }],
        ..report()
    }
}

fn of_theory(mut report: PaperReport) -> PaperReport {
    report.items.iter_mut().for_each(|item| item.theory = true);
    report
}

/// The rows of a table behind its two lines of header.
fn rows(table: &str) -> Vec<&str> {
    table.lines().skip(2).collect()
}

#[test]
fn a_finding_is_inside_only_if_all_its_values_are() {
    let table = papers_findings(&[report()], "p", false);
    let numbers = "| 1 of 3 | 17.4 % | 1 of 3 | 17.4 % | +100.0 % (`t.a.2`) |  |";
    assert_eq!(rows(&table), [format!("| [a-paper](p/a-paper/README.md) {numbers}"), format!("| **all** {numbers}")]);
    let table = papers_findings(&[joined()], "p", false);
    let numbers = "| 0 of 1 | 17.4 % | 1 of 3 | 17.4 % | +100.0 % (`t.a.2`) |";
    assert_eq!(
        rows(&table),
        [format!("| [a-paper](p/a-paper/README.md) {numbers} a cause |"), format!("| **all** {numbers}  |")]
    );
}

/// The value counts with the stored seed, its finding does not.
#[test]
fn a_finding_whose_value_is_outside_with_other_seeds_is_not_inside() {
    let mut report = report();
    report.items[1].varies = true;
    let table = papers_findings(&[report], "p", false);
    assert!(table.contains("| 0 of 3 | 17.4 % | 1 of 3 |"), "{table}");
}

#[test]
fn a_value_that_is_outside_with_other_seeds_is_in_the_list() {
    let mut item = report().items.remove(1);
    (item.known, item.varies) = (Some("a reason".into()), true);
    let list = papers_differences(&[item]);
    assert_eq!(
        list,
        "- *a-paper*: `near` (predicted) 103 instead of 100 MB/s, outside with other seeds. Reason: a reason.\n"
    );
}

#[test]
fn sentences_and_figure_count_theory_apart() {
    let theory = of_theory(PaperReport { slug: "theory".into(), ..report() });
    let sentences = papers_sentences(&[report(), theory.clone()]);
    let expected = "evb predicts 3 measurements of 1 published papers, with no parameter set by any of them. They are 3 \
                    independent findings: the median error is 17.4 %, and 1 findings, with 1 of the 3 values, are inside \
                    their tolerance.";
    assert_eq!(sentences.split_whitespace().collect::<Vec<_>>().join(" "), expected);
    let figure = papers_figure(&[report(), theory]);
    assert_eq!(figure, "median error 17.4 %; 1 of 3 findings inside, 1 of 3 values; theory: 1 of 3 values");
}

/// A value without a number is no reason for a small error.
#[test]
fn a_value_that_is_no_number_has_an_infinite_error() {
    let mut report = joined();
    for index in [0, 8] {
        let item = &mut report.items[index];
        (item.reproduced, item.difference) = (None, None);
    }
    let table = papers_findings(&[report], "p", false);
    assert!(table.contains("| 0 of 1 | inf % | 1 of 3 | inf % | +inf %"), "{table}");
}

#[test]
fn the_error_of_a_bound_that_holds_is_zero() {
    let mut item = report().items.remove(0);
    assert_eq!(item.class, Class::Predicted);
    for (relation, error) in [(Relation::Equal, -17.4), (Relation::AtLeast, -17.4), (Relation::AtMost, 0.0)] {
        item.relation = relation;
        let found = item.error_percent().expect("a number");
        assert!((found - error).abs() < 0.1, "{relation:?}: {found}");
    }
}

#[test]
fn the_parity_plot_has_all_predicted_measurements_and_nothing_else() {
    let points = |report: PaperReport| {
        let svg = paper_parity(&[report]).expect("predicted values");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        // Two bands, one paper, full and hollow.
        svg.matches("<polygon").count() - 5
    };
    assert_eq!(points(report()), 3);
    assert_eq!(points(joined()), 3);
    let mut without = joined();
    (without.items[0].reproduced, without.items[1].relation) = (None, Relation::AtLeast);
    assert_eq!(points(without), 1, "a bound and a value without a number have no point");
    assert_eq!(paper_parity(&[of_theory(report())]), None);
    let svg = paper_parity(&[report()]).expect("predicted values");
    assert!(svg.contains("t.a.2 +100 %"), "what is far off has its name: {svg}");
}
