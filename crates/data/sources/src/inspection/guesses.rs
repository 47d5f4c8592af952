//! Guesses about what a framing should say, from bytes that it does not fit.

use super::{FrameChecksum, InspectionReport};
use crate::board::{ByteOrder, ChecksumKind, Field, FrameEnd, FrameScanner, Framing};
use bytes::Bytes;
use memchr::memmem;
use std::{collections::BTreeMap, sync::Arc};

/// Most places of the magic, or frames, that are looked at.
const MOST: usize = 200;
/// Fewest of them that say something.
const FEWEST: usize = 3;
/// Numbers after a wrap that may be lost before the first that counts.
const NEAR_ZERO: u64 = 64;
/// Checksums that boards have.
const KINDS: [&str; 17] = [
    "crc-16/ibm-3740",
    "crc-16/xmodem",
    "crc-16/kermit",
    "crc-16/modbus",
    "crc-16/arc",
    "crc-16/genibus",
    "crc-16/ibm-sdlc",
    "crc-16/spi-fujitsu",
    "crc-16/usb",
    "crc-32/iso-hdlc",
    "crc-32/iscsi",
    "crc-32/mpeg-2",
    "crc-32/bzip2",
    "xor-8",
    "xor-16",
    "sum-8",
    "sum-16",
];

/// What the framing should perhaps say.
pub(super) fn guess(framing: &Framing, report: &InspectionReport, sample: &[u8]) -> Vec<String> {
    let mut guesses = Vec::new();
    guesses.extend(magic(framing, report, sample));
    guesses.extend(end(framing, report, sample));
    let frames = unchecked_frames(framing, sample);
    guesses.extend(checksum(framing, report, &frames));
    guesses.extend(order(framing, &frames));
    guesses.extend(width(framing, &frames));
    guesses
}

/// The magic in another order of its bytes.
fn magic(framing: &Framing, report: &InspectionReport, sample: &[u8]) -> Option<String> {
    let magic = &framing.magic;
    if report.frames > 0 || magic.is_empty() || memmem::find(sample, magic).is_some() {
        return None;
    }
    let others =
        [2, 4, 8, magic.len()].map(|size| magic.chunks(size).flat_map(|part| part.iter().rev()).copied().collect());
    let found = others.into_iter().find_map(|other: Vec<u8>| {
        let count = memmem::find_iter(sample, &other).take(MOST).count();
        (count >= FEWEST).then_some((other, count))
    });
    Some(match found {
        Some((other, count)) => {
            format!("the bytes {} are there {} times: magic = {:?}?", hex(&other), at_least(count), hex(&other))
        }
        None => "the magic is nowhere, nor in another order of its bytes".to_owned(),
    })
}

/// Another rule for the end of a frame, by the distances of the magic.
fn end(framing: &Framing, report: &InspectionReport, sample: &[u8]) -> Option<String> {
    let starts: Vec<_> = memmem::find_iter(sample, &framing.magic)
        .filter_map(|place| place.checked_sub(framing.magic_at as usize))
        .take(MOST)
        .collect();
    if framing.magic.is_empty()
        || starts.len() <= FEWEST
        || report.skipped.1 + report.unfinished + report.oversized.0 == 0
    {
        return None;
    }
    let frames = || starts.windows(2).map(|pair| (&sample[pair[0]..pair[1]], pair[1] - pair[0]));
    match &framing.end {
        FrameEnd::Size(size) => {
            let (distance, count) = most_common(frames().map(|(_, distance)| distance as i64))?;
            let is_other = distance != i64::from(*size) && 10 * count >= 9 * (starts.len() - 1);
            is_other.then(|| format!("the magic comes every {distance} bytes: size = \"{distance} B\"?"))
        }
        FrameEnd::Length { field, unit, adds } => {
            let counted = || frames().filter(|(frame, _)| frame.len() >= field.reach());
            let fit = |unit: u32| {
                let rest =
                    |(frame, distance): (&[u8], usize)| distance as i64 - field.read(frame) as i64 * i64::from(unit);
                most_common(counted().map(rest)).map(|(adds, count)| (count, -adds.abs(), unit, adds))
            };
            let (count, _, best, rest) = [1, 2, 4, 8].into_iter().filter_map(fit).max()?;
            let is_other = (best, rest) != (*unit, i64::from(*adds));
            (is_other && 10 * count >= 9 * (starts.len() - 1))
                .then(|| format!("the distances of the magic fit unit = \"{best} B\", adds = {rest} of `length`"))
        }
        FrameEnd::Marker(_) | FrameEnd::Datagram => None,
    }
}

