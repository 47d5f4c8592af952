//! The generated parts of the pages about papers: single values.

use super::{
    class, known_differences, number, predicted, published,
    sensitivity::{band_text, basis, hanging_items, shown_values},
};
use evb_record::{Class, PaperItem, Sensitivity, Verdict};
use std::fmt::Write as _;

/// The classes that do not count.
const NOT_COUNTED: [Class; 6] =
    [Class::Calibrated, Class::Implied, Class::Words, Class::Different, Class::NotModelled, Class::Unpublished];

/// For each paper and for all the predicted values inside and outside, and the number of others by class: either of
/// measurements or of theory. `folder` is the path to the folders of the papers.
pub fn papers_classes(items: &[PaperItem], folder: &str, theory: bool) -> String {
    let mut text = "| paper | predicted: inside | outside |".to_owned();
    NOT_COUNTED.iter().for_each(|kind| text += &format!(" {} |", class(*kind)));
    text += &format!("\n|---|{}\n", "---:|".repeat(2 + NOT_COUNTED.len()));
    let of_kind: Vec<_> = items.iter().filter(|item| item.theory == theory).cloned().collect();
    for (paper, items) in by_paper(&of_kind) {
        text += &row(&format!("[{paper}]({folder}/{paper}/README.md)"), &items);
    }
    text + &row("**all**", &of_kind.iter().collect::<Vec<_>>())
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

/// Everything that is outside with this seed or with others, with its reason.
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
    let seeds = match (item.varies, item.verdict) {
        (false, _) => "",
        (true, Verdict::Inside) => ", outside with other seeds",
        (true, _) => ", inside with other seeds",
    };
    format!("`{}` ({}) {ours} instead of {}{seeds}", item.item, class(item.class), published(item))
}

/// For each paper its predicted values with their bands, and the parameters on which they depend.
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

/// A table of the predicted values; of those of theory that are inside only their number.
fn predictions(items: &[PaperItem], sensitivities: &[Sensitivity]) -> String {
    let predicted = items.iter().filter(|item| item.class == Class::Predicted);
    let (theory, shown): (Vec<_>, Vec<_>) = predicted.partition(|item| item.theory && item.verdict == Verdict::Inside);
    let mut text = String::new();
    if !theory.is_empty() {
        let _infallible = writeln!(text, "Predicted values of theory that are inside: {}.", theory.len());
    }
    if shown.is_empty() {
        return text;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text += "| predicted | published | ours | band | |\n|---|---:|---:|---|---|\n";
    for item in shown {
        let ours = item.reproduced.map_or_else(|| "no number".into(), number);
        let verdict = if item.verdict == Verdict::Inside { "inside" } else { "**outside**" };
        let band = band_text(item, sensitivities);
        let _infallible = writeln!(text, "| `{}` | {} | {ours} | {band} | {verdict} |", item.item, published(item));
    }
    text
}

/// A table of the parameters on which a predicted value depends, and the names of the others.
fn parameters(items: &[PaperItem], sensitivities: &[Sensitivity]) -> String {
    let (mut rows, mut others) = (String::new(), Vec::new());
    for one in sensitivities {
        let hanging: Vec<_> = hanging_items(items, one)
            .filter(|(item, _)| item.class == Class::Predicted)
            .map(|(item, values)| format!("`{}`: {}", item.item, shown_values(item, values)))
            .collect();
        if hanging.is_empty() {
            others.push(one.parameter.as_str());
            continue;
        }
        let (basis, values, why) = (basis(one.basis), one.values.join("; "), why(one));
        let _infallible = writeln!(rows, "| {} | {basis} | {values} | {why} | {} |", one.parameter, hanging.join("; "));
    }
    let mut text = String::new();
    if !rows.is_empty() {
        text += "| parameter | basis | value, and others | why | predicted values that depend on it |\n|---|---|---|---|---|\n";
        text += &rows;
    }
    if !others.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        let _infallible = writeln!(text, "{gap}No predicted value depends on: {}.", others.join("; "));
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
