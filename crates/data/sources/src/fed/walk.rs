//! Robust search for the fragments of a file: damage to one must not hide the others.
//!
//! A fragment ends at the first trailer whose length points back to the fragment's beginning and whose CRC is right.
//! Without such a trailer the fragment is bad. Its end is then the beginning of the next good one: the first trailer
//! whose length points back to a header of the right source with a right CRC between them. If the level-1 id of that
//! good fragment is not the next one, the bytes before it are divided at the header that has the next id.

use super::{Crc16, FedHeader, HEADER_TAG, TRAILER_TAG, Trailer, WORD, number::number, tag, window::Window};
use std::io::{self, Read, Seek};

/// Modulus of level-1 ids.
const ID_MODULUS: u32 = 1 << 24;
/// Most level-1 ids between a damaged fragment at the beginning and the first good one.
const MAX_GAP: u32 = 1024;
/// Longest fragment in bytes that the 24-bit length allows.
const LONGEST: u64 = (ID_MODULUS as u64 - 1) * WORD as u64;
const STEP: u64 = WORD as u64;

/// One fragment of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FedEntry {
    /// The event of the fragment, counted from 1 for the first of the file; skipped level-1 ids skip events. `None` if
    /// the level-1 id does not tell the event.
    pub event: Option<u64>,
    /// Offset of the fragment, in bytes from the start of the file.
    pub offset: u64,
    /// Its length in bytes, header and trailer included.
    pub length: u32,
    /// The level-1 id in the header.
    pub level1_id: u32,
    /// The bunch crossing in the header.
    pub bunch_crossing: u16,
    /// The source id in the header.
    pub source_id: u16,
    /// The defect of the fragment, if it has one.
    pub fault: Option<FedFault>,
}

/// The defect of a fragment in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FedFault {
    /// The header word is invalid, or has an unexpected source id or level-1 id.
    Header,
    /// The trailer word is invalid, or has a wrong length.
    Trailer,
    /// Header and trailer fit, but the CRC-16 is wrong.
    Crc,
    /// The CRC-16 is right, but the source id is that of another front-end driver.
    Source,
    /// The CRC-16 is right, but the level-1 id fits neither those before nor those after it.
    Order,
    /// The CRC-16 is right, but the level-1 id occurred before.
    Repeated,
    /// The CRC-16 is right, but the level-1 ids have restarted: nothing tells the events.
    OutOfStep,
    /// The file ends within the fragment.
    Cut,
    /// Bytes after the last fragment that do not begin one.
    Padding,
}

impl FedFault {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::Header,
        Self::Trailer,
        Self::Crc,
        Self::Source,
        Self::Order,
        Self::Repeated,
        Self::OutOfStep,
        Self::Cut,
        Self::Padding,
    ];

    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "bad header",
            Self::Trailer => "bad trailer or length",
            Self::Crc => "bad CRC-16",
            Self::Source => "source id of another front-end driver",
            Self::Order => "level-1 id out of order",
            Self::Repeated => "repeated level-1 id",
            Self::OutOfStep => "level-1 ids that began again",
            Self::Cut => "cut off by the end of the file",
            Self::Padding => "padding",
        }
    }

    /// Returns true if the bytes are damaged, so that the header cannot be trusted.
    pub(crate) const fn is_damage(self) -> bool {
        matches!(self, Self::Header | Self::Trailer | Self::Crc | Self::Source | Self::Cut)
    }
}

