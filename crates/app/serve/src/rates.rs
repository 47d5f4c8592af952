//! Rates and occupancy: the difference between two looks at a run.

use crate::status::Slowest;
use evb::{Live, Plan};
use evb_record::{BuilderRecord, ReadoutRecord};
use serde::Serialize;

/// Rates over a short time, and what the units hold at its end.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Rates {
    /// Length of the time, in seconds.
    pub(crate) seconds: f64,
    /// Events triggered, per second.
    pub(crate) trigger_hz: f64,
    /// Events built with all their fragments, per second.
    pub(crate) built_hz: f64,
    /// Events with a fragment missing or bad, per second.
    pub(crate) incomplete_hz: f64,
    /// Events that filters rejected, per second.
    pub(crate) rejected_hz: f64,
    /// Triggers turned away, per second.
    pub(crate) inhibited_hz: f64,
    /// Payload delivered to all builders, in bytes per second.
    pub(crate) bytes_per_s: f64,
    /// Bytes written to event files, per second.
    pub(crate) stored_bytes_per_s: f64,
    /// Each readout unit.
    pub(crate) readouts: Vec<ReadoutRates>,
    /// Each builder unit.
    pub(crate) builders: Vec<BuilderRates>,
}

/// One readout unit.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ReadoutRates {
    /// Fragments read, per second.
    pub(crate) fragments_hz: f64,
    /// Payload bytes sent, per second.
    pub(crate) bytes_per_s: f64,
    /// Events that the unit holds.
    pub(crate) held_events: u64,
    /// Payload bytes that the unit holds.
    pub(crate) held_bytes: u64,
    /// Most events that its buffer may hold.
    pub(crate) most_events: u64,
    /// Most bytes that its buffer may hold.
    pub(crate) most_bytes: u64,
}

/// One builder unit.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct BuilderRates {
    /// Fragments received, per second.
    pub(crate) fragments_hz: f64,
    /// Payload bytes received, per second.
    pub(crate) bytes_per_s: f64,
    /// Events under construction.
    pub(crate) open_events: u64,
    /// Events that may be under construction or wait for the storage.
    pub(crate) slots: u64,
    /// Built events that wait for filters or for the storage.
    pub(crate) waiting_events: u64,
    /// Events stored, per second.
    pub(crate) stored_hz: f64,
    /// Bytes stored, per second.
    pub(crate) stored_bytes_per_s: f64,
    /// The readout units that most of its events wait for, the first ones of many.
    pub(crate) waiting_for: Vec<Waiting>,
}

/// Events under construction that wait for a readout unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Waiting {
    /// Name of the readout unit.
    pub(crate) source: String,
    /// Number of events.
    pub(crate) events: u64,
}

/// Most readout units that a builder names.
const MOST_NAMED: usize = 4;

impl Rates {
    /// The rates between two samples, with the seconds between them. Counts that fall, as those of a lost unit do, give zero.
    pub(crate) fn between(plan: &Plan, before: &Live, now: &Live, seconds: f64) -> Self {
        let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds.max(1e-9);
        let (events, was) = (&now.record.events, &before.record.events);
        let sum =
            |record: &evb_record::Record, of: fn(&BuilderRecord) -> u64| record.builders.iter().map(of).sum::<u64>();
        let rate = |of: fn(&BuilderRecord) -> u64| per_second(sum(&now.record, of), sum(&before.record, of));
        Self {
            seconds,
            trigger_hz: per_second(events.triggered, was.triggered),
            built_hz: per_second(events.built, was.built),
            incomplete_hz: per_second(events.incomplete, was.incomplete),
            rejected_hz: per_second(events.rejected, was.rejected),
            inhibited_hz: per_second(now.record.trigger.inhibited, before.record.trigger.inhibited),
            bytes_per_s: rate(|builder| builder.bytes),
            stored_bytes_per_s: rate(|builder| builder.stored_bytes),
            readouts: readouts(plan, before, now, per_second),
            builders: builders(before, now, per_second),
        }
    }
}

fn readouts(plan: &Plan, before: &Live, now: &Live, per_second: impl Fn(u64, u64) -> f64) -> Vec<ReadoutRates> {
    let pairs = now.record.readouts.iter().zip(&before.record.readouts).zip(&now.readouts);
    let rates = |((now, before), held): ((&ReadoutRecord, &ReadoutRecord), &evb::BufferFill)| ReadoutRates {
        fragments_hz: per_second(now.fragments, before.fragments),
        bytes_per_s: per_second(now.sent_bytes, before.sent_bytes),
        held_events: held.events,
        held_bytes: held.bytes,
        most_events: plan.building.buffer_events.into(),
        most_bytes: plan.building.buffer_bytes.0,
    };
    pairs.map(rates).collect()
}

