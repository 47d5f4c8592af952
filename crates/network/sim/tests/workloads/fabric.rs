//! A fabric from the files of a subnet manager, beside theory and beside the same network as a built-in topology.

use crate::support::{assert_near, efficiency, run_with};
use evb_record::Record;

const FILE: &str = include_str!("../../../../../experiments/fabric.toml");
const FOLDER: &str = concat!("data.directory=\"", env!("CARGO_MANIFEST_DIR"), "/../../../experiments\"");

fn run(set: &[&str]) -> Record {
    let (file, _sweep) = FILE.split_once("[sweep]").expect("it has a sweep");
    run_with(file, &[&[FOLDER], set].concat())
}

/// The same cables as leaf and spine, with the same tables as routes by destination.
const BUILT_IN: &[&str] = &[
    "network.topology={type=\"clos\",leaves=4,ports_per_leaf=4,spines=2,links=2}",
    "network.routing={type=\"fixed\",spread=\"destination\"}",
];

/// The record of a simulation, without the names of topology and routing, which differ, and without the time it took.
fn record(set: &[&str]) -> Record {
    let mut record = run(set);
    let simulation = record.simulation.as_mut().expect("it was simulated");
    simulation.wall_seconds = 0.0;
    simulation.network.topology.clear();
    simulation.network.routing.clear();
    record
}

#[test]
fn tables_by_destination_are_the_routes_of_a_leaf_spine_network() {
    for traffic in [&["workload.type=\"pairs\""], &["workload.type=\"random\""]] {
        let [files, built_in] = [&[], BUILT_IN].map(|network: &[&str]| record(&[network, traffic].concat()));
        assert!(efficiency(&files) > 0.1, "{files:?}");
        assert_eq!(format!("{files:?}"), format!("{built_in:?}"));
    }
}

/// Three of eight pairs have their cables for themselves, and five have half of one.
#[test]
fn pairs_on_one_cable_have_half_of_it_each() {
    let minhop = run(&["network.routing.file=\"fabric/minhop.lfts\""]);
    assert_near("efficiency", efficiency(&minhop), (3.0 + 5.0 / 2.0) / 8.0, 2e-3);
    assert_near("efficiency", efficiency(&run(&[])), 1.0, 2e-3);
}
