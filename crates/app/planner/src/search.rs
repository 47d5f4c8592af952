//! The search: the cheapest networks for each load, by bounds first, and then by simulations with rising effort.

use crate::{PlannerError, Simulate, Store, problem::Problem, trial::Trial};
use evb::Plan;
use evb_experiment::Experiment;
use evb_record::{FrontEntry, Judgement, Outcome, PlanVerdict, Planning, RecordKind};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// Networks of a family that are simulated at once. It does not depend on the machine, so that the plan does not.
const AT_ONCE: usize = 4;

/// A search that goes on.
pub(crate) struct Search<'a, 's, E> {
    problem: &'a Problem<'a>,
    store: &'a mut Store,
    simulate: &'a mut Simulate<'s, E>,
    /// The results for a candidate, a choice and a load.
    results: BTreeMap<Question, Answer>,
    /// Networks that carry a load, by choice.
    accepted: Vec<Accepted>,
    simulations: u64,
}

/// A candidate, a choice, and the index of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    candidate: usize,
    choice: usize,
    load: usize,
}

/// What simulations say.
#[derive(Clone, Debug)]
struct Answer {
    outcome: Outcome,
    reason: String,
    /// The longest simulation without a failure.
    trial: Trial,
}

#[derive(Clone, Copy, Debug)]
struct Accepted {
    candidate: usize,
    choice: usize,
    load: f64,
}

/// One simulation.
#[derive(Clone, Debug)]
struct Spec {
    load: f64,
    triggers: u64,
    fault: Option<String>,
}

impl<'a, 's, E: From<PlannerError>> Search<'a, 's, E> {
    pub(crate) fn new(problem: &'a Problem<'a>, store: &'a mut Store, simulate: &'a mut Simulate<'s, E>) -> Self {
        Self { problem, store, simulate, results: BTreeMap::new(), accepted: Vec::new(), simulations: 0 }
    }

    /// Searches all choices for all loads.
    pub(crate) fn run(mut self) -> Result<Planning, E> {
        let loads = self.loads();
        let mut is_cut = false;
        for choice in 0..self.problem.choices.len() {
            for load in 0..loads.len() {
                is_cut |= !self.search(choice, load, &loads)?;
            }
        }
        Ok(self.planning(&loads, is_cut))
    }

    /// The loads to be carried, ascending: the lower end of the requirement first, if it has a range.
    fn loads(&self) -> Vec<f64> {
        let least = self.problem.least_load();
        let mut loads = self.problem.requirements.search.loads.clone();
        loads.extend((least < 0.999).then_some(least));
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        loads
    }

    /// Finds the cheapest network of each family that carries a load, unless another one carries it for less. It returns false
    /// if the number of simulations did not suffice.
    fn search(&mut self, choice: usize, load: usize, loads: &[f64]) -> Result<bool, E> {
        for family in self.families(choice, loads[load]) {
            let members: Vec<_> =
                family.into_iter().filter(|&candidate| self.is_open(candidate, choice, load, loads)).collect();
            let (mut below, mut above) = (0, members.len());
            // Below `below` all fail, and what is at `above` carries the load.
            while below < above {
                if self.simulations >= self.problem.requirements.search.simulations {
                    return Ok(false);
                }
                let probes = probes(below, above);
                let questions: Vec<_> =
                    probes.iter().map(|&at| Question { candidate: members[at], choice, load }).collect();
                self.answer(&questions, loads)?;
                let is_enough = |at: &usize| {
                    let question = Question { candidate: members[*at], choice, load };
                    self.results.get(&question).is_some_and(|answer| answer.outcome == Outcome::Good)
                };
                match probes.iter().copied().find(|at| is_enough(at)) {
                    Some(first) => {
                        above = first;
                        below = probes.iter().copied().filter(|&at| at < first).max().map_or(below, |at| at + 1);
                    }
                    None => below = probes.iter().copied().max().map_or(above, |at| at + 1),
                }
            }
            if let Some(&candidate) = members.get(above) {
                self.accepted.push(Accepted { candidate, choice, load: loads[load] });
            }
        }
        Ok(true)
    }

