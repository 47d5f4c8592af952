//! The hits inside a frame, each with a time of its own.
//!
//! A hit rarely has its whole time. Front ends send the high bits once, in the head of the frame or in a *marker* between
//! the hits, and each hit has the low ones. A [`HitCutter`] cuts a frame into hits and adds the parts up.

use super::{Field, Framing};
use bytes::Bytes;
use evb_core::{Frequency, Span};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, ops::Range, sync::Arc};

/// Most bits of the number of a chip: the last marker of every chip is kept.
pub const MOST_CHIP_BITS: u8 = 12;

/// How a field of bits stands for a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// As it is.
    #[default]
    Plain,
    /// As a two's complement.
    Signed,
    /// In Gray code: from one number to the next, one bit changes.
    Gray,
}

/// What a field of time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tick {
    /// The ticks of a clock of this frequency.
    Frequency(Frequency),
    /// Ticks of this length.
    Length(Span),
}

/// A part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeField {
    /// The bits.
    pub field: Field,
    /// How they stand for a number.
    #[serde(default)]
    pub encoding: Encoding,
    /// What they count.
    pub tick: Tick,
}

/// What the times of hits count from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HitClock {
    /// The clock of their frame.
    Frame,
    /// Nothing: their first field is the clock. It wraps, and is as near as possible to the clock of the frame, or to the
    /// hits before if the framing has no clock.
    Own,
    /// The last marker.
    Marker(Marker),
}

/// A word between hits that has the high bits of their times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// The bits that tell a marker from a hit, and their value in a marker.
    pub is: (Field, u64),
    /// Its time: the sum of these. The first one may wrap.
    pub time: Vec<TimeField>,
    /// The number of its chip, at most [`MOST_CHIP_BITS`] bits; the hits of a chip count from its own markers.
    pub chip: Option<Field>,
    /// The number of the chip in a hit.
    pub hit_chip: Option<Field>,
}

/// Where the hits of a frame are, and their times. All places are counted from the beginning of a hit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HitLayout {
    /// Bytes of the frame before the first hit.
    pub at: u32,
    /// Bytes of a hit.
    pub size: u32,
    /// Bytes of the frame behind the last hit.
    pub until: u32,
    /// The time of a hit: the sum of these.
    pub time: Vec<TimeField>,
    /// What it counts from.
    pub clock: HitClock,
}

impl HitLayout {
    /// The bytes of all hits in a frame of this length.
    fn hits(&self, length: usize) -> Option<Range<usize>> {
        let (from, to) = (self.at as usize, length.checked_sub(self.until as usize)?);
        (from <= to).then_some(from..to)
    }
}

/// A piece of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutHit {
    /// Its time in nanoseconds, rounded down; `None` if that cannot be known: no marker came before, or the piece is
    /// shorter than a hit.
    pub time: Option<i64>,
    /// It is a whole hit.
    pub is_whole: bool,
    /// Its bytes.
    pub bytes: Bytes,
}

/// Cuts the frames of one source into hits.
#[derive(Debug)]
pub struct HitCutter {
    framing: Arc<Framing>,
    /// What is added to every time, in picoseconds.
    offset: i128,
    /// The last marker of each chip, in picoseconds.
    markers: HashMap<u64, i128>,
    last_counter: Option<u64>,
}

impl HitCutter {
    /// A cutter for frames of this framing, which adds `offset` to every time.
    pub fn new(framing: Arc<Framing>, offset: Span) -> Self {
        Self { framing, offset: offset.0.into(), markers: HashMap::new(), last_counter: None }
    }

    /// Cuts a frame with this counter and clock. A narrow clock is as near as possible to `reference`, in nanoseconds.
    /// Without a layout the frame is one hit. Markers are no hits; a gap in the counter of the frames may have swallowed
    /// some, so hits have no times until the next ones.
    pub fn cut(&mut self, frame: &Bytes, counter: u64, clock: Option<u64>, reference: Option<i64>) -> Vec<CutHit> {
        self.note_counter(counter);
        let framing = self.framing.clone();
        let near = reference.map(|time| i128::from(time) * 1000 - self.offset);
        let clock = framing.clock.zip(clock).map(|(field, clock)| field.time().nearest(clock.into(), near));
        let Some(layout) = &framing.hits else {
            return vec![CutHit { time: clock.map(|time| self.common(time)), is_whole: true, bytes: frame.clone() }];
        };
        let unknown = |bytes| CutHit { time: None, is_whole: false, bytes };
        let Some(range) = layout.hits(frame.len()) else { return vec![unknown(frame.clone())] };
        let mut hits = Vec::with_capacity(range.len() / layout.size as usize);
        // Markers may have more bits than the clock of the frame.
        let mut near = if layout.clock == HitClock::Own { clock.or(near) } else { near };
        for from in range.clone().step_by(layout.size as usize) {
            let bytes = frame.slice(from..range.end.min(from + layout.size as usize));
            if bytes.len() < layout.size as usize {
                hits.push(unknown(bytes));
            } else if !self.note_marker(layout, &bytes, &mut near) {
                let time = self.time(layout, &bytes, clock, near);
                hits.push(CutHit { time: time.map(|time| self.common(time)), is_whole: true, bytes });
            }
        }
        hits
    }

