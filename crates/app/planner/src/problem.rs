//! The question: the experiment for each choice, its traffic, and the networks that could carry it.

use crate::{
    PlannerError, Range, Requirements,
    base::{Base, Changes, Setting, choices, one_switch, value_text},
    bounds::{Bound, bound},
    candidate::{Assembly, Candidate},
    demand::Demand,
    parts::Parts,
    requirements::Failure,
    simulations::Case,
    strength::Strength,
};
use evb_core::{Frequency, Span};
use evb_experiment::{Experiment, Plan};
use evb_record::{Bounds, PlanCandidate, PlanningGoal};
use std::{collections::BTreeMap, path::Path};
use toml::{Table, Value};

/// Most candidates that are looked at.
const MOST: usize = 5000;

/// One choice of the free keys.
pub(crate) struct Choice {
    /// One setting for each line of `freedom.keys`.
    pub(crate) settings: Vec<Setting>,
    /// The experiment on one switch, at the required rate.
    pub(crate) plan: Plan,
    pub(crate) demand: Demand,
}

/// The question, and everything that needs no simulation.
pub(crate) struct Problem<'a> {
    pub(crate) requirements: &'a Requirements,
    pub(crate) base: Base,
    /// Events per second: the range that is required.
    pub(crate) rate: Range<Frequency>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) candidates: Vec<Candidate<'a>>,
    /// The same as records, the cheapest first.
    pub(crate) records: Vec<PlanCandidate>,
    /// The tightest bound of each candidate, for each choice.
    pub(crate) bounds: Vec<Vec<Bound>>,
    /// What each candidate has, for each choice.
    pub(crate) strengths: Vec<Vec<Strength>>,
    /// Candidates that were left out.
    pub(crate) left_out: usize,
}

impl<'a> Problem<'a> {
    pub(crate) fn new(requirements: &'a Requirements, parts: &'a Parts) -> Result<Self, PlannerError> {
        let path = &requirements.experiment;
        let base = Base::load(requirements)?;
        let rate = rate(requirements, &base)?;
        let settings = choices(path, &requirements.freedom.keys)?;
        let choices = settings.into_iter().map(|settings| choice(requirements, &base, rate, settings));
        let choices = choices.collect::<Result<Vec<_>, _>>()?;
        let hosts: Vec<_> = choices.iter().map(|choice| (choice.demand.hosts(), choice.demand.fixed.clone())).collect();
        if hosts.iter().any(|other| *other != hosts[0]) {
            return Err(PlannerError::file(
                path,
                "the values of freedom.keys need different numbers of hosts, or other cables of hosts",
                "write a plan for each of them, and compare their costs",
            ));
        }
        let mut problem = Self {
            requirements,
            base,
            rate,
            choices,
            candidates: Vec::new(),
            records: Vec::new(),
            bounds: Vec::new(),
            strengths: Vec::new(),
            left_out: 0,
        };
        problem.assemble(parts)?;
        Ok(problem)
    }

