//! A plan: the networks that are enough, why cheaper ones are not, and the files of the cheapest one.

use crate::{
    advice::advice,
    csv::line,
    plot::{figure, tree_diagram},
    table::{ALWAYS, Column, Table},
    text::{aligned, hanging, metric, micros, percent, significant},
};
use evb_record::{Bounds, Curve, Figure, FrontEntry, PlanCandidate, PlanVerdict, Planning, PlanningGoal};
use std::collections::BTreeSet;

/// Most networks that are listed with the reason why they are not enough; the file of candidates has all.
const MOST_REASONS: usize = 8;

/// The requirement, the networks that are enough, the reasons why cheaper ones are not, the advice if there is some, and the verdict.
pub fn plan_summary(planning: &Planning, width: usize) -> String {
    let mut parts = vec![aligned(&requirement(planning), width)];
    parts.extend(front(planning, width));
    parts.extend(choices(planning, width));
    parts.extend(reasons(planning, width));
    parts.extend(advice(planning, width));
    let notes: String = planning.notes.iter().map(|note| hanging("note: ", note, width)).collect();
    parts.extend((!notes.is_empty()).then_some(notes));
    parts.push(hanging("", &verdict(planning), width));
    parts.join("\n")
}

/// The files of a plan, each with its name: all candidates as CSV, the costs over the loads, and of the cheapest network the bill
/// of material and a diagram.
pub fn plan_files(planning: &Planning) -> Vec<(String, String)> {
    let mut files = vec![("candidates.csv".to_owned(), candidates_csv(planning))];
    files.extend(front_plot(planning).map(|svg| ("front.svg".to_owned(), svg)));
    if let Some((cheapest, _)) = planning.cheapest() {
        files.push(("bill.csv".to_owned(), bill_csv(cheapest)));
        files.push(("network.svg".to_owned(), tree_diagram(&planning.plan, cheapest, planning.goal.hosts)));
    }
    files
}

fn requirement(planning: &Planning) -> Vec<(&'static str, String)> {
    let PlanningGoal { readout_units, builder_units, hosts, event_bytes, rate_hz, growth, headroom, .. } =
        planning.goal;
    let rate = range(rate_hz, |value| format!("{}Hz", metric(value)));
    let size = range(event_bytes, |value| format!("{}B", metric(value)));
    let bytes = event_bytes.high * rate_hz.high;
    let required = rate_hz.high * (1.0 + growth) * (1.0 + headroom);
    let mut extra = String::new();
    for (name, part) in [("growth", growth), ("headroom", headroom)] {
        if part > 0.0 {
            extra += &format!(", {name} {} %", percent(part).trim_end_matches(".0"));
        }
    }
    let mut limits = vec![format!("at most {} % lost", planning.goal.accept_loss)];
    limits.extend(planning.goal.latency_us.map(|latency| format!("99 % of the events within {} us", micros(latency))));
    limits.extend(planning.goal.survive.iter().map(|part| format!("any one {part} between switches may fail")));
    vec![
        (
            "plan",
            format!("{}: {readout_units} readout units, {builder_units} builder units, {hosts} hosts", planning.plan),
        ),
        ("traffic", format!("events of {size} at {rate}, up to {}B/s", metric(bytes))),
        ("required", format!("{}Hz{extra}; {}", metric(required), limits.join("; "))),
        ("parts", format!("of {}, costs in {}", planning.parts_date, planning.currency)),
        (
            "searched",
            format!(
                "{} networks, {} simulations, seed {}",
                planning.candidates.len(),
                planning.simulations,
                planning.seed
            ),
        ),
    ]
}

/// Both ends of a range, or one value.
fn range(bounds: Bounds, text: impl Fn(f64) -> String) -> String {
    match bounds.low == bounds.high {
        true => text(bounds.high),
        false => format!("{} to {}", text(bounds.low), text(bounds.high)),
    }
}

pub(crate) fn cost(bounds: Bounds) -> String {
    range(bounds, |value| significant(value, 4))
}

