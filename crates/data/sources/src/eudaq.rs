//! Recorded files of EUDAQ, version 1 and 2: the events of one producer out of the events of a data collector.
//!
//! An event is serialised field by field and holds other events. Nothing says how long it is, so it is read field by field
//! too, and behind damage no later event can be found. All numbers are little-endian. A *text* or *bytes* is a u32 length
//! and as many bytes, a *list* is a u32 number and as many items.
//!
//! Version 1 begins with an id of four letters:
//!
//! ```text
//! u32 id | u32 flags | u32 run | u32 event | u64 timestamp | list of tags (text, text) | by id:
//!   _DET  list of events
//!   _RAW  text type | list of blocks (u32 id, bytes)
//!   _DRB, _DEP  list of blocks
//!   _TLU  list of u64
//! ```
//!
//! Version 2 begins with a hash of its class and the version:
//!
//! ```text
//! u32 class | u32 2 | u32 flags | u32 device | u32 run | u32 event | u32 trigger | u32 hash of the description
//! u64 begin | u64 end | text description | list of tags | list of blocks | list of events
//! ```
//!
//! Bits 0 and 1 of the flags are begin and end of run. In version 1 such events hold no data. In version 2 they are the
//! first and last events with data. Bit 4 says, in version 2, that the trigger number is set. A timestamp of all ones
//! (version 1), or 0 (version 2), is none.

mod contents;

use bytes::{Bytes, BytesMut};
pub use contents::{EudaqContents, EudaqSummary};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    io::{self, BufRead, ErrorKind},
};

/// Most items of a list: of tags, blocks or events.
const MOST_ITEMS: u32 = 1 << 16;
/// Most bytes of a tag, and of a name.
const MOST_TAG: u32 = 1 << 20;
const MOST_NAME: u32 = 1 << 12;
/// Most events within each other.
const MOST_DEPTH: usize = 8;

const DETECTOR: u32 = u32::from_le_bytes(*b"_DET");
const RAW: u32 = u32::from_le_bytes(*b"_RAW");
const EUDRB: u32 = u32::from_le_bytes(*b"_DRB");
const DEPFET: u32 = u32::from_le_bytes(*b"_DEP");
const TLU: u32 = u32::from_le_bytes(*b"_TLU");
const VERSION: u32 = 2;

const BEGIN_OR_END_OF_RUN: u32 = 3;
const HAS_TRIGGER: u32 = 1 << 4;

/// The producer whose events a source takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EudaqProducer {
    /// The description of its events (version 2) or their type (version 1, "TLU" for those of the trigger logic unit).
    pub name: String,
    /// Its device number, where several producers have one name. Only version 2 has device numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
}

impl EudaqProducer {
    /// Returns true if this description is that of a producer in a file.
    pub fn covers(&self, found: &Self) -> bool {
        self.name == found.name && (self.device.is_none() || self.device == found.device)
    }
}

/// An event of a producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EudaqEvent {
    /// The producer.
    pub producer: EudaqProducer,
    /// The number of the event of the data collector.
    pub number: u32,
    /// The trigger number, where it is set; in version 1 the producer's own event number.
    pub mark: Option<u32>,
    /// The timestamp at its begin.
    pub clock: Option<u64>,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length in the file.
    pub length: u64,
    /// The whole event as it is in the file, or its first bytes if it is longer than the largest one.
    pub bytes: Bytes,
}

/// The reason why a file cannot be read further.
#[derive(Debug)]
pub enum EudaqFault {
    /// The file ends within an event.
    CutOff,
    /// The bytes are not the beginning of a known event.
    Unknown,
    /// A length, number or depth above its limit.
    TooMany(&'static str),
    /// An error of the system.
    Read(io::Error),
}

/// An error of reading a file, and its place.
#[derive(Debug, thiserror::Error)]
#[error("{fault} at byte {at}, in the event that begins at byte {event}")]
pub struct EudaqError {
    /// First byte of the event.
    pub event: u64,
    /// The place.
    pub at: u64,
    /// The reason.
    pub fault: EudaqFault,
}

impl fmt::Display for EudaqFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutOff => f.write_str("the file ends"),
            Self::Unknown => f.write_str("no known event of EUDAQ"),
            Self::TooMany(what) => write!(f, "too many {what}"),
            Self::Read(error) => write!(f, "it cannot be read: {error}"),
        }
    }
}