    /// Finds the candidates, the cheapest first.
    fn assemble(&mut self, parts: &'a Parts) -> Result<(), PlannerError> {
        let Requirements { freedom, goal, site, .. } = self.requirements;
        let demand = &self.choices[0].demand;
        let least_spines = if goal.survive.contains(&Failure::Switch) { 2 } else { 1 };
        let assembly = Assembly {
            parts,
            demand,
            levels: &freedom.levels,
            oversubscription: freedom.oversubscription,
            least_spines,
            site: *site,
        };
        let mut found: Vec<_> =
            assembly.candidates().into_iter().map(|candidate| (candidate.record(0, demand), candidate)).collect();
        found.sort_by(|(a, _), (b, _)| (a.cost.high.total_cmp(&b.cost.high)).then(a.power_w.total_cmp(&b.power_w)));
        self.left_out = found.len().saturating_sub(MOST);
        found.truncate(MOST);
        if found.is_empty() {
            let why = format!("no network of these parts joins {} hosts", demand.hosts());
            let hint = "add switches with more ports, faster cables or interfaces, or allow more levels";
            return Err(PlannerError::file(&self.requirements.parts, why, hint));
        }
        for (number, (record, candidate)) in (1..).zip(found) {
            self.records.push(PlanCandidate { number, ..record });
            self.candidates.push(candidate);
        }
        let reserve = 1.0 / (1.0 + goal.headroom);
        let of = |candidate: &Candidate<'_>| {
            self.choices.iter().map(|choice| bound(candidate, &choice.demand, &goal.survive, reserve)).collect()
        };
        self.bounds = self.candidates.iter().map(of).collect();
        let of = |candidate: &Candidate<'_>| {
            let of = |choice: &Choice| Strength::of(candidate, &choice.demand, &goal.survive, reserve);
            self.choices.iter().map(of).collect()
        };
        self.strengths = self.candidates.iter().map(of).collect();
        Ok(())
    }

    /// True if the other candidate has no more in any respect.
    pub(crate) fn covers(&self, choice: usize, candidate: usize, other: usize) -> bool {
        self.strengths[candidate][choice].covers(&self.strengths[other][choice])
    }

    /// The required load of the lower ends of all ranges, as a factor of that of the upper ends.
    pub(crate) fn least_load(&self) -> f64 {
        let size = self.requirements.goal.size;
        self.rate.low.as_hertz() / self.rate.high.as_hertz() * size.low / size.high
    }

    /// The event rate that a network has to carry, in hertz.
    pub(crate) fn required_hz(&self) -> f64 {
        required_hz(self.requirements, self.rate)
    }

    /// The experiment of a case, for a number of triggers and with what fails from the start.
    pub(crate) fn experiment(
        &self,
        case: &Case,
        triggers: u64,
        fault: Option<&str>,
    ) -> Result<Experiment, PlannerError> {
        let Choice { settings, plan, demand } = &self.choices[case.choice];
        let mut all = self.candidates[case.candidate].changes(demand, plan);
        let rate_hz = self.required_hz() * case.load;
        all.extend(trigger(&self.base, self.requirements, rate_hz, triggers, plan.bundling.block));
        all.extend(settings.iter().flatten().chain(&case.changes).cloned());
        if let Some(target) = fault {
            let mut fault = Table::new();
            for (key, value) in [("target", target), ("action", "fail"), ("at", "0 s"), ("reroute", "0 s")] {
                fault.insert(key.to_owned(), value.into());
            }
            all.push(("network.fault".to_owned(), Value::Array(vec![fault.into()])));
        }
        self.base.with(&all)
    }

    /// The tightest bound on a case, as a factor of what is asked.
    pub(crate) fn bound(&self, case: &Case) -> Result<Bound, PlannerError> {
        let Requirements { experiment: path, goal, search, .. } = self.requirements;
        let experiment = self.experiment(case, search.triggers[0], None)?;
        let rate_hz = self.required_hz() * case.load;
        let demand = Demand::of(&experiment.plans()[0], rate_hz, path)?;
        Ok(bound(&self.candidates[case.candidate], &demand, &goal.survive, 1.0 / (1.0 + goal.headroom)))
    }

    /// The seed of the experiment.
    pub(crate) fn seed(&self) -> u64 {
        self.choices[0].plan.run.seed
    }

    /// The failures to be survived: what fails in a simulation.
    pub(crate) fn failing(&self, candidate: usize) -> Vec<String> {
        let candidate = &self.candidates[candidate];
        let survive = &self.requirements.goal.survive;
        let Some(above) = candidate.levels.len().checked_sub(2) else { return Vec::new() };
        let mut failing = Vec::new();
        if survive.contains(&Failure::Cable) {
            let parallel = if candidate.levels[0].links > 1 { ".0" } else { "" };
            failing.push(format!("leaf0<>spine0{parallel}"));
        }
        if survive.contains(&Failure::Switch) {
            failing.push("spine0".to_owned());
            failing.extend((above == 1).then(|| "core0".to_owned()));
        }
        failing
    }

    pub(crate) fn goal(&self) -> PlanningGoal {
        let Choice { plan, demand, .. } = &self.choices[0];
        let goal = &self.requirements.goal;
        PlanningGoal {
            readout_units: plan.building.readout_units,
            builder_units: plan.building.builder_units,
            hosts: demand.hosts(),
            event_bytes: Bounds { low: demand.event_bytes * goal.size.low / goal.size.high, high: demand.event_bytes },
            rate_hz: Bounds { low: self.rate.low.as_hertz(), high: self.rate.high.as_hertz() },
            growth: goal.growth,
            headroom: goal.headroom,
            accept_loss: goal.accept_loss,
            latency_us: goal.latency.map(|latency| latency.0 as f64 * 1e-6),
            survive: goal.survive.iter().map(|failure| failure.name().to_owned()).collect(),
        }
    }

    pub(crate) fn choice_words(&self) -> Vec<BTreeMap<String, String>> {
        let words = |(key, value): &(String, Value)| (key.clone(), value_text(value));
        self.choices.iter().map(|choice| choice.settings.iter().flatten().map(words).collect()).collect()
    }
}