fn front(planning: &Planning, width: usize) -> Option<String> {
    if planning.front.is_empty() {
        return None;
    }
    let mut entries: Vec<&FrontEntry> = planning.front.iter().collect();
    entries.sort_by(|a, b| {
        let cost = |entry: &FrontEntry| planning.candidate(entry.candidate).cost.high;
        cost(a).total_cmp(&cost(b)).then(a.carries.total_cmp(&b.carries))
    });
    let has_choices = planning.choices.len() > 1;
    let mut columns = vec![Column::number("no.", ALWAYS), Column::sentence("network"), Column::number("hosts", 3)];
    columns.extend(has_choices.then(|| Column::sentence("with")));
    columns.extend([
        Column::number("cost", ALWAYS),
        Column::number("kW", 4),
        Column::number("carries", ALWAYS),
        Column::number("p99 us", 2),
        Column::word("busiest link"),
    ]);
    let mut table = Table::new(columns);
    for entry in entries {
        let candidate = planning.candidate(entry.candidate);
        let mut row = vec![candidate.number.to_string(), candidate.network.clone(), bits(candidate.host_bits_per_s)];
        row.extend(has_choices.then(|| planning.choice_in_words(entry.choice)));
        row.extend([
            cost(candidate.cost),
            significant(candidate.power_w * 1e-3, 3),
            format!("{:.0} %", entry.carries * 100.0),
            entry.latency_p99_us.map(micros).unwrap_or_default(),
            format!("{} {} %", entry.busiest_link, percent(entry.busiest_used)),
        ]);
        table.row(row);
    }
    Some(format!("no other network beats these in cost, power and load at once\n{}\n", table.draw(width)))
}

/// The cheapest network of each choice, and why that of the best choice is not enough for it.
fn choices(planning: &Planning, width: usize) -> Option<String> {
    let (cheapest, best) = planning.cheapest().filter(|_| planning.choices.len() > 1)?;
    let mut table = Table::new([
        Column::sentence("with"),
        Column::number("no.", ALWAYS),
        Column::number("cost", ALWAYS),
        Column::number("times", ALWAYS),
        Column::sentence(format!("and network {}", cheapest.number)),
    ]);
    for choice in 0..planning.choices.len() {
        let found = planning.cheapest_of(choice);
        let times = found.map(|found| found.cost.high / cheapest.cost.high);
        let judgement = planning.judgement(cheapest.number, choice);
        let of_best = match judgement.verdict {
            PlanVerdict::Enough => "is enough".to_owned(),
            PlanVerdict::NotTried => String::new(),
            _ => judgement.reason.clone(),
        };
        table.row([
            planning.choice_in_words(choice),
            found.map_or_else(|| "none".to_owned(), |found| found.number.to_string()),
            found.map(|found| cost(found.cost)).unwrap_or_default(),
            times.map(|times| format!("{times:.2}")).unwrap_or_default(),
            if choice == best { "is the cheapest".to_owned() } else { of_best },
        ]);
    }
    Some(format!("cheapest network by choice\n{}\n", table.draw(width)))
}

/// The most expensive networks that are cheaper than the cheapest one that is enough, each of other parts.
fn reasons(planning: &Planning, width: usize) -> Option<String> {
    let cheapest = planning.cheapest();
    let choice = cheapest.map_or(0, |(_, choice)| choice);
    let end = cheapest.map_or(planning.candidates.len(), |(cheapest, _)| cheapest.number as usize - 1);
    let cheaper = &planning.candidates[..end];
    let count = |verdict: PlanVerdict| {
        cheaper.iter().filter(|candidate| planning.judgement(candidate.number, choice).verdict == verdict).count()
    };
    let counts = [
        (PlanVerdict::Bound, "by a bound"),
        (PlanVerdict::Simulated, "by simulation"),
        (PlanVerdict::Inferred, "because more of the same parts is not enough"),
        (PlanVerdict::CannotTell, "cannot be told"),
        (PlanVerdict::NotTried, "were not tried"),
    ];
    let counts = counts.into_iter().map(|(verdict, words)| (count(verdict), words)).filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts.map(|(count, words)| format!("{count} {words}")).collect();
    let mut table = Table::new([
        Column::number("no.", ALWAYS),
        Column::sentence("network"),
        Column::number("cost", ALWAYS),
        Column::sentence("is not enough"),
    ]);
    let mut seen = BTreeSet::new();
    for candidate in cheaper.iter().rev() {
        let parts: Vec<_> = candidate.levels.iter().map(|level| &level.switch).collect();
        if seen.len() < MOST_REASONS && seen.insert((parts, candidate.host_bits_per_s)) {
            let judgement = planning.judgement(candidate.number, choice);
            let text = match judgement.verdict {
                PlanVerdict::NotTried => "was not tried".to_owned(),
                _ => judgement.reason.clone(),
            };
            table.row([candidate.number.to_string(), candidate.network.clone(), cost(candidate.cost), text]);
        }
    }
    let head = format!("why not cheaper: {}", counts.join(", "));
    (!cheaper.is_empty()).then(|| format!("{}{}\n", hanging("", &head, width), table.draw(width)))
}

