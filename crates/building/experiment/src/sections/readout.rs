//! `[readout]`: the readout units, how many and how much they hold. What feeds them is in [`super::source`].

use super::{
    block::{self, BUFFER_BYTES},
    builder, bundle, counts, framing, slices,
    source::{self, SOURCE},
    trigger,
};
use crate::{
    diagnostics::Problem,
    limits::*,
    schema::*,
    tree::{Node, Value, put_default},
    view::{Rule, View},
};
use evb_core::{ByteCount, Frequency, MarkComparison, Span};
use evb_sources::Slicing;

pub(super) const READOUT: &[Key] = &[
    key(
        "units",
        integer(1, MAX_UNITS),
        KeyDefault::Derived("the number of `[[readout.unit]]`"),
        "number of readout units",
    ),
    key(
        "buffer_events",
        integer(1, MAX_BUFFER_EVENTS),
        KeyDefault::Derived(
            "4096, or twice what all builders can have under construction if that is more; 65,536 with the trigger \"time\"",
        ),
        "events that one readout unit can hold; at least what all builders can have under construction",
    ),
    key(
        "buffer_bytes",
        bytes(1, MAX_BUFFER),
        KeyDefault::Text(BUFFER_BYTES),
        "bytes that fill the buffer of one readout unit: with `busy` percent of them it stops the trigger, and fragments that \
         it has no room for stay in their source",
    ),
    key("busy", integer(1, 100), KeyDefault::Integer(90), "percent of the buffer at which the trigger is inhibited"),
    key("free", integer(0, 99), KeyDefault::Integer(70), "percent of the buffer at which the trigger resumes"),
    key(
        "max_fragment",
        bytes(1, MAX_FRAGMENT),
        KeyDefault::Derived("1 MiB, or less if a bundle of such fragments would be above 32 MiB"),
        "largest fragment of a source that is accepted",
    ),
    optional(
        "slice",
        KeyKind::Time { min: Span::from_micros(1), max: MAX_DURATION },
        "length of an event that is a slice of time, for sources of hits, which have no trigger, and for live sources with a \
         clock in their framing",
    ),
    optional("overlap", time(MAX_DURATION), "time after the end of a slice whose hits also belong to it; 0 by default"),
    optional(
        "slices_from",
        integer(0, i64::MAX),
        "start of the first slice in nanoseconds, 0 by default; without it, the first event of live sources is the first \
         slice that all of them have",
    ),
    key(
        "mark_tolerance",
        integer(0, MAX_MARK_TOLERANCE),
        KeyDefault::Integer(0),
        "largest difference of the marks of one event: for marks that are the values of clocks, in ticks",
    ),
    key(
        "mark_bits",
        integer(1, 32),
        KeyDefault::Derived("32; with framings, the width of their narrowest mark"),
        "number of low bits of a mark that are compared; a clock of this width wraps to 0 after its last value",
    ),
    optional("framing", KeyKind::Section(framing::FRAMING), "the framing of all live sources without one of their own"),
    optional("source", KeyKind::Choice(&SOURCE), "the source of every unit without a separate table"),
    optional(
        "sources",
        integer(1, MAX_SOURCES),
        "number of such sources in all units without a table, shared out evenly: the first units have one more if need \
         be; by default one in each",
    ),
    optional(
        "masked",
        KeyKind::Integers { min: 0, max: MAX_SOURCES - 1, most: MAX_SOURCES as usize },
        "numbers of sources that are not read, as `masked` in the table of a source; sources are numbered through all \
         units, from 0",
    ),
    optional(
        "unit",
        KeyKind::List { item: &KeyKind::Section(UNIT), most: MAX_UNITS as usize },
        "one table `[[readout.unit]]` for each of the first units, in order",
    ),
];

