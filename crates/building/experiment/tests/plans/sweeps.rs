//! Several plans of one file.

use crate::{SHORT, assert_resolves, parse};
use evb_experiment::{Experiment, Plan};
use std::path::{Path, PathBuf};

#[test]
fn keys_that_are_swept_together_get_the_same_value() {
    let text = SHORT.to_owned() + "[sweep]\n'readout.units, builder.units' = [2, 5]\n'run.seed' = [1, 2]\n";
    let experiment = parse(&text, &[]);
    let units = |plan: &Plan| (plan.building.readout_units, plan.building.builder_units, plan.run.seed);
    assert_eq!(experiment.plans().iter().map(units).collect::<Vec<_>>(), [(2, 2, 1), (2, 2, 2), (5, 5, 1), (5, 5, 2)]);
    assert_eq!(experiment.plans()[3].sweep[0], ("readout.units, builder.units".to_owned(), "5".to_owned()));
    let single = parse(&experiment.resolved(), &[]);
    assert_eq!(single.plans().len(), 4);
    // What is set on the command line is not swept, nor what was to be the same.
    assert_eq!(parse(&text, &["builder.units=3"]).plans().len(), 2);
    let error = Experiment::parse(&(text + "'builder.units' = [7]\n"), "twice.toml", &[]).unwrap_err().to_string();
    assert!(error.contains("set the same key"), "{error}");
}

#[test]
fn a_sweep_gives_one_plan_for_each_combination() {
    let text = SHORT.to_owned()
        // Keys with and without quotes mean the same.
        + "[sweep]\n\"readout.source.size\" = [\"1 kB\", \"2 kB\"]\nbuilder.units = [100, 500, 1000]\n\
           shaping = [{ type = \"none\" }, { type = \"grouping\" }]\n";
    let experiment = parse(&text, &[]);
    assert_eq!(experiment.plans().len(), 12);
    let second_last = &experiment.plans()[10];
    let expected = [("readout.source.size", "2 kB"), ("builder.units", "1000"), ("shaping", "{ type = \"none\" }")];
    assert_eq!(second_last.sweep, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!((second_last.building.builder_units, second_last.building.group), (1000, 1000));
    assert_eq!(experiment.plans()[0].building.group, 352);
    assert_resolves(&experiment);
    insta::assert_snapshot!("resolved_sweep", experiment.resolved());

    for (index, plan) in experiment.plans().iter().enumerate() {
        let text = experiment.resolved_at(index).expect("a point of the sweep");
        let single = Experiment::parse(&text, "again.toml", &[]).expect("a good file");
        assert_eq!(single.plans(), [Plan { sweep: vec![], ..plan.clone() }], "{text}");
    }
    assert_eq!(experiment.resolved_at(12), None);
}

#[test]
fn a_key_that_is_set_is_not_swept() {
    let text = SHORT.to_owned() + "[sweep]\n\"run.seed\" = [1, 2]\n\"builder.units\" = [3, 4]\n";
    assert_eq!(parse(&text, &["builder.units=5"]).plans().len(), 2);
    assert_eq!(parse(&text, &["run={ seed = 9 }"]).plans()[1].run.seed, 9);
    assert_eq!(parse(&text, &["sweep.\"run.seed\"=[7, 8, 9]"]).plans().len(), 6);
    assert_eq!(parse(SHORT, &["sweep.run.seed=[7, 8, 9]"]).plans()[2].run.seed, 9);
}

#[test]
fn swept_tables_in_lists_and_data_folders_resolve() {
    let text = "builder.units = 1\n[[readout.unit]]\nsource = { type = 'cms-fed', file = 'a' }\n[[readout.unit]]\n\
                source = { type = 'cms-fed', file = 'b' }\n[sweep]\n'readout.unit.0.source.file' = ['c', 'd']\n\
                'data.directory' = ['x', '/y', '.']\n";
    let experiment = parse(text, &[]);
    let folders: Vec<_> = experiment.plans().iter().map(|plan| plan.data_directory.clone()).collect();
    assert_eq!(folders[..3], ["folder/x", "/y", "folder"].map(PathBuf::from));
    assert_resolves(&experiment);
    let whole = parse(&(SHORT.to_owned() + "[sweep]\ndata = [{}, { directory = 'z' }]\n"), &[]);
    assert_eq!(whole.plans()[0].data_directory, Path::new("folder"));
    assert_resolves(&whole);
}
