//! The simulations of networks: with rising effort, then with failures, and each of them once.

use crate::{PlannerError, Simulate, Store, base::Changes, problem::Problem, trial::Trial};
use evb::{Plan, Record, TakeRecords};
use evb_experiment::Experiment;
use evb_record::Outcome;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use toml::Value;

/// Further seeds of a simulation in which packets were dropped.
const FURTHER_SEEDS: u64 = 2;

/// A network, and what is asked of it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) candidate: usize,
    pub(crate) choice: usize,
    /// The event rate, as a factor of the requirement.
    pub(crate) load: f64,
    /// Other values of the experiment.
    pub(crate) changes: Changes,
}

impl Case {
    /// The experiment as it is, at a load.
    pub(crate) const fn new(candidate: usize, choice: usize, load: f64) -> Self {
        Self { candidate, choice, load, changes: Vec::new() }
    }

    /// The same with another seed.
    fn with_seed(&self, seed: u64) -> Self {
        let mut case = self.clone();
        case.changes.push(("run.seed".into(), Value::Integer(seed as i64)));
        case
    }
}

/// What simulations say.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) reason: String,
    /// The longest simulation without a failure.
    pub(crate) trial: Trial,
}

impl Answer {
    /// Another seed has had another outcome.
    fn doubt(&mut self, seed: u64, outcome: Outcome) {
        let is_contrary = outcome != self.outcome && [outcome, self.outcome].contains(&Outcome::Good);
        if !is_contrary || self.outcome == Outcome::CannotTell {
            return;
        }
        let but = format!(
            "packets are dropped, and chance decides: with the seed {seed} the simulation is {}",
            outcome.name()
        );
        self.reason = if self.reason.is_empty() { but } else { format!("{}; {but}", self.reason) };
        self.outcome = Outcome::CannotTell;
    }
}

/// One simulation of a case.
#[derive(Clone, Debug)]
struct Spec {
    /// Index of the case.
    case: usize,
    load: f64,
    triggers: u64,
    fault: Option<String>,
}

/// Simulates what the store does not have.
pub(crate) struct Simulator<'a, 's, E> {
    problem: &'a Problem<'a>,
    store: &'a mut Store,
    simulate: &'a mut Simulate<'s, E>,
    /// Number of simulations, those that the store had included.
    pub(crate) simulations: u64,
}

impl<'a, 's, E: From<PlannerError>> Simulator<'a, 's, E> {
    pub(crate) fn new(problem: &'a Problem<'a>, store: &'a mut Store, simulate: &'a mut Simulate<'s, E>) -> Self {
        Self { problem, store, simulate, simulations: 0 }
    }

    /// True if no more simulations are allowed.
    pub(crate) fn is_over(&self) -> bool {
        self.simulations >= self.problem.requirements.search.simulations
    }

    /// Simulates cases with rising effort, until each has failed, or has carried its load in the longest simulation and with each
    /// failure. There is an answer for each case.
    pub(crate) fn answers(&mut self, cases: &[Case]) -> Result<Vec<Answer>, E> {
        let efforts = &self.problem.requirements.search.triggers;
        let mut answers: Vec<Option<Answer>> = vec![None; cases.len()];
        let mut decided = Vec::new();
        for (effort, &triggers) in efforts.iter().enumerate() {
            let open = (0..cases.len()).filter(|&case| answers[case].is_none());
            let specs = open.map(|case| Spec { case, load: cases[case].load, triggers, fault: None }).collect();
            for (spec, trial) in self.trials(cases, specs)? {
                let (outcome, reason) = trial.verdict(self.latency_us());
                let is_last = effort + 1 == efforts.len();
                let is_decided = match outcome {
                    Outcome::NotGood => true,
                    Outcome::CannotTell => is_last,
                    // A short simulation excludes a network, and admits none.
                    Outcome::Good => is_last || effort > 0,
                };
                if is_decided {
                    decided.push((spec.case, triggers));
                    answers[spec.case] = Some(Answer { outcome, reason, trial });
                }
            }
        }
        // The last effort decides each.
        let mut answers: Vec<Answer> = answers.into_iter().flatten().collect();
        self.repeat(cases, &decided, &mut answers)?;
        decided.retain(|&(case, _)| answers[case].outcome == Outcome::Good);
        self.fail(cases, &decided, &mut answers)?;
        Ok(answers)
    }

