//! `framing`: the frames of a laboratory's own boards, at a live source or for all of them in `[readout]`.

use super::source;
use crate::{
    choice::*,
    diagnostics::Problem,
    limits::*,
    schema::*,
    tree::{Node, Value, put_default},
    view::View,
};
use evb_core::{ByteCount, Frequency};
use evb_sources::{ByteOrder, ChecksumKind, ClockField, Field, FrameChecksum, FrameEnd, Framing};

mod hits;

/// Most bytes of a magic or of an end marker.
const MOST_MARKER: usize = 64;
/// Most bytes before or behind a field.
const MOST_AT: i64 = 1 << 16;
/// Most bytes before the first frame.
const MOST_HEADER: ByteCount = ByteCount(1 << 30);
/// Types of sources whose frames come in datagrams.
const OF_DATAGRAMS: [&str; 2] = ["udp", "pcap"];

pub(super) const FRAMING: &[Key] = &[
    key("order", KeyKind::Word(&ORDER), KeyDefault::Text("little"), "byte order of all numbers"),
    optional(
        "magic",
        KeyKind::Text,
        "bytes that are the same in every frame, in hexadecimal, as they are on the wire: \"ef be ad de\"; without them a \
         connection with a byte too many or too few ends",
    ),
    key("magic_at", integer(0, MOST_AT), KeyDefault::Integer(0), "bytes of a frame before the magic"),
    optional("size", bytes(1, MAX_FRAGMENT), "bytes of every frame, if all are of one size"),
    optional("length", KeyKind::Section(LENGTH), "the field that says how long the frame is"),
    optional("end", KeyKind::Text, "bytes that every frame ends with, in hexadecimal"),
    optional(
        "counter",
        KeyKind::Section(FIELD),
        "the event counter, which takes the place of `counter_bits`; without it, the frames of a connection are counted",
    ),
    optional("clock", KeyKind::Section(CLOCK), "the time of the fragment"),
    optional("mark", KeyKind::Section(MARK), "a value that is the same in all sources of one event"),
    optional("source", KeyKind::Section(SOURCE_ID), "the id of the board; frames with another are refused"),
    optional("damaged", KeyKind::Section(FIELD), "bits that are not 0 in a frame that the board knows to be damaged"),
    optional("checksum", KeyKind::Section(CHECKSUM), "the checksum of the frame"),
    optional(
        "stream_header",
        bytes(1, MOST_HEADER),
        "bytes before the first frame of a file, or of each connection, that are none of a frame",
    ),
    optional(
        "across_datagrams",
        KeyKind::Flag,
        "true for frames that go on in the next datagram of their sender; they need a magic and a checksum",
    ),
    optional(
        "hits",
        KeyKind::Section(hits::HITS),
        "the hits inside the frame, each with its time, for events that are slices of time; without them the whole frame is \
         a hit at its clock",
    ),
];

const AT: Key = required(
    "at",
    integer(-MOST_AT, MOST_AT),
    "its first byte, counted from the beginning of the frame, or from its end if negative",
);
const BITS: Key = required("bits", integer(1, 64), "its width in bits");
const SHIFT: Key = key("shift", integer(0, 63), KeyDefault::Integer(0), "lowest bits that do not belong to it");
const OWN_ORDER: Key = optional("order", KeyKind::Word(&ORDER), "its byte order, if it is not that of the framing");
const FIELD: &[Key] = &[AT, BITS, SHIFT, OWN_ORDER];
const LENGTH: &[Key] = &[
    AT,
    BITS,
    SHIFT,
    OWN_ORDER,
    key("unit", bytes(1, ByteCount(1 << 16)), KeyDefault::Text("1 B"), "what it counts"),
    key(
        "adds",
        integer(-MOST_AT, MOST_AT),
        KeyDefault::Integer(0),
        "bytes of the frame that it does not count, such as those of the header; negative if it counts more",
    ),
];
const CLOCK: &[Key] = &[
    AT,
    BITS,
    SHIFT,
    OWN_ORDER,
    required("frequency", KeyKind::Rate { min: Frequency(1), max: MAX_CLOCK }, "ticks per second"),
];
const MARK: &[Key] = &[AT, required("bits", integer(1, 32), "its width in bits"), SHIFT, OWN_ORDER];
const SOURCE_ID: &[Key] =
    &[AT, BITS, SHIFT, OWN_ORDER, required("value", integer(0, i64::MAX), "the id of this board")];
