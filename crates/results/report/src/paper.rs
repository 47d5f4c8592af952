//! Papers: published and reproduced values, as text and as a web page.

mod findings;
mod markdown;
mod overview;
mod page;
mod sensitivity;

use crate::{
    table::{ALWAYS, Column, Table, beside},
    text::{hanging, significant},
};
use evb_record::{Class, PaperItem, PaperReport, PaperTable, Relation, Verdict};
pub(crate) use findings::{Finding, Score, by_paper, findings, percent};
pub use markdown::{papers_bands, papers_classes, papers_differences};
pub use overview::{papers_figure, papers_findings, papers_sentences};
pub use page::paper_page;
pub use sensitivity::sensitivity_summary;
use std::{collections::BTreeSet, fmt::Write as _, slice};

/// A paper as text: its tables, then all other values, what is not modelled, and what is outside; the last line counts.
pub fn paper_summary(report: &PaperReport, width: usize) -> String {
    let mut text = hanging("", &format!("{} ({}): {}", report.title, report.year, report.slug), width);
    for table in &report.tables {
        let title = heading(&table.what, &table.place) + &in_unit(&table.unit);
        let _infallible = writeln!(text, "\n{}{}", hanging("", &title, width), cells(report, table, width));
    }
    if !report.tables.is_empty() {
        text.push_str(&hanging("", "! outside, * calibrated, = implied, ~ our reading of words", width));
    }
    let mut table = Table::new([
        Column::sentence(""),
        Column::number("published", ALWAYS),
        Column::number("ours", ALWAYS),
        Column::number("difference", 2),
        Column::number("tolerance", 1),
        Column::word("class"),
        Column::word("verdict"),
    ]);
    for item in single_items(report).filter(|item| item.class != Class::NotModelled) {
        table.row([
            heading(&item.what, &item.place),
            published(item),
            item.reproduced.map_or_else(|| "no number".into(), |value| with_unit(value, &item.unit)),
            item.difference.map_or_else(String::new, signed),
            tolerance(item),
            class(item.class).to_owned(),
            verdict(item.verdict).to_owned(),
        ]);
    }
    let _infallible = writeln!(text, "\n{}\n", table.draw(width));
    for item in report.items.iter().filter(|item| item.class == Class::NotModelled) {
        let line = format!("{}: {}", heading(&item.what, &item.place), item.because);
        text.push_str(&hanging("not modelled: ", &line, width));
    }
    for (names, reason) in known_differences(&report.items) {
        text.push_str(&hanging("outside, as known: ", &format!("{}: {reason}", names.join(", ")), width));
    }
    for (surprise, hint) in surprises(&report.items) {
        text.push_str(&hanging("", &surprise, width));
        text.push_str(&hanging("hint: ", &hint, width));
    }
    text.push_str(&hanging("", &headline(&report.items), width));
    text + &overview::score_lines(slice::from_ref(report), width)
}

/// The headlines of all measurements and of all theory, and their findings.
pub fn paper_totals(reports: &[PaperReport], width: usize) -> String {
    let headline_of = |(name, theory): (&str, bool)| {
        let items = reports.iter().flat_map(|report| &report.items);
        let items: Vec<_> = items.filter(|item| item.theory == theory).cloned().collect();
        (!items.is_empty()).then(|| hanging(name, &headline(&items), width))
    };
    let headlines = [("all measurements: ", false), ("all theory: ", true)].into_iter().filter_map(headline_of);
    headlines.collect::<String>() + &overview::score_lines(reports, width)
}

/// Predicted values inside and outside, then the number of all others.
fn headline(items: &[PaperItem]) -> String {
    let [inside, outside] = predicted(items);
    let others =
        [Class::Calibrated, Class::Implied, Class::Words, Class::Different, Class::NotModelled, Class::Unpublished];
    let count = |kind: Class| items.iter().filter(|item| item.class == kind).count();
    let counted = others.into_iter().filter(|kind| count(*kind) > 0);
    let parts: Vec<_> = counted.map(|kind| format!("{} {}", count(kind), class(kind))).collect();
    let rest = if parts.is_empty() { String::new() } else { format!("; not counted: {}", parts.join(", ")) };
    format!("predicted: {inside} inside, {outside} outside{rest}")
}

/// The number of predicted values inside and outside.
fn predicted(items: &[PaperItem]) -> [usize; 2] {
    let predicted = items.iter().filter(|item| item.class == Class::Predicted);
    [Verdict::Inside, Verdict::Outside].map(|kind| predicted.clone().filter(|item| item.verdict == kind).count())
}

/// The reasons for known differences, each with its items: those that are outside with this seed or with others.
fn known_differences(items: &[PaperItem]) -> Vec<(Vec<&str>, &str)> {
    let mut found = Vec::<(Vec<&str>, &str)>::new();
    let listed = items.iter().filter(|item| item.verdict == Verdict::Outside || item.varies);
    for (item, reason) in listed.filter_map(|item| Some((item, item.known.as_deref()?))) {
        match found.iter_mut().find(|(_, known)| *known == reason) {
            Some((names, _)) => names.push(&item.item),
            None => found.push((vec![&item.item], reason)),
        }
    }
    found
}

