//! The advice of a plan: what to change about its networks, and what it hangs on.

use crate::{
    planning::{cost, verdict},
    table::{ALWAYS, Column, Table},
    text::{hanging, metric, micros, percent},
};
use evb_record::{ASSUMED, Advice, Assumption, Bounds, GAINED, Outcome, PlanAnswer, Planning};

/// What a plan says about its cheapest networks: the verdict, what to change, and what the result hangs on, if the plan has that.
pub fn plan_explanation(planning: &Planning, width: usize) -> String {
    let mut parts = vec![hanging("", &verdict(planning), width)];
    parts.extend(busiest(planning).map(|text| hanging("", &text, width)));
    parts.extend(advice(planning, width));
    if planning.cheapest().is_some() && planning.advice.is_empty() {
        let how = "the plan was made without advice; `evb plan FILE --out DIR --resume --advice` adds what to change and \
                   what the result hangs on";
        parts.push(hanging("hint: ", how, width));
    }
    parts.join("\n")
}

/// The link that is in use most of the time.
fn busiest(planning: &Planning) -> Option<String> {
    let (cheapest, choice) = planning.cheapest()?;
    let entry = planning.front.iter().find(|entry| (entry.candidate, entry.choice) == (cheapest.number, choice))?;
    let used = percent(entry.busiest_used);
    Some(format!("its busiest link is {}, in use {used} % of the time", entry.busiest_link))
}