    /// The families with candidates that no bound excludes, each by the number of uplinks; the family with the cheapest first.
    fn families(&self, choice: usize, load: f64) -> Vec<Vec<usize>> {
        let mut families: Vec<Vec<usize>> = Vec::new();
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        // Candidates are in the order of their costs.
        for (index, candidate) in self.problem.candidates.iter().enumerate() {
            if self.problem.bounds[index][choice].load < load {
                continue;
            }
            let place = *places.entry(candidate.family).or_insert_with(|| {
                families.push(Vec::new());
                families.len() - 1
            });
            families[place].push(index);
        }
        for family in &mut families {
            family.sort_by_key(|&index| (self.problem.candidates[index].levels[0].uplinks(), index));
        }
        families
    }

    /// True if it could be on the front: it has not failed at a lower load, and nothing that carries the load is better.
    fn is_open(&self, candidate: usize, choice: usize, load: usize, loads: &[f64]) -> bool {
        let failed = |lower: usize| {
            let question = Question { candidate, choice, load: lower };
            self.results.get(&question).is_some_and(|answer| answer.outcome != Outcome::Good)
        };
        let own = &self.problem.records[candidate];
        let is_beaten = self.accepted.iter().any(|accepted| {
            let other = &self.problem.records[accepted.candidate];
            accepted.choice == choice
                && accepted.candidate != candidate
                && accepted.load >= loads[load]
                && other.cost.high <= own.cost.high
                && other.power_w <= own.power_w
        });
        !is_beaten && !(0..load).any(failed)
    }

    /// Simulates candidates at a load, with rising effort, until each has failed or carried it in the longest simulation and with
    /// each failure.
    fn answer(&mut self, questions: &[Question], loads: &[f64]) -> Result<(), E> {
        let mut open: Vec<Question> =
            questions.iter().copied().filter(|question| !self.results.contains_key(question)).collect();
        let efforts = self.problem.requirements.search.triggers.clone();
        let mut carrying = Vec::new();
        for (effort, &triggers) in efforts.iter().enumerate() {
            let spec = |question: &Question| Spec { load: loads[question.load], triggers, fault: None };
            for (question, _, trial) in
                self.trials(open.iter().map(|question| (*question, spec(question))).collect())?
            {
                let (outcome, reason) = trial.verdict(self.latency_us());
                let is_last = effort + 1 == efforts.len();
                let is_decided = match outcome {
                    // Until the first events have ended they pile up in any network.
                    Outcome::NotGood => is_last || effort > 0 || trial.is_far_off(),
                    Outcome::CannotTell => is_last,
                    // A short simulation excludes a network, and admits none.
                    Outcome::Good => is_last || effort > 0,
                };
                if is_decided {
                    open.retain(|other| *other != question);
                    carrying.extend((outcome == Outcome::Good).then_some((question, triggers)));
                    self.results.insert(question, Answer { outcome, reason, trial });
                }
            }
        }
        self.fail(carrying, loads)
    }