const UNIT: &[Key] = &[
    optional("framing", KeyKind::Section(framing::FRAMING), "the framing of all live sources without one of their own"),
    optional("source", KeyKind::Choice(&SOURCE), "the only source of this unit"),
    optional(
        "sources",
        KeyKind::List { item: &source::TABLE, most: MAX_SOURCES as usize },
        "the sources of this unit, in place of `source`: it sends their fragments of an event in one bundle",
    ),
];

pub(super) const RULES: &[Rule] = &[
    too_many_units,
    missing_source,
    source_or_sources,
    thresholds,
    buffer_bytes,
    slices::check,
    slice_rate,
    mark_tolerance,
];
pub(super) const BUILDING_RULES: &[Rule] = &[buffer_events];

/// The slices of the time; of no length if no source has hits.
pub(super) fn slicing(view: View<'_>) -> Slicing {
    Slicing {
        length: view.maybe_quantity("readout.slice").unwrap_or_default(),
        overlap: view.maybe_quantity("readout.overlap").unwrap_or_default(),
        from_ns: view.maybe_integer("readout.slices_from"),
    }
}

/// When the marks of an event agree.
pub(super) fn marks(view: View<'_>) -> MarkComparison {
    MarkComparison { tolerance: view.integer("readout.mark_tolerance"), bits: view.integer("readout.mark_bits") }
}

/// A trigger at a rate ends slices of the time as they are.
fn slice_rate(view: View<'_>) -> Option<Problem> {
    let (slice, rate): (Span, Frequency) =
        (view.maybe_quantity("readout.slice")?, view.maybe_quantity("trigger.rate")?);
    let wanted = 1.0 / slice.as_secs_f64();
    ((rate.as_hertz() / wanted - 1.0).abs() > 1e-3).then(|| {
        let message = format!("`trigger.rate` of {rate} does not fit slices of {slice}");
        let help = format!("write rate = \"{wanted:.3} Hz\" for slices as they come, or type = \"free-running\" in [trigger] for as many as go");
        Problem::new(message, help)
            .at(view.origin("trigger.rate"), "triggers")
            .at(view.origin("readout.slice"), "slices")
    })
}

/// A tolerance of half the range would let any two marks agree.
fn mark_tolerance(view: View<'_>) -> Option<Problem> {
    let MarkComparison { tolerance, bits } = marks(view);
    let most = (1_u64 << bits) / 4;
    (tolerance > 0 && u64::from(tolerance) > most).then(|| {
        let message = format!("marks of {bits} bits that may differ by {tolerance} prove nothing");
        Problem::new(message, format!("`mark_tolerance` may be {most} here; with more, most marks agree by chance"))
            .at(view.origin("readout.mark_tolerance"), "more than a quarter of the range")
    })
}

/// The number of units follows from their tables, and the events that they hold from the builders.
pub(super) fn fill(root: &mut Node) {
    if let Some(units) = root.at("readout.unit").and_then(Node::list).map(<[Node]>::len) {
        put_default(root, &["readout", "units"], Value::Integer(i64::try_from(units).unwrap_or(i64::MAX)));
    }
    let enough = counts::under_construction(root, block::largest_block(root)).saturating_mul(2);
    // Fragments that are matched by time wait for those of silent sources.
    let is_timed = root.at("trigger.type").and_then(Node::text) == Some(trigger::TIME);
    let least = if is_timed { TIMED_BUFFER_EVENTS } else { DEFAULT_BUFFER_EVENTS };
    let enough = enough.clamp(least, MAX_BUFFER_EVENTS);
    put_default(root, &["readout", "buffer_events"], Value::Integer(enough));
    put_default(root, &["readout", "max_fragment"], Value::Text(block::default_max_fragment(root).to_string()));
}

fn too_many_units(view: View<'_>) -> Option<Problem> {
    let (readouts, builders) = (view.integer::<i64>("readout.units"), view.integer::<i64>("builder.units"));
    (readouts + builders > MAX_UNITS).then(|| {
        let message = format!("{readouts} readout units and {builders} builder units are more than {MAX_UNITS} nodes");
        Problem::new(message, format!("readout and builder units together may be {MAX_UNITS}"))
            .at(view.origin("readout.units"), "readout units")
            .at(view.origin("builder.units"), "builder units")
    })
}

