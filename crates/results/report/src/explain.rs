//! What limits a run or a simulation, by the evidence of its record.

use crate::text::{hanging, metric};
use evb_record::{LinkRecord, Occupancy, Record, RecordKind};
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
/// Most links that are named.
const MOST_LINKS: usize = 3;

/// Something that limits a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
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
        Self { what: what.into(), why: why.into(), how_known, advice: advice.into() }
    }
}

/// What limits a run or a simulation, the strongest evidence first; empty if the record has no evidence.
#[must_use]
pub fn explain(record: &Record) -> Vec<Limit> {
    if let Some(limit) = deadlock(record) {
        return vec![limit];
    }
    if let Some(limit) = carried(record) {
        return vec![limit];
    }
    match record.kind {
        RecordKind::Simulation => simulated(record),
        _ => record.occupancy.as_ref().map_or_else(Vec::new, |occupancy| real(record, occupancy)),
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
    for (index, Limit { what, why, how_known, advice }) in limits.iter().enumerate() {
        let first = if index == 0 { "limit" } else { "also" };
        for (name, line) in [(first, format!("{what}: {why}")), ("known", how_known.clone()), ("try", advice.clone())] {
            let _never_fails = write!(text, "{}", hanging(&format!("{name:<7}"), &line, width));
        }
    }
    text
}

fn deadlock(record: &Record) -> Option<Limit> {
    let links = &record.simulation.as_ref()?.network.deadlock;
    let first = links.first()?;
    let how = format!("{} links wait for each other in a circle: {}", links.len(), links.join(", "));
    Some(Limit::new(
        first,
        "the network is in a deadlock",
        how,
        "routes without circles: dimension order, or up and down",
    ))
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

/// The limits of a real run.
fn real(record: &Record, occupancy: &Occupancy) -> Vec<Limit> {
    // A unit that gets no processor falls behind by chance: so the processors come before one unit.
    let found =
        [storage(record, occupancy), processors(record, occupancy), source(occupancy), builders(record, occupancy)];
    let mut limits: Vec<_> = found.into_iter().flatten().collect();
    if limits.is_empty() {
        limits.extend(readouts(occupancy).or_else(|| idle(record, occupancy)));
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
    let how = format!("the processors of run control's machine worked {} of the time, for any program", percent(busy));
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
fn simulated(record: &Record) -> Vec<Limit> {
    let Some(simulation) = &record.simulation else { return Vec::new() };
    let mut links: Vec<_> = simulation.network.links.iter().collect();
    links.sort_by(|a, b| b.used.total_cmp(&a.used));
    let full: Vec<_> = links.iter().take_while(|link| link.used > BUSY).copied().collect();
    if !full.is_empty() {
        return vec![full_links(&full, simulation.efficiency)];
    }
    links.sort_by(|a, b| b.blocked.total_cmp(&a.blocked));
    let blocked: Vec<_> = links.iter().take_while(|link| link.blocked > 1.0 - FULL).copied().collect();
    if let Some(most) = blocked.first() {
        let how =
            format!("{}; no link was used above {}", named(&blocked, |link| link.blocked, "blocked"), percent(BUSY));
        let advice = "traffic shaping (shaping), more middle switches, adaptive routing, or deeper buffers";
        return vec![Limit::new(&most.name, "packets block each other: links idle while others wait", how, advice)];
    }
    let most = links.iter().map(|link| link.used).fold(0.0, f64::max);
    let how = format!("no link was used above {}, and none was blocked above {}", percent(most), percent(1.0 - FULL));
    let advice = "more events under way (builder.slots), lower overheads of the hosts, or a higher trigger rate";
    vec![Limit::new("hosts", "the network is not what limits: hosts and round trips are", how, advice)]
}

fn full_links(full: &[&LinkRecord], efficiency: f64) -> Limit {
    let how = format!(
        "{}; {} of the full performance was reached",
        named(full, |link| link.used, "used"),
        percent(efficiency)
    );
    let why = if full.len() == 1 { "the link is full" } else { "these links are full" };
    Limit::new(&full[0].name, why, how, "faster links there, or traffic that spreads over more of them")
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
mod tests {
    use super::*;
    use evb_record::{BuilderOccupancy, Network, ReadoutOccupancy, Simulation};

    /// A run of 4 x 2 with 64 slots, whose units have something to do.
    fn run() -> Record {
        let mut record: Record = serde_json::from_str(include_str!("../tests/it/run.json")).expect("a record");
        record.trigger.slots = 64.0;
        record.trigger.offered_rate_hz = None;
        record.builders[0].stored_bytes = 1_000_000_000;
        record.occupancy = Some(Occupancy {
            looks: 10,
            machine_busy: Some(0.5),
            readouts: vec![ReadoutOccupancy { filled: 0.1, waited_for: 2.0 }; 4],
            builders: vec![BuilderOccupancy { building: 20.0, storing: 1.0 }; 2],
        });
        record
    }

    fn first(change: impl FnOnce(&mut Occupancy)) -> String {
        let mut record = run();
        change(record.occupancy.as_mut().expect("it has one"));
        explain(&record)[0].what.clone()
    }

    #[test]
    fn each_limit_of_a_run_is_named_by_its_evidence() {
        assert_eq!(first(|_| {}), "latency");
        assert_eq!(first(|it| it.builders[1].storing = 60.0), "storage of bu1");
        assert_eq!(first(|it| it.readouts[3].waited_for = 15.0), "ru3");
        assert_eq!(first(|it| it.machine_busy = Some(0.99)), "processors");
        assert_eq!(first(|it| it.builders.iter_mut().for_each(|builder| builder.building = 63.0)), "builders");
        assert_eq!(first(|it| it.readouts.iter_mut().for_each(|readout| readout.filled = 0.95)), "network");
        let mut record = run();
        record.trigger.offered_rate_hz = Some(record.event_rate_hz);
        assert_eq!(explain(&record)[0].what, "trigger");
        record.occupancy = None;
        record.trigger.offered_rate_hz = None;
        assert!(explain(&record).is_empty() && explanation(&record, 80).contains("nothing in the record"));
    }

    #[test]
    fn builders_that_take_turns_are_not_slow_storage() {
        let mut record = run();
        record.trigger.slots = 0.125;
        let occupancy = record.occupancy.as_mut().expect("it has one");
        occupancy.builders.fill(BuilderOccupancy { building: 0.12, storing: 0.1 });
        assert_eq!(explain(&record)[0].what, "builders");
        assert!(explanation(&record, 200).contains("of 0.12 slots"), "{}", explanation(&record, 200));
    }

    fn link(name: &str, used: f64, blocked: f64) -> LinkRecord {
        LinkRecord { name: name.into(), used, blocked, ..LinkRecord::default() }
    }

    #[test]
    fn a_simulation_is_limited_by_full_links_by_blocked_ones_or_by_neither() {
        let mut record = run();
        record.kind = RecordKind::Simulation;
        let mut what = |links: Vec<LinkRecord>, deadlock: &[&str]| {
            let deadlock = deadlock.iter().map(|&link| link.to_owned()).collect();
            let network = Network { links, deadlock, ..Network::default() };
            record.simulation = Some(Simulation { network, ..Simulation::default() });
            explain(&record)[0].what.clone()
        };
        assert_eq!(what(vec![link("a", 0.5, 0.1), link("b", 0.99, 0.0), link("c", 0.95, 0.5)], &[]), "b");
        assert_eq!(what(vec![link("a", 0.5, 0.7), link("b", 0.6, 0.4)], &[]), "a");
        assert_eq!(what(vec![link("a", 0.5, 0.1)], &[]), "hosts");
        assert_eq!(what(vec![link("a", 0.99, 0.1)], &["x", "y"]), "x");
    }
}