const CHECKSUM: &[Key] = &[
    required(
        "type",
        KeyKind::Text,
        "a CRC of 16 or 32 bits by its name in the catalogue of Greg Cook, such as \"crc-16/ibm-3740\" (also called \
         CCITT-FALSE), \"crc-16/modbus\", \"crc-32\" or \"crc-32c\"; or \"xor-8\", \"sum-8\", and so on with 16 and 32",
    ),
    AT,
    key("from", integer(0, MOST_AT), KeyDefault::Integer(0), "first byte that it covers"),
    optional(
        "to",
        integer(-MOST_AT, MOST_AT),
        "byte behind the last one that it covers, from the end of the frame if negative, 0 for the end; by default it \
         covers all before it",
    ),
    OWN_ORDER,
];

pub(super) static ORDER: Words<ByteOrder> = Words(&[
    word("little", "the lowest byte first", ByteOrder::Little),
    word("big", "the highest byte first", ByteOrder::Big),
]);

/// Gives the framing of `[readout]` to all live sources without one, each counter its width, and the comparison of marks
/// that of the narrowest one.
pub(super) fn fill(root: &mut Node) {
    let shared = root.at("readout.framing").cloned();
    let mut mark_bits = 32;
    for place in places(root) {
        if !root.at(&place).is_some_and(source::has_frames) {
            continue;
        }
        if let Some(shared) = &shared {
            put_missing(root, &format!("{place}.framing"), shared.clone());
        }
        let framing = root.at(&format!("{place}.framing"));
        let marked = framing.and_then(|framing| framing.at("mark.bits")?.integer());
        mark_bits = marked.map_or(mark_bits, |bits| bits.clamp(1, mark_bits));
        let counted = if framing.is_some() { 64 } else { 32 };
        let bits = framing.and_then(|framing| framing.at("counter.bits")?.integer()).unwrap_or(counted);
        put_missing(root, &format!("{place}.counter_bits"), Value::Integer(bits).into());
    }
    put_default(root, &["readout", "mark_bits"], Value::Integer(mark_bits));
}

fn put_missing(root: &mut Node, path: &str, node: Node) {
    if root.at(path).is_none() {
        root.put(&path.split('.').collect::<Vec<_>>(), None, node);
    }
}

/// The paths of all sources in the file, in an unchecked tree.
fn places(root: &Node) -> Vec<String> {
    let length = |path: &str| root.at(path).and_then(Node::list).map_or(0, <[Node]>::len);
    let of_unit = |unit: usize| {
        let listed = format!("readout.unit.{unit}.sources");
        let own = (0..length(&listed)).map(move |source| format!("readout.unit.{unit}.sources.{source}"));
        own.chain([format!("readout.unit.{unit}.source")])
    };
    (0..length("readout.unit")).flat_map(of_unit).chain(["readout.source".to_owned()]).collect()
}

/// The framing of a source.
pub(super) fn make(source: View<'_>) -> Option<Framing> {
    source.has("framing").then(|| describe(source.below("framing")))
}

fn describe(table: View<'_>) -> Framing {
    let field = |name: &str| table.has(name).then(|| field(table, name));
    let hex = |name: &str| table.maybe_text(name).and_then(|text| parse_hex(text).ok());
    let length = |field| FrameEnd::Length {
        field,
        unit: table.quantity::<ByteCount>("length.unit").0 as u32,
        adds: table.integer("length.adds"),
    };
    let size = table.maybe_quantity::<ByteCount>("size").map(|size| FrameEnd::Size(size.0 as u32));
    let end = size.or_else(|| field("length").map(length)).or_else(|| hex("end").map(FrameEnd::Marker));
    Framing {
        magic: hex("magic").unwrap_or_default(),
        magic_at: table.integer("magic_at"),
        end: end.unwrap_or(FrameEnd::Datagram),
        counter: field("counter"),
        clock: field("clock").map(|field| ClockField { field, frequency: table.quantity("clock.frequency") }),
        mark: field("mark"),
        source: field("source").map(|field| (field, table.integer("source.value"))),
        damaged: field("damaged"),
        checksum: table.has("checksum").then(|| checksum(table)).flatten(),
        stream_header: table.maybe_quantity::<ByteCount>("stream_header").map_or(0, |header| header.0 as u32),
        across_datagrams: goes_across(table),
        hits: hits::make(table).map(Box::new),
    }
}