    /// Picoseconds of this clock as nanoseconds of the time of all.
    fn common(&self, time: i128) -> i64 {
        (time + self.offset).div_euclid(1000).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    fn note_counter(&mut self, counter: u64) {
        let Some(field) = self.framing.counter else { return };
        let follows = |last: u64| counter == last.wrapping_add(1) & (u64::MAX >> (64 - u32::from(field.bits)));
        if !self.last_counter.replace(counter).is_none_or(follows) {
            self.markers.clear();
        }
    }

    /// Takes a marker; returns false if it is a hit.
    fn note_marker(&mut self, layout: &HitLayout, word: &[u8], near: &mut Option<i128>) -> bool {
        let HitClock::Marker(marker) = &layout.clock else { return false };
        let (field, value) = marker.is;
        if field.read(word) != value {
            return false;
        }
        let time = sum(&marker.time, word, *near);
        // The next markers of this frame are near.
        *near = Some(time);
        self.markers.insert(marker.chip.map_or(0, |chip| chip.read(word)), time);
        true
    }

    fn time(&self, layout: &HitLayout, hit: &[u8], clock: Option<i128>, near: Option<i128>) -> Option<i128> {
        let own = || layout.time.iter().map(|field| field.picoseconds(hit)).sum::<i128>();
        match &layout.clock {
            HitClock::Frame => Some(clock? + own()),
            HitClock::Own => Some(sum(&layout.time, hit, near)),
            HitClock::Marker(marker) => {
                let chip = marker.hit_chip.map_or(0, |chip| chip.read(hit));
                Some(self.markers.get(&chip)? + own())
            }
        }
    }
}

/// The sum of fields, of which the first wraps: the one nearest to `near`, in picoseconds.
fn sum(fields: &[TimeField], bytes: &[u8], near: Option<i128>) -> i128 {
    let Some((first, others)) = fields.split_first() else { return 0 };
    let rest = others.iter().map(|field| field.picoseconds(bytes)).sum::<i128>();
    first.nearest(first.number(bytes), near.map(|near| near - rest)) + rest
}

impl TimeField {
    /// The number that the bits stand for.
    fn number(&self, bytes: &[u8]) -> i128 {
        let (raw, bits) = (self.field.read(bytes), u32::from(self.field.bits));
        match self.encoding {
            Encoding::Plain => raw.into(),
            Encoding::Signed => ((raw << (64 - bits)) as i64 >> (64 - bits)).into(),
            Encoding::Gray => [1, 2, 4, 8, 16, 32].iter().fold(raw, |number, shift| number ^ (number >> shift)).into(),
        }
    }

    /// The time in picoseconds, rounded down.
    fn picoseconds(&self, bytes: &[u8]) -> i128 {
        self.tick.picoseconds(self.number(bytes))
    }

    /// The time in picoseconds of a number that wraps: the one nearest to `near`, or the number itself.
    fn nearest(&self, number: i128, near: Option<i128>) -> i128 {
        let range = 1_i128 << self.field.bits;
        let unwrapped = near.map(|near| {
            let near = self.tick.ticks(near);
            near + (number - near + range / 2).rem_euclid(range) - range / 2
        });
        self.tick.picoseconds(unwrapped.unwrap_or(number))
    }

    /// The time after which the field begins again.
    pub fn range(&self) -> Span {
        Span(u64::try_from(self.tick.picoseconds(1 << self.field.bits)).unwrap_or(u64::MAX))
    }
}

/// Picoseconds of a tick of 1 mHz, the unit of frequencies.
const MILLIHERTZ: i128 = 1_000_000_000_000_000;

impl Tick {
    fn picoseconds(self, ticks: i128) -> i128 {
        match self {
            Self::Frequency(frequency) => (ticks * MILLIHERTZ).div_euclid(frequency.0.max(1).into()),
            Self::Length(length) => ticks * i128::from(length.0),
        }
    }

    fn ticks(self, picoseconds: i128) -> i128 {
        match self {
            Self::Frequency(frequency) => (picoseconds * i128::from(frequency.0.max(1))).div_euclid(MILLIHERTZ),
            Self::Length(length) => picoseconds.div_euclid(length.0.max(1).into()),
        }
    }
}