/// Frames as they are without a checksum.
fn unchecked_frames(framing: &Framing, sample: &[u8]) -> Vec<Bytes> {
    let framing = Framing { checksum: None, ..framing.clone() };
    if framing.end == FrameEnd::Datagram {
        return Vec::new();
    }
    let mut scanner = FrameScanner::new(Arc::new(framing), u32::MAX);
    scanner.push(sample);
    let mut frames = Vec::new();
    while frames.len() < MOST {
        match scanner.pop() {
            Ok(Some(frame)) => frames.push(frame.bytes),
            Err(error) if !error.ends_stream() => {}
            Ok(None) | Err(_) => break,
        }
    }
    frames
}

/// A kind of checksum that fits all frames, if the one of the framing does not, or if it has none.
fn checksum(framing: &Framing, report: &InspectionReport, frames: &[Bytes]) -> Option<String> {
    let is_wrong = 2 * report.damaged >= report.frames.max(1);
    if frames.len() < FEWEST || framing.checksum.is_some() && !is_wrong {
        return None;
    }
    let at = |kind: ChecksumKind| framing.checksum.map_or(-i32::from(kind.bits() / 8), |checksum| checksum.at);
    let kinds = KINDS.iter().filter_map(|name| name.parse::<ChecksumKind>().ok());
    let froms =
        [0, framing.magic_at + framing.magic.len() as u32, framing.checksum.map_or(0, |checksum| checksum.from)];
    let candidates = kinds.flat_map(|kind| {
        froms.into_iter().flat_map(move |from| {
            [ByteOrder::Little, ByteOrder::Big].map(|order| FrameChecksum {
                kind,
                at: at(kind),
                from,
                to: at(kind),
                order,
            })
        })
    });
    let fits = |checksum: &FrameChecksum| {
        let is_right = |frame: &Bytes| frame.len() >= checksum.reach() && checksum.is_right(frame);
        frames.iter().filter(|frame| is_right(frame)).count() * 10 >= frames.len() * 9
    };
    let FrameChecksum { kind, at, from, order, .. } = candidates.into_iter().find(fits)?;
    let from = if from == 0 { String::new() } else { format!(", from = {from}") };
    let order = if order == ByteOrder::Big { ", order = \"big\"" } else { "" };
    Some(format!("checksum = {{ type = \"{kind}\", at = {at}{from}{order} }} fits"))
}

/// A counter or clock that makes sense in the other order.
fn order(framing: &Framing, frames: &[Bytes]) -> Vec<String> {
    let clock = framing.clock.map(|clock| clock.field);
    let fields = [("counter", framing.counter), ("clock", clock)];
    let of = |(name, field): (&str, Option<Field>)| {
        let field = field.filter(|field| field.bytes() > 1)?;
        let (other, word) = match field.order {
            ByteOrder::Little => (ByteOrder::Big, "big"),
            ByteOrder::Big => (ByteOrder::Little, "little"),
        };
        let small = |field: Field| {
            let values: Vec<_> = frames.iter().map(|frame| field.read(frame)).collect();
            let range = u64::MAX >> (64 - u32::from(field.bits));
            let steps = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]) & range);
            steps.filter(|step| *step > 0 && *step < range / 256).count()
        };
        let all = frames.len().saturating_sub(1);
        let (own, turned) = (small(field), small(Field { order: other, ..field }));
        (all >= FEWEST && 10 * own < 5 * all && 10 * turned > 9 * all)
            .then(|| format!("the {name} seems to have its bytes in the other order: order = \"{word}\""))
    };
    fields.into_iter().filter_map(of).collect()
}

/// A counter that is narrower than its field.
fn width(framing: &Framing, frames: &[Bytes]) -> Option<String> {
    let field = framing.counter?;
    let values = || frames.iter().map(|frame| field.read(frame));
    let wrap = values().zip(values().skip(1)).find(|(last, next)| next < last && *next < NEAR_ZERO)?;
    let range = wrap.0.checked_add(1)?.checked_next_power_of_two().filter(|range| range - wrap.0 <= NEAR_ZERO)?;
    let bits = range.trailing_zeros() as u8;
    (bits < field.bits).then(|| format!("the counter falls from {} to {}: it seems {bits} bits wide", wrap.0, wrap.1))
}

fn most_common(values: impl Iterator<Item = i64>) -> Option<(i64, usize)> {
    let mut counts = BTreeMap::<i64, usize>::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count)
}

fn at_least(count: usize) -> String {
    if count == MOST { format!("at least {count}") } else { count.to_string() }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