/// The events of one producer in a file.
#[derive(Debug)]
pub struct EudaqReader<R> {
    input: R,
    /// The producer of the events that are taken, or none for the innermost events of all.
    producer: Option<EudaqProducer>,
    most: usize,
    /// Number of bytes that were read.
    at: u64,
    /// The event that is read, from its first byte on; at most `most` bytes of it.
    event: u64,
    kept: BytesMut,
}

/// An event up to the events within it.
struct Head {
    producer: EudaqProducer,
    number: u32,
    mark: Option<u32>,
    clock: Option<u64>,
    has_data: bool,
    /// Number of events within it.
    inner: u32,
}

/// What surrounds an event.
#[derive(Clone, Copy, Default)]
struct Outer {
    depth: usize,
    /// The number of the outermost event.
    number: Option<u32>,
    /// It is of the producer: what is within belongs to it.
    is_taken: bool,
}

impl<R: BufRead> EudaqReader<R> {
    /// A reader that keeps up to `max_fragment` bytes of an event.
    pub fn new(input: R, producer: EudaqProducer, max_fragment: u32) -> Self {
        Self { producer: Some(producer), most: max_fragment as usize, ..Self::of_all(input) }
    }

    /// A reader of the innermost events of all producers, without their bytes.
    pub(crate) fn of_all(input: R) -> Self {
        Self { input, producer: None, most: 0, at: 0, event: 0, kept: BytesMut::new() }
    }

    /// Calls `take` with each event of the producer in the next event of the file; returns false at the end of the file.
    ///
    /// # Errors
    /// If the file cannot be read further. Events before the place of the error were taken.
    pub fn next(&mut self, mut take: impl FnMut(EudaqEvent)) -> Result<bool, EudaqError> {
        let read = self.has_more().and_then(|more| {
            if more {
                self.event(Outer::default(), &mut take)?;
            }
            Ok(more)
        });
        read.map_err(|fault| EudaqError { event: self.event, at: self.at, fault })
    }

    /// The first bytes of the event that is read.
    pub fn unfinished(&self) -> &[u8] {
        &self.kept
    }

    fn event(&mut self, outer: Outer, take: &mut dyn FnMut(EudaqEvent)) -> Result<(), EudaqFault> {
        if outer.depth >= MOST_DEPTH {
            return Err(EudaqFault::TooMany("events within each other"));
        }
        if !outer.is_taken {
            self.kept.clear();
            self.event = self.at;
        }
        let head = self.head()?;
        let number = outer.number.unwrap_or(head.number);
        let is_innermost = head.inner == 0 && !head.producer.name.is_empty();
        let is_wanted = self.producer.as_ref().map_or(is_innermost, |wanted| wanted.covers(&head.producer));
        let is_own = is_wanted && !outer.is_taken;
        let within = Outer { depth: outer.depth + 1, number: Some(number), is_taken: outer.is_taken || is_own };
        for _ in 0..head.inner {
            self.event(within, take)?;
        }
        if is_own && head.has_data {
            let (offset, length) = (self.event, self.at - self.event);
            let bytes = self.kept.split().freeze();
            let Head { producer, mark, clock, .. } = head;
            take(EudaqEvent { producer, number, mark, clock, offset, length, bytes });
        }
        Ok(())
    }

    fn head(&mut self) -> Result<Head, EudaqFault> {
        let first = self.number()?;
        let letters = first.to_le_bytes();
        match first {
            DETECTOR | RAW | EUDRB | DEPFET | TLU => self.head_of_version_1(first),
            // Another class of version 1: its layout is not known.
            _ if letters[0] == b'_' && letters[1..].iter().all(u8::is_ascii_uppercase) => Err(EudaqFault::Unknown),
            _ if self.number()? == VERSION => self.head_of_version_2(),
            _ => Err(EudaqFault::Unknown),
        }
    }

