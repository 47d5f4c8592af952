//! The pages about the papers and the picture of them show the stored results. `UPDATE_DOCS=1` in the environment writes
//! them instead.

use evb_paper::papers;
use evb_record::{PaperItem, PaperReport};
use evb_report::{
    paper_parity, papers_bands, papers_classes, papers_differences, papers_figure, papers_findings, papers_sentences,
};
use std::{env, fs, path::PathBuf};

const HINT: &str = "UPDATE_DOCS=1 cargo test -p evb-paper --test pages";

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", name].iter().collect()
}

/// Compares a file with its new content, or writes it.
fn check_file(name: &str, text: &str) {
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path(name), text).expect("writable");
    }
    assert!(fs::read_to_string(path(name)).is_ok_and(|before| before == text), "{name} is old: {HINT}");
}

/// Compares a generated part of a page, or writes it. A part on its own lines has empty lines around it.
fn check(page: &str, part: &str, text: &str) {
    let before = fs::read_to_string(path(page)).expect("a page");
    let (start, end) = (format!("<!-- generated: {part} -->"), "<!-- end -->");
    let (head, rest) = before.split_once(&start).unwrap_or_else(|| panic!("{page} has no part {part}"));
    let (old, tail) = rest.split_once(end).expect("the end of the part");
    let text = if old.starts_with('\n') { format!("\n\n{}\n\n", text.trim_end()) } else { text.to_owned() };
    check_file(page, &format!("{head}{start}{text}{end}{tail}"));
}

#[test]
fn the_pages_say_what_the_stored_results_say() {
    let reports: Vec<PaperReport> = papers().iter().map(|paper| paper.stored_report().expect("results")).collect();
    let items: Vec<PaperItem> = reports.iter().flat_map(|report| report.items.iter().cloned()).collect();
    let sensitivities = papers().iter().flat_map(|paper| paper.stored_sensitivity().expect("records"));
    let sensitivities: Vec<_> = sensitivities.collect();
    check("README.md", "figure of the papers", &papers_figure(&reports));
    check("README.md", "predictions", &papers_sentences(&reports));
    check("docs/papers.md", "predictions", &papers_sentences(&reports));
    for (kind, theory) in [("measurements", false), ("theory", true)] {
        check("docs/papers.md", &format!("findings of {kind}"), &papers_findings(&reports, "../papers", theory));
        check("docs/papers.md", &format!("classes of {kind}"), &papers_classes(&items, "../papers", theory));
    }
    check("papers/README.md", "differences", &papers_differences(&items));
    check("papers/README.md", "bands", &papers_bands(&items, &sensitivities));
    check_file("papers/parity.svg", &paper_parity(&reports).expect("predicted values"));
}