    /// Simulates the failures that are to be survived, at the load without its headroom.
    fn fail(&mut self, carrying: Vec<(Question, u64)>, loads: &[f64]) -> Result<(), E> {
        let reserve = 1.0 + self.problem.requirements.goal.headroom;
        let specs = carrying.iter().flat_map(|&(question, triggers)| {
            let failing = self.problem.failing(question.candidate).into_iter();
            let load = loads[question.load] / reserve;
            failing.map(move |target| (question, Spec { load, triggers, fault: Some(target) }))
        });
        for (question, spec, trial) in self.trials(specs.collect())? {
            let (outcome, reason) = trial.verdict(self.latency_us());
            let answer = self.results.get_mut(&question).expect("it was simulated without a failure");
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
    fn trials(&mut self, wanted: Vec<(Question, Spec)>) -> Result<Vec<(Question, Spec, Trial)>, E> {
        let mut experiments = Vec::new();
        for (question, spec) in &wanted {
            let experiment = self.problem.experiment(
                question.candidate,
                question.choice,
                spec.load,
                spec.triggers,
                spec.fault.as_deref(),
            )?;
            experiments.push((key(&experiment), experiment));
        }
        let unknown: Vec<_> = experiments.iter().filter(|(key, _)| self.store.get(key).is_none()).collect();
        let plans: Vec<&Plan> = unknown.iter().flat_map(|(_, experiment)| experiment.plans()).collect();
        if !plans.is_empty() {
            let records = (self.simulate)(&plans)?;
            for ((key, _), record) in unknown.iter().zip(&records) {
                self.store.keep(Trial::new(key.clone(), record))?;
            }
            if records.len() < plans.len() {
                return Err(PlannerError::Stopped.into());
            }
        }
        self.simulations += wanted.len() as u64;
        let of = |((question, spec), (key, _)): ((Question, Spec), (String, Experiment))| {
            let trial = self.store.get(&key).expect("it was simulated").clone();
            (question, spec, trial)
        };
        Ok(wanted.into_iter().zip(experiments).map(of).collect())
    }

    fn planning(&self, loads: &[f64], is_cut: bool) -> Planning {
        let problem = self.problem;
        let choices = problem.choices.len();
        let judgements: Vec<_> = (0..problem.candidates.len())
            .flat_map(|candidate| (0..choices).map(move |choice| (candidate, choice)))
            .map(|(candidate, choice)| self.judgement(candidate, choice, loads))
            .collect();
        Planning {
            kind: RecordKind::Planning,
            plan: problem.requirements.name.clone(),
            seed: problem.choices[0].plan.run.seed,
            version: evb::VERSION.to_owned(),
            goal: problem.goal(),
            parts_date: String::new(),
            currency: String::new(),
            choices: problem.choice_words(),
            candidates: problem.records.clone(),
            front: self.front(loads),
            notes: self.notes(&judgements, is_cut),
            judgements,
            simulations: self.simulations,
        }
    }

    fn judgement(&self, candidate: usize, choice: usize, loads: &[f64]) -> Judgement {
        let bound = &self.problem.bounds[candidate][choice];
        let required = loads.iter().position(|&load| load == 1.0).expect("the requirement is one of the loads");
        let answer = self.results.get(&Question { candidate, choice, load: required });
        let (verdict, reason) = match answer {
            _ if bound.load < 1.0 => (PlanVerdict::Bound, bound.reason.clone()),
            Some(answer) => match answer.outcome {
                Outcome::Good => (PlanVerdict::Enough, String::new()),
                Outcome::NotGood => (PlanVerdict::Simulated, answer.reason.clone()),
                Outcome::CannotTell => (PlanVerdict::CannotTell, answer.reason.clone()),
            },
            None => self
                .inferred(candidate, choice, required, loads)
                .map_or((PlanVerdict::NotTried, String::new()), |reason| (PlanVerdict::Inferred, reason)),
        };
        let carried = |&(index, _): &(usize, &f64)| {
            let answer = self.results.get(&Question { candidate, choice, load: index });
            answer.is_some_and(|answer| answer.outcome == Outcome::Good)
        };
        let carried = loads.iter().enumerate().filter(carried).map(|(_, load)| *load).reduce(f64::max);
        let number = self.problem.records[candidate].number;
        Judgement { candidate: number, choice, verdict, reason, carried, bound: bound.load }
    }

    /// The reason why it fails, by a stronger network of the same parts, or by a lower load.
    fn inferred(&self, candidate: usize, choice: usize, required: usize, loads: &[f64]) -> Option<String> {
        let failed = |candidate: usize, load: usize| {
            let answer = self.results.get(&Question { candidate, choice, load })?;
            (answer.outcome == Outcome::NotGood).then_some(answer)
        };
        if let Some((load, answer)) = (0..required).find_map(|load| Some((load, failed(candidate, load)?))) {
            return Some(format!("at {:.2} of the load: {}", loads[load], answer.reason));
        }
        let own = &self.problem.candidates[candidate];
        let (other, answer) = self.problem.candidates.iter().enumerate().find_map(|(index, other)| {
            let is_stronger = other.family == own.family && other.levels[0].uplinks() > own.levels[0].uplinks();
            Some((other, failed(index, required).filter(|_| is_stronger)?))
        })?;
        Some(format!("with {} uplinks of a leaf: {}", other.levels[0].uplinks(), answer.reason))
    }

    /// The networks that no other one beats in cost, power and load at once.
    fn front(&self, loads: &[f64]) -> Vec<FrontEntry> {
        let mut best: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (question, answer) in &self.results {
            if answer.outcome == Outcome::Good {
                let load = best.entry((question.candidate, question.choice)).or_default();
                *load = question.load.max(*load);
            }
        }
        let values = |&(candidate, _): &(usize, usize), load: usize| {
            let record = &self.problem.records[candidate];
            (record.cost.high, record.power_w, load)
        };
        let beats = |(one, load): (&(usize, usize), &usize), (other, least): (&(usize, usize), &usize)| {
            let (a, b) = (values(one, *load), values(other, *least));
            let is_as_good = a.0 <= b.0 && a.1 <= b.1 && a.2 >= b.2;
            is_as_good && (a != b || one < other)
        };
        best.iter()
            .filter(|entry| !best.iter().any(|other| beats(other, *entry)))
            .map(|(&(candidate, choice), &load)| self.entry(candidate, choice, load, loads))
            .collect()
    }

    fn entry(&self, candidate: usize, choice: usize, load: usize, loads: &[f64]) -> FrontEntry {
        let trial = |load: usize| {
            let answer = self.results.get(&Question { candidate, choice, load });
            answer.map(|answer| &answer.trial)
        };
        let required = loads[..=load].iter().position(|&load| load == 1.0).and_then(trial);
        let shown = required.or_else(|| trial(load)).expect("it was simulated");
        FrontEntry {
            candidate: self.problem.records[candidate].number,
            choice,
            carries: loads[load],
            latency_p99_us: required.map(|trial| trial.p99_us),
            busiest_link: shown.busiest_link.clone(),
            busiest_used: shown.busiest_used,
        }
    }

    fn notes(&self, judgements: &[Judgement], is_cut: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if is_cut {
            let most = self.problem.requirements.search.simulations;
            notes.push(format!("the search ended after {most} simulations: cheaper networks may be enough"));
        }
        if self.problem.left_out > 0 {
            let left_out = self.problem.left_out;
            notes.push(format!("the {left_out} most expensive networks were not considered"));
        }
        for (choice, words) in self.problem.choice_words().iter().enumerate() {
            let of_choice = || judgements.iter().filter(|judgement| judgement.choice == choice);
            if of_choice().any(|judgement| judgement.verdict == PlanVerdict::Enough) {
                continue;
            }
            let words: Vec<_> = words.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            let of = if words.is_empty() { String::new() } else { format!(" with {}", words.join(", ")) };
            let unknown = of_choice().any(|judgement| judgement.verdict == PlanVerdict::CannotTell);
            let verb = if unknown { "is known to be enough" } else { "is enough" };
            notes.push(format!("no network of these parts {verb}{of}"));
        }
        if self.problem.requirements.goal.survive.is_empty() {
            return notes;
        }
        notes.push(
            "a host has one cable: the failure of it, of its interface or of its leaf cuts the host off".to_owned(),
        );
        notes
    }
}

/// Up to [`AT_ONCE`] places of a range, evenly spread, with its last one.
fn probes(below: usize, above: usize) -> Vec<usize> {
    let length = above - below;
    let count = length.min(AT_ONCE);
    (1..=count).map(|n| below + length * n / count - 1).collect()
}

/// What a simulation depends on, as a hash.
fn key(experiment: &Experiment) -> String {
    let mut hash = Sha256::new();
    hash.update(evb::VERSION);
    hash.update([0]);
    hash.update(experiment.resolved());
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::probes;

    #[test]
    fn probes_are_in_the_range_and_end_with_its_last_place() {
        for (below, above) in [(0, 1), (3, 5), (0, 4), (2, 40)] {
            let probes = probes(below, above);
            assert!(probes.windows(2).all(|pair| pair[0] < pair[1]), "{probes:?}");
            assert!(probes[0] >= below && probes.last() == Some(&(above - 1)), "{probes:?}");
        }
    }
}
