//! What limits a run or a simulation, by the evidence of its record: first what is broken, then what is full.

mod faults;

use crate::{
    rates,
    text::{hanging, metric},
};
use evb_record::{Effect, FindingKind, LinkRecord, Occupancy, Record, RecordKind, Simulation};
use serde::Serialize;
use std::fmt::Write as _;

/// Part of the offered triggers that may be turned away, or not be built in time, by chance.
const CARRIED: f64 = 0.99;
/// Part of something above which it counts as full.
const FULL: f64 = 0.8;
/// Part of the time above which processors or a link count as always at work.
const BUSY: f64 = 0.9;
/// A unit is conspicuous if it has this many times as much as the median one.
const OUTSTANDING: f64 = 2.0;
/// Part of the bytes of a link above which background traffic is named.
const BACKGROUND: f64 = 0.05;
/// Most links that are named.
const MOST_LINKS: usize = 3;

/// How a limit acts on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitRole {
    /// A fault, which other faults may follow from.
    Cause,
    /// What followed from faults.
    Consequence,
    /// A unit, queue, link or disk that is full or busy.
    Resource,
}

/// Something that limits a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// A fault, its consequence, or something that is full.
    pub role: LimitRole,
    /// The unit, queue, link or disk.
    pub what: String,
    /// The sentence about it.
    pub why: String,
    /// The evidence.
    pub how_known: String,
    /// Advice.
    #[serde(rename = "try")]
    pub advice: String,
}

impl Limit {
    fn new(what: impl Into<String>, why: impl Into<String>, how_known: String, advice: &str) -> Self {
        Self { role: LimitRole::Resource, what: what.into(), why: why.into(), how_known, advice: advice.into() }
    }
}

/// What limits a run or a simulation: faults, what followed from them, and then resources, the strongest evidence first.
/// Empty if the record has no evidence.
#[must_use]
pub fn explain(record: &Record) -> Vec<Limit> {
    explain_with(record, faults::LACKING)
}

/// `lacking` is the part of the fragments of the others that a source has to send.
fn explain_with(record: &Record, lacking: f64) -> Vec<Limit> {
    let mut limits = faults::causes(record, lacking);
    limits.extend(faults::consequences(record));
    let is_broken = !limits.is_empty();
    limits.extend(resources(record, is_broken));
    limits
}

/// The same for a run that is not over: open events are not lost, and sources have not missed their end.
#[must_use]
pub fn explain_running(record: &Record) -> Vec<Limit> {
    let mut so_far = record.clone();
    so_far.findings.retain(|finding| !faults::needs_end(finding.kind));
    // Before the first fragment of any source nothing is wrong yet.
    if record.readouts.iter().all(|readout| readout.came == 0) {
        so_far.findings.retain(|finding| finding.kind != FindingKind::SilentSource);
    }
    // Reports of the units are not of the same time.
    explain_with(&so_far, 0.0)
}

/// The resources that limit a run, or its trigger if that does. If something is broken, only what is full counts.
fn resources(record: &Record, is_broken: bool) -> Vec<Limit> {
    if let Some(links) = record.simulation.as_ref().map(|simulation| &simulation.network.deadlock)
        && !links.is_empty()
    {
        return Vec::new();
    }
    let fails = record.findings.iter().any(|finding| finding.kind.effect() == Effect::Fails);
    if let Some(limit) = carried(record).filter(|_| !fails) {
        return vec![limit];
    }
    match record.kind {
        RecordKind::Simulation => simulated(record, is_broken),
        _ => record.occupancy.as_ref().map_or_else(Vec::new, |occupancy| units(record, occupancy, is_broken)),
    }
}

/// The same as text, at most `width` columns wide.
#[must_use]
pub fn explanation(record: &Record, width: usize) -> String {
    let limits = explain(record);
    let mut text = String::new();
    if limits.is_empty() {
        let why = "nothing in the record tells what limits it: it was too short for a look at its units, or comes from \
                   an earlier version; let it go on for a second or more";
        return hanging("", why, width);
    }
    let mut has_resource = false;
    for Limit { role, what, why, how_known, advice } in &limits {
        let first = match role {
            LimitRole::Cause => "cause",
            LimitRole::Consequence => "effect",
            LimitRole::Resource if std::mem::replace(&mut has_resource, true) => "also",
            LimitRole::Resource => "limit",
        };
        let lines = [(first, format!("{what}: {why}")), ("known", how_known.clone()), ("try", advice.clone())];
        for (name, line) in lines.into_iter().filter(|(_, line)| !line.is_empty()) {
            let _never_fails = write!(text, "{}", hanging(&format!("{name:<7}"), &line, width));
        }
    }
    text
}

