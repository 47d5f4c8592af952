//! The heads of all events as columns, for analysis: numbers beside numbers, and the places of the payloads.

use crate::{
    ExportSummary, ReadError, Reader, checksum,
    export::{FragmentEntry, fragments, visit_heads},
    input::Input,
    layout::identity_flags,
    scan::{Head, Step},
};
use evb_core::Mark;
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// Events as columns: one entry for each event in those of the event, one for each fragment in the others.
///
/// Events are in the order of their ids, and the fragments of an event in that of their sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The files that the events are in.
    pub files: Vec<PathBuf>,
    /// Number of the event. In files of fragments that were set apart, number of the record.
    pub event: Vec<u64>,
    /// Index of its file in [`files`](Self::files).
    pub file: Vec<u32>,
    /// 1 if every fragment was there and good, else 0.
    pub complete: Vec<u8>,
    /// Time of the trigger in nanoseconds since 1970-01-01 UTC; 0 if it is not known.
    pub triggered: Vec<u64>,
    /// Time of the trigger by the clock of the sources, in their unit; 0 if it is not known.
    pub source_time: Vec<u64>,
    /// Number of the fragment after the last one of the event: those of event n are from entry n - 1, or 0, to entry n.
    pub fragments_end: Vec<u64>,
    /// Source of the fragment.
    pub source: Vec<u16>,
    /// Its status, as in the file.
    pub status: Vec<u8>,
    /// Offset of its payload from the start of the file.
    pub offset: Vec<u64>,
    /// Length of its payload in bytes.
    pub length: Vec<u32>,
    /// The checksum that came with it.
    pub checksum: Vec<u32>,
    /// The checksum of the bytes that were stored.
    pub stored_checksum: Vec<u32>,
    /// The number that its source gave it; 0 if there is none.
    pub counter: Vec<u64>,
    /// Its mark; 0 if there is none.
    pub mark: Vec<u32>,
    /// Bit 0 is set if the counter is known, bit 1 if there is a mark.
    pub known: Vec<u8>,
    /// Why it belongs to no event, as in the file; 0 for a fragment of an event.
    pub apart: Vec<u8>,
}

/// The events of several files, and their fragments that belong to no event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventColumns {
    /// The events. Of an event that is stored more than once, the first whole copy.
    pub events: Columns,
    /// Fragments that were set apart, each as a record of its own.
    pub apart: Columns,
    /// What was read, and what was left out.
    pub summary: ExportSummary,
}

/// Reads the heads of all events of the files of a run. Payloads are not read, and so not checked:
/// [`Columns::changed`] does that.
///
/// # Errors
/// A file cannot be read, or is no event file.
pub fn read_columns<P: AsRef<Path>>(paths: &[P]) -> Result<EventColumns, ReadError> {
    let mut read = EventColumns::default();
    read.summary = visit_heads(paths, |head, file| {
        let columns = if file.is_apart { &mut read.apart } else { &mut read.events };
        match columns.event.last() == Some(&head.event.id.0) && !file.is_apart {
            false => columns.push(head, &file.file),
            true if head.complete && columns.complete.last() == Some(&0) => {
                columns.pop();
                columns.push(head, &file.file);
            }
            true => {}
        }
        Ok::<_, ReadError>(())
    })?;
    read.summary.events = read.events.event.len() as u64;
    read.summary.fragments = read.events.source.len() as u64;
    read.summary.payload_bytes = read.events.payload_bytes() + read.apart.payload_bytes();
    Ok(read)
}

/// Reads the heads of the events behind these offsets, file by file in the order of writing, and returns up to where each file was
/// read: a file that is still written has more events there later. 0 is the beginning of a file. Files of fragments that were set
/// apart have no events.
///
/// # Errors
/// A file cannot be read, or is no event file.
pub fn read_columns_behind<P: AsRef<Path>>(files: &[(P, u64)]) -> Result<(Columns, Vec<u64>), ReadError> {
    let (mut columns, mut ends) = (Columns::default(), Vec::with_capacity(files.len()));
    for (path, offset) in files {
        let mut reader = Reader::open(path)?;
        let mut offset = reader.start.max(*offset);
        let name = reader.path().to_string_lossy().into_owned();
        let is_apart = reader.is_apart();
        while let Some(step) = reader.step(offset).map_err(|error| reader.error(error))?.filter(|_| !is_apart) {
            match &step {
                Step::Event(head) => columns.push(head, &name),
                // What the file ends with may be an event that is being written.
                Step::Lost(range) if range.tail => break,
                Step::Lost(_) => {}
            }
            offset = step.end();
        }
        ends.push(offset);
    }
    Ok((columns, ends))
}

impl Columns {
    /// Bytes of all payloads.
    pub fn payload_bytes(&self) -> u64 {
        self.length.iter().map(|length| u64::from(*length)).sum()
    }