    /// Repeats simulations that dropped packets with further seeds, since chance may have decided. Seeds that disagree make the
    /// verdict "cannot tell".
    fn repeat(&mut self, cases: &[Case], decided: &[(usize, u64)], answers: &mut [Answer]) -> Result<(), E> {
        let first = self.problem.seed();
        let by_chance = decided.iter().filter(|&&(case, _)| answers[case].trial.dropped > 0);
        let repeats =
            by_chance.flat_map(|&(case, triggers)| (1..=FURTHER_SEEDS).map(move |more| (case, triggers, first + more)));
        let repeats: Vec<_> = repeats.collect();
        let again: Vec<_> = repeats.iter().map(|&(case, _, seed)| cases[case].with_seed(seed)).collect();
        let spec = |(index, &(case, triggers, _)): (usize, &(usize, u64, u64))| Spec {
            case: index,
            load: cases[case].load,
            triggers,
            fault: None,
        };
        let specs = repeats.iter().enumerate().map(spec).collect();
        for (spec, trial) in self.trials(&again, specs)? {
            let (case, _, seed) = repeats[spec.case];
            answers[case].doubt(seed, trial.verdict(self.latency_us()).0);
        }
        Ok(())
    }

    /// Simulates the failures that are to be survived, at the load without its headroom.
    fn fail(&mut self, cases: &[Case], carrying: &[(usize, u64)], answers: &mut [Answer]) -> Result<(), E> {
        let reserve = 1.0 + self.problem.requirements.goal.headroom;
        let specs = carrying.iter().flat_map(|&(case, triggers)| {
            let failing = self.problem.failing(cases[case].candidate).into_iter();
            let load = cases[case].load / reserve;
            failing.map(move |target| Spec { case, load, triggers, fault: Some(target) })
        });
        for (spec, trial) in self.trials(cases, specs.collect())? {
            let (outcome, reason) = trial.verdict(self.latency_us());
            let answer = &mut answers[spec.case];
            if outcome > answer.outcome {
                answer.outcome = outcome;
                answer.reason = format!("without {}: {reason}", spec.fault.unwrap_or_default());
            }
        }
        Ok(())
    }

    fn latency_us(&self) -> Option<f64> {
        self.problem.requirements.goal.latency.map(|latency| latency.0 as f64 * 1e-6)
    }

    /// Simulates what is not known, all at once.
    fn trials(&mut self, cases: &[Case], wanted: Vec<Spec>) -> Result<Vec<(Spec, Trial)>, E> {
        let mut experiments = Vec::new();
        for spec in &wanted {
            let case = Case { load: spec.load, ..cases[spec.case].clone() };
            let experiment = self.problem.experiment(&case, spec.triggers, spec.fault.as_deref())?;
            experiments.push((key(&experiment), experiment));
        }
        let mut seen = BTreeSet::new();
        let is_unknown = |(key, _): &&(String, Experiment)| self.store.get(key).is_none() && seen.insert(key.clone());
        let (keys, unknown): (Vec<_>, Vec<_>) =
            experiments.iter().filter(is_unknown).map(|(key, experiment)| (key.clone(), experiment)).unzip();
        let plans: Vec<&Plan> = unknown.into_iter().flat_map(Experiment::plans).collect();
        if !plans.is_empty() {
            (self.simulate)(&plans, &mut Keeper { store: self.store, keys: &keys })?;
            if keys.iter().any(|key| self.store.get(key).is_none()) {
                return Err(PlannerError::Stopped.into());
            }
        }
        self.simulations += wanted.len() as u64;
        let of = |(spec, (key, _)): (Spec, (String, Experiment))| {
            let trial = self.store.get(&key).expect("it was simulated").clone();
            (spec, trial)
        };
        Ok(wanted.into_iter().zip(experiments).map(of).collect())
    }
}

/// Keeps each simulation as soon as it has ended.
struct Keeper<'a> {
    store: &'a mut Store,
    keys: &'a [String],
}

impl<E: From<PlannerError>> TakeRecords<E> for Keeper<'_> {
    fn ended(&mut self, index: usize, record: &Record) -> Result<(), E> {
        Ok(self.store.keep(Trial::new(self.keys[index].clone(), record))?)
    }

    fn in_order(&mut self, _: &Record) -> Result<(), E> {
        Ok(())
    }
}

/// What a simulation depends on, as a hash.
fn key(experiment: &Experiment) -> String {
    let mut hash = Sha256::new();
    hash.update(evb::VERSION);
    hash.update([0]);
    hash.update(experiment.resolved());
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