/// The advice about each network; `None` if the plan has none.
pub(crate) fn advice(planning: &Planning, width: usize) -> Option<String> {
    let of = |advice: &Advice| {
        let words = planning.choice_in_words(advice.choice);
        let with = if words.is_empty() { String::new() } else { format!(" with {words}") };
        let head = |text: &str| hanging("", &format!("network {}{with}: {text}", advice.candidate), width);
        let gained = format!("what gains {:.0} %", (GAINED - 1.0) * 100.0);
        format!(
            "{}{}\n\n{}{}\n",
            head(&gained),
            changes(planning, advice).draw(width),
            head("what the result hangs on"),
            assumptions(advice).draw(width)
        )
    };
    let all: Vec<_> = planning.advice.iter().map(of).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

fn changes(planning: &Planning, advice: &Advice) -> Table {
    let mut table = Table::new([
        Column::sentence("change"),
        Column::number("no.", ALWAYS),
        Column::sentence("network"),
        Column::number("cost", ALWAYS),
        Column::word("gains"),
        Column::sentence("figures"),
    ]);
    for change in &advice.changes {
        let is_other = change.candidate != advice.candidate;
        let network = &planning.candidate(change.candidate).network;
        table.row([
            change.what.clone(),
            change.candidate.to_string(),
            if is_other { network.clone() } else { String::new() },
            if is_other { extra(change.extra_cost) } else { String::new() },
            answered(&change.answer, "yes", "no"),
            figures(&change.answer),
        ]);
    }
    table
}

/// A difference of costs with its sign.
fn extra(bounds: Bounds) -> String {
    let text = cost(bounds);
    if bounds.low < 0.0 { text } else { format!("+{text}") }
}

fn answered(answer: &PlanAnswer, good: &str, not_good: &str) -> String {
    match answer.outcome {
        Outcome::Good => good.to_owned(),
        Outcome::NotGood => not_good.to_owned(),
        Outcome::CannotTell => Outcome::CannotTell.name().to_owned(),
    }
}

/// What decided, or the figures of a network that is enough.
fn figures(answer: &PlanAnswer) -> String {
    match &answer.simulation {
        Some(simulation) if answer.reason.is_empty() => format!(
            "{}Hz of {}Hz, p99 {} us, {} in use {} %",
            metric(simulation.rate_hz),
            metric(simulation.offered_hz),
            micros(simulation.latency_p99_us),
            simulation.busiest_link,
            percent(simulation.busiest_used)
        ),
        _ => answer.reason.clone(),
    }
}

/// A row for each assumption, with the answers at both factors and the figures of the worse one.
fn assumptions(advice: &Advice) -> Table {
    let factors = ASSUMED.map(|factor| Column::word(format!("x {factor}")));
    let columns = [Column::sentence("assumed"), Column::sentence("value")];
    let mut table = Table::new(columns.into_iter().chain(factors).chain([Column::sentence("figures")]));
    for of_one in advice.assumptions.chunk_by(|one, next| one.what == next.what) {
        let answer = |factor: f64| of_one.iter().find(|one| one.factor == factor).map(|one| &one.answer);
        let cells = ASSUMED.map(|factor| answer(factor).map(|found| answered(found, "enough", "no longer")));
        let worse = of_one.iter().max_by_key(|one| one.answer.outcome);
        let shown = |one: &Assumption| format!("x {}: {}", one.factor, figures(&one.answer));
        let first = [of_one[0].what.clone(), of_one[0].value.clone()];
        let cells = cells.into_iter().map(Option::unwrap_or_default);
        table.row(first.into_iter().chain(cells).chain(worse.map(shown)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_record::{
        FrontEntry, Judgement, PlanCandidate, PlanChange, PlanFigures, PlanVerdict, PlanningGoal, RecordKind,
    };
    use std::collections::BTreeMap;

    fn candidate(number: u32, network: &str, cost: f64) -> PlanCandidate {
        let cost = Bounds { low: cost, high: cost * 1.5 };
        let network = network.to_owned();
        PlanCandidate {
            number,
            network,
            host_bits_per_s: 25_000_000_000,
            levels: vec![],
            cost,
            power_w: 300.0,
            bill: vec![],
        }
    }

    fn simulated(outcome: Outcome, reason: &str) -> PlanAnswer {
        let figures = PlanFigures {
            rate_hz: 46_200.0,
            offered_hz: 46_200.0,
            latency_p99_us: 123.4,
            busiest_link: "leaf0>spine0".to_owned(),
            busiest_used: 0.912,
        };
        PlanAnswer { outcome, reason: reason.to_owned(), simulation: Some(figures) }
    }

    /// A plan of two networks, of which the first is enough.
    fn plan(advice: Vec<Advice>) -> Planning {
        let judgement = |candidate, verdict| Judgement {
            candidate,
            choice: 0,
            verdict,
            reason: String::new(),
            carried: Some(1.0),
            bound: 1.3,
        };
        let bounds = Bounds { low: 1.0, high: 1.0 };
        let entry = FrontEntry {
            candidate: 1,
            choice: 0,
            carries: 1.0,
            latency_p99_us: Some(100.0),
            busiest_link: "leaf0>spine0".to_owned(),
            busiest_used: 0.83,
        };
        Planning {
            kind: RecordKind::Planning,
            plan: "small".to_owned(),
            seed: 1,
            version: "0.1.0".to_owned(),
            goal: PlanningGoal {
                readout_units: 8,
                builder_units: 8,
                hosts: 16,
                event_bytes: bounds,
                rate_hz: bounds,
                growth: 0.0,
                headroom: 0.0,
                accept_loss: 0,
                latency_us: None,
                survive: vec![],
            },
            parts_date: "2026-11".to_owned(),
            currency: "EUR".to_owned(),
            choices: vec![BTreeMap::from([("shaping".to_owned(), "none".to_owned())])],
            candidates: vec![
                candidate(1, "2 small (3 up), 1 small", 40.0),
                candidate(2, "2 small (4 up), 1 small", 41.0),
            ],
            judgements: vec![judgement(1, PlanVerdict::Enough), judgement(2, PlanVerdict::NotTried)],
            front: vec![entry],
            notes: vec![],
            simulations: 5,
            advice,
        }
    }

    #[test]
    fn a_plan_says_what_to_change_and_what_it_hangs_on() {
        let bound = PlanAnswer {
            outcome: Outcome::NotGood,
            reason: "host 8 receives 3.20 GB/s, and its cable of 25 Gbit/s carries 3.12 GB/s".to_owned(),
            simulation: None,
        };
        let good = simulated(Outcome::Good, "");
        let unknown = simulated(Outcome::CannotTell, "no event has ended");
        let change = |what: &str, candidate, cost, answer| PlanChange {
            what: what.to_owned(),
            candidate,
            choice: 0,
            extra_cost: Bounds { low: cost, high: cost * 1.5 },
            answer,
        };
        let assumption = |what: &str, factor, answer| Assumption {
            what: what.to_owned(),
            value: "480 kB".to_owned(),
            factor,
            answer,
        };
        let advice = Advice {
            candidate: 1,
            choice: 0,
            changes: vec![change("no change", 1, 0.0, bound.clone()), change("more uplinks", 2, 1.0, good.clone())],
            assumptions: vec![
                assumption("event size", 0.9, good.clone()),
                assumption("event size", 1.1, bound),
                assumption("spread of sizes", 0.9, good.clone()),
                assumption("spread of sizes", 1.1, good),
                assumption("header of each packet", 1.1, unknown),
            ],
        };
        insta::assert_snapshot!(plan_explanation(&plan(vec![advice]), 80));
    }

    #[test]
    fn a_plan_without_advice_says_how_to_get_it() {
        insta::assert_snapshot!(plan_explanation(&plan(vec![]), 80));
    }
}