    fn head_of_version_1(&mut self, id: u32) -> Result<Head, EudaqFault> {
        let [flags, _run, number] = self.numbers()?;
        let timestamp = self.long()?;
        self.tags()?;
        let (mut name, mut inner) = (String::new(), 0);
        match id {
            DETECTOR => inner = self.items("events")?,
            TLU => {
                name.push_str("TLU");
                let times = self.items("times")?;
                self.pass(u64::from(times) * 8)?;
            }
            _ => {
                name = match id {
                    EUDRB => "EUDRB".to_owned(),
                    DEPFET => "DEPFET".to_owned(),
                    _ => self.name()?,
                };
                self.blocks()?;
            }
        }
        let clock = (timestamp != u64::MAX).then_some(timestamp);
        let has_data = flags & BEGIN_OR_END_OF_RUN == 0;
        let producer = EudaqProducer { name, device: None };
        Ok(Head { producer, number, mark: Some(number), clock, has_data, inner })
    }

    fn head_of_version_2(&mut self) -> Result<Head, EudaqFault> {
        let [flags, device, _run, number, trigger, _hash] = self.numbers()?;
        let [begin, _end] = [self.long()?, self.long()?];
        let producer = EudaqProducer { name: self.name()?, device: Some(device) };
        self.tags()?;
        self.blocks()?;
        let inner = self.items("events")?;
        let mark = (flags & HAS_TRIGGER != 0).then_some(trigger);
        let clock = (begin != 0).then_some(begin);
        Ok(Head { producer, number, mark, clock, has_data: true, inner })
    }

    fn tags(&mut self) -> Result<(), EudaqFault> {
        for _ in 0..2 * self.items("tags")? {
            let length = self.text_length(MOST_TAG)?;
            self.pass(length)?;
        }
        Ok(())
    }

    fn blocks(&mut self) -> Result<(), EudaqFault> {
        for _ in 0..self.items("blocks")? {
            let [_id, length] = self.numbers()?;
            self.pass(length.into())?;
        }
        Ok(())
    }

    fn items(&mut self, what: &'static str) -> Result<u32, EudaqFault> {
        let items = self.number()?;
        if items > MOST_ITEMS { Err(EudaqFault::TooMany(what)) } else { Ok(items) }
    }

    fn text_length(&mut self, most: u32) -> Result<u64, EudaqFault> {
        let length = self.number()?;
        if length > most { Err(EudaqFault::TooMany("letters")) } else { Ok(length.into()) }
    }

    fn name(&mut self) -> Result<String, EudaqFault> {
        let length = self.text_length(MOST_NAME)?;
        let mut name = Vec::new();
        self.read(length, |part| name.extend_from_slice(part))?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    fn number(&mut self) -> Result<u32, EudaqFault> {
        self.array().map(u32::from_le_bytes)
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u32; N], EudaqFault> {
        let mut numbers = [0; N];
        numbers.iter_mut().try_for_each(|number| self.number().map(|read| *number = read))?;
        Ok(numbers)
    }

    fn long(&mut self) -> Result<u64, EudaqFault> {
        self.array().map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], EudaqFault> {
        let (mut array, mut filled) = ([0; N], 0);
        self.read(N as u64, |part| {
            array[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        })?;
        Ok(array)
    }

    fn pass(&mut self, length: u64) -> Result<(), EudaqFault> {
        self.read(length, |_| ())
    }

    /// Reads bytes in parts and keeps them. Memory grows with what the file has, not with what it claims.
    fn read(&mut self, mut length: u64, mut take: impl FnMut(&[u8])) -> Result<(), EudaqFault> {
        while length > 0 {
            if !self.has_more()? {
                return Err(EudaqFault::CutOff);
            }
            let bytes = self.input.fill_buf().map_err(EudaqFault::Read)?;
            let part = bytes.len().min(usize::try_from(length).unwrap_or(usize::MAX));
            let room = (self.most - self.kept.len()).min(part);
            self.kept.extend_from_slice(&bytes[..room]);
            take(&bytes[..part]);
            self.input.consume(part);
            self.at += part as u64;
            length -= part as u64;
        }
        Ok(())
    }

    fn has_more(&mut self) -> Result<bool, EudaqFault> {
        loop {
            match self.input.fill_buf() {
                Ok(bytes) => return Ok(!bytes.is_empty()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(EudaqFault::Read(error)),
            }
        }
    }
}
