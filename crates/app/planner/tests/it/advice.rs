//! The advice about small networks: its answers are those of a plan with the other values in its files.

use crate::support::{Failure, search, simulate, simulate_candidate, write};
use evb_planner::{Planner, PlannerError, Store};
use evb_record::{Advice, Outcome, PlanVerdict, Planning};
use std::path::Path;

/// One uplink of each leaf is enough, and carries at most 34.6 kHz.
const TREES: &str = r#"
experiment = "experiment.toml"
parts = "parts.toml"
[goal]
rate = "33 kHz"
[freedom]
levels = [2]
[search]
triggers = [150, 500]
loads = [1]
"#;

/// A key with a value before and one after, and one with two values.
const KEYS: &str = r#"
[freedom.keys]
"builder.slots" = [1, 16, 64]
"protocol.assignment" = ["round-robin", "least-loaded"]
"#;

fn advise(planner: &Planner, planning: &Planning, store: &mut Store) -> (Planning, usize) {
    let mut simulated = 0;
    let planning = planner.advise::<Failure>(planning.clone(), store, &mut |plans, take| {
        simulated += plans.len();
        // They may end in any order.
        plans.iter().enumerate().rev().try_for_each(|(index, plan)| take.ended(index, &simulate(plan)?))
    });
    (planning.unwrap(), simulated)
}

/// The plan of a file, with advice.
fn advised(folder: &Path, plan: &str) -> Planning {
    let planner = write(folder, plan);
    let mut store = Store::default();
    let (planning, _) = search(&planner, &mut store);
    advise(&planner, &planning, &mut store).0
}

#[test]
fn changes_are_tried_at_a_rate_that_is_ten_per_cent_higher() {
    let folder = tempfile::tempdir().unwrap();
    let planning = advised(folder.path(), TREES);
    let [Advice { candidate, changes, .. }] = planning.advice.as_slice() else { panic!("{:?}", planning.advice) };
    let answers: Vec<_> = changes.iter().map(|change| (change.what.as_str(), change.answer.outcome)).collect();
    // The parts have no memory. Faster interfaces do not help where uplinks are full.
    let expected =
        [("no change", Outcome::NotGood), ("more uplinks", Outcome::Good), ("faster interfaces", Outcome::NotGood)];
    assert_eq!(answers, expected);
    let own = planning.candidate(*candidate);
    let higher = write(folder.path(), &TREES.replace("33 kHz", "36.3 kHz"));
    for change in changes {
        let network = planning.candidate(change.candidate);
        assert_eq!(change.answer.outcome, simulate_candidate(&higher, network.number, 0), "{change:?}");
        assert_eq!(own.cost.high + change.extra_cost.high, network.cost.high, "{change:?}");
        // What a bound excludes is not simulated.
        assert_eq!(change.answer.simulation.is_some(), change.answer.outcome == Outcome::Good, "{change:?}");
    }
    let [more, faster] = [&changes[1], &changes[2]].map(|change| planning.candidate(change.candidate));
    assert!(
        more.levels[0].up > own.levels[0].up && faster.host_bits_per_s > own.host_bits_per_s,
        "{more:?} {faster:?}"
    );
    assert!(changes[0].answer.reason.contains("cross the uplinks"), "{changes:?}");
}

#[test]
fn assumptions_are_tried_as_a_plan_with_other_values() {
    let folder = tempfile::tempdir().unwrap();
    let planning = advised(folder.path(), TREES);
    let Advice { candidate, assumptions, .. } = &planning.advice[0];
    let whats: Vec<_> = assumptions.iter().map(|one| (one.what.as_str(), one.factor)).collect();
    let expected =
        ["event size", "event rate", "spread of sizes", "header of each packet", "time of hosts for a message"];
    assert_eq!(whats, expected.map(|what| [(what, 0.9), (what, 1.1)]).concat());
    let mut outcomes = Vec::new();
    for (what, factor, goal) in [
        ("event size", 0.9, "rate = \"33 kHz\"\nsize = 0.9"),
        ("event size", 1.1, "rate = \"33 kHz\"\nsize = 1.1"),
        ("event rate", 0.9, "rate = \"29.7 kHz\""),
        ("event rate", 1.1, "rate = \"36.3 kHz\""),
    ] {
        let assumption = assumptions.iter().find(|one| one.what == what && one.factor == factor).unwrap();
        let other = write(folder.path(), &TREES.replace("rate = \"33 kHz\"", goal));
        assert_eq!(assumption.answer.outcome, simulate_candidate(&other, *candidate, 0), "{assumption:?}");
        outcomes.push(assumption.answer.outcome);
    }
    assert_eq!(outcomes, [Outcome::Good, Outcome::NotGood, Outcome::Good, Outcome::NotGood]);
}

