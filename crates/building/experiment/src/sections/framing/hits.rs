//! `framing.hits`: the hits inside a frame, and their times.

use super::{AT, BITS, FIELD, MOST_AT, OWN_ORDER, SHIFT, field_in};
use crate::{choice::*, diagnostics::Problem, limits::*, schema::*, tree::Origin, view::View};
use evb_core::{ByteCount, Frequency, Span};
use evb_sources::{Encoding, Field, HitClock, HitLayout, MOST_CHIP_BITS, Marker, Tick, TimeField};

/// Most fields of one time.
const MOST_PARTS: usize = 8;
/// Largest hit.
const MOST_SIZE: ByteCount = ByteCount(1 << 16);

pub(super) const HITS: &[Key] = &[
    required("at", integer(0, MOST_AT), "bytes of the frame before the first hit"),
    required("size", bytes(1, MOST_SIZE), "bytes of a hit"),
    key("until", integer(0, MOST_AT), KeyDefault::Integer(0), "bytes of the frame behind the last hit"),
    required(
        "time",
        TIME,
        "the fields of a hit that give its time, which is their sum; `at` is counted from the beginning of the hit",
    ),
    optional("from", KeyKind::Word(&FROM), "what the times count from, \"frame\" by default"),
    optional(
        "marker",
        KeyKind::Section(MARKER),
        "words between the hits, of their size, that have the high bits of the times: hits count from the last one",
    ),
];

const TIME: KeyKind = KeyKind::List { item: &KeyKind::Section(PART), most: MOST_PARTS };
const PART: &[Key] = &[
    AT,
    BITS,
    SHIFT,
    OWN_ORDER,
    key("encoding", KeyKind::Word(&ENCODING), KeyDefault::Text("plain"), "how its bits stand for a number"),
    optional("frequency", KeyKind::Rate { min: Frequency(1), max: MAX_CLOCK }, "what it counts: ticks per second"),
    optional("tick", KeyKind::Time { min: Span(1), max: MAX_DURATION }, "what it counts, in place of `frequency`"),
];
const MARKER: &[Key] = &[
    AT,
    BITS,
    SHIFT,
    OWN_ORDER,
    required("value", integer(0, i64::MAX), "the value of these bits in a marker; all other words are hits"),
    required("time", TIME, "the fields of a marker that give its time"),
    optional("chip", KeyKind::Section(CHIP), "the chip of a marker, if each chip has its own"),
    optional("hit_chip", KeyKind::Section(CHIP), "the chip of a hit, which counts from the last marker of its chip"),
];
const CHIP: &[Key] = &[AT, required("bits", integer(1, MOST_CHIP_BITS as i64), "its width in bits"), SHIFT, OWN_ORDER];
const _: () = assert!(FIELD.len() == CHIP.len());

static ENCODING: Words<Encoding> = Words(&[
    word("plain", "as it is", Encoding::Plain),
    word("signed", "as a two's complement", Encoding::Signed),
    word("gray", "in Gray code", Encoding::Gray),
]);

/// The words for times that count from the clock of the frame (false) or are a clock of their own (true).
static FROM: Words<bool> = Words(&[
    word("frame", "the clock of the frame", false),
    word(
        "own",
        "nothing: the first field is a clock that wraps, with the zero of that of the frame, and as near to it as possible",
        true,
    ),
]);

/// The hits of a framing.
pub(super) fn make(framing: View<'_>) -> Option<HitLayout> {
    let table = framing.has("hits").then(|| framing.below("hits"))?;
    let is_own = table.has("from") && FROM.at(table, "from");
    let marker = table.has("marker").then(|| HitClock::Marker(marker(framing, table.below("marker"))));
    Some(HitLayout {
        at: table.integer("at"),
        size: table.quantity::<ByteCount>("size").0 as u32,
        until: table.integer("until"),
        time: time(framing, table),
        clock: marker.unwrap_or(if is_own { HitClock::Own } else { HitClock::Frame }),
    })
}

fn marker(framing: View<'_>, table: View<'_>) -> Marker {
    let chip = |name: &str| table.has(name).then(|| field_in(framing, table.below(name)));
    Marker {
        is: (field_in(framing, table), table.integer("value")),
        time: time(framing, table),
        chip: chip("chip"),
        hit_chip: chip("hit_chip"),
    }
}

