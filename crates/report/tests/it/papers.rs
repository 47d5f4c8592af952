//! Published values and ours: as text, as a page, and as figures.

use crate::texts::snapshot;
use evb_record::{Curve, Figure, Kind, PaperColumn, PaperItem, PaperReport, PaperTable, Relation, Verdict};
use evb_report::{NARROW, figure, paper_page, paper_summary};

fn item(name: &str, relation: Relation, published: Option<f64>, reproduced: f64, verdict: Verdict) -> PaperItem {
    PaperItem {
        kind: Kind::Paper,
        paper: "a-paper".into(),
        item: name.into(),
        what: format!("what {name} is, <in words>"),
        place: "table 1".into(),
        unit: "MB/s".into(),
        relation,
        published,
        reproduced,
        difference: published.map(|published| reproduced - published),
        tolerance: 1.0,
        within: verdict != Verdict::Outside,
        verdict,
        because: "its last digit".into(),
        measured_with: None,
        seed: 1,
        version: "0".into(),
    }
}

pub(crate) fn report() -> PaperReport {
    let table = |column: &str, indices: &[usize]| PaperColumn { name: column.into(), items: indices.to_vec() };
    PaperReport {
        slug: "a-paper".into(),
        title: "A paper".into(),
        year: 2000,
        items: vec![
            item("equal", Relation::Equal, Some(109.0), 103.6, Verdict::Outside),
            item("least", Relation::AtLeast, Some(95.0), 98.76543, Verdict::Within),
            item("most", Relation::AtMost, Some(0.001), 0.0, Verdict::Within),
            item("set", Relation::Equal, Some(4.0), 4.0001, Verdict::Calibrated),
            item("shown", Relation::Shown, None, 12_345_678.0, Verdict::Shown),
            item("t.a.1", Relation::Equal, Some(1.0), 1.5, Verdict::Within),
            item("t.a.2", Relation::Equal, Some(2.0), 4.0, Verdict::Outside),
            item("t.b.1", Relation::Shown, None, 3.0, Verdict::Shown),
            item("t.b.2", Relation::Shown, None, f64::NAN, Verdict::Shown),
        ],
        tables: vec![PaperTable {
            name: "t".into(),
            what: "a table".into(),
            place: "table 2".into(),
            unit: "%".into(),
            row_name: "N".into(),
            rows: vec!["1".into(), "2".into()],
            columns: vec![table("a", &[5, 6]), table("b", &[7, 8])],
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

#[test]
fn the_page_of_a_paper_has_everything_and_escapes_it() {
    let page = paper_page(&[report()], |name| name == "a-paper-fig.svg");
    for part in ["A paper", "what equal is, &lt;in words&gt;", "a table", "a-paper-fig.svg", "papers/a-paper/README.md"]
    {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!paper_page(&[report()], |_| false).contains("<img"));
}

/// On a phone tables and figures scroll, each in a box of its own; the page has colours for light and for dark.
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
    for name in ["within", "outside", "calibrated"] {
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