fn missing_source(view: View<'_>) -> Option<Problem> {
    let (units, given) = (view.integer::<usize>("readout.units"), view.list("readout.unit").len());
    if given > units {
        let message = format!("{given} tables [[readout.unit]] for {units} readout units");
        return Some(
            Problem::new(message, "leave `units` out: it is the number of tables then")
                .at(view.origin("readout.units"), "fewer than the tables"),
        );
    }
    if given == units || view.0.at("readout.source").is_some() {
        return None;
    }
    let message = format!("nothing feeds readout unit {given}: `readout.source` is missing");
    let help = "add a source for all units to [readout], such as source = { type = \"fixed\", size = \"2 kB\" }, or a \
                table [[readout.unit]] for each";
    Some(Problem::new(message, help).at(view.origin("readout"), "no `source` here"))
}

/// A table of a unit has one source or a list of sources.
fn source_or_sources(view: View<'_>) -> Option<Problem> {
    let (unit, table) = (0..).zip(view.list("readout.unit")).find(|(_, table)| {
        let listed = View(table).list("sources").len();
        table.at("source").is_some() == (listed > 0) || table.at("sources").is_some() && listed == 0
    })?;
    let (message, label) = match table.at("source").is_some() {
        true => (format!("readout unit {unit} has both `source` and `sources`"), "two of them"),
        false => {
            (format!("nothing feeds readout unit {unit}: `readout.unit.{unit}.source` is missing"), "no `source` here")
        }
    };
    let help = "add source = { type = \"fixed\", size = \"2 kB\" } to the table of the unit, or a list: sources = [{ type = \
                \"fixed\", size = \"2 kB\" }, ...]";
    Some(Problem::new(message, help).at(table.origin, label))
}

fn thresholds(view: View<'_>) -> Option<Problem> {
    let (busy, free) = (view.integer::<i64>("readout.busy"), view.integer::<i64>("readout.free"));
    (busy <= free).then(|| {
        let help = "the trigger stops at `busy` and resumes at `free`, so `free` must be below `busy` (90 and 70 if the \
                    file does not say)";
        Problem::new(format!("`readout.busy` of {busy} % is not above `readout.free` of {free} %"), help)
            .at(view.origin("readout.busy"), "busy")
            .at(view.origin("readout.free"), "free")
    })
}

fn buffer_events(view: View<'_>) -> Option<Problem> {
    let (builders, slots) = (view.integer::<u64>("builder.units"), u64::from(builder::most_slots(view)));
    let buffer = view.integer::<u64>("readout.buffer_events");
    let needed = builders * slots;
    (buffer < needed).then(|| {
        let message = format!("`readout.buffer_events` of {buffer} is below what the builders can take, {needed}");
        let help = format!(
            "a readout unit holds its fragment of every event under construction, which are {builders} builders x \
             {slots} slots: raise `readout.buffer_events`, or lower `builder.slots`"
        );
        Problem::new(message, help)
            .at(view.origin("readout.buffer_events"), "too small")
            .at(view.origin("builder.slots"), "slots")
            .at(view.origin("builder.units"), "builders")
    })
}

fn buffer_bytes(view: View<'_>) -> Option<Problem> {
    // A bundle above the largest message is a separate problem.
    let largest = bundle::largest(view).min(MAX_FRAGMENT);
    let buffer: ByteCount = view.quantity("readout.buffer_bytes");
    (buffer < largest).then(|| {
        let what = if bundle::is_used(view) { "bundle" } else { "fragment" };
        let message = format!("`readout.buffer_bytes` of {buffer} cannot hold one {what} of {largest}");
        Problem::new(message, "raise `readout.buffer_bytes`, or lower `readout.max_fragment`")
            .at(view.origin("readout.buffer_bytes"), "too small")
            .at(view.origin("readout.max_fragment"), "largest fragment")
    })
}