/// The run carries all that it is offered.
fn carried(record: &Record) -> Option<Limit> {
    let offered = record.trigger.offered_rate_hz?;
    let turned_away = record.trigger.inhibited as f64 / record.trigger.offered.max(1) as f64;
    let is_carried = turned_away < 1.0 - CARRIED && record.event_rate_hz >= CARRIED * offered;
    is_carried.then(|| {
        let rates = format!("{}Hz offered, {}Hz built", metric(offered), metric(record.event_rate_hz));
        let how = format!("{rates}, {} of the triggers turned away", percent(turned_away));
        Limit::new(
            "trigger",
            "all that is offered is built: nothing else limits",
            how,
            "raise trigger.rate until triggers are turned away, and look again",
        )
    })
}

/// The limits of units and processors, in a run or where a simulation has processors.
fn units(record: &Record, occupancy: &Occupancy, is_broken: bool) -> Vec<Limit> {
    // A unit that gets no processor falls behind by chance: so the processors come before one unit.
    let found =
        [storage(record, occupancy), processors(record, occupancy), source(occupancy), builders(record, occupancy)];
    let mut limits: Vec<_> = found.into_iter().flatten().collect();
    if limits.is_empty() {
        limits.extend(readouts(occupancy).or_else(|| idle(record, occupancy).filter(|_| !is_broken)));
    }
    limits
}

/// Builders whose built events wait for filters or the storage.
fn storage(record: &Record, occupancy: &Occupancy) -> Option<Limit> {
    // Where builders take turns, one that has a turn has a whole slot.
    let slots = record.trigger.slots.max(1.0);
    let (unit, most) = occupancy.builders.iter().enumerate().max_by(|a, b| a.1.storing.total_cmp(&b.1.storing))?;
    let all: f64 = occupancy.builders.iter().map(|builder| builder.storing).sum();
    let building: f64 = occupancy.builders.iter().map(|builder| builder.building).sum();
    let is_slow = most.storing > slots / 2.0 || all > OUTSTANDING * building.max(1.0);
    let stored =
        record.builders.iter().map(|builder| builder.stored_bytes).sum::<u64>() as f64 / record.seconds.max(1e-9);
    let (what, advice) = match (&record.filter, stored > 0.0) {
        (Some(filter), _) if !filter.given.is_empty() => (
            "filters or storage",
            "more filter units (filter.units.count), a faster filter, a faster disk, or more builder units",
        ),
        (_, true) => {
            ("storage", "a faster disk, storage.keep = { one_in = N }, or more builder units on separate disks")
        }
        (_, false) => ("filters", "more filter units, or a faster filter"),
    };
    let how = format!(
        "in bu{unit}, {:.1} built events waited at a time, and {:.1} were under construction; {}B/s were stored in all",
        most.storing,
        occupancy.builders[unit].building,
        metric(stored),
    );
    is_slow.then(|| Limit::new(format!("{what} of bu{unit}"), "built events wait for it", how, advice))
}

/// A readout unit that events wait for far more than for the others.
fn source(occupancy: &Occupancy) -> Option<Limit> {
    let mut waited: Vec<_> = occupancy.readouts.iter().map(|readout| readout.waited_for).collect();
    waited.sort_by(f64::total_cmp);
    let middle = *waited.get(waited.len().checked_sub(1)? / 2)?;
    let (unit, most) =
        occupancy.readouts.iter().enumerate().max_by(|a, b| a.1.waited_for.total_cmp(&b.1.waited_for))?;
    let how = format!(
        "{:.1} events under construction waited for its fragment at a time, and {middle:.1} for that of the middle unit; \
         its buffer was filled to {}",
        most.waited_for,
        percent(most.filled),
    );
    let advice = match most.filled > FULL {
        true => "its fragments are there and do not go out: look at its link and its processor",
        false => "its fragments come late: look at its front end or its data file, and at its processor",
    };
    let stands_out = most.waited_for > OUTSTANDING * middle + 1.0;
    stands_out
        .then(|| Limit::new(format!("ru{unit}"), "events wait for its fragments more than for others'", how, advice))
}

