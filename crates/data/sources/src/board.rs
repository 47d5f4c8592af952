//! Framing that a description defines: the frames of a laboratory's own boards.
//!
//! A [`Framing`] says where a frame begins and ends, and which of its bits are the event counter, the clock, the mark,
//! the source id and the checksum. A [`FrameScanner`] extracts the frames from a stream of bytes or from datagrams, and
//! finds its way back after garbage. The payload of a fragment is the whole frame.

mod checksum;
mod hits;
mod scanner;

pub use checksum::{ChecksumKind, FrameChecksum};
use evb_core::{Frequency, Span};
pub use hits::{CutHit, Encoding, HitClock, HitCutter, HitLayout, MOST_CHIP_BITS, Marker, Tick, TimeField};
pub use scanner::{BoardFrame, FrameScanner};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ByteOrder {
    /// The lowest byte first.
    #[default]
    Little,
    /// The highest byte first.
    Big,
}

/// A number in a frame: `bits` bits, above the `shift` lowest bits of the bytes from `at` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its first byte, counted from the beginning of the frame, or from its end if negative: -2 is the last but one.
    pub at: i32,
    /// Its width in bits, 1 to 64. With the shift it spans at most 8 bytes.
    pub bits: u8,
    /// Low bits of the bytes that do not belong to it.
    pub shift: u8,
    /// The order of its bytes.
    pub order: ByteOrder,
}

impl Field {
    /// A field of whole bytes.
    pub const fn new(at: i32, bits: u8, order: ByteOrder) -> Self {
        Self { at, bits, shift: 0, order }
    }

    /// Bytes that it spans, 1 to 8.
    pub const fn bytes(self) -> usize {
        (self.bits as usize + self.shift as usize).div_ceil(8)
    }

    /// Bytes that a frame needs to hold it.
    pub(crate) const fn reach(self) -> usize {
        if self.at < 0 { self.at.unsigned_abs() as usize } else { self.at as usize + self.bytes() }
    }

    /// The number in a frame, which must be long enough.
    #[inline]
    pub(crate) fn read(self, frame: &[u8]) -> u64 {
        let at = position(self.at, frame.len());
        let mut bytes = [0; 8];
        let own = &frame[at..at + self.bytes()];
        let value = match self.order {
            ByteOrder::Little => {
                bytes[..own.len()].copy_from_slice(own);
                u64::from_le_bytes(bytes)
            }
            ByteOrder::Big => {
                bytes[8 - own.len()..].copy_from_slice(own);
                u64::from_be_bytes(bytes)
            }
        };
        (value >> self.shift) & (u64::MAX >> (64 - u32::from(self.bits)))
    }
}

/// The byte at an offset from the beginning, or from the end if negative.
const fn position(at: i32, length: usize) -> usize {
    if at < 0 { length - at.unsigned_abs() as usize } else { at as usize }
}

/// The rule for the end of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameEnd {
    /// All frames have this number of bytes.
    Size(u32),
    /// A field says how long the frame is: `field` times `unit`, and `adds` bytes.
    Length {
        /// The field.
        field: Field,
        /// Bytes that the field counts as one.
        unit: u32,
        /// Bytes of the frame that the field does not count; negative if it counts more than the frame has.
        adds: i32,
    },
    /// The frame ends with these bytes.
    Marker(Vec<u8>),
    /// A datagram is one frame.
    Datagram,
}

/// The clock of a board.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockField {
    /// The number of ticks.
    pub field: Field,
    /// Ticks per second.
    pub frequency: Frequency,
}

impl ClockField {
    /// The clock as a part of a time.
    const fn time(self) -> TimeField {
        TimeField { field: self.field, encoding: Encoding::Plain, tick: Tick::Frequency(self.frequency) }
    }

    /// The time after which the clock begins again.
    pub fn range(self) -> Span {
        self.time().range()
    }
}

