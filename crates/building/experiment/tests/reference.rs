//! The reference page, and the experiment files of the repository.

use evb_experiment::{Experiment, Plan, reference};
use std::{fs, path::PathBuf};

fn repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../..")).join(path)
}

/// With UPDATE_DOCS set, the test writes the page instead.
#[test]
fn the_reference_page_is_current() {
    let path = repository("docs/reference/experiment-file.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder"))
            .and_then(|()| fs::write(&path, reference()))
            .expect("writing");
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    assert!(page == reference(), "{} is old: run this test with UPDATE_DOCS=1", path.display());
}

#[test]
fn every_example_is_good() {
    let files = fs::read_dir(repository("experiments")).expect("the examples are part of the repository");
    let mut count = 0;
    for file in files {
        let path = file.expect("a readable folder").path();
        // Beside the experiments are the files that they name.
        if path.is_dir() {
            continue;
        }
        let experiment = Experiment::load(&path, &[]).unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        let resolved = experiment.resolved();
        let again = Experiment::parse(&resolved, "again.toml", &[]).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(again.plans(), experiment.plans(), "{resolved}");
        let stem = path.file_stem().expect("a name").to_string_lossy();
        assert_eq!(experiment.plans()[0].name, stem, "the name is that of the file");
        count += 1;
    }
    assert!(count >= 13, "only {count} examples");
}

/// Every experiment file of the repository.
fn experiments() -> impl Iterator<Item = PathBuf> {
    let papers = fs::read_dir(repository("papers")).expect("the papers are part of the repository");
    let folders = papers.map(|entry| entry.expect("a readable folder").path());
    let folders = folders.filter(|folder| folder.join("published.toml").exists()).chain([repository("experiments")]);
    let files =
        folders.flat_map(|folder| fs::read_dir(folder).expect("a folder")).map(|file| file.expect("one").path());
    let is_experiment =
        |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml") && !path.ends_with("published.toml");
    files.filter(is_experiment).chain([repository("crates/building/experiment/tests/full.toml")])
}

/// Processes hand each other plans as JSON.
#[test]
fn every_plan_comes_back_from_json_as_it_was() {
    let mut count = 0;
    for path in experiments() {
        let experiment = Experiment::load(&path, &[]).unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        for plan in experiment.plans() {
            let text = plan.to_json().expect("a plan has a JSON form");
            let again = Plan::from_json(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(again, *plan, "{text}");
            count += 1;
        }
    }
    assert!(count >= 100, "only {count} plans");
}