fn time(framing: View<'_>, table: View<'_>) -> Vec<TimeField> {
    let part = |part: View<'_>| {
        let tick = part.maybe_quantity("tick").map(Tick::Length);
        let frequency = || part.maybe_quantity("frequency").map(Tick::Frequency);
        TimeField {
            field: field_in(framing, part),
            encoding: ENCODING.at(part, "encoding"),
            tick: tick.or_else(frequency).unwrap_or(Tick::Length(Span(1))),
        }
    };
    table.list("time").iter().map(|node| part(View(node))).collect()
}

// ---- checks

/// Checks the hits of a framing.
pub(super) fn check(framing: View<'_>) -> Option<Problem> {
    let layout = make(framing)?;
    let table = framing.below("hits");
    times(table, &layout)
        .or_else(|| one_clock(framing, table, &layout))
        .or_else(|| one_chip(table, &layout))
        .or_else(|| fields(table, &layout))
}

/// Every time has fields, and every field one unit.
fn times(table: View<'_>, layout: &HitLayout) -> Option<Problem> {
    let marker = matches!(layout.clock, HitClock::Marker(_)).then(|| table.below("marker"));
    std::iter::once(table).chain(marker).find_map(|table| {
        let parts = table.list("time");
        if parts.is_empty() {
            let help = "add a field to `time`, such as { at = 0, bits = 16, frequency = \"40 MHz\" }";
            return Some(Problem::new("the time of a hit has no field", help).at(table.origin("time"), "empty"));
        }
        let is_wrong = |part: &View<'_>| part.has("tick") == part.has("frequency");
        let wrong = parts.iter().map(View).find(is_wrong)?;
        let message = match wrong.has("tick") {
            true => "both `tick` and `frequency` say what a field of time counts",
            false => "a field of time does not say what it counts",
        };
        let help = "write frequency = \"40 MHz\", or tick = \"25 ns\", which is the same";
        Some(Problem::new(message, help).at(wrong.0.origin, "this field"))
    })
}

/// The times count from one clock, which is there.
fn one_clock(framing: View<'_>, table: View<'_>, layout: &HitLayout) -> Option<Problem> {
    if table.has("from") && table.has("marker") {
        let problem =
            Problem::new("both `from` and `marker` say what the times of hits count from", "keep one of the two");
        return Some(problem.at(table.origin("from"), "one").at(table.origin("marker"), "another"));
    }
    (layout.clock == HitClock::Frame && !framing.has("clock")).then(|| {
        let help =
            "add clock = { at = ..., bits = ..., frequency = \"...\" } to the framing, or from = \"own\" to the hits";
        let problem = Problem::new("the times of hits count from the clock of the frame, which is missing", help);
        problem.at(framing.origin("hits"), "no `clock` beside it")
    })
}

fn one_chip(table: View<'_>, layout: &HitLayout) -> Option<Problem> {
    let HitClock::Marker(marker) = &layout.clock else { return None };
    (marker.chip.is_some() != marker.hit_chip.is_some()).then(|| {
        let help = "give the place of the chip both in a marker (`chip`) and in a hit (`hit_chip`), or in none";
        let problem = Problem::new("markers have chips and hits have none, or the other way round", help);
        problem.at(table.origin("marker"), "one of the two")
    })
}

/// All fields lie within a hit.
fn fields(table: View<'_>, layout: &HitLayout) -> Option<Problem> {
    let (size, place) = (layout.size as usize, table.origin("size"));
    let of_times = |times: &[TimeField]| times.iter().map(|part| part.field).collect::<Vec<_>>();
    let mut fields: Vec<(Field, Option<Origin>)> =
        of_times(&layout.time).into_iter().map(|field| (field, table.origin("time"))).collect();
    if let HitClock::Marker(marker) = &layout.clock {
        let of_marker =
            of_times(&marker.time).into_iter().chain([marker.is.0]).chain(marker.chip).chain(marker.hit_chip);
        fields.extend(of_marker.map(|field| (field, table.origin("marker"))));
    }
    fields.into_iter().find_map(|(field, origin)| {
        if field.bytes() > 8 {
            let message =
                format!("a field of {} bits above {} others spans {} bytes", field.bits, field.shift, field.bytes());
            return Some(Problem::new(message, "a field spans at most 8 bytes").at(origin, "too wide"));
        }
        let end = if field.at < 0 { size as i64 + i64::from(field.at) } else { field.at.into() };
        let is_inside = end >= 0 && end + field.bytes() as i64 <= size as i64;
        (!is_inside).then(|| {
            let message = format!("hits of {size} bytes do not hold {} bytes at {}", field.bytes(), field.at);
            Problem::new(message, "`at` is counted from the beginning of a hit, or from its end if negative")
                .at(origin, "beyond the hit")
                .at(place, "bytes of a hit")
        })
    })
}
