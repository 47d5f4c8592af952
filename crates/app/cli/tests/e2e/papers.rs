//! Published papers: tables for people, records for programs, a page to look at.

use crate::support::Lab;
use serde_json::Value;
use std::fs;

/// The paper that is simulated fastest.
const FAST: &str = "velo-2008";

#[test]
fn a_paper_is_reproduced() {
    let lab = Lab::new();
    let outcome = lab.evb(&["paper", FAST, "--json", "--html", "page"]).run();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{outcome}");
    let items: Vec<Value> = outcome.stdout.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    assert!(items.len() > 20, "{outcome}");
    for item in &items {
        assert_eq!((&item["kind"], &item["paper"]), (&"paper".into(), &FAST.into()));
        assert_eq!(item["verdict"] == "outside", item["known"].is_string(), "{item}");
        let off = item["difference"].as_f64().unwrap_or_default();
        let compares = item["verdict"] == "inside" && item["relation"] == "equal";
        assert!(!compares || off.abs() <= item["tolerance"].as_f64().unwrap() + 1e-6, "{item}");
    }
    for class in ["predicted", "calibrated", "implied", "different", "not_modelled", "unpublished"] {
        assert!(items.iter().any(|item| item["class"] == class), "{class}: {outcome}");
    }
    assert_eq!(fs::read_to_string(lab.path("page/records.jsonl")).expect("records"), outcome.stdout);
    let page = fs::read_to_string(lab.path("page/index.html")).expect("a page");
    let figures: Vec<_> = page.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(!figures.is_empty(), "{page}");
    for figure in figures {
        let svg = fs::read_to_string(lab.path("page").join(figure)).unwrap_or_else(|error| panic!("{figure}: {error}"));
        assert!(svg.starts_with("<svg"), "{figure}");
    }
}

/// The classes follow from the stored sensitivity, so a simulator that moves otherwise makes it again.
#[test]
fn the_sensitivity_is_as_it_is_stored() {
    let lab = Lab::new();
    let outcome = lab.evb(&["paper", FAST, "--sensitivity", "--json"]).run();
    // A slow machine shows progress, and nothing else.
    let is_progress = |line: &str| line.starts_with("evb: ") && line.ends_with(" points");
    assert!(outcome.code() == Some(0) && outcome.stderr.lines().all(is_progress), "{outcome}");
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../papers/velo-2008/sensitivity.jsonl");
    // The stored lines have their keys in another order.
    let values = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    };
    assert_eq!(values(&outcome.stdout), values(&fs::read_to_string(stored).expect("the stored sensitivity")));
    let table = lab.evb(&["paper", FAST, "--sensitivity"]).run();
    assert!(table.stdout.contains("rate.max"), "{table}");
    assert!(table.stdout.lines().all(|line| line.chars().count() <= evb_report::NARROW), "{table}");
}

#[test]
fn the_same_seed_gives_the_same_paper_and_people_get_tables() {
    let lab = Lab::new();
    let one = lab.evb(&["paper", FAST, "--seed", "9", "--threads", "1"]).run();
    let two = lab.evb(&["paper", FAST, "--seed", "9", "--threads", "2"]).run();
    assert_eq!((one.code(), &one.stdout), (Some(0), &two.stdout), "{two}");
    assert!(one.stdout.starts_with("VELO: A Novel Communication Engine"), "{one}");
    assert!(one.stdout.contains("0.97 us"), "{one}");
    assert!(one.stdout.lines().all(|line| line.chars().count() <= evb_report::NARROW), "{one}");
    assert!(!one.stdout.contains('\u{1b}'), "no terminal, no colours: {one}");
}

#[test]
fn a_paper_that_there_is_not_is_refused_before_any_work() {
    let lab = Lab::new();
    let outcome = lab.evb(&["paper", FAST, "velo-2009"]).run();
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(2), ""), "{outcome}");
    assert!(
        outcome.stderr.contains("there is no paper velo-2009\nhint: one of: atlas-communication-1997"),
        "{outcome}"
    );
}
