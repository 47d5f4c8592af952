//! The generated parts of the pages about papers: how well evb predicts them.

use super::findings::{Finding, Score, by_paper, findings, percent};
use crate::text::hanging;
use evb_record::PaperReport;
use std::fmt::Write as _;

/// Width of lines in a page.
const WIDTH: usize = 120;

/// For each paper and for all the findings inside, their median error, the same of single values, the worst value, and
/// the causes of what is outside: either of measurements or of theory. `folder` is the path to the folders of the papers.
pub fn papers_findings(reports: &[PaperReport], folder: &str, theory: bool) -> String {
    let all = findings(reports, theory);
    let mut text =
        "| paper | findings inside | their median error | values inside | their median error | worst value |"
            .to_owned();
    text += if theory {
        "\n|---|---:|---:|---:|---:|---|\n"
    } else {
        " known cause |\n|---|---:|---:|---:|---:|---|---|\n"
    };
    for (paper, findings) in by_paper(&all) {
        text += &row(&format!("[{paper}]({folder}/{paper}/README.md)"), findings, theory, true);
    }
    text + &row("**all**", &all, theory, false)
}

/// A row of the table; `causes` is false in the row of all papers.
fn row(name: &str, findings: &[Finding<'_>], theory: bool, causes: bool) -> String {
    let score = Score::of(findings);
    let mut text = format!(
        "| {name} | {} of {} | {} | {} of {} | {} | {} |",
        score.inside,
        score.findings,
        percent(score.median),
        score.values_inside,
        score.values,
        percent(score.median_of_values),
        score.worst_text("`"),
    );
    if !theory {
        let causes = if causes { score.causes.join("; ") } else { String::new() };
        let _infallible = write!(text, " {causes} |");
    }
    text + "\n"
}

/// What evb predicts and how well, in two sentences.
pub fn papers_sentences(reports: &[PaperReport]) -> String {
    let all = findings(reports, false);
    let score = Score::of(&all);
    let text = format!(
        "evb predicts {} measurements of {} published papers, with no parameter set by any of them. They are {} independent \
         findings: the median error is {}, and {} findings, with {} of the {} values, are inside their tolerance.",
        score.values,
        by_paper(&all).len(),
        score.findings,
        percent(score.median),
        score.inside,
        score.values_inside,
        score.values,
    );
    hanging("", &text, WIDTH)
}

/// The same as one figure among others, with theory.
pub fn papers_figure(reports: &[PaperReport]) -> String {
    let [all, theory] = [false, true].map(|theory| Score::of(&findings(reports, theory)));
    format!(
        "median error {}; {} of {} findings inside, {} of {} values; theory: {} of {} values",
        percent(all.median),
        all.inside,
        all.findings,
        all.values_inside,
        all.values,
        theory.values_inside,
        theory.values,
    )
}

/// Findings of a paper or of all papers as text: inside, median error, worst.
pub(super) fn score_lines(reports: &[PaperReport], width: usize) -> String {
    let line = |(name, theory): (&str, bool)| {
        let score = Score::of(&findings(reports, theory));
        let text = format!(
            "{} of {} inside, median error {}, worst {}",
            score.inside,
            score.findings,
            percent(score.median),
            score.worst_text(""),
        );
        (score.findings > 0).then(|| hanging(name, &text, width))
    };
    [("findings: ", false), ("findings of theory: ", true)].into_iter().filter_map(line).collect()
}