impl std::fmt::Display for FedFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason why a file of recorded fragments cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FedFileError {
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// No fragment has a right CRC.
    #[error("no fragment with a right CRC-16 is found: the file holds no CMS FED fragments")]
    NoFragments,
    /// The fragments are those of another front-end driver.
    #[error("the fragments are those of FED {found}, not of FED {expected}")]
    Source {
        /// The requested source id.
        expected: u16,
        /// The source id of the first good fragment.
        found: u16,
    },
    /// A fragment is damaged, and the experiment file refuses such files.
    #[error("the file is damaged at byte {offset}: {fault}; `damaged = \"use\"` would use its good fragments")]
    Damaged {
        /// Offset of the first damaged fragment.
        offset: u64,
        /// Its defect.
        fault: FedFault,
    },
    /// The file cannot be read.
    #[error("cannot read: {0}")]
    Read(#[from] io::Error),
}

/// Finds all fragments of a file, good and bad: together they are the file, byte for byte. The last one may be cut off,
/// or padding.
///
/// Memory: a window of 1 MiB and 40 bytes per fragment.
///
/// # Errors
/// If the file cannot be read, is empty, or holds no good fragment at all.
pub fn walk(reader: impl Read + Seek) -> Result<Vec<FedEntry>, FedFileError> {
    walk_window(&mut Window::new(reader)?, None)
}

/// Finds all fragments as [`walk`] does, and keeps the window. The fragments must belong to `source` if that is known.
pub(crate) fn walk_window<R: Read + Seek>(
    window: &mut Window<R>,
    source: Option<u16>,
) -> Result<Vec<FedEntry>, FedFileError> {
    let size = window.size();
    if size == 0 {
        return Err(FedFileError::Empty);
    }
    let words = size - size % STEP;
    let mut walker = Walker { window, size: words, source, next_id: None, no_good_before: 0, entries: Vec::new() };
    if words == 0 {
        return Err(FedFileError::NoFragments);
    }
    let mut at = 0;
    while at < words {
        let (end, good) = walker.find_end(at)?;
        if let Some(expected) = source.filter(|_| at == 0 && good)
            && walker.header(at)?.source_id != expected
        {
            return Err(FedFileError::Source { expected, found: walker.header(at)?.source_id });
        }
        walker.record(at, end, good)?;
        at = end;
    }
    walker.classify_end()?;
    walker.add_part_of_word(size);
    let mut entries = walker.entries;
    number(&mut entries);
    Ok(entries)
}

struct Walker<'a, R> {
    window: &'a mut Window<R>,
    /// Size of the whole words of the file, in bytes.
    size: u64,
    /// The source id of the first good fragment.
    source: Option<u16>,
    /// The next expected level-1 id.
    next_id: Option<u32>,
    /// Offset before which no good fragment begins: a second search would find nothing.
    no_good_before: u64,
    entries: Vec<FedEntry>,
}

