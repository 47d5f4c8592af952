//! The folder of each paper: its experiments resolve, its README mentions all of them, and its parameters are varied.

use evb_experiment::Diagnostics;
use evb_paper::{Paper, Parameter, papers};
use std::{collections::BTreeSet, fs, path::PathBuf};

fn folder(slug: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "papers", slug].iter().collect()
}

#[test]
fn every_folder_is_a_paper() {
    let entries = fs::read_dir(folder("")).expect("papers").map(|entry| entry.expect("an entry").file_name());
    let names = entries.map(|name| name.to_string_lossy().into_owned());
    let mut folders: Vec<_> = names.filter(|name| name != "crate").collect();
    folders.sort();
    assert_eq!(folders, papers().iter().map(|paper| paper.slug).collect::<Vec<_>>());
    papers().iter().for_each(|paper| assert_eq!(paper.check(), Ok(())));
}

#[test]
fn experiments_resolve_and_the_readme_mentions_them() {
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

/// The plans of each experiment that a parameter concerns, with some overrides, as text.
fn plans(paper: &Paper, parameter: &Parameter, overrides: &[String]) -> Result<Vec<(String, String)>, Diagnostics> {
    let experiments = paper.experiments_of(overrides, |name| parameter.concerns(name))?;
    Ok(experiments.into_iter().map(|(name, experiment)| (name, format!("{:?}", experiment.plans()))).collect())
}

/// What is wrong with the range of a parameter: a value that an experiment cannot have, or that does not change it.
fn problems(paper: &Paper, parameter: &Parameter) -> Vec<String> {
    let here = plans(paper, parameter, &[]).expect("valid experiments");
    let unknown = parameter.experiments.iter().filter(|name| here.iter().all(|(experiment, _)| experiment != *name));
    let mut problems: Vec<_> = unknown.map(|name| format!("{name} is not an experiment")).collect();
    for values in &parameter.vary {
        match plans(paper, parameter, values) {
            Ok(there) => {
                let same = here.iter().filter(|plans| there.contains(plans));
                problems.extend(same.map(|(name, _)| format!("{values:?} does not change {name}")));
            }
            Err(error) => problems.push(format!("{values:?}: {error:?}").chars().take(300).collect()),
        }
    }
    problems
}

#[test]
fn every_value_of_a_parameter_changes_every_experiment_that_it_concerns() {
    let mut found = Vec::new();
    for paper in papers() {
        for parameter in paper.parameters().expect("parameters") {
            let problems = problems(paper, &parameter);
            found.extend(problems.into_iter().map(|one| format!("{} {}: {one}", paper.slug, parameter.name)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The presets say which of their values are assumed. Those that the experiments of a paper start from are varied, but
/// for the shape, which is the experiment's own.
#[test]
fn all_assumptions_of_presets_are_varied() {
    for paper in papers() {
        let parameters = paper.parameters().expect("parameters");
        let varied: Vec<_> = parameters.iter().flat_map(|one| one.vary.iter().flatten()).collect();
        for preset in presets_of(paper.slug) {
            let preset = evb_fabric::preset(&preset).unwrap_or_else(|| panic!("{preset} is a preset"));
            for line in preset.toml.lines().filter(|line| line.contains("# assumed") && !line.starts_with("topology")) {
                let key = line.split_once(" = ").map_or("", |(key, _)| key);
                let is_varied = varied.iter().any(|text| text.starts_with(&format!("network.{key}=")));
                assert!(is_varied, "{}: {} assumes {key}, and no parameter varies it", paper.slug, preset.name);
            }
        }
    }
}

/// The presets that the experiments of a paper name, without those of a sweep, without the ideal network, and without
/// the torus, of which nothing is published.
fn presets_of(slug: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder(slug)).expect("a folder").map(|entry| entry.expect("an entry").path());
    let texts = files.filter_map(|path| fs::read_to_string(path).ok());
    let lines: Vec<_> = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let named = lines.iter().filter_map(|line| line.strip_prefix("preset = \"")?.split('"').next());
    named.filter(|name| !["ideal", "ds-link-torus"].contains(name)).map(str::to_owned).collect()
}

/// Classes follow from the stored sensitivity: it is that of the parameters of the folder.
#[test]
fn the_stored_sensitivity_is_of_these_parameters() {
    for paper in papers() {
        let stored = paper.stored_sensitivity().expect("records");
        let parameters = paper.parameters().expect("parameters");
        let names = |text: &[&str]| text.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let stored: Vec<_> = stored
            .iter()
            .map(|one| (names(&[&one.parameter, &one.because]), one.basis, one.values.clone(), one.set_by.clone()))
            .collect();
        let declared: Vec<_> = parameters
            .iter()
            .map(|one| (names(&[&one.name, &one.because]), one.basis, one.values(), one.set_by.clone()))
            .collect();
        assert_eq!(
            stored, declared,
            "{}: make it again with `UPDATE_PAPERS=1 cargo xtask papers --sensitivity`",
            paper.slug
        );
    }
}
