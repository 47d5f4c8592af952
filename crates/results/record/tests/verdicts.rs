//! The page of verdicts is made of the kinds of findings, and the kinds alone decide.

use evb_record::{Effect, FindingKind};
use std::{env, fs};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/verdicts.md");
const BEGIN: &str = "<!-- generated: the kinds of findings -->\n";
const END: &str = "<!-- end -->";

fn rows() -> String {
    let effect = |kind: FindingKind| match kind.effect() {
        Effect::Fails => "not good",
        Effect::Undecided => "undecided",
        Effect::Remark => "a remark",
    };
    let row = |kind: &FindingKind| format!("| `{}` | {} | {} |\n", kind.name(), effect(*kind), kind.meaning());
    let rows: String = FindingKind::ALL.iter().map(row).collect();
    format!("\n| kind | makes the result | when |\n|---|---|---|\n{rows}\n")
}

#[test]
fn the_page_lists_every_kind() {
    let page = fs::read_to_string(PAGE).expect("the page of verdicts");
    let (head, rest) = page.split_once(BEGIN).expect("the page has a mark where the kinds begin");
    let (found, tail) = rest.split_once(END).expect("the page has a mark where the kinds end");
    if env::var_os("UPDATE_DOCS").is_some() {
        return fs::write(PAGE, format!("{head}{BEGIN}{}{END}{tail}", rows())).expect("the page can be written");
    }
    assert_eq!(found, rows(), "write the page again with `UPDATE_DOCS=1 cargo test -p evb-record`");
}

#[test]
fn names_in_records_are_the_names_of_the_kinds() {
    for kind in FindingKind::ALL {
        assert_eq!(serde_json::to_value(kind).expect("a kind is JSON"), kind.name());
    }
}

/// The first finding of a sorted record is then the reason for its verdict.
#[test]
fn worse_effects_come_first() {
    let outcomes: Vec<_> = FindingKind::ALL.iter().map(|kind| kind.effect().outcome()).collect();
    assert!(outcomes.is_sorted_by(|one, next| one >= next), "{outcomes:?}");
}