pub(crate) fn verdict(planning: &Planning) -> String {
    match planning.cheapest() {
        Some((cheapest, choice)) => {
            let words = planning.choice_in_words(choice);
            let with = if words.is_empty() { String::new() } else { format!(" with {words}") };
            format!(
                "network {} is the cheapest that is enough{with}: {}, hosts with {}, cost {} {}, {} kW",
                cheapest.number,
                cheapest.network,
                bits(cheapest.host_bits_per_s),
                cost(cheapest.cost),
                planning.currency,
                significant(cheapest.power_w * 1e-3, 3),
            )
        }
        None => "no network of these parts is enough".to_owned(),
    }
}

/// A rate such as `400G`.
fn bits(bits_per_s: u64) -> String {
    metric(bits_per_s as f64).replace(' ', "").replace(".00", "").replace(".0", "")
}

fn candidates_csv(planning: &Planning) -> String {
    let mut text = String::new();
    let names = ["number", "network", "host_bits_per_s", "cost_low", "cost_high", "power_w", "choice", "verdict"];
    line(&mut text, names.into_iter().chain(["bound", "carried", "reason"]));
    for judgement in &planning.judgements {
        let candidate = planning.candidate(judgement.candidate);
        let cells = [
            candidate.number.to_string(),
            candidate.network.clone(),
            candidate.host_bits_per_s.to_string(),
            candidate.cost.low.to_string(),
            candidate.cost.high.to_string(),
            candidate.power_w.to_string(),
            planning.choice_in_words(judgement.choice),
            judgement.verdict.key().to_owned(),
            judgement.bound.to_string(),
            judgement.carried.map(|load| load.to_string()).unwrap_or_default(),
            judgement.reason.clone(),
        ];
        line(&mut text, cells.iter().map(String::as_str));
    }
    text
}

fn bill_csv(candidate: &PlanCandidate) -> String {
    let mut text = String::new();
    line(&mut text, ["kind", "part", "count", "cost_low", "cost_high", "power_w", "source"].into_iter());
    for part in &candidate.bill {
        let count = part.count as f64;
        let cells = [
            part.kind.clone(),
            part.part.clone(),
            part.count.to_string(),
            (part.each.low * count).to_string(),
            (part.each.high * count).to_string(),
            (part.power_w * count).to_string(),
            part.source.clone(),
        ];
        line(&mut text, cells.iter().map(String::as_str));
    }
    text
}

/// The largest load that is carried for a cost, one curve for each choice.
fn front_plot(planning: &Planning) -> Option<String> {
    let required = planning.goal.rate_hz.high * (1.0 + planning.goal.growth) * (1.0 + planning.goal.headroom);
    let curves = (0..planning.choices.len()).map(|choice| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for candidate in &planning.candidates {
            let carried = planning.judgement(candidate.number, choice).carried.map(|load| load * required * 1e-3);
            if let Some(rate) = carried.filter(|&rate| points.last().is_none_or(|last| rate > last.1)) {
                points.push((candidate.cost.high, rate));
            }
        }
        let label = planning.choice_in_words(choice);
        Curve { label: if label.is_empty() { "cheapest network".to_owned() } else { label }, points }
    });
    figure(&Figure {
        name: "front".to_owned(),
        what: format!("{}: what the cheapest networks carry", planning.plan),
        place: String::new(),
        x: format!("cost ({})", planning.currency),
        y: "event rate (kHz)".to_owned(),
        x_log: false,
        y_log: false,
        curves: curves.collect(),
        published: Vec::new(),
    })
}