/// All processors of the machine are at work.
fn processors(record: &Record, occupancy: &Occupancy) -> Option<Limit> {
    let busy = occupancy.machine_busy.filter(|&busy| busy > BUSY)?;
    let (whose, by_whom) = match record.kind {
        RecordKind::Simulation => ("all computers", ""),
        _ => ("run control's machine", ", for any program"),
    };
    let how = format!("the processors of {whose} worked {} of the time{by_whom}", percent(busy));
    let has_blocks = record.bundles.as_ref().is_some_and(|bundles| bundles.block > 1);
    let blocks = if has_blocks { "" } else { " blocks (trigger.block = \"auto\")," };
    let advice = format!(
        "fewer nodes than processors, nodes on several machines (--hosts),{blocks} or a transport that copies less"
    );
    Some(Limit::new("processors", "no processor is left", how, &advice))
}

/// All slots of the builders are taken, and their events wait evenly for all.
fn builders(record: &Record, occupancy: &Occupancy) -> Option<Limit> {
    let slots = record.trigger.slots;
    let building = mean(occupancy.builders.iter().map(|builder| builder.building))?;
    let how =
        format!("{building:.1} events were under construction in each builder at a time, of {} slots", in_short(slots));
    let advice = "more builder units, or more slots (builder.slots) where each event waits for the network";
    (slots > 0.0 && building > FULL * slots).then(|| Limit::new("builders", "all their slots are taken", how, advice))
}

/// The buffers of all readout units are full.
fn readouts(occupancy: &Occupancy) -> Option<Limit> {
    let filled = mean(occupancy.readouts.iter().map(|readout| readout.filled))?;
    let how = format!("the buffers of the readout units were filled to {}", percent(filled));
    let advice = "faster links or a transport that copies less; more builder units";
    (filled > FULL).then(|| Limit::new("network", "fragments wait in the readout units for their way out", how, advice))
}

/// Nothing is full: events wait for their assignment.
fn idle(record: &Record, occupancy: &Occupancy) -> Option<Limit> {
    let building = mean(occupancy.builders.iter().map(|builder| builder.building))?;
    let filled = mean(occupancy.readouts.iter().map(|readout| readout.filled))?;
    let how = format!(
        "{building:.1} of {} slots of a builder were taken, and {} of a buffer",
        in_short(record.trigger.slots),
        percent(filled),
    );
    let advice =
        "more events under way (builder.slots), larger groups of assignments (protocol.group), or faster messages";
    Some(Limit::new("latency", "no unit is full: events wait for messages on their way", how, advice))
}

/// A number of slots, also of less than one.
fn in_short(slots: f64) -> String {
    if slots < 1.0 { format!("{slots:.2}") } else { format!("{slots:.0}") }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}

/// The links that limit a simulation.
fn simulated(record: &Record, is_broken: bool) -> Vec<Limit> {
    let Some(simulation) = &record.simulation else { return Vec::new() };
    let links = &simulation.network.links;
    let full = above(links, |link| link.used, BUSY);
    if !full.is_empty() {
        return vec![full_links(&full, simulation)];
    }
    let blocked = above(links, |link| link.blocked, 1.0 - FULL);
    if let Some(most) = blocked.first() {
        let how = format!(
            "{}; no link was used above {}{}",
            named(&blocked, |link| link.blocked, "blocked"),
            percent(BUSY),
            background(most, simulation).unwrap_or_default()
        );
        let advice = "traffic shaping (shaping), more middle switches, adaptive routing, or deeper buffers";
        return vec![Limit::new(&most.name, "packets block each other: links idle while others wait", how, advice)];
    }
    let paused = above(links, |link| link.paused, 1.0 - FULL);
    if !paused.is_empty() {
        return vec![paused_links(&paused, links)];
    }
    if is_broken {
        return Vec::new();
    }
    let busiest = links.iter().max_by(|a, b| a.used.total_cmp(&b.used));
    let most = percent(busiest.map_or(0.0, |link| link.used));
    let how = format!("no link was used above {most}, and none was blocked or paused above {}", percent(1.0 - FULL));
    if let Some(limit) = slots(record, &how) {
        return vec![limit];
    }
    if let Some((busiest, background)) = busiest.and_then(|link| Some((link, background(link, simulation)?))) {
        let why = "no link is full on average; background traffic comes in bursts";
        let advice = "compare with --set 'background=[]'; a lower priority for background traffic (background.priority), or \
                      connections with short queues (network.transport)";
        return vec![Limit::new(&busiest.name, why, how + &background, advice)];
    }
    if let Some(occupancy) = &record.occupancy {
        return units(record, occupancy, is_broken);
    }
    let advice = "more events under way (builder.slots), lower overheads of the hosts, or a higher trigger rate";
    vec![Limit::new("hosts", "the network is not what limits: hosts and round trips are", how, advice)]
}