/// The event rate that a network has to carry, in hertz.
fn required_hz(requirements: &Requirements, rate: Range<Frequency>) -> f64 {
    let goal = &requirements.goal;
    rate.high.as_hertz() * (1.0 + goal.growth) * (1.0 + goal.headroom)
}

/// The rate of the goal, or that of the experiment.
fn rate(requirements: &Requirements, base: &Base) -> Result<Range<Frequency>, PlannerError> {
    let of_experiment = || {
        let text = base.value("trigger.rate").and_then(Value::as_str);
        text.and_then(|text| text.parse().ok()).map(Range::exactly)
    };
    requirements.goal.rate.or_else(of_experiment).filter(|rate| rate.low.0 > 0).ok_or_else(|| {
        PlannerError::file(&requirements.experiment, "the required rate is missing", "set `goal.rate` in the plan")
    })
}

fn choice(
    requirements: &Requirements,
    base: &Base,
    rate: Range<Frequency>,
    settings: Vec<Setting>,
) -> Result<Choice, PlannerError> {
    let path: &Path = &requirements.experiment;
    let rate_hz = required_hz(requirements, rate);
    let mut all = vec![one_switch()];
    all.extend(trigger(base, requirements, rate_hz, requirements.search.triggers[0], 1));
    all.extend(settings.iter().flatten().cloned());
    let experiment = base.with(&all)?;
    let [plan] = experiment.plans() else {
        return Err(PlannerError::file(path, "it has several points", "put the swept keys into `freedom.keys`"));
    };
    let demand = Demand::of(plan, rate_hz, path)?;
    Ok(Choice { settings, plan: plan.clone(), demand })
}

/// The trigger at a rate, for a number of triggers. Other keys of the trigger stay.
fn trigger(base: &Base, requirements: &Requirements, rate_hz: f64, triggers: u64, block: u32) -> Changes {
    let mut table = base.value("trigger").and_then(Value::as_table).cloned().unwrap_or_default();
    ["events", "duration"].into_iter().for_each(|key| drop(table.remove(key)));
    let rate = Frequency((rate_hz * 1e3).round().max(1.0) as u64);
    let duration = Span((triggers as f64 * f64::from(block) / rate_hz * 1e12).ceil() as u64);
    for (key, value) in [
        ("type", Value::from("rate")),
        ("rate", rate.to_string().into()),
        ("duration", duration.to_string().into()),
        ("accept_loss", i64::from(requirements.goal.accept_loss).into()),
    ] {
        table.insert(key.to_owned(), value);
    }
    vec![("trigger".to_owned(), table.into())]
}
