//! The reader: opens a file in any state, and returns its events.

use crate::{
    Event, EventFile, Found, LostRange, Metadata, ReadError, checksum,
    index::Index,
    input::Input,
    layout::{
        ALIGNMENT, FILE_HEADER_BYTES, FILE_MAGIC, FOOTER_BYTES, FORMAT_VERSION, FileHeader, Footer, INDEX_ENTRY_BYTES,
        INDEX_HEADER_BYTES, IndexHeader, MAX_EVENTS_PER_FILE, MAX_METADATA_BYTES, OLDEST_VERSION, Tag, padded,
    },
    scan::Step,
};
use evb_core::EventId;
use std::{
    io::{self, Read, Seek},
    path::{Path, PathBuf},
};

/// Reads one event file: closed, cut off by a crash, or damaged.
///
/// Memory is bounded by the largest event, plus 16 bytes for each event after the first search by id.
pub struct Reader<R = EventFile> {
    path: PathBuf,
    pub(crate) input: Input<R>,
    metadata: Option<Metadata>,
    version: Option<u32>,
    /// True if the file header is intact.
    header_found: bool,
    header_intact: bool,
    ends_in_header: bool,
    /// The tag of the file; `None` until a block of the file shows it.
    pub(crate) tag: Option<Tag>,
    /// Offset of the first event.
    pub(crate) start: u64,
    /// End of the last event; without a footer, the end of the file.
    pub(crate) end: u64,
    pub(crate) has_footer: bool,
    pub(crate) index: Option<Index>,
    /// Ids and offsets in the order of ids, made on first use.
    table: Option<Vec<(EventId, u64)>>,
    /// True if `table` comes from a scan instead of the index.
    scanned: bool,
}

