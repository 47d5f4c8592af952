//! The folder of each paper: its experiments resolve, its README tells of all of them, and what is calibrated is said.

use evb_paper::papers;
use std::{fs, path::PathBuf};

fn folder(slug: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "papers", slug].iter().collect()
}

#[test]
fn every_folder_is_a_paper() {
    let entries = fs::read_dir(folder("")).expect("papers").map(|entry| entry.expect("an entry").file_name());
    let mut folders: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    folders.sort();
    assert_eq!(folders, papers().iter().map(|paper| paper.slug).collect::<Vec<_>>());
    papers().iter().for_each(|paper| assert_eq!(paper.check(), Ok(())));
}

#[test]
fn experiments_resolve_and_the_readme_tells_of_them() {
    for paper in papers() {
        let readme = fs::read_to_string(folder(paper.slug).join("README.md")).expect("a README");
        let experiments = paper.experiments(&["run.seed=5".into()]).unwrap_or_else(|error| panic!("{error:?}"));
        assert!(!experiments.is_empty(), "{}", paper.slug);
        for (name, experiment) in experiments {
            assert!(experiment.plans().iter().all(|plan| plan.run.seed == 5), "{name}");
            let family = name.rsplit_once('-').map(|(family, _)| format!("`{family}-*`"));
            let is_told = readme.contains(&name) || family.is_some_and(|family| readme.contains(&family));
            assert!(is_told, "the README of {} says nothing of {name}", paper.slug);
        }
    }
}

#[test]
fn what_is_calibrated_stands_in_the_readme() {
    for paper in papers() {
        let published = fs::read_to_string(folder(paper.slug).join("published.toml")).expect("published values");
        let readme = fs::read_to_string(folder(paper.slug).join("README.md")).expect("a README");
        let calibrates = published.lines().any(|line| line.starts_with("calibrated"));
        assert!(!calibrates || readme.to_lowercase().contains("calibrated"), "{}", paper.slug);
    }
}
