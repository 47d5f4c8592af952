//! One event file under construction: buffering, closing, and truncation to the last whole event after an error.

use crate::{
    EventInfo, FragmentRef, Status, WriteError, checksum,
    index::Index,
    layout::{
        EVENT_HEADER_BYTES, EventHeader, FILE_HEADER_BYTES, FRAGMENT_HEADER_BYTES, FileHeader, Footer, FragmentHeader,
        FragmentIdentity, MAX_EVENTS_PER_FILE, MAX_FRAGMENTS, Tag, closing_bytes, encode_trailer, padded, padding,
        seal_event_head, trailer_bytes,
    },
    sink::{Sink, Storage, write_all},
    waiting::{BUFFER_BYTES, Waiting},
};
use bytes::Bytes;
use std::{
    io::{self, IoSlice},
    path::{Path, PathBuf},
};

// The longest head and the longest trailer each fit into the empty buffer.
const _: () = assert!(BUFFER_BYTES >= EVENT_HEADER_BYTES + MAX_FRAGMENTS * FRAGMENT_HEADER_BYTES);
const _: () = assert!(BUFFER_BYTES >= trailer_bytes(MAX_FRAGMENTS));

/// One file under construction.
pub(crate) struct OpenFile {
    path: PathBuf,
    sink: Box<dyn Sink>,
    tag: Tag,
    waiting: Waiting,
    index: Index,
    /// Bytes handed to the kernel.
    written: u64,
    /// Offset of the next event; between calls, `written` and what waits end here.
    end: u64,
    /// Offset of the first event.
    start: u64,
    /// Events not yet handed to the kernel.
    buffered: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Closed,
    /// An error left bytes in the file that could not be removed.
    Torn,
}

impl OpenFile {
    /// Creates `path` and writes the header at once, so that a file left by a crash identifies itself.
    pub(crate) fn create(storage: &mut dyn Storage, path: PathBuf, metadata: &[u8]) -> Result<Self, WriteError> {
        Self::begin(storage, path, metadata, Waiting::new(), Index::for_writing())
    }