fn builders(before: &Live, now: &Live, per_second: impl Fn(u64, u64) -> f64) -> Vec<BuilderRates> {
    let slots = now.record.trigger.slots.ceil() as u64;
    let pairs = now.record.builders.iter().zip(&before.record.builders).zip(&now.builders);
    let rates = |((now, before), open): ((&BuilderRecord, &BuilderRecord), &evb::OpenCounts)| BuilderRates {
        fragments_hz: per_second(now.fragments, before.fragments),
        bytes_per_s: per_second(now.bytes, before.bytes),
        open_events: open.building,
        slots,
        waiting_events: open.storing,
        stored_hz: per_second(now.stored, before.stored),
        stored_bytes_per_s: per_second(now.stored_bytes, before.stored_bytes),
        waiting_for: waiting_for(&open.lacking),
    };
    pairs.map(rates).collect()
}

/// The readout units that most events wait for.
fn waiting_for(lacking: &[u64]) -> Vec<Waiting> {
    let mut waiting: Vec<_> = lacking.iter().enumerate().filter(|(_, events)| **events > 0).collect();
    waiting.sort_by_key(|&(source, events)| (std::cmp::Reverse(*events), source));
    let named = waiting.into_iter().take(MOST_NAMED);
    named.map(|(source, &events)| Waiting { source: format!("ru{source}"), events }).collect()
}

/// The unit that others wait for, if there is one: a builder whose storage is behind, or a readout unit whose fragments
/// are missing in twice as many events as those of the middle one.
pub(crate) fn slowest(now: &Live) -> Option<Slowest> {
    let behind = now.builders.iter().enumerate().max_by_key(|(_, open)| open.storing);
    if let Some((unit, open)) = behind.filter(|(_, open)| open.storing > 2 * open.building.max(1)) {
        let why = format!("{} built events wait for its filters or its storage", open.storing);
        return Some(Slowest { node: format!("bu{unit}"), why });
    }
    let mut lacking = vec![0; now.readouts.len()];
    for open in &now.builders {
        lacking.iter_mut().zip(&open.lacking).for_each(|(all, one)| *all += one);
    }
    let under_construction: u64 = now.builders.iter().map(|open| open.building).sum();
    let (source, &most) = lacking.iter().enumerate().max_by_key(|(_, events)| **events)?;
    let middle = middle(&lacking);
    let why = format!("{most} of {under_construction} events under construction wait for its fragments");
    (most > 2 * middle + 1).then(|| Slowest { node: format!("ru{source}"), why })
}

fn middle(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb::{Config, OpenCounts, SourceSpec, run_in_threads};

    fn live() -> (Plan, Live) {
        let building = Config { events: Some(100), ..Config::new(4, 2) };
        let plan = Plan::new(building, SourceSpec::Fixed { size: "2 kB".parse().unwrap() });
        let record = run_in_threads(&plan, "", &mut ()).unwrap();
        let (readouts, builders) = (vec![evb::BufferFill::default(); 4], vec![OpenCounts::default(); 2]);
        (
            plan,
            Live {
                record,
                readouts,
                builders,
                latency_ns: Default::default(),
                sizes: Default::default(),
                waiting: Vec::new(),
            },
        )
    }

    #[test]
    fn rates_are_differences_over_time() {
        let (plan, now) = live();
        let mut before = now.clone();
        before.record.events.built -= 50;
        before.record.builders[0].bytes -= 1000;
        before.record.builders[1].bytes += 7;
        let rates = Rates::between(&plan, &before, &now, 0.5);
        assert_eq!((rates.built_hz, rates.trigger_hz), (100.0, 0.0));
        assert_eq!((rates.builders[0].bytes_per_s, rates.builders[1].bytes_per_s), (2000.0, 0.0));
        assert!(rates.readouts.iter().all(|readout| readout.most_events > 0 && readout.fragments_hz == 0.0));
    }

    #[test]
    fn who_slows_whom_is_reported_only_with_one_clear_cause() {
        let (_, mut now) = live();
        assert_eq!(slowest(&now), None);
        for open in &mut now.builders {
            *open = OpenCounts { building: 20, storing: 0, lacking: vec![5, 6, 5, 6] };
        }
        assert_eq!(slowest(&now), None);
        now.builders[1].lacking[2] = 40;
        assert_eq!(slowest(&now).unwrap().node, "ru2");
        now.builders[0].storing = 64;
        assert_eq!(slowest(&now).unwrap().node, "bu0");
    }
}
