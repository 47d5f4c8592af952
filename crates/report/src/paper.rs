//! Papers: published and reproduced values, as text and as a web page.

mod page;

use crate::{
    table::{ALWAYS, Column, Table, beside},
    text::{hanging, significant},
};
use evb_record::{PaperItem, PaperReport, PaperTable, Relation, Verdict};
pub use page::paper_page;
use std::{collections::BTreeSet, fmt::Write as _};

/// A paper as text: its tables, then all other values, then the number of those inside their tolerance.
pub fn paper_summary(report: &PaperReport, width: usize) -> String {
    let mut text = hanging("", &format!("{} ({}): {}", report.title, report.year, report.slug), width);
    for table in &report.tables {
        let title = heading(&table.what, &table.place) + &in_unit(&table.unit);
        let _infallible = writeln!(text, "\n{}{}", hanging("", &title, width), cells(report, table, width));
    }
    let mut table = Table::new([
        Column::sentence(""),
        Column::number("published", ALWAYS),
        Column::number("ours", ALWAYS),
        Column::number("difference", 2),
        Column::number("tolerance", 1),
        Column::word("verdict"),
    ]);
    for item in single_items(report) {
        table.row([
            heading(&item.what, &item.place),
            published(item),
            with_unit(item.reproduced, &item.unit),
            item.difference.map_or_else(String::new, signed),
            tolerance(item),
            verdict(item.verdict).to_owned(),
        ]);
    }
    let _infallible = writeln!(text, "\n{}\n", table.draw(width));
    text.push_str(&hanging("", last_line(&report.items).trim_end(), width));
    text
}

/// Number of items of all papers with each verdict.
pub fn paper_totals(items: &[PaperItem], width: usize) -> String {
    hanging("all papers: ", last_line(items).trim_end(), width)
}

/// Number of items with each verdict; the bad ones first.
fn last_line(items: &[PaperItem]) -> String {
    let kinds = [Verdict::Outside, Verdict::Within, Verdict::Calibrated, Verdict::Shown];
    let count = |kind: Verdict| items.iter().filter(|item| item.verdict == kind).count();
    let counts = kinds.into_iter().filter(|kind| count(*kind) > 0);
    let parts: Vec<_> = counts.map(|kind| format!("{} {}", count(kind), explained(kind))).collect();
    format!("{}\n", parts.join(", "))
}

fn explained(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Outside => "outside their tolerance",
        Verdict::Within => "within their tolerance",
        Verdict::Calibrated => "calibrated, which proves nothing",
        Verdict::Shown => "only shown, since nothing is published",
    }
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
            let mark = |item: Option<&PaperItem>| if item.is_none_or(|item| item.within) { "" } else { " !" };
            shown.row(row.into_iter().map(|(text, item)| text + mark(item)));
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
            cells.push((number(item.reproduced), Some(item)));
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
    match item.relation {
        Relation::Shown => String::new(),
        _ => number(item.tolerance),
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Within => "within",
        Verdict::Outside => "OUTSIDE",
        Verdict::Calibrated => "calibrated",
        Verdict::Shown => "",
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
