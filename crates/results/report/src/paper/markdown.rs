//! The generated parts of the page about papers.

use super::{
    class, known_differences, number, predicted, published,
    sensitivity::{band_text, basis, hanging_items, shown_values},
};
use evb_record::{Class, PaperItem, Sensitivity, Verdict};
use std::fmt::Write as _;

/// The classes that do not count.
const NOT_COUNTED: [Class; 6] =
    [Class::Calibrated, Class::Implied, Class::Words, Class::Different, Class::NotModelled, Class::Unpublished];

/// For each paper, for all measurements and for all theory the predicted values inside and outside, and the number of others by class. `folder` is
/// the way to the folders of the papers.
pub fn papers_headline(items: &[PaperItem], folder: &str) -> String {
    let mut text = "| paper | predicted: inside | outside |".to_owned();
    NOT_COUNTED.iter().for_each(|kind| text += &format!(" {} |", class(*kind)));
    text += &format!("\n|---|{}\n", "---:|".repeat(2 + NOT_COUNTED.len()));
    for (all, theory) in [("all measurements", false), ("all theory", true)] {
        let of_kind: Vec<_> = items.iter().filter(|item| item.theory == theory).cloned().collect();
        for (paper, items) in by_paper(&of_kind) {
            text += &row(&format!("[{paper}]({folder}/{paper}/README.md)"), &items);
        }
        if !of_kind.is_empty() {
            text += &row(all, &of_kind.iter().collect::<Vec<_>>());
        }
    }
    text
}

fn row(name: &str, items: &[&PaperItem]) -> String {
    let all: Vec<_> = items.iter().copied().cloned().collect();
    let [inside, outside] = predicted(&all);
    let mut text = format!("| {name} | {inside} | {outside} |");
    for kind in NOT_COUNTED {
        text += &format!(" {} |", items.iter().filter(|item| item.class == kind).count());
    }
    text + "\n"
}

/// The items of each paper, in their order.
fn by_paper(items: &[PaperItem]) -> Vec<(&str, Vec<&PaperItem>)> {
    let mut papers = Vec::<(&str, Vec<&PaperItem>)>::new();
    for item in items {
        match papers.last_mut() {
            Some((paper, items)) if *paper == item.paper => items.push(item),
            _ => papers.push((&item.paper, vec![item])),
        }
    }
    papers
}

/// Everything that is outside, with its reason.
pub fn papers_differences(items: &[PaperItem]) -> String {
    let mut text = String::new();
    for (paper, items) in by_paper(items) {
        let items: Vec<_> = items.into_iter().cloned().collect();
        for (names, reason) in known_differences(&items) {
            let line = |name: &&str| items.iter().find(|item| item.item == **name).map(difference);
            let values: Vec<_> = names.iter().filter_map(line).collect();
            let _infallible = writeln!(text, "- *{paper}*: {}. Reason: {reason}.", values.join("; "));
        }
    }
    text
}

fn difference(item: &PaperItem) -> String {
    let ours = item.reproduced.map_or_else(|| "no number".into(), number);
    format!("`{}` ({}) {ours} instead of {}", item.item, class(item.class), published(item))
}

/// For each paper its predicted values with their bands, and its parameters with what hangs on them.
pub fn papers_bands(items: &[PaperItem], sensitivities: &[Sensitivity]) -> String {
    let mut text = String::new();
    for (paper, items) in by_paper(items) {
        let items: Vec<_> = items.into_iter().cloned().collect();
        let of_paper: Vec<_> = sensitivities.iter().filter(|one| one.paper == paper).cloned().collect();
        let _infallible =
            write!(text, "### {paper}\n\n{}\n{}\n", predictions(&items, &of_paper), parameters(&items, &of_paper));
    }
    text.trim_end().to_owned() + "\n"
}

fn predictions(items: &[PaperItem], sensitivities: &[Sensitivity]) -> String {
    let mut text = "| predicted | published | ours | band | |\n|---|---:|---:|---|---|\n".to_owned();
    for item in items.iter().filter(|item| item.class == Class::Predicted) {
        let ours = item.reproduced.map_or_else(|| "no number".into(), number);
        let verdict = if item.verdict == Verdict::Inside { "inside" } else { "**outside**" };
        let band = band_text(item, sensitivities);
        let _infallible = writeln!(text, "| `{}` | {} | {ours} | {band} | {verdict} |", item.item, published(item));
    }
    text
}

fn parameters(items: &[PaperItem], sensitivities: &[Sensitivity]) -> String {
    let mut text =
        "| parameter | basis | value, and where it is looked up | why | hang on it |\n|---|---|---|---|---|\n"
            .to_owned();
    for one in sensitivities {
        let hanging: Vec<_> = hanging_items(items, one)
            .map(|(item, values)| format!("`{}` ({}): {}", item.item, class(item.class), shown_values(item, values)))
            .collect();
        let values = one.values.join("; ");
        let _infallible = writeln!(
            text,
            "| {} | {} | {values} | {} | {} |",
            one.parameter,
            basis(one.basis),
            why(one),
            hanging.join("; ")
        );
    }
    text
}

/// The reason for a parameter, and the items that set it.
fn why(one: &Sensitivity) -> String {
    match one.set_by.as_slice() {
        [] => one.because.clone(),
        [first] => format!("{}; set by `{first}`", one.because),
        [first, .., last] => format!("{}; set by `{first}` to `{last}`", one.because),
    }
}
