//! Searches of small networks: what they find is compared with the simulation of every candidate.

use crate::support::{EXPERIMENT, Failure, PARTS, PLAN, search, simulate, simulate_candidate, write};
use evb_planner::{Planner, PlannerError, Store};
use evb_record::{Outcome, PlanVerdict, Planning};
use std::fs;

#[test]
fn the_cheapest_network_is_enough_and_no_cheaper_one_is() {
    let folder = tempfile::tempdir().unwrap();
    let planner = write(folder.path(), PLAN);
    let (planning, _) = search(&planner, &mut Store::default());
    let (cheapest, choice) = planning.cheapest().expect("one is enough");
    assert!(planning.candidates.len() > 10, "{}", planning.candidates.len());
    assert_eq!(simulate_candidate(&planner, cheapest.number, choice), Outcome::Good);
    for candidate in planning.candidates.iter().take_while(|candidate| candidate.number < cheapest.number) {
        let judgement = planning.judgement(candidate.number, choice);
        assert!(judgement.verdict != PlanVerdict::NotTried, "{judgement:?}");
        assert!(!judgement.reason.is_empty(), "{judgement:?}");
        assert_eq!(simulate_candidate(&planner, candidate.number, choice), Outcome::NotGood, "{judgement:?}");
    }
}

#[test]
fn bounds_exclude_only_what_a_simulation_excludes() {
    let folder = tempfile::tempdir().unwrap();
    let planner = write(folder.path(), PLAN);
    let (planning, _) = search(&planner, &mut Store::default());
    let bound = planning.judgements.iter().filter(|judgement| judgement.verdict == PlanVerdict::Bound);
    let bound: Vec<_> = bound.collect();
    assert!(bound.len() > 2, "{}", bound.len());
    for judgement in bound {
        let outcome = simulate_candidate(&planner, judgement.candidate, judgement.choice);
        assert_eq!(outcome, Outcome::NotGood, "{judgement:?}");
    }
}

#[test]
fn the_failure_of_a_network_excludes_all_that_have_no_more() {
    let folder = tempfile::tempdir().unwrap();
    // The bytes of an event need 38 us on a cable of 100 Gbit/s.
    let limit = PLAN.replace("rate = \"42 kHz\"", "rate = \"14 kHz\"\nlatency = \"30 us\"");
    let planner = write(folder.path(), &limit);
    let (planning, simulated) = search(&planner, &mut Store::default());
    assert_eq!(planning.cheapest(), None);
    let with = |verdict| planning.judgements.iter().filter(move |judgement| judgement.verdict == verdict);
    let excluded: Vec<_> = with(PlanVerdict::Inferred).filter(|one| one.reason.contains("nor is no.")).collect();
    assert!(excluded.len() > 3 * with(PlanVerdict::Simulated).count(), "{:#?}", planning.judgements);
    assert!(simulated < excluded.len(), "{simulated}");
    for judgement in excluded {
        let experiment = planner.experiment(judgement.candidate, judgement.choice).unwrap();
        assert!(simulate(&experiment.plans()[0]).unwrap().latency_us.p99 > 30.0, "{judgement:?}");
    }
}

#[test]
fn a_search_goes_on_with_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let planner = write(folder.path(), PLAN);
    let (whole, all) = search(&planner, &mut Store::default());
    let out = folder.path().join("out");
    let mut simulated = 0;
    let stopped = planner.search::<Failure>(&mut Store::open(&out).unwrap(), &mut |plans, take| {
        for (index, plan) in plans.iter().enumerate().take(4 - simulated) {
            take.ended(index, &simulate(plan)?)?;
            simulated += 1;
        }
        Ok(())
    });
    assert!(matches!(stopped, Err(Failure::Planner(PlannerError::Stopped))), "{stopped:?}");
    // A program that is killed leaves half a line.
    let path = out.join(evb_planner::TRIALS);
    let torn = fs::read_to_string(&path).unwrap() + "{\"key\":";
    fs::write(&path, torn).unwrap();
    let mut store = Store::open(&out).unwrap();
    let held = store.len();
    assert_eq!(held, 4, "each simulation is kept when it ends");
    let (resumed, rest) = search(&planner, &mut store);
    assert_eq!((resumed, held + rest), (whole, all));
    let (again, none) = search(&planner, &mut Store::open(&out).unwrap());
    assert_eq!((again.simulations > 0, none), (true, 0));
}

#[test]
fn failures_that_are_survived_cost_more_cables() {
    let folder = tempfile::tempdir().unwrap();
    let trees = PLAN.to_owned() + "[freedom]\nlevels = [2]\n";
    let (plain, _) = search(&write(folder.path(), &trees), &mut Store::default());
    let survive = trees.replace("rate = \"42 kHz\"", "rate = \"42 kHz\"\nsurvive = [\"cable\", \"switch\"]");
    let (safe, _) = search(&write(folder.path(), &survive), &mut Store::default());
    let cost = |planning: &Planning| planning.cheapest().expect("one is enough").0.cost.high;
    assert!(cost(&safe) > cost(&plain), "{} {}", cost(&safe), cost(&plain));
    let spines = &safe.cheapest().unwrap().0.levels[1];
    assert!(spines.switches >= 2, "{spines:?}");
}

