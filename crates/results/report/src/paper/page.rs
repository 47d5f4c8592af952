//! Papers as a web page without external resources but its figures.

use super::{
    cells_of, class, heading, headline, in_unit, published, signed, single_items, tolerance, verdict, with_unit,
};
use evb_record::{Class, PaperItem, PaperReport, PaperTable, Verdict};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Style of the page: the house style of the plots, light or dark as the reader prefers. Wide content scrolls in a box
/// that is separate, so that the page itself never does.
const STYLE: &str = "
:root { color-scheme: light dark; --page: #ffffff; --ink: #202020; --grey: #606060; --grid: #e0e0e0;
  --inside: #007a56; --outside: #b00020; --calibrated: #806000; --link: #0050a0; }
@media (prefers-color-scheme: dark) { :root { --page: #16181c; --ink: #e6e6e6; --grey: #a6a9ae; --grid: #3a3d42;
  --inside: #4cc99a; --outside: #ff7a85; --calibrated: #d9b13b; --link: #7ab8f5; } }
body { font: 15px/1.45 sans-serif; color: var(--ink); background: var(--page); max-width: 1060px; margin: 2em auto; padding: 0 1em;
  overflow-wrap: break-word; } a { color: var(--link); }
h1 { font-size: 1.5em; } h2 { font-size: 1.25em; margin-top: 2.2em; border-top: 2px solid var(--grey); padding-top: .6em; }
h3 { font-size: 1em; margin: 1.6em 0 .4em; } .place { color: var(--grey); font-weight: normal; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .4em 0; }
th, td { padding: .2em .7em; border-bottom: 1px solid var(--grid); vertical-align: top; } td:first-child { min-width: 11em; }
td.n:first-child { min-width: 0; } th { text-align: left; font-weight: 600; vertical-align: bottom; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } td.n { white-space: nowrap; }
.inside { color: var(--inside); } .outside { color: var(--outside); font-weight: 600; } .calibrated { color: var(--calibrated); }
.shown { color: var(--grey); } img { max-width: 100%; min-width: 640px; height: auto; } figure { margin: 1em 0; }
.why { color: var(--grey); font-size: .9em; }
@media (max-width: 600px) { body { margin: 1em auto; padding: 0 .7em; } ul { padding-left: 1.2em; } th, td { padding: .2em .45em; } }
";

/// The page of all reports. The figures are files beside it, `<slug>-<figure>.svg`; `has_figure` tells which of them
/// exist.
pub fn paper_page(reports: &[PaperReport], has_figure: impl Fn(&str) -> bool) -> String {
    let items: Vec<_> = reports.iter().flat_map(|report| report.items.iter().cloned()).collect();
    let (seed, version) = items.first().map_or((0, ""), |item| (item.seed, item.version.as_str()));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Published papers and evb" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Published papers, and what evb makes of them" }
                p { (headline(&items)) ". Seed " (seed) ", evb " (version) "." }
                ul {
                    @for report in reports {
                        li { a href={ "#" (report.slug) } { (report.title) } " (" (report.year) "): " (headline(&report.items)) }
                    }
                }
                @if has_figure("errors.svg") {
                    figure { div.wide tabindex="0" { img src="errors.svg" alt="errors of all predicted values"; } }
                }
                @for report in reports { (paper(report, &has_figure)) }
            }
        }
    }
    .into_string()
}

fn paper(report: &PaperReport, has_figure: &impl Fn(&str) -> bool) -> Markup {
    html! {
        h2 id=(report.slug) { (report.title) " " span.place { "(" (report.year) ")" } }
        p { (headline(&report.items)) ". Only what is predicted counts. More: papers/" (report.slug) "/README.md." }
        (singles(report))
        @for one in &report.tables { (table(report, one)) }
        @for figure in &report.figures {
            @let file = format!("{}-{}.svg", report.slug, figure.name);
            @if has_figure(&file) {
                figure {
                    h3 { (figure.what) " " span.place { (figure.place) } }
                    div.wide tabindex="0" { img src=(file) alt=(figure.what); }
                }
            }
        }
    }
}

fn singles(report: &PaperReport) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            tr { th { "value" } th.n { "published" } th.n { "ours" } th.n { "difference" } th.n { "tolerance" } th { "class" } th { "verdict" } }
            @for item in single_items(report) {
                tr title=(item.item) {
                    td { (item.what) " " span.place { (item.place) } @for why in reasons(item) { br; span.why { (why) } } }
                    td.n { (published(item)) }
                    td.n { (item.reproduced.map_or_else(String::new, |value| with_unit(value, &item.unit))) }
                    td.n { (item.difference.map_or_else(String::new, signed)) }
                    td.n { (tolerance(item)) }
                    td class=(style(item)) { (class(item.class)) }
                    td class=(style(item)) { (verdict(item.verdict)) }
                }
            }
        } }
    }
}

fn table(report: &PaperReport, table: &PaperTable) -> Markup {
    let (header, rows) = cells_of(report, table);
    html! {
        h3 { (heading(&table.what, "")) " " span.place { (table.place) } (in_unit(&table.unit)) }
        div.wide tabindex="0" { table {
            tr { @for name in &header { th.n { (name) } } }
            @for row in &rows {
                tr {
                    @for (text, item) in row {
                        td class={ "n " (item.map_or("", style)) } title=[item.map(|item| item.item.as_str())] { (text) }
                    }
                }
            }
        } }
        @for why in notes(report, table) { p.why { (why) } }
    }
}

/// The reasons for class, tolerance and difference of an item, and the tool of its measurement.
fn reasons(item: &PaperItem) -> impl Iterator<Item = String> {
    let labelled = |what: &str, why: &str| (!why.is_empty()).then(|| format!("{what}: {why}"));
    let known = item.known.as_deref().filter(|_| item.verdict == Verdict::Outside);
    [
        labelled(class(item.class), &item.because),
        labelled("tolerance", &item.error_from),
        labelled("outside", known.unwrap_or_default()),
        labelled("measured with", item.measured_with.as_deref().unwrap_or_default()),
    ]
    .into_iter()
    .flatten()
}

/// The reasons of all cells of a table, each once, with its cells.
fn notes(report: &PaperReport, table: &PaperTable) -> Vec<String> {
    let mut notes = Vec::<(String, Vec<String>)>::new();
    for column in &table.columns {
        for (row, item) in table.rows.iter().zip(column.items.iter().map(|index| &report.items[*index])) {
            for reason in reasons(item) {
                let cell = format!("{} {row}", column.name);
                match notes.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, cells)) => cells.push(cell),
                    None => notes.push((reason, vec![cell])),
                }
            }
        }
    }
    notes.into_iter().map(|(reason, cells)| format!("{reason} ({})", cells.join(", "))).collect()
}

/// The style of an item: how it counts.
fn style(item: &PaperItem) -> &'static str {
    match (item.verdict, item.class) {
        (Verdict::Outside, _) => "outside",
        (_, Class::Predicted) => "inside",
        (_, Class::Calibrated) => "calibrated",
        _ => "shown",
    }
}