fn goes_across(table: View<'_>) -> bool {
    table.has("across_datagrams") && table.flag("across_datagrams")
}

fn field(framing: View<'_>, name: &str) -> Field {
    field_in(framing, framing.below(name))
}

/// The field in a table, in the byte order of the framing if it has none of its own.
fn field_in(framing: View<'_>, table: View<'_>) -> Field {
    let (at, bits, shift) = (table.integer("at"), table.integer("bits"), table.integer("shift"));
    Field { at, bits, shift, order: order(framing, table) }
}

fn checksum(framing: View<'_>) -> Option<FrameChecksum> {
    let table = framing.below("checksum");
    let (kind, at) = (table.text("type").parse().ok()?, table.integer("at"));
    let to = table.maybe_integer("to").unwrap_or(at);
    Some(FrameChecksum { kind, at, from: table.integer("from"), to, order: order(framing, table) })
}

fn order(framing: View<'_>, own: View<'_>) -> ByteOrder {
    if own.has("order") { ORDER.at(own, "order") } else { ORDER.at(framing, "order") }
}

/// The bytes of a text in hexadecimal, with or without spaces and `0x`.
fn parse_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: String = text.split_whitespace().map(|part| part.trim_start_matches("0x")).collect();
    let wrong = || format!("{text:?} is not 1 to {MOST_MARKER} bytes in hexadecimal, such as \"ef be ad de\"");
    let is_good =
        digits.is_ascii() && digits.len().is_multiple_of(2) && (1..=MOST_MARKER).contains(&(digits.len() / 2));
    let bytes = (0..digits.len() / 2).map(|n| u8::from_str_radix(digits.get(2 * n..2 * n + 2).unwrap_or(""), 16));
    if is_good { bytes.collect::<Result<_, _>>().map_err(|_| wrong()) } else { Err(wrong()) }
}

// ---- checks

/// Checks the framing of a source.
pub(super) fn check(source: View<'_>) -> Option<Problem> {
    let table = source.has("framing").then(|| source.below("framing"))?;
    let origin = source.origin("framing");
    texts(table)
        .or_else(|| widths(table))
        .or_else(|| one_end(table, source, origin))
        .or_else(|| streams(table, source))
        .or_else(|| sizes(table))
        .or_else(|| hits::check(table))
        .or_else(|| one_width(table, source))
}

/// Texts with a meaning of their own.
fn texts(table: View<'_>) -> Option<Problem> {
    let markers = ["magic", "end"].into_iter().find_map(|name| {
        let problem = parse_hex(table.maybe_text(name)?).err()?;
        Some((name, Problem::new(problem, "write the bytes in the order in which they are on the wire")))
    });
    let kind = || {
        let problem = table.maybe_text("checksum.type")?.parse::<ChecksumKind>().err()?;
        let help = "look for the polynomial and the initial value of the board's manual in the catalogue";
        Some(("checksum.type", Problem::new(problem, help)))
    };
    let (place, problem) = markers.or_else(kind)?;
    Some(problem.at(table.origin(place), "here"))
}

/// Fields span at most 8 bytes, and those at the end do not reach beyond it.
fn widths(table: View<'_>) -> Option<Problem> {
    ["length", "counter", "clock", "mark", "source", "damaged"].into_iter().find_map(|name| {
        let field = table.has(name).then(|| field(table, name))?;
        let place = table.origin(name);
        if field.bytes() > 8 {
            let message =
                format!("`{name}` of {} bits above {} others spans {} bytes", field.bits, field.shift, field.bytes());
            return Some(Problem::new(message, "a field spans at most 8 bytes").at(place, "too wide"));
        }
        if field.at < 0 && field.at.unsigned_abs() < field.bytes() as u32 {
            let message =
                format!("`{name}` of {} bytes does not fit into the last {} of a frame", field.bytes(), -field.at);
            return Some(Problem::new(message, format!("write at = -{}", field.bytes())).at(place, "beyond the end"));
        }
        (name == "length" && field.at < 0).then(|| {
            let message = "`length` lies at the end of the frame, which it is to tell";
            Problem::new(message, "count `at` from the beginning of the frame").at(place, "negative")
        })
    })
}