#[test]
fn a_range_is_planned_for_both_of_its_ends() {
    let folder = tempfile::tempdir().unwrap();
    let range = PLAN.replace("rate = \"42 kHz\"", "rate = [\"14 kHz\", \"42 kHz\"]");
    let (planning, _) = search(&write(folder.path(), &range), &mut Store::default());
    let carries: Vec<_> = planning.front.iter().map(|entry| entry.carries).collect();
    assert!(carries.contains(&(1.0 / 3.0)), "{carries:?}");
    let (cheapest, _) = planning.cheapest().expect("one is enough at the upper end");
    let low = planning.front.iter().find(|entry| entry.carries < 1.0).unwrap();
    assert!(planning.candidate(low.candidate).cost.high < cheapest.cost.high);
    assert!(planning.front.iter().all(|entry| entry.latency_p99_us.is_some() == (entry.carries >= 1.0)));
}

#[test]
fn wrong_files_are_told_with_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let error = |plan: &str| -> String {
        for (name, text) in [("experiment.toml", EXPERIMENT), ("parts.toml", PARTS), ("plan.toml", plan)] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let planner = match Planner::load(&folder.path().join("plan.toml")) {
            Ok(planner) => planner,
            Err(error) => return error.to_string(),
        };
        planner
            .search::<Failure>(&mut Store::default(), &mut |_, _| panic!("nothing is simulated"))
            .unwrap_err()
            .to_string()
    };
    let with = |line: &str| PLAN.to_owned() + line;
    for (plan, expected) in [
        (with("[freedom]\nlevels = [4]\n"), "plan.toml: freedom.levels has other numbers"),
        (with("[freedom]\nlevel = [1]\n"), "unknown field `level`"),
        (with("[freedom]\nswitches = [\"nothing\"]\n"), "parts.toml: there is no switch `nothing`"),
        (with("[freedom.keys]\n\"network.topology\" = [1]\n"), "the planner sets `network.topology`"),
        (with("[freedom]\nlevels = [1]\n").replace("rate = \"42 kHz\"", "growth = -1"), "goal.growth"),
        (PLAN.replace("parts.toml", "absent.toml"), "absent.toml: cannot be read"),
        (PLAN.replace("\"42 kHz\"", "[\"50 kHz\", \"42 kHz\"]"), "must not be above the second"),
        (with("[freedom.keys]\n\"builder.units\" = [4, 8]\n"), "different numbers of hosts"),
        (with("[freedom.keys]\n\"protocol.type\" = [\"draw\"]\n"), "unknown protocol"),
    ] {
        let found = error(&plan);
        assert!(found.contains(expected), "{expected}: {found}");
    }
}

/// Searches where each simulation drops a packet if `drops`, and those with further seeds are all good.
fn with_chance(planner: &Planner, drops: bool) -> Planning {
    let first = planner.experiment(1, 0).unwrap().plans()[0].run.seed;
    let planning = planner.search::<Failure>(&mut Store::default(), &mut |plans, take| {
        plans.iter().enumerate().try_for_each(|(index, plan)| {
            let mut record = simulate(plan)?;
            record.simulation.as_mut().unwrap().network.links[0].dropped = u64::from(drops);
            if plan.run.seed != first {
                (record.good, record.verdict) = (true, Some(Outcome::Good));
            }
            take.ended(index, &record)
        })
    });
    planning.unwrap()
}

#[test]
fn what_chance_decides_is_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let planner = write(folder.path(), PLAN);
    let [certain, by_chance] = [false, true].map(|drops| with_chance(&planner, drops));
    let has = |planning: &Planning, verdict| planning.judgements.iter().any(|one| one.verdict == verdict);
    assert!(has(&certain, PlanVerdict::Simulated) && !has(&certain, PlanVerdict::CannotTell), "{certain:#?}");
    // What failed with the first seed only excludes nothing, not even itself.
    assert!(has(&by_chance, PlanVerdict::CannotTell) && !has(&by_chance, PlanVerdict::Simulated), "{by_chance:#?}");
    assert_eq!(by_chance.cheapest(), certain.cheapest());
    assert!(by_chance.simulations > certain.simulations, "{}", by_chance.simulations);
    let unknown = by_chance.judgements.iter().find(|one| one.verdict == PlanVerdict::CannotTell).unwrap();
    assert!(unknown.reason.contains("packets are dropped, and chance decides: with the seed 2"), "{unknown:?}");
}
