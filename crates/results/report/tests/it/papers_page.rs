//! The page of the papers and its picture show the stored results. `UPDATE_DOCS=1` in the environment writes them instead.

use evb_record::{PaperItem, Sensitivity};
use evb_report::{paper_errors, papers_bands, papers_differences, papers_headline};
use std::{env, fs, path::PathBuf};

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", name].iter().collect()
}

/// The records of all papers from the files of this name, in the order of the folders.
fn stored<T>(file: &str, parse: impl Fn(&str) -> serde_json::Result<T>) -> Vec<T> {
    let entries = fs::read_dir(path("papers")).expect("papers").map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<_> = entries.filter(|folder| folder.join("published.toml").exists()).collect();
    folders.sort();
    let text = |folder: &PathBuf| fs::read_to_string(folder.join(file)).expect("stored results");
    let texts: Vec<_> = folders.iter().map(text).collect();
    texts.iter().flat_map(|text| text.lines()).map(|line| parse(line).expect("a record")).collect()
}

/// Compares a generated part of a page, or writes it.
fn check(page: &str, part: &str, text: &str) {
    let before = fs::read_to_string(path(page)).expect("a page");
    let (start, end) = (format!("<!-- generated: {part} -->\n"), "<!-- end -->");
    let (head, rest) = before.split_once(&start).unwrap_or_else(|| panic!("{page} has no part {part}"));
    let (_, tail) = rest.split_once(end).expect("the end of the part");
    let after = format!("{head}{start}\n{text}\n{end}{tail}");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path(page), after).expect("writable");
    } else {
        assert!(before == after, "{page} is old: UPDATE_DOCS=1 cargo test -p evb-report papers_page");
    }
}

#[test]
fn the_pages_say_what_the_stored_results_say() {
    let items = stored::<PaperItem>("expected.jsonl", |line| serde_json::from_str(line));
    let sensitivities = stored::<Sensitivity>("sensitivity.jsonl", |line| serde_json::from_str(line));
    check("papers/README.md", "headline", &papers_headline(&items, "."));
    check("papers/README.md", "differences", &papers_differences(&items));
    check("papers/README.md", "bands", &papers_bands(&items, &sensitivities));
    let svg = paper_errors(&items).expect("predicted values");
    let file = path("papers/errors.svg");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &svg).expect("writable");
    }
    assert!(fs::read_to_string(&file).expect("a picture") == svg, "papers/errors.svg is old");
}