/// One key says where a frame ends.
fn one_end(table: View<'_>, source: View<'_>, origin: Option<crate::tree::Origin>) -> Option<Problem> {
    let given: Vec<_> = ["size", "length", "end"].into_iter().filter(|name| table.has(name)).collect();
    match given[..] {
        [_] => None,
        [] if OF_DATAGRAMS.contains(&source.text("type")) && !goes_across(table) => None,
        [] => {
            let help = "add size = \"...\", length = { at = ..., bits = ... } or end = \"...\" to the framing";
            Some(Problem::new("the framing does not say where a frame ends", help).at(origin, "no end"))
        }
        [first, second, ..] => {
            let message = format!("both `{first}` and `{second}` say where a frame ends");
            let problem = Problem::new(message, "keep one of the two");
            Some(problem.at(table.origin(first), "one").at(table.origin(second), "another"))
        }
    }
}

/// What comes before the first frame has a place in streams, and frames that go on in the next datagram are found again.
fn streams(table: View<'_>, source: View<'_>) -> Option<Problem> {
    let (kind, is_across) = (source.text("type"), goes_across(table));
    let has_datagrams = OF_DATAGRAMS.contains(&kind);
    if table.has("stream_header") && has_datagrams {
        let message = format!("`stream_header` comes before the first frame of a stream, and {kind:?} has datagrams");
        let help = "leave it out: what comes before the frames of each datagram is a part of the first frame";
        return Some(Problem::new(message, help).at(table.origin("stream_header"), "no stream"));
    }
    if is_across && !has_datagrams {
        let message = format!("`across_datagrams` is for frames in datagrams, and {kind:?} has a stream");
        let help = "leave it out: frames of a stream may be cut anywhere";
        return Some(Problem::new(message, help).at(table.origin("across_datagrams"), "no datagrams"));
    }
    let missing = ["magic", "checksum"].into_iter().find(|name| is_across && !table.has(name))?;
    let why = match missing {
        "magic" => "the next frame would not be found behind a lost datagram",
        _ => "a frame that lost a datagram in its middle would look whole",
    };
    let help = format!("add the `{missing}` of the frames; without it, each datagram must have whole frames");
    let problem = Problem::new(format!("`across_datagrams` needs a `{missing}`: without it {why}"), help);
    Some(problem.at(table.origin("across_datagrams"), "here"))
}

/// All fields lie within a frame, and a checksum covers something.
fn sizes(table: View<'_>) -> Option<Problem> {
    let framing = describe(table);
    let covers_nothing = framing.checksum.filter(|sum| sum.to > 0 && sum.to as u32 <= sum.from);
    if covers_nothing.is_some() {
        let problem =
            Problem::new("the checksum covers no bytes", "`to` is the byte behind the last one, above `from`");
        return Some(problem.at(table.origin("checksum"), "empty"));
    }
    let FrameEnd::Size(size) = framing.end else { return None };
    let needed = Framing { end: FrameEnd::Datagram, ..framing }.shortest();
    (needed > size as usize).then(|| {
        let message = format!("frames of {size} bytes cannot hold the fields of the framing, which need {needed}");
        Problem::new(message, "look for the field that lies too far behind").at(table.origin("size"), "too short")
    })
}

/// The width of the counter is that of its field.
fn one_width(table: View<'_>, source: View<'_>) -> Option<Problem> {
    let (bits, own) = (source.integer::<i64>("counter_bits"), source.origin("counter_bits")?);
    let counted = describe(table).counter_bits();
    (bits != i64::from(counted)).then(|| {
        let message = format!("`counter_bits` of {bits} is not the width of the counter in the framing, {counted}");
        let help = "leave it out: `framing.counter.bits` is the width of the counter";
        Problem::new(message, help).at(Some(own), "here").at(table.origin("counter"), "the counter")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_bytes() {
        assert_eq!(parse_hex("ef be ad de"), Ok(vec![0xef, 0xbe, 0xad, 0xde]));
        assert_eq!(parse_hex("0x0D0a"), Ok(vec![0x0d, 0x0a]));
        for wrong in ["", "abc", "xy", "é", "0x", &"00".repeat(65)] {
            assert!(parse_hex(wrong).is_err(), "{wrong}");
        }
    }
}