#[test]
fn values_beside_those_of_the_free_keys_are_changes() {
    let folder = tempfile::tempdir().unwrap();
    let planning = advised(folder.path(), &(TREES.to_owned() + KEYS));
    let mut excluded = 0;
    for advice in &planning.advice {
        let own = &planning.choices[advice.choice];
        let keys: Vec<_> = advice.changes.iter().filter(|change| change.choice != advice.choice).collect();
        let slots = if own["builder.slots"] == "16" { 2 } else { 1 };
        assert_eq!(keys.len(), slots + 1, "{own:?}: {keys:#?}");
        for change in keys {
            let other = &planning.choices[change.choice];
            let differing: Vec<_> = own.keys().filter(|key| own[*key] != other[*key]).collect();
            assert_eq!(differing.len(), 1, "{own:?} {other:?}");
            assert_eq!(change.what, format!("{} = {}", differing[0], other[differing[0]]));
            assert_eq!((change.candidate, change.extra_cost.high), (advice.candidate, 0.0));
            // What the search has excluded carries no more.
            let judgement = planning.judgement(change.candidate, change.choice);
            if matches!(judgement.verdict, PlanVerdict::Simulated | PlanVerdict::Inferred) {
                assert_eq!((change.answer.outcome, &change.answer.reason), (Outcome::NotGood, &judgement.reason));
                excluded += 1;
            }
        }
    }
    assert!(planning.advice.len() > 1 && excluded > 0, "{excluded} {:#?}", planning.advice);
}

/// A line with several keys has a value for each of them, and is changed as one.
#[test]
fn keys_that_belong_together_are_changed_together() {
    let folder = tempfile::tempdir().unwrap();
    let keys = r#"
[freedom.keys]
"builder.slots, protocol.assignment" = [[1, "round-robin"], [64, "least-loaded"]]
"#;
    let planning = advised(folder.path(), &(TREES.to_owned() + keys));
    let choices: Vec<_> =
        planning.choices.iter().map(|keys| keys.values().map(String::as_str).collect::<Vec<_>>()).collect();
    assert_eq!(choices, [["1", "round-robin"], ["64", "least-loaded"]]);
    let advice = planning.advice.iter().find(|advice| advice.choice == 1).expect("64 slots are enough");
    let change = advice.changes.iter().find(|change| change.choice == 0).unwrap();
    assert_eq!(change.what, "builder.slots = 1, protocol.assignment = round-robin");
}

#[test]
fn advice_goes_on_with_what_the_folder_has() {
    let folder = tempfile::tempdir().unwrap();
    let planner = write(folder.path(), &TREES.replace("33 kHz", "25 kHz"));
    let (planning, _) = search(&planner, &mut Store::default());
    let (whole, all) = advise(&planner, &planning, &mut Store::default());
    assert_eq!(
        whole.simulations,
        planning.simulations + all as u64 + 2,
        "the rate that is 10 % higher is asked for twice"
    );
    let out = folder.path().join("out");
    let mut simulated = 0;
    let stopped = planner.advise::<Failure>(planning.clone(), &mut Store::open(&out).unwrap(), &mut |plans, take| {
        for (index, plan) in plans.iter().enumerate().take(4 - simulated) {
            take.ended(index, &simulate(plan)?)?;
            simulated += 1;
        }
        Ok(())
    });
    assert!(matches!(stopped, Err(Failure::Planner(PlannerError::Stopped))), "{stopped:?}");
    let (resumed, rest) = advise(&planner, &planning, &mut Store::open(&out).unwrap());
    assert_eq!((resumed, 4 + rest), (whole.clone(), all));
    assert_eq!(advise(&planner, &planning, &mut Store::open(&out).unwrap()), (whole, 0));
}

#[test]
fn the_plan_of_another_file_gets_no_advice() {
    let folder = tempfile::tempdir().unwrap();
    let planner = write(folder.path(), TREES);
    let (planning, _) = search(&planner, &mut Store::default());
    let other = write(folder.path(), &TREES.replace("[2]", "[1]"));
    let refused = other.advise::<Failure>(planning, &mut Store::default(), &mut |_, _| panic!("nothing is simulated"));
    assert!(refused.unwrap_err().to_string().contains("not one of this file"));
}