    /// Reads the payloads of these fragments in the order given.
    ///
    /// # Errors
    /// A file cannot be read.
    ///
    /// # Panics
    /// There is no such fragment.
    pub fn visit_payloads(
        &self,
        fragments: impl IntoIterator<Item = usize>,
        mut visit: impl FnMut(usize, &[u8]),
    ) -> Result<(), ReadError> {
        let mut inputs: Vec<Option<Input<File>>> = self.files.iter().map(|_| None).collect();
        let (mut payload, mut event) = (Vec::new(), 0);
        for fragment in fragments {
            event = self.event_of(fragment, event);
            let file = self.file[event] as usize;
            let path = &self.files[file];
            let read = input(&mut inputs[file], path).and_then(|input| {
                payload.resize(self.length[fragment] as usize, 0);
                input.read_at(self.offset[fragment], &mut payload)
            });
            read.map_err(|source| ReadError::Io { path: path.clone(), source })?;
            visit(fragment, &payload);
        }
        Ok(())
    }

    /// The event of a fragment. `near` is a guess: fragments are mostly asked for in order.
    fn event_of(&self, fragment: usize, near: usize) -> usize {
        let end = |event: usize| self.fragments_end.get(event).map_or(0, |end| *end as usize);
        let has = |event: usize| (event.checked_sub(1).map_or(0, end)..end(event)).contains(&fragment);
        let guess = [near, near + 1].into_iter().find(|event| has(*event));
        guess.unwrap_or_else(|| self.fragments_end.partition_point(|end| *end <= fragment as u64))
    }

    /// Reads the payloads of these fragments. Returns those whose bytes changed since they were stored.
    ///
    /// # Errors
    /// A file cannot be read.
    ///
    /// # Panics
    /// There is no such fragment.
    pub fn changed(&self, fragments: impl IntoIterator<Item = usize>) -> Result<Vec<usize>, ReadError> {
        let mut changed = Vec::new();
        self.visit_payloads(fragments, |fragment, payload| {
            if checksum(payload) != self.stored_checksum[fragment] {
                changed.push(fragment);
            }
        })?;
        Ok(changed)
    }

    fn push(&mut self, head: &Head, file: &str) {
        let file = self.index_of(file);
        self.event.push(head.event.id.0);
        self.file.push(file);
        self.complete.push(u8::from(head.complete));
        self.triggered.push(head.event.triggered.unwrap_or(0));
        self.source_time.push(head.event.source_time.unwrap_or(0));
        fragments(head).into_iter().for_each(|fragment| self.push_fragment(fragment));
        self.fragments_end.push(self.source.len() as u64);
    }

    fn push_fragment(&mut self, (fragment, identity, offset): FragmentEntry<'_>) {
        self.source.push(fragment.source.0);
        self.status.push(fragment.status as u8);
        self.offset.push(offset);
        self.length.push(fragment.length);
        self.checksum.push(fragment.checksum);
        self.stored_checksum.push(fragment.stored_checksum);
        self.counter.push(identity.counter.unwrap_or(0));
        self.mark.push(identity.mark.map_or(0, Mark::value));
        self.known.push(identity_flags(identity.counter, identity.mark));
        self.apart.push(identity.apart.map_or(0, |reason| reason as u8));
    }

    /// Takes the last event back.
    fn pop(&mut self) {
        let events = self.event.len().saturating_sub(1);
        let fragments = events.checked_sub(1).map_or(0, |last| self.fragments_end[last] as usize);
        let Self { files: _, event, file, complete, triggered, source_time, fragments_end, .. } = self;
        event.truncate(events);
        file.truncate(events);
        complete.truncate(events);
        triggered.truncate(events);
        source_time.truncate(events);
        fragments_end.truncate(events);
        let Self { source, status, offset, length, checksum, stored_checksum, counter, mark, known, apart, .. } = self;
        source.truncate(fragments);
        status.truncate(fragments);
        offset.truncate(fragments);
        length.truncate(fragments);
        checksum.truncate(fragments);
        stored_checksum.truncate(fragments);
        counter.truncate(fragments);
        mark.truncate(fragments);
        known.truncate(fragments);
        apart.truncate(fragments);
    }

    /// The index of a file. Few files are open at a time, the latest ones, so the search is short.
    fn index_of(&mut self, name: &str) -> u32 {
        let known = self.files.iter().rposition(|path| path.as_os_str() == name);
        known.unwrap_or_else(|| {
            self.files.push(PathBuf::from(name));
            self.files.len() - 1
        }) as u32
    }
}

/// The open file, which is opened at its first use.
fn input<'a>(slot: &'a mut Option<Input<File>>, path: &Path) -> io::Result<&'a mut Input<File>> {
    if slot.is_none() {
        *slot = Some(Input::new(File::open(path)?)?);
    }
    Ok(slot.as_mut().expect("it was just opened"))
}
