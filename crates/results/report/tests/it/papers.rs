//! Published values and ours: as text, as a page, and as figures.

use crate::texts::snapshot;
use evb_record::{
    Basis, Class, Curve, Figure, PaperColumn, PaperFinding, PaperItem, PaperReport, PaperTable, RecordKind, Relation,
    Sensitivity, Verdict,
};
use evb_report::{NARROW, figure, paper_errors, paper_page, paper_summary, papers_bands, sensitivity_summary};
use std::collections::BTreeMap;

fn item(name: &str, relation: Relation, published: Option<f64>, reproduced: f64, class: Class) -> PaperItem {
    let tolerance = published.map(|published| published.abs() * 0.05);
    let is_inside = relation.holds(reproduced, published.unwrap_or_default(), tolerance.unwrap_or_default());
    PaperItem {
        kind: RecordKind::Paper,
        paper: "a-paper".into(),
        item: name.into(),
        what: format!("what {name} is, <in words>"),
        place: "table 1".into(),
        unit: "MB/s".into(),
        relation,
        published,
        reproduced: Some(reproduced).filter(|value| value.is_finite()),
        difference: published.map(|published| reproduced - published),
        tolerance,
        error_from: String::new(),
        class,
        because: if class == Class::Predicted { String::new() } else { "a reason".into() },
        verdict: match published {
            None => Verdict::NotJudged,
            Some(_) if is_inside => Verdict::Inside,
            Some(_) => Verdict::Outside,
        },
        theory: false,
        known: None,
        varies: false,
        measured_with: None,
        seed: 1,
        version: "0".into(),
    }
}

fn known(item: PaperItem) -> PaperItem {
    PaperItem { known: Some("the setup of receiving is not modelled".into()), ..item }
}

pub(crate) fn report() -> PaperReport {
    let finding =
        |name: &str, items: &[usize]| PaperFinding { name: name.into(), items: items.to_vec(), causes: Vec::new() };
    let table = |column: &str, indices: &[usize]| PaperColumn { name: column.into(), items: indices.to_vec() };
    PaperReport {
        slug: "a-paper".into(),
        title: "A paper".into(),
        year: 2000,
        items: vec![
            known(item("equal", Relation::Equal, Some(109.0), 90.0, Class::Predicted)),
            item("near", Relation::Equal, Some(100.0), 103.0, Class::Predicted),
            item("new", Relation::AtLeast, Some(95.0), 80.0, Class::Words),
            known(item("gone", Relation::Equal, Some(10.0), 10.0, Class::Implied)),
            item("set", Relation::Equal, Some(4.0), 4.0001, Class::Calibrated),
            item("shown", Relation::Shown, None, 12_345_678.0, Class::Unpublished),
            item("absent", Relation::Shown, None, f64::NAN, Class::NotModelled),
            item("t.a.1", Relation::Equal, Some(1.0), 1.01, Class::Implied),
            known(item("t.a.2", Relation::Equal, Some(2.0), 4.0, Class::Predicted)),
            item("t.b.1", Relation::Shown, None, 3.0, Class::Unpublished),
            item("t.b.2", Relation::Shown, None, f64::NAN, Class::Unpublished),
        ],
        findings: vec![finding("equal", &[0]), finding("near", &[1]), finding("t.a", &[8])],
        tables: vec![PaperTable {
            name: "t".into(),
            what: "a table".into(),
            place: "table 2".into(),
            unit: "%".into(),
            row_name: "N".into(),
            rows: vec!["1".into(), "2".into()],
            columns: vec![table("a", &[7, 8]), table("b", &[9, 10])],
        }],
        figures: vec![Figure {
            name: "fig".into(),
            what: "a figure".into(),
            place: "figure 1".into(),
            x: "size (B)".into(),
            y: "throughput (MB/s)".into(),
            x_log: true,
            y_log: false,
            curves: vec![Curve { label: "ours".into(), points: vec![(64.0, 1.0), (1024.0, f64::NAN), (4096.0, 3.0)] }],
            published: vec![Curve { label: "ours".into(), points: vec![(64.0, 1.1)] }],
        }],
    }
}

#[test]
fn the_summary_of_a_paper() {
    snapshot("paper", &paper_summary(&report(), NARROW));
    assert!(!report().good());
}

/// `near` leaves its tolerance at one end of the range, `equal` moves and stays outside.
fn sensitivity() -> Sensitivity {
    let items = [("near", [103.0, 98.0, 108.0]), ("equal", [90.0, 88.0, 92.0])];
    Sensitivity {
        kind: RecordKind::Sensitivity,
        paper: "a-paper".into(),
        parameter: "link.delay".into(),
        basis: Basis::Assumed,
        because: "3 m of cable".into(),
        set_by: Vec::new(),
        values: ["15 ns", "0 s", "75 ns"].map(String::from).to_vec(),
        items: BTreeMap::from_iter(items.map(|(name, values)| (name.into(), values.map(Some).to_vec()))),
        seed: 1,
        version: "0".into(),
    }
}

#[test]
fn the_sensitivity_of_a_paper() {
    snapshot("sensitivity", &sensitivity_summary(&report(), &[sensitivity()], NARROW));
    let bands = papers_bands(&report().items, &[sensitivity()]);
    assert!(bands.contains("| `near` | 100 MB/s | 103 | 98 to 108 | inside |"), "{bands}");
    assert!(bands.contains("| `equal` | 109 MB/s | 90 | 88 to 92 | **outside** |"), "{bands}");
    assert!(bands.contains("| `near`: 103, 98, 108! |"), "{bands}");
}

#[test]
fn every_predicted_value_is_a_mark() {
    let svg = paper_errors(&report().items).expect("there are predicted values");
    assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
    assert!(svg.contains("1 inside, 2 outside"), "{svg}");
    assert_eq!(paper_errors(&[]), None);
}

#[test]
fn the_page_of_a_paper_has_everything_and_escapes_it() {
    let page = paper_page(&[report()], |name| name == "a-paper-fig.svg");
    for part in ["A paper", "what equal is, &lt;in words&gt;", "a table", "a-paper-fig.svg", "papers/a-paper/README.md"]
    {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!paper_page(&[report()], |_| false).contains("<img"));
}

/// On a phone tables and figures scroll, each in a separate box; the page has colours for light and for dark.
#[test]
fn the_page_of_a_paper_fits_narrow_and_dark_screens() {
    let page = paper_page(&[report()], |_| true);
    assert!(page.contains("content=\"width=device-width, initial-scale=1\""), "{page}");
    assert!(page.contains("@media (prefers-color-scheme: dark)"), "{page}");
    for what in ["<table", "<img"] {
        let boxed = page.matches(&format!("<div class=\"wide\" tabindex=\"0\">{what}")).count();
        assert!(boxed > 0 && boxed == page.matches(what).count(), "{what}");
    }
    let (style, body) = page.split_once("</style>").expect("a style");
    assert!(!body.contains("style="), "all colours are in one place");
    for name in ["inside", "outside", "calibrated"] {
        assert_eq!(style.matches(&format!("--{name}: #")).count(), 2, "{name}: one for light, one for dark");
    }
}

#[test]
fn published_points_are_hollow_marks_in_the_colour_of_our_curve() {
    let svg = figure(&report().figures[0]).expect("two points can be drawn");
    assert!(svg.contains("ours (published)"), "{svg}");
    assert!(!svg.contains("NaN"), "{svg}");
    let mut empty = report().figures.remove(0);
    empty.curves.clear();
    assert_eq!(figure(&empty), None);
}