impl<R: Read + Seek> Walker<'_, R> {
    /// The end of the fragment at `at`, and whether its CRC is right.
    fn find_end(&mut self, at: u64) -> Result<(u64, bool), FedFileError> {
        if at >= self.no_good_before {
            if let Some(end) = self.search(at)? {
                return Ok((end, true));
            }
            if self.source.is_none() {
                return Err(FedFileError::NoFragments);
            }
            if self.next_id.is_none() {
                self.next_id = Some(self.first_id(at)?);
            }
        }
        Ok((self.divide(at, self.no_good_before)?, false))
    }

    /// The end of the fragment at `at` if it is good; otherwise stores the offset of the next good one.
    fn search(&mut self, at: u64) -> io::Result<Option<u64>> {
        let limit = self.size.min(at + LONGEST);
        let mut last = at + STEP;
        while last + STEP <= limit {
            let word = self.window.word(last)?;
            let end = last + STEP;
            last = end;
            let length = u64::from(Trailer::from_word(word).words) * STEP;
            if tag(word) != TRAILER_TAG || length < 2 * STEP || length > end - at {
                continue;
            }
            let begin = end - length;
            if begin == at && self.is_good(begin, end, None)? {
                return Ok(Some(end));
            }
            if begin > at && self.is_good(begin, end, self.source)? {
                self.source = self.source.or(Some(self.header(begin)?.source_id));
                self.no_good_before = begin;
                return Ok(None);
            }
        }
        self.no_good_before = limit;
        Ok(None)
    }

    /// The level-1 id of the bad fragment at the beginning of the file: one less than that of the first good one. If
    /// several bad fragments precede the first good one, the id in the header.
    fn first_id(&mut self, at: u64) -> io::Result<u32> {
        let (own, good) = (self.header(at)?, self.no_good_before);
        let after = self.header(good)?.level1_id;
        let before = after.wrapping_sub(own.level1_id) % ID_MODULUS;
        let is_told = !self.is_one(at, good)? && Some(own.source_id) == self.source && (1..=MAX_GAP).contains(&before);
        Ok(if is_told { own.level1_id } else { after.wrapping_sub(1) % ID_MODULUS })
    }

    /// Returns true if a fragment with a right CRC, and of `source` if that is known, lies between a header and a
    /// trailer.
    fn is_good(&mut self, begin: u64, end: u64, source: Option<u16>) -> io::Result<bool> {
        let first = self.window.word(begin)?;
        let found = FedHeader::from_word(first).source_id;
        Ok(tag(first) == HEADER_TAG && source.is_none_or(|wanted| wanted == found) && self.crc_is_right(begin, end)?)
    }

    fn crc_is_right(&mut self, begin: u64, end: u64) -> io::Result<bool> {
        let last = self.window.word(end - STEP)?;
        let mut crc = Crc16::new();
        self.window.each(begin, end - STEP, |piece| crc.update(piece))?;
        Ok(crc.finish(last) == Trailer::from_word(last).crc)
    }

    /// Returns true if a trailer with the length from `begin` is before `end`.
    fn is_one(&mut self, begin: u64, end: u64) -> io::Result<bool> {
        let word = self.window.word(end - STEP)?;
        Ok(tag(word) == TRAILER_TAG && u64::from(Trailer::from_word(word).words) * STEP == end - begin)
    }

    /// The end of the bad fragment at `at`, given that nothing before `until` is good.
    fn divide(&mut self, at: u64, until: u64) -> io::Result<u64> {
        let Some(after) = self.next_id.map(successor) else {
            return Ok(until);
        };
        // Only one fragment lies here if the next good one is the very next, or if the last trailer points back to `at`.
        let is_next = until < self.size && self.header(until)?.level1_id == after;
        if is_next || self.is_one(at, until)? {
            return Ok(until);
        }
        let mut begin = at + 2 * STEP;
        while begin < until {
            if self.begins(begin, after)? {
                return Ok(begin);
            }
            begin += STEP;
        }
        Ok(until)
    }

    /// Returns true if a trailer ends and the header of the fragment with this level-1 id begins here.
    fn begins(&mut self, begin: u64, level1_id: u32) -> io::Result<bool> {
        let word = self.window.word(begin)?;
        let header = FedHeader::from_word(word);
        let fits = tag(word) == HEADER_TAG && header.level1_id == level1_id && Some(header.source_id) == self.source;
        Ok(fits && tag(self.window.word(begin - STEP)?) == TRAILER_TAG)
    }

    fn record(&mut self, at: u64, end: u64, good: bool) -> io::Result<()> {
        let header = self.header(at)?;
        let foreign = *self.source.get_or_insert(header.source_id) != header.source_id;
        let fault = match good {
            true => foreign.then_some(FedFault::Source),
            false => Some(self.classify_fault(at, end, header)?),
        };
        // The id of a damaged or foreign fragment means nothing: it counts as the one that was due.
        let known = fault.is_none().then_some(header.level1_id);
        self.next_id = known.or(self.next_id).map(successor);
        self.entries.push(FedEntry {
            event: None,
            offset: at,
            length: (end - at) as u32,
            level1_id: header.level1_id,
            bunch_crossing: header.bunch_crossing,
            source_id: header.source_id,
            fault,
        });
        Ok(())
    }

    fn classify_fault(&mut self, at: u64, end: u64, header: FedHeader) -> io::Result<FedFault> {
        let (first, last) = (self.window.word(at)?, self.window.word(end - STEP)?);
        let wrong_length = u64::from(Trailer::from_word(last).words) * STEP != end - at;
        let no_trailer = tag(last) != TRAILER_TAG;
        let strange_id = self.next_id.is_some_and(|next| next != header.level1_id);
        if tag(first) != HEADER_TAG || Some(header.source_id) != self.source || strange_id {
            return Ok(FedFault::Header);
        }
        Ok(if no_trailer || wrong_length { FedFault::Trailer } else { FedFault::Crc })
    }

    /// Finds padding after the last fragment, and whether the last fragment is cut off.
    fn classify_end(&mut self) -> io::Result<()> {
        for index in (0..self.entries.len()).rev() {
            let entry = self.entries[index];
            let last = self.window.word(entry.offset + u64::from(entry.length) - STEP)?;
            let has_trailer = tag(last) == TRAILER_TAG || Trailer::from_word(last).words * WORD as u32 == entry.length;
            if !entry.fault.is_some_and(FedFault::is_damage) || has_trailer {
                return Ok(());
            }
            let begins = tag(self.window.word(entry.offset)?) == HEADER_TAG && Some(entry.source_id) == self.source;
            if begins {
                self.entries[index].fault = Some(FedFault::Cut);
                return Ok(());
            }
            self.entries[index].fault = Some(FedFault::Padding);
        }
        Ok(())
    }

    /// Adds the bytes after the last whole word, up to `size`: to what is cut off before them, or as padding.
    fn add_part_of_word(&mut self, size: u64) {
        let length = (size - self.size) as u32;
        if length == 0 {
            return;
        }
        let last = self.entries.last_mut().filter(|last| matches!(last.fault, Some(FedFault::Cut | FedFault::Padding)));
        match last {
            Some(last) => last.length += length,
            None => self.entries.push(FedEntry {
                event: None,
                offset: self.size,
                length,
                level1_id: 0,
                bunch_crossing: 0,
                source_id: 0,
                fault: Some(FedFault::Padding),
            }),
        }
    }

    fn header(&mut self, at: u64) -> io::Result<FedHeader> {
        Ok(FedHeader::from_word(self.window.word(at)?))
    }
}

const fn successor(level1_id: u32) -> u32 {
    (level1_id + 1) % ID_MODULUS
}