/// Items of which the list of known differences says otherwise, each with a hint.
fn surprises(items: &[PaperItem]) -> Vec<(String, String)> {
    let surprise = |item: &PaperItem| {
        let list = format!("list of each `difference` in papers/{}/published.toml", item.paper);
        match item.verdict {
            Verdict::Outside => (
                format!("new difference: {} is outside", item.item),
                format!("find the reason; if it is not a fault, add it to the {list}"),
            ),
            _ => (format!("a difference is gone: {} is inside", item.item), format!("take it out of the {list}")),
        }
    };
    items.iter().filter(|item| !item.is_as_listed()).map(surprise).collect()
}

fn heading(what: &str, place: &str) -> String {
    if place.is_empty() { what.to_owned() } else { format!("{what} ({place})") }
}

/// A table as text for terminals: as many of its columns side by side as fit the width.
fn cells(report: &PaperReport, table: &PaperTable, width: usize) -> String {
    beside(table.columns.len(), width, |part, gap, width| {
        let (columns, rows) = (table.columns[part].to_vec(), table.rows.clone());
        let (header, rows) = cells_of(report, &PaperTable { columns, rows, ..table.clone() });
        let numbers = header[1..].iter().map(|name| Column::number(name, ALWAYS));
        let mut shown = Table::new([Column::sentence(&header[0])].into_iter().chain(numbers)).padded(gap.into(), 1);
        for row in rows {
            shown.row(row.into_iter().map(|(text, item)| text + item.map_or("", mark)));
        }
        shown.draw(width)
    })
}

/// A cell, and the item that it shows if it is a reproduced one.
type Cell<'a> = (String, Option<&'a PaperItem>);

/// Header and rows of a table: published and reproduced values side by side where something was published.
fn cells_of<'a>(report: &'a PaperReport, table: &PaperTable) -> (Vec<String>, Vec<Vec<Cell<'a>>>) {
    let mut header = vec![table.row_name.clone()];
    for column in &table.columns {
        let compares = compares(report, &column.items);
        header.extend(compares.then(|| format!("{}: published", column.name)));
        header.push(if compares { "ours".into() } else { column.name.clone() });
    }
    let row = |(row, name): (usize, &String)| {
        let mut cells = vec![(name.clone(), None)];
        for column in &table.columns {
            let item = &report.items[column.items[row]];
            let published = || (item.published.map_or_else(String::new, number), None);
            cells.extend(compares(report, &column.items).then(published));
            cells.push((item.reproduced.map_or_else(|| "NaN".into(), number), Some(item)));
        }
        cells
    };
    (header, table.rows.iter().enumerate().map(row).collect())
}

fn compares(report: &PaperReport, items: &[usize]) -> bool {
    items.iter().any(|index| report.items[*index].published.is_some())
}

/// The items that are in no table.
fn single_items(report: &PaperReport) -> impl Iterator<Item = &PaperItem> {
    let columns = report.tables.iter().flat_map(|table| &table.columns);
    let in_tables: BTreeSet<_> = columns.flat_map(|column| column.items.iter().copied()).collect();
    report.items.iter().enumerate().filter(move |(index, _)| !in_tables.contains(index)).map(|(_, item)| item)
}

fn published(item: &PaperItem) -> String {
    let sign = match item.relation {
        Relation::AtLeast => "\u{2265} ",
        Relation::AtMost => "\u{2264} ",
        Relation::Equal | Relation::Shown => "",
    };
    item.published.map_or_else(String::new, |value| format!("{sign}{}", with_unit(value, &item.unit)))
}

fn tolerance(item: &PaperItem) -> String {
    item.tolerance.filter(|_| item.relation == Relation::Equal).map_or_else(String::new, number)
}

/// The mark of a cell.
fn mark(item: &PaperItem) -> &'static str {
    match (item.verdict, item.class) {
        (Verdict::Outside, _) => " !",
        (_, Class::Calibrated) => " *",
        (_, Class::Implied) => " =",
        (_, Class::Words) => " ~",
        _ => "",
    }
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Predicted => "predicted",
        Class::Calibrated => "calibrated",
        Class::Implied => "implied",
        Class::Words => "in words",
        Class::Different => "different",
        Class::NotModelled => "not modelled",
        Class::Unpublished => "unpublished",
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Inside => "inside",
        Verdict::Outside => "OUTSIDE",
        Verdict::NotJudged => "",
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    if unit.is_empty() { number(value) } else { format!("{} {unit}", number(value)) }
}

/// The unit of a whole table, behind its title.
fn in_unit(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(", in {unit}") }
}

fn signed(value: f64) -> String {
    if value >= 0.0 { format!("+{}", number(value)) } else { number(value) }
}

/// A number with four significant digits; large numbers with all digits.
fn number(value: f64) -> String {
    if value.abs() >= 1e7 { format!("{value}") } else { significant(value, 4) }
}
