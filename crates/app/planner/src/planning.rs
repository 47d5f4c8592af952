//! The plan that a search leads to: what is known of each candidate, and the front.

use crate::{
    PlannerError,
    search::{Question, Search},
};
use evb_record::{FrontEntry, Judgement, Outcome, PlanVerdict, Planning, RecordKind};
use std::collections::BTreeMap;

impl<E: From<PlannerError>> Search<'_, '_, E> {
    pub(crate) fn planning(&self, loads: &[f64], is_cut: bool) -> Planning {
        let problem = self.problem;
        let choices = problem.choices.len();
        let judgements: Vec<_> = (0..problem.candidates.len())
            .flat_map(|candidate| (0..choices).map(move |choice| (candidate, choice)))
            .map(|(candidate, choice)| self.judgement(candidate, choice, loads))
            .collect();
        Planning {
            kind: RecordKind::Planning,
            plan: problem.requirements.name.clone(),
            seed: problem.seed(),
            version: evb::VERSION.to_owned(),
            goal: problem.goal(),
            parts_date: String::new(),
            currency: String::new(),
            choices: problem.choice_words(),
            candidates: problem.records.clone(),
            front: self.front(loads),
            notes: self.notes(&judgements, is_cut),
            judgements,
            simulations: self.simulator.simulations,
            advice: Vec::new(),
        }
    }

    fn judgement(&self, candidate: usize, choice: usize, loads: &[f64]) -> Judgement {
        let bound = &self.problem.bounds[candidate][choice];
        let required = required(loads);
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

    /// The reason why it fails: by a lower load, by a network that has as much in every respect, or by one of the same parts with
    /// more uplinks.
    fn inferred(&self, candidate: usize, choice: usize, required: usize, loads: &[f64]) -> Option<String> {
        let own = &self.problem.candidates[candidate];
        let failed = self.failed_above(Question { candidate, choice, load: required });
        let (asked, answer) = failed.or_else(|| {
            self.results.iter().find(|(asked, answer)| {
                let other = &self.problem.candidates[asked.candidate];
                let is_more = other.family == own.family && other.levels[0].uplinks() > own.levels[0].uplinks();
                let is_failed = answer.outcome == Outcome::NotGood && asked.load <= required;
                asked.choice == choice && is_more && is_failed
            })
        })?;
        let other = &self.problem.candidates[asked.candidate];
        let what = match (asked.candidate == candidate, other.family == own.family) {
            (true, _) => String::new(),
            (_, true) => format!("with {} uplinks of a leaf: ", other.levels[0].uplinks()),
            _ => format!(
                "nor is no. {}, which has as much in every respect: ",
                self.problem.records[asked.candidate].number
            ),
        };
        let at =
            if loads[asked.load] < 1.0 { format!("at {:.2} of the load: ", loads[asked.load]) } else { String::new() };
        Some(format!("{what}{at}{}", answer.reason))
    }

    /// The networks that no other one beats in cost, power and load at once.
    fn front(&self, loads: &[f64]) -> Vec<FrontEntry> {
        let entry = |question: Question| self.entry(question.candidate, question.choice, question.load, loads);
        self.on_front().into_iter().map(entry).collect()
    }

    /// The same with the highest load that each carries.
    pub(crate) fn on_front(&self) -> Vec<Question> {
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
            .map(|(&(candidate, choice), &load)| Question { candidate, choice, load })
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

/// The index of the requirement.
pub(crate) fn required(loads: &[f64]) -> usize {
    loads.iter().position(|&load| load == 1.0).expect("the requirement is one of the loads")
}