/// The framing of a board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Framing {
    /// Bytes that every frame has at `magic_at`. The scanner finds frames by them. Empty if the board sends none.
    pub magic: Vec<u8>,
    /// Number of bytes before the magic.
    #[serde(default)]
    pub magic_at: u32,
    /// The rule for the end of a frame.
    pub end: FrameEnd,
    /// The event counter. Without it, the frames of a connection are counted.
    pub counter: Option<Field>,
    /// The time of the fragment.
    pub clock: Option<ClockField>,
    /// A value that is the same in all sources of one event, at most 32 bits.
    pub mark: Option<Field>,
    /// The source id, and its value in the frames of this source. Others are refused.
    pub source: Option<(Field, u64)>,
    /// A number that is not 0 in a frame that the board knows to be damaged.
    pub damaged: Option<Field>,
    /// The checksum.
    pub checksum: Option<FrameChecksum>,
    /// Bytes of a file or of a connection before its first frame.
    #[serde(default)]
    pub stream_header: u32,
    /// A frame may go on in the next datagram of its sender.
    #[serde(default)]
    pub across_datagrams: bool,
    /// The hits inside a frame. Without them, a frame is one hit where events are slices of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<Box<HitLayout>>,
}

impl Framing {
    /// All fields, without that of the length.
    fn fields(&self) -> impl Iterator<Item = Field> {
        let clock = self.clock.map(|clock| clock.field);
        let source = self.source.map(|(field, _)| field);
        [self.counter, clock, self.mark, source, self.damaged].into_iter().flatten()
    }

    /// The parts of a frame of this length, by name, with their bytes.
    pub fn parts(&self, length: usize) -> Vec<(&'static str, Range<usize>)> {
        let bytes = |field: Field| {
            let at = position(field.at, length);
            at..at + field.bytes()
        };
        let magic = self.magic_at as usize..self.magic_at as usize + self.magic.len();
        let length_field = if let FrameEnd::Length { field, .. } = self.end { Some(field) } else { None };
        let fields = [
            ("length", length_field),
            ("counter", self.counter),
            ("clock", self.clock.map(|clock| clock.field)),
            ("mark", self.mark),
            ("source", self.source.map(|(field, _)| field)),
            ("damaged", self.damaged),
            ("checksum", self.checksum.map(|checksum| checksum.field())),
        ];
        let fields = fields.into_iter().filter_map(|(name, field)| Some((name, bytes(field?))));
        std::iter::once(("magic", magic)).filter(|(_, bytes)| !bytes.is_empty()).chain(fields).collect()
    }

    /// Bytes of the shortest frame: those of all fields.
    pub fn shortest(&self) -> usize {
        let fields = self.fields().map(Field::reach).max().unwrap_or(0);
        let checksum = self.checksum.as_ref().map_or(0, FrameChecksum::reach);
        let (length, marker) = match &self.end {
            FrameEnd::Size(size) => (*size as usize, 0),
            FrameEnd::Length { field, .. } => (field.reach(), 0),
            FrameEnd::Marker(marker) => (0, marker.len()),
            FrameEnd::Datagram => (1, 0),
        };
        fields.max(checksum).max(length).max(self.magic_at as usize + self.magic.len() + marker).max(1)
    }

    /// Width of the event counter in bits; 64 if frames are counted.
    pub fn counter_bits(&self) -> u8 {
        self.counter.map_or(64, |counter| counter.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_from_both_ends_in_both_orders() {
        let frame = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0];
        let read = |at, bits, shift, order| Field { at, bits, shift, order }.read(&frame);
        assert_eq!(read(1, 16, 0, ByteOrder::Little), 0x5634);
        assert_eq!(read(1, 16, 0, ByteOrder::Big), 0x3456);
        assert_eq!(read(-3, 24, 0, ByteOrder::Big), 0xbc_def0);
        assert_eq!(read(0, 12, 4, ByteOrder::Little), 0x341);
        assert_eq!(read(0, 12, 4, ByteOrder::Big), 0x123);
        assert_eq!(read(0, 64, 0, ByteOrder::Big), 0x1234_5678_9abc_def0);
        assert_eq!(read(2, 48, 0, ByteOrder::Little), 0xf0de_bc9a_7856);
        assert_eq!(read(3, 1, 3, ByteOrder::Little), 1);
    }
}