impl Reader<EventFile> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`ReadError::Io`]; [`ReadError::NotAnEventFile`] if neither header nor any event near the start is recognised;
    /// [`ReadError::Version`]. A file that is damaged or cut off opens without an error.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let file = EventFile::open(path).map_err(|source| ReadError::Io { path: path.to_path_buf(), source })?;
        Self::new(file, path)
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads an event file from any seekable source; errors show `name`.
    ///
    /// # Errors
    /// Those of [`open`](Reader::open).
    pub fn new(source: R, name: impl Into<PathBuf>) -> Result<Self, ReadError> {
        let path = name.into();
        let input = Input::new(source).map_err(|source| ReadError::Io { path: path.clone(), source })?;
        let end = input.length();
        let mut reader = Self {
            path,
            input,
            metadata: None,
            version: None,
            header_found: false,
            header_intact: false,
            ends_in_header: false,
            tag: None,
            start: end,
            end,
            has_footer: false,
            index: None,
            table: None,
            scanned: false,
        };
        let header = reader.read_header().map_err(|e| reader.error(e))?;
        let known = OLDEST_VERSION..=FORMAT_VERSION;
        if let Some(FileHeader { version, .. }) = header.filter(|header| !known.contains(&header.version)) {
            return Err(ReadError::Version { path: reader.path, found: version });
        }
        reader.read_footer().map_err(|e| reader.error(e))?;
        if header.is_none() && !reader.find_start().map_err(|e| reader.error(e))? {
            return Err(ReadError::NotAnEventFile { path: reader.path });
        }
        reader.index = reader.read_index().map_err(|e| reader.error(e))?;
        Ok(reader)
    }

    /// The path or name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.input.length()
    }

    /// The metadata of the file; `None` if they are damaged or cut off.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// Returns true if the file holds fragments that were set apart, and no events.
    pub fn is_apart(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.readout.is_some())
    }

    /// Version of the format of the file; `None` if its header is damaged.
    pub fn version(&self) -> Option<u32> {
        self.version
    }

    /// Returns true if file header and metadata have the right checksum.
    pub fn header_intact(&self) -> bool {
        self.header_intact
    }

    /// Returns true if the file ends before its metadata do, as when its writer was killed as it began it.
    pub(crate) fn ends_in_header(&self) -> bool {
        self.ends_in_header
    }

    /// Returns true if the file was closed, and its index and footer are intact.
    pub fn closed_cleanly(&self) -> bool {
        self.index.is_some()
    }

    /// All events from the start of the file on. No index is needed.
    pub fn events(&mut self) -> Events<'_, R> {
        Events { offset: self.start, reader: self }
    }

    /// The event with this id; the first one if there are several. A damaged event is not returned as [`Found::Event`].
    ///
    /// Without a usable index, or with one that proves wrong, the file is scanned once.
    ///
    /// # Errors
    /// [`ReadError::Io`].
    pub fn find(&mut self, id: EventId) -> Result<Option<Found>, ReadError> {
        let found = self.find_in_table(id)?;
        if matches!(found, Some(Found::Lost(_))) && !self.scanned {
            let table = self.scan_table()?;
            self.table = Some(table);
            return Ok(self.find_in_table(id)?.or(found));
        }
        Ok(found)
    }

    /// Number of events; none without an index, as in a file that is still written.
    pub fn count(&self) -> Option<u64> {
        self.index.as_ref().map(|index| index.len() as u64)
    }

    /// The event at this place in the order of writing, from 0; a lost range counts as one event without an index.
    /// Payloads before it are not read.
    ///
    /// # Errors
    /// [`ReadError::Io`].
    pub fn nth(&mut self, place: u64) -> Result<Option<Found>, ReadError> {
        if let Some(index) = &self.index {
            let place = usize::try_from(place).ok().filter(|place| *place < index.len());
            let entry = place.map(|place| index.get(place));
            return entry.map(|(id, offset)| self.event_at(offset, id)).transpose();
        }
        let mut offset = self.start;
        for _ in 0..place {
            match self.step(offset).map_err(|error| self.error(error))? {
                Some(step) => offset = step.end(),
                None => return Ok(None),
            }
        }
        Events { offset, reader: self }.next().transpose()
    }

    /// The last whole event within this number of bytes at the end of the file, which may still be written.
    ///
    /// # Errors
    /// [`ReadError::Io`].
    pub fn latest(&mut self, within: u64) -> Result<Option<Event>, ReadError> {
        let from = self.end.saturating_sub(within) / ALIGNMENT * ALIGNMENT;
        let mut latest = None;
        for found in (Events { offset: from.max(self.start), reader: self }) {
            if let Found::Event(event) = found? {
                latest = Some(event);
            }
        }
        Ok(latest)
    }

    /// The event at `offset`, which should have this id.
    pub(crate) fn event_at(&mut self, offset: u64, id: EventId) -> Result<Found, ReadError> {
        let found = match self.head_at(offset) {
            Ok(Some(head)) if head.event.id == id => self.read_payload(head),
            Ok(_) => Ok(Found::Lost(LostRange { offset, length: 0, events: vec![id], tail: false })),
            Err(error) => Err(error),
        };
        found.map_err(|error| self.error(error))
    }

    /// Ids and offsets of all events in the order of ids: from the index, or else from a scan.
    pub(crate) fn take_table(&mut self) -> Result<Vec<(EventId, u64)>, ReadError> {
        if let Some(table) = self.table.take() {
            return Ok(table);
        }
        let Some(index) = &self.index else { return self.scan_table() };
        let mut table: Vec<_> = index.iter().collect();
        table.sort_unstable();
        Ok(table)
    }

    /// Ids and offsets of all events in the order of ids, from a scan.
    pub(crate) fn scan_table(&mut self) -> Result<Vec<(EventId, u64)>, ReadError> {
        let (mut table, mut offset) = (Vec::new(), self.start);
        while let Some(step) = self.step(offset).map_err(|e| self.error(e))? {
            offset = step.end();
            if let Step::Event(head) = step {
                table.push((head.event.id, head.offset));
            }
        }
        table.sort_unstable();
        self.scanned = true;
        Ok(table)
    }

    pub(crate) fn error(&self, source: io::Error) -> ReadError {
        ReadError::Io { path: self.path.clone(), source }
    }

    fn find_in_table(&mut self, id: EventId) -> Result<Option<Found>, ReadError> {
        let table = self.take_table()?;
        let at = table.partition_point(|entry| entry.0 < id);
        let entry = table.get(at).copied().filter(|entry| entry.0 == id);
        self.table = Some(table);
        entry.map(|(id, offset)| self.event_at(offset, id)).transpose()
    }

    /// Reads header and metadata as far as they exist.
    fn read_header(&mut self) -> io::Result<Option<FileHeader>> {
        let Some(bytes) = self.input.array_at::<FILE_HEADER_BYTES>(0)? else {
            self.ends_in_header = true;
            return Ok(None);
        };
        let Some(header) = FileHeader::decode(&bytes) else { return Ok(None) };
        self.tag = Some(header.tag);
        self.version = Some(header.version);
        self.header_found = true;
        let start = FILE_HEADER_BYTES as u64 + padded(u64::from(header.metadata_length));
        self.ends_in_header = start > self.end;
        if header.metadata_length as usize > MAX_METADATA_BYTES || self.ends_in_header {
            return Ok(Some(header));
        }
        self.start = start;
        let mut block = vec![0; start as usize - FILE_HEADER_BYTES];
        self.input.read_at(FILE_HEADER_BYTES as u64, &mut block)?;
        let (metadata, padding) = block.split_at(header.metadata_length as usize);
        if checksum(metadata) == header.metadata_checksum && padding.iter().all(|&byte| byte == 0) {
            self.metadata = Metadata::from_json(metadata);
            self.header_intact = self.metadata.is_some();
        }
        Ok(Some(header))
    }

    fn read_footer(&mut self) -> io::Result<()> {
        let Some(offset) = self.end.checked_sub(FOOTER_BYTES as u64) else { return Ok(()) };
        let Some(bytes) = self.input.array_at::<FOOTER_BYTES>(offset)? else { return Ok(()) };
        let footer = Footer::decode(&bytes).filter(|footer| footer.index_offset <= offset);
        if let Some(footer) = footer.filter(|footer| *self.tag.get_or_insert(footer.tag) == footer.tag) {
            self.end = footer.index_offset;
            self.start = self.start.min(self.end);
            self.has_footer = true;
        }
        Ok(())
    }

    /// Searches for the first event of a file without a header. Returns false if this is not an event file.
    fn find_start(&mut self) -> io::Result<bool> {
        let limit = self.end.min((FILE_HEADER_BYTES + MAX_METADATA_BYTES) as u64 + ALIGNMENT);
        if let Some(start) = self.next_block(ALIGNMENT, limit)? {
            self.start = start;
            return Ok(true);
        }
        let mut magic = [0; FILE_MAGIC.len()];
        let known = self.bytes().min(magic.len() as u64) as usize;
        self.input.read_at(0, &mut magic[..known])?;
        self.start = self.end;
        Ok(self.has_footer || magic[..known] == FILE_MAGIC[..known])
    }

    fn read_index(&mut self) -> io::Result<Option<Index>> {
        if !self.has_footer {
            return Ok(None);
        }
        let Some(header) = self.index_header_at(self.end)? else { return Ok(None) };
        let length = self.bytes() - self.end;
        let expected = (INDEX_HEADER_BYTES + FOOTER_BYTES) as u64 + header.events * INDEX_ENTRY_BYTES as u64;
        if length != expected {
            return Ok(None);
        }
        let mut bytes = vec![0; header.events as usize * INDEX_ENTRY_BYTES];
        self.input.read_at(self.end + INDEX_HEADER_BYTES as u64, &mut bytes)?;
        if self.header_found {
            return Ok(Index::from_bytes(bytes, &header, self.start, self.end));
        }
        // Where the header is damaged, the index alone knows where the first event was.
        let index = Index::from_bytes(bytes, &header, FILE_HEADER_BYTES as u64, self.end);
        self.start = index.iter().flat_map(Index::iter).map(|entry| entry.1).next().unwrap_or(self.start);
        Ok(index)
    }

    /// The index header at `offset`, if there is one of this file.
    pub(crate) fn index_header_at(&mut self, offset: u64) -> io::Result<Option<IndexHeader>> {
        let Some(bytes) = self.input.array_at::<INDEX_HEADER_BYTES>(offset)? else { return Ok(None) };
        let header = IndexHeader::decode(&bytes);
        Ok(header.filter(|h| self.tag == Some(h.tag) && h.events <= MAX_EVENTS_PER_FILE as u64))
    }
}

/// The events of one file, in the order of writing, with damaged events and lost ranges in their places.
pub struct Events<'a, R> {
    pub(crate) reader: &'a mut Reader<R>,
    offset: u64,
}

impl<R: Read + Seek> Events<'_, R> {
    /// Current position, in bytes from the start of the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn advance(&mut self) -> io::Result<Option<Found>> {
        let Some(step) = self.reader.step(self.offset)? else { return Ok(None) };
        self.offset = step.end();
        match step {
            Step::Event(head) => self.reader.read_payload(head).map(Some),
            Step::Lost(range) => Ok(Some(Found::Lost(range))),
        }
    }
}

impl<R: Read + Seek> Iterator for Events<'_, R> {
    type Item = Result<Found, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.advance().map_err(|error| {
            // An error of the system would come again at the same place, without end.
            self.offset = self.reader.end;
            self.reader.error(error)
        });
        found.transpose()
    }
}