    /// Replaces a closed file by a new one and keeps the buffers.
    pub(crate) fn succeed(
        &mut self,
        storage: &mut dyn Storage,
        path: PathBuf,
        metadata: &[u8],
    ) -> Result<(), WriteError> {
        let (waiting, mut index) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.index));
        index.clear();
        *self = Self::begin(storage, path, metadata, waiting, index)?;
        Ok(())
    }

    fn begin(
        storage: &mut dyn Storage,
        path: PathBuf,
        metadata: &[u8],
        waiting: Waiting,
        index: Index,
    ) -> Result<Self, WriteError> {
        let mut sink = storage.create(&path).map_err(|source| create_error(&path, source))?;
        let header = FileHeader::encode(metadata);
        let tag = FileHeader::decode(&header).expect("a header that was just made").tag;
        let mut head = [&header, metadata].concat();
        head.resize(FILE_HEADER_BYTES + padded(metadata.len() as u64) as usize, 0);
        let (start, mut written) = (head.len() as u64, 0);
        if let Err(source) = write_all(sink.as_mut(), &mut [IoSlice::new(&head)], &mut written) {
            // A file without its header is of no use to anybody, and would be in the way of the next attempt.
            let _ = storage.remove(&path);
            return Err(WriteError::Write { path, needed: start, lost: 0, source });
        }
        Ok(Self { path, sink, tag, waiting, index, written, end: start, start, buffered: 0, state: State::Open })
    }

    /// Appends one event whose record takes `length` bytes.
    pub(crate) fn append(
        &mut self,
        event: EventInfo,
        length: u64,
        fragments: &[FragmentRef<'_>],
    ) -> Result<(), WriteError> {
        if self.state != State::Open {
            return Err(WriteError::Torn { path: self.path.clone() });
        }
        // Whole events only reach the kernel where that is possible: a crash then leaves no torn one.
        if !self.waiting.has_room_for(length) {
            self.flush()?;
        }
        let target = self.end + length;
        self.put_event(event, length, fragments).map_err(|source| self.cut_back(target, source))?;
        self.index.push(event.id, self.end);
        self.end = target;
        self.buffered = if self.waiting.is_empty() { 0 } else { self.buffered + 1 };
        Ok(())
    }

    /// Hands everything to the kernel.
    pub(crate) fn flush(&mut self) -> Result<(), WriteError> {
        self.hand_over().map_err(|source| self.cut_back(self.end, source))?;
        self.buffered = 0;
        Ok(())
    }

    /// Writes index and footer. If they do not fit, the file stays open, and is valid without them.
    pub(crate) fn close(&mut self) -> Result<(), WriteError> {
        match self.state {
            State::Closed => return Ok(()),
            State::Torn => return Err(WriteError::Torn { path: self.path.clone() }),
            State::Open => self.flush()?,
        }
        let target = self.closed_length();
        self.put_closing().map_err(|source| self.cut_back(target, source))?;
        self.state = State::Closed;
        Ok(())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    pub(crate) fn events(&self) -> usize {
        self.index.len()
    }

    /// Events not yet handed to the kernel.
    pub(crate) fn buffered(&self) -> usize {
        self.buffered
    }

    /// Bytes handed to the kernel.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Returns true if another record of `length` bytes would make the closed file longer than `limit`, or too long to
    /// index.
    pub(crate) fn is_full_for(&self, length: u64, limit: u64) -> bool {
        let next = self.closed_length() + length + (closing_bytes(1) - closing_bytes(0));
        self.events() > 0 && (next > limit || self.events() == MAX_EVENTS_PER_FILE)
    }

    /// Offset of the next event, and number of events before it.
    pub(crate) fn place(&self) -> (u64, usize) {
        (self.end, self.events())
    }

    /// Removes the events after the first `events`, which end at `end`, from what waits and from the file.
    pub(crate) fn go_back(&mut self, (end, events): (u64, usize)) -> Result<(), WriteError> {
        while self.events() > events {
            self.index.pop();
            self.buffered = self.buffered.saturating_sub(1);
        }
        self.end = end;
        self.waiting.truncate(end.saturating_sub(self.written) as usize);
        if self.written > end {
            (self.written, self.buffered) = (end, 0);
            self.sink.truncate(end).map_err(|source| {
                self.state = State::Torn;
                WriteError::Write { path: self.path.clone(), needed: 0, lost: 0, source }
            })?;
        }
        Ok(())
    }

    fn closed_length(&self) -> u64 {
        self.end + closing_bytes(self.events())
    }

    fn put_event(&mut self, event: EventInfo, length: u64, fragments: &[FragmentRef<'_>]) -> io::Result<()> {
        let complete = fragments.iter().all(|fragment| fragment.status == Status::Good && fragment.apart.is_none());
        let own = self.waiting.own();
        let at = own.len();
        EventHeader::encode(event.id, length, self.tag, fragments.len() as u16, complete, own);
        for fragment in fragments {
            fragment_header(fragment).encode(own);
        }
        let head_checksum = seal_event_head(&mut own[at..]);
        for fragment in fragments {
            self.put(fragment.bytes)?;
        }
        if !self.waiting.has_room_for(trailer_bytes(fragments.len()) as u64) {
            self.hand_over()?;
        }
        encode_trailer(event, head_checksum, fragments.iter().map(fragment_identity), self.waiting.own());
        // A part of such an event is in the file already: the rest does not wait for other events.
        if length > BUFFER_BYTES as u64 { self.hand_over() } else { Ok(()) }
    }

    fn put(&mut self, bytes: &Bytes) -> io::Result<()> {
        if !self.waiting.has_room_for(padded(bytes.len() as u64)) {
            self.hand_over()?;
        }
        self.waiting.add(bytes);
        self.waiting.own().extend_from_slice(&[0; 8][..padding(bytes.len())]);
        Ok(())
    }

    fn put_closing(&mut self) -> io::Result<()> {
        let header = self.index.header(self.tag).encode();
        let footer = Footer { index_offset: self.end, tag: self.tag }.encode();
        let mut parts = [&header, self.index.bytes(), &footer].map(IoSlice::new);
        write_all(self.sink.as_mut(), &mut parts, &mut self.written)
    }

    fn hand_over(&mut self) -> io::Result<()> {
        write_all(self.sink.as_mut(), &mut self.waiting.parts(), &mut self.written)?;
        self.waiting.clear();
        Ok(())
    }

    /// Handles a write error on the way to a file of `target` bytes: forgets the events that were not written whole,
    /// and truncates the file to the end of the last whole event.
    fn cut_back(&mut self, target: u64, source: io::Error) -> WriteError {
        let mut lost = 0;
        while self.end > self.written {
            self.end = self.index.pop().map_or(self.start, |(_, offset)| offset);
            lost += 1;
        }
        self.waiting.clear();
        self.buffered = 0;
        match self.sink.truncate(self.end) {
            Ok(()) => self.written = self.end,
            Err(_) => self.state = State::Torn,
        }
        WriteError::Write { path: self.path.clone(), needed: target - self.end, lost, source }
    }
}

/// Bytes of an event's record.
pub(crate) fn record_bytes(fragments: &[FragmentRef<'_>]) -> u64 {
    let payload: u64 = fragments.iter().map(|fragment| padded(fragment.bytes.len() as u64)).sum();
    let head = EVENT_HEADER_BYTES + fragments.len() * FRAGMENT_HEADER_BYTES;
    (head + trailer_bytes(fragments.len())) as u64 + payload
}

fn fragment_header(fragment: &FragmentRef<'_>) -> FragmentHeader {
    // Only a good fragment's checksum is known to fit its bytes.
    let stored_checksum = match fragment.status {
        Status::Good => fragment.checksum,
        _ => checksum(fragment.bytes),
    };
    FragmentHeader {
        source: fragment.source,
        status: fragment.status,
        length: fragment.bytes.len() as u32,
        checksum: fragment.checksum,
        stored_checksum,
    }
}

const fn fragment_identity(fragment: &FragmentRef<'_>) -> FragmentIdentity {
    FragmentIdentity { counter: fragment.counter, mark: fragment.mark, apart: fragment.apart }
}

fn create_error(path: &Path, source: io::Error) -> WriteError {
    let path = path.to_path_buf();
    match source.kind() {
        io::ErrorKind::AlreadyExists => WriteError::Exists { path },
        _ => WriteError::Write { path, needed: FILE_HEADER_BYTES as u64, lost: 0, source },
    }
}
