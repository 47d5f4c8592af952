//! `[trigger] type = "time"`: events by the times of the clocks of live sources.

use super::{
    source::{self, Feed},
    trigger,
};
use crate::{diagnostics::Problem, limits::*, schema::*, view::View};
use evb_core::{Frequency, Span};
use evb_protocol::{ClockOffset, ClockSettings, Coincidence, Rule};
use evb_sources::ClockField;

/// Femtoseconds of a tick of a clock of 1 mHz, the unit of frequencies.
const FEMTOSECONDS: u128 = 1_000_000_000_000_000_000;

/// The keys of the trigger.
pub(super) const TRIGGER_KEYS: &[Key] = &[
    required(
        "window",
        KeyKind::Time { min: Span(1), max: MAX_DURATION },
        "longest time between the hit of the trigger source and that of another, before or after it; without a trigger \
         source, between the first hit of an event and its last",
    ),
    optional("source", integer(0, MAX_SOURCES - 1), "the trigger source: each of its hits is an event"),
    optional(
        "sources",
        integer(1, MAX_SOURCES),
        "fewest sources with a hit in an event, if there is no trigger source",
    ),
    key(
        "patience",
        wait(),
        KeyDefault::Text("5 s"),
        "longest time for which events wait for a source that was never heard, or whose place in time is not known",
    ),
];

/// The keys of a live source.
pub(super) const SORT_DEPTH: Key = key(
    "sort_depth",
    time(MAX_WAIT),
    KeyDefault::Text("1 ms"),
    "with the trigger \"time\" or slices, time by which a fragment or hit may come behind later ones of its source",
);
pub(super) const LATENCY: Key = key(
    "latency",
    time(MAX_WAIT),
    KeyDefault::Text("200 ms"),
    "with the trigger \"time\" or slices, time by which the delivery of a fragment may be slower than the fastest: events \
     wait for so long for a source that is silent",
);
pub(super) const CLOCK_OFFSET: Key = optional(
    "clock_offset",
    time(MAX_DURATION),
    "with the trigger \"time\" or slices, what is added to the clock to give the time of all, for clocks that run at one \
     rate; by default the offset is found and the drift followed, and with slices it is 0",
);
pub(super) const OPTIONAL: Key = key(
    "optional",
    KeyKind::Flag,
    KeyDefault::Flag(false),
    "with the trigger \"time\", true if events do not wait for the fragments of this source",
);

/// Returns true if fragments go to events by their times.
pub(super) fn is_used(view: View<'_>) -> bool {
    view.text("trigger.type") == trigger::TIME
}

pub(super) fn plan(view: View<'_>) -> Option<Coincidence> {
    is_used(view).then(|| {
        let window = view.quantity("trigger.window");
        let rule = match view.maybe_integer("trigger.source") {
            Some(source) => Rule::Trigger { source, window },
            None => Rule::Several { sources: view.integer("trigger.sources"), window },
        };
        let sources = source::all(view).map(|table| clock(table).unwrap_or_default()).collect();
        Coincidence { rule, sources, patience: view.quantity("trigger.patience") }
    })
}

/// The clock of a source, if its framing has one, or the timestamps of its file have a frequency.
fn clock(table: View<'_>) -> Option<ClockSettings> {
    let timestamps = table.maybe_quantity("frequency").map(|frequency| (u64::BITS as u8, frequency));
    let (bits, frequency): (u8, Frequency) = timestamps.or_else(|| of_framing(table))?;
    let offset = match table.maybe_quantity::<Span>("clock_offset") {
        Some(offset) => ClockOffset::Known { seconds: 0, picoseconds: offset.0 as i64 },
        None => ClockOffset::Find,
    };
    Some(ClockSettings {
        tick_fs: u64::try_from(FEMTOSECONDS / u128::from(frequency.0.max(1))).unwrap_or(u64::MAX).max(1),
        bits,
        offset,
        sort_depth: table.quantity("sort_depth"),
        latency: table.quantity("latency"),
        needed: !table.flag("optional"),
    })
}

fn of_framing(table: View<'_>) -> Option<(u8, Frequency)> {
    let ClockField { field, frequency } = source::make(table).live()?.framing.as_ref()?.clock?;
    Some((field.bits, frequency))
}

// ---- checks

/// Checks the rule and the clocks.
pub(super) fn check(view: View<'_>) -> Option<Problem> {
    if is_used(view) { one_rule(view).or_else(|| known_sources(view)).or_else(|| clocks(view)) } else { None }
}

/// Either a source says what an event is, or a number of them does.
fn one_rule(view: View<'_>) -> Option<Problem> {
    let (source, sources) = (view.origin("trigger.source"), view.origin("trigger.sources"));
    match (source, sources) {
        (None, None) => {
            let help = "add source = 0 to [trigger] for an event at each hit of source 0, or sources = 2 for an event where \
                        two of them have one";
            let problem = Problem::new("the trigger \"time\" does not say what an event is", help);
            Some(problem.at(view.origin("trigger"), "neither `source` nor `sources`"))
        }
        (Some(_), Some(_)) => {
            let problem = Problem::new("both `source` and `sources` say what an event is", "keep one of the two");
            Some(problem.at(source, "a trigger source").at(sources, "a number of sources"))
        }
        _ => None,
    }
}

fn known_sources(view: View<'_>) -> Option<Problem> {
    let count = source::all(view).count();
    let too_large = |key: &str, most: usize| view.maybe_integer::<usize>(key).filter(|given| *given > most);
    let (key, given) = [("trigger.source", count.saturating_sub(1)), ("trigger.sources", count)]
        .into_iter()
        .find_map(|(key, most)| Some((key, too_large(key, most)?)))?;
    let message = format!("`{key}` is {given}, and there are {count} sources");
    Some(Problem::new(message, "sources are numbered from 0").at(view.origin(key), "too large"))
}

/// What is missing in a framing without a clock.
const FRAMING_CLOCK: &str = "add clock = { at = ..., bits = ..., frequency = \"...\" } to its framing";

/// Every source has a clock.
fn clocks(view: View<'_>) -> Option<Problem> {
    let without = source::used(view).into_iter().find(|table| clock(*table).is_none())?;
    let message = format!("the {:?} source has no clock to match its fragments by", without.text("type"));
    let (help, label) = match (source::feed(without), without.text("type")) {
        (_, source::EUDAQ) => ("add frequency = \"...\", the ticks per second of its timestamps", "no frequency"),
        (Feed::Live, _) => (FRAMING_CLOCK, "no clock in its framing"),
        _ => (FRAMING_CLOCK, "not live"),
    };
    Some(Problem::new(message, help).at(without.origin("type"), label).at(view.origin("trigger.type"), "by time"))
}
