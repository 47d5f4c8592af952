//! The advice about a network that is enough: the same with one thing changed at a time. What the search knows answers first, then
//! bounds, and then simulations.

use crate::{
    PlannerError,
    assumptions::{Assumed, assumptions},
    changes::{Change, changes},
    problem::Problem,
    simulations::{Answer, Case, Simulator},
};
use evb_record::{
    Advice, Assumption, Bounds, GAINED, Outcome, PlanAnswer, PlanChange, PlanFigures, PlanVerdict, Planning,
};

/// The plan with advice about the cheapest network of each choice, until as many simulations are made as a search may have.
pub(crate) fn advise<E: From<PlannerError>>(
    problem: &Problem<'_>,
    planning: Planning,
    mut simulator: Simulator<'_, '_, E>,
) -> Result<Planning, E> {
    let found = (0..problem.choices.len()).filter_map(|choice| Some((planning.cheapest_of(choice)?.number, choice)));
    let found: Vec<_> = found.map(|(number, choice)| (number as usize - 1, choice)).collect();
    let (mut advice, mut notes) = (Vec::new(), planning.notes.clone());
    for &(candidate, choice) in &found {
        if simulator.is_over() {
            let (told, most) = (advice.len(), simulator.simulations);
            notes.push(format!("after {most} simulations there is advice about {told} of {} choices", found.len()));
            break;
        }
        advice.push(about(problem, &planning, (candidate, choice), &mut simulator)?);
    }
    Ok(Planning { advice, notes, simulations: planning.simulations + simulator.simulations, ..planning })
}

/// The advice about one network.
fn about<E: From<PlannerError>>(
    problem: &Problem<'_>,
    planning: &Planning,
    (candidate, choice): (usize, usize),
    simulator: &mut Simulator<'_, '_, E>,
) -> Result<Advice, E> {
    let changes = changes(problem, candidate, choice);
    let assumptions = assumptions(problem, candidate, choice)?;
    let changed = changes
        .iter()
        .map(|change| (Case::new(change.candidate, change.choice, GAINED), by_search(problem, planning, change)));
    let assumed = assumptions.iter().map(|assumed| (assumed.case.clone(), None));
    let mut answers = answers(problem, changed.chain(assumed).collect(), simulator)?;
    let of_assumptions = answers.split_off(changes.len());
    let change = |(change, answer)| change_record(problem, candidate, change, answer);
    Ok(Advice {
        candidate: problem.records[candidate].number,
        choice,
        changes: changes.into_iter().zip(answers).map(change).collect(),
        assumptions: assumptions.into_iter().zip(of_assumptions).map(assumption_record).collect(),
    })
}

/// An answer for each case, some of which the search knows. What a bound excludes is not simulated.
fn answers<E: From<PlannerError>>(
    problem: &Problem<'_>,
    cases: Vec<(Case, Option<PlanAnswer>)>,
    simulator: &mut Simulator<'_, '_, E>,
) -> Result<Vec<PlanAnswer>, E> {
    let by_bound = |(case, known): (Case, Option<PlanAnswer>)| {
        let known = known.or_else(|| without_simulation(problem, &case));
        (case, known)
    };
    let cases: Vec<_> = cases.into_iter().map(by_bound).collect();
    let open: Vec<_> = cases.iter().filter(|(_, known)| known.is_none()).map(|(case, _)| case.clone()).collect();
    let mut simulated = simulator.answers(&open)?.into_iter().map(by_simulation);
    Ok(cases.into_iter().filter_map(|(_, known)| known.or_else(|| simulated.next())).collect())
}

/// The answer of the search: what is not enough for the requirement carries no more. Where a lost packet costs a timeout, a single
/// simulation could say otherwise by chance.
fn by_search(problem: &Problem<'_>, planning: &Planning, change: &Change) -> Option<PlanAnswer> {
    let judgement = planning.judgement(problem.records[change.candidate].number, change.choice);
    let outcome = match judgement.verdict {
        PlanVerdict::Enough | PlanVerdict::NotTried => return None,
        PlanVerdict::Bound | PlanVerdict::Simulated | PlanVerdict::Inferred => Outcome::NotGood,
        PlanVerdict::CannotTell => Outcome::CannotTell,
    };
    Some(PlanAnswer { outcome, reason: judgement.reason.clone(), simulation: None })
}

/// The answer of the bounds, or of an experiment that is not valid with other values.
fn without_simulation(problem: &Problem<'_>, case: &Case) -> Option<PlanAnswer> {
    let (outcome, reason) = match problem.bound(case) {
        Ok(bound) if bound.load < 1.0 => (Outcome::NotGood, bound.reason),
        Ok(_) => return None,
        Err(error) => (Outcome::CannotTell, format!("such an experiment is not valid: {error}")),
    };
    Some(PlanAnswer { outcome, reason, simulation: None })
}

fn by_simulation(answer: Answer) -> PlanAnswer {
    let Answer { outcome, reason, trial } = answer;
    let figures = PlanFigures {
        rate_hz: trial.rate_hz,
        offered_hz: trial.offered_hz,
        latency_p99_us: trial.p99_us,
        busiest_link: trial.busiest_link,
        busiest_used: trial.busiest_used,
    };
    PlanAnswer { outcome, reason, simulation: Some(figures) }
}

fn change_record(problem: &Problem<'_>, own: usize, change: Change, answer: PlanAnswer) -> PlanChange {
    let [before, after] = [own, change.candidate].map(|candidate| &problem.records[candidate]);
    let extra_cost = Bounds { low: after.cost.low - before.cost.low, high: after.cost.high - before.cost.high };
    PlanChange { what: change.what, candidate: after.number, choice: change.choice, extra_cost, answer }
}

fn assumption_record((assumed, answer): (Assumed, PlanAnswer)) -> Assumption {
    let Assumed { what, value, factor, .. } = assumed;
    Assumption { what: what.to_owned(), value, factor, answer }
}