/// The links of which something is above a limit, the most of it first.
fn above(links: &[LinkRecord], of: impl Fn(&LinkRecord) -> f64, limit: f64) -> Vec<&LinkRecord> {
    let mut found: Vec<_> = links.iter().filter(|link| of(link) > limit).collect();
    found.sort_by(|a, b| of(b).total_cmp(&of(a)));
    found
}

/// Senders obey pauses, and no link is full: the queue that is too long is another one than those of most who wait.
fn paused_links(paused: &[&LinkRecord], links: &[LinkRecord]) -> Limit {
    let mut how = named(paused, |link| link.paused, "paused");
    if let Some(longest) = links.iter().max_by_key(|link| link.most_bytes) {
        let bytes = metric(longest.most_bytes as f64);
        let _never_fails = write!(how, "; the longest queue was that of {}, {bytes}B", longest.name);
    }
    let busiest = links.iter().map(|link| link.used).fold(0.0, f64::max);
    let _never_fails = write!(how, "; no link was used above {}", percent(busiest));
    let advice = "traffic shaping (shaping), congestion control (network.transport), fewer messages at once \
                  (network.nic.messages), or more switch memory";
    let why = "pauses spread: senders wait for queues that their packets are not for";
    Limit::new(&paused[0].name, why, how, advice)
}

/// The slots of a barrel shifter whose units may be early or late, where no link is full.
fn slots(record: &Record, how: &str) -> Option<Limit> {
    let shaping = record.shaping.as_ref()?;
    let (step, skew) = (shaping.step.as_ref()?, shaping.skew_us?);
    let how = format!("units keep step by {step} and may be wrong by {skew:.3} us; {how}");
    let advice =
        "larger buckets (shaping.bucket), a shorter guard if the skew allows it (shaping.guard), or a smaller skew";
    Some(Limit::new("slots", "buckets wait for their slots, or for units that are early or late", how, advice))
}

fn full_links(full: &[&LinkRecord], simulation: &Simulation) -> Limit {
    let background = background(full[0], simulation);
    let advice = match background {
        Some(_) => "a lower priority for background traffic (background.priority), less of it, or other links for it",
        None => "faster links there, or traffic that spreads over more of them",
    };
    let how = format!(
        "{}; {} of the full performance was reached{}",
        named(full, |link| link.used, "used"),
        percent(rates::efficiency(simulation)),
        background.unwrap_or_default(),
    );
    let why = if full.len() == 1 { "the link is full" } else { "these links are full" };
    Limit::new(&full[0].name, why, how, advice)
}

/// The part of background traffic in the bytes of a link, if it counts.
fn background(link: &LinkRecord, simulation: &Simulation) -> Option<String> {
    let part = link.background_bytes as f64 / link.bytes.max(1) as f64;
    let names = simulation.background.iter().filter(|table| table.messages > 0).map(|table| &*table.name);
    let names = names.collect::<Vec<_>>().join(", ");
    let of = format!("; {} of the bytes of {} were of background traffic ({names})", percent(part), link.name);
    (part > BACKGROUND).then_some(of)
}

/// The first links with a number of theirs.
fn named(links: &[&LinkRecord], value: impl Fn(&LinkRecord) -> f64, what: &str) -> String {
    let first = links.iter().take(MOST_LINKS).map(|link| format!("{} {what} {}", link.name, percent(value(link))));
    let rest = links.len().saturating_sub(MOST_LINKS);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    first.collect::<Vec<_>>().join(", ") + &more
}

fn percent(part: f64) -> String {
    format!("{} %", crate::text::percent(part))
}

#[cfg(test)]
mod tests;
