//! The heads of all events as columns, for analysis: numbers beside numbers, and the places of the payloads.

use crate::{
    EventFile, ReadError, Reader, checksum,
    input::Input,
    layout::{FragmentHeader, FragmentIdentity, identity_flags, padded},
    scan::{Head, Step},
};
use evb_core::Mark;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Events as columns: one entry for each event in those of the event, one for each fragment in the others.
///
/// The fragments of an event are in the order of their sources.
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
    /// The events. Of an event that is stored more than once, the first copy with all fragments, or else the first copy.
    pub events: Columns,
    /// Fragments that were set apart, each as a record of its own, file by file.
    pub apart: Columns,
    /// Further copies of events, which are left out.
    pub duplicates: u64,
    /// Events left out because their headers changed, as far as an index names them; verify tells more.
    pub lost: u64,
}

/// Reads the heads of all events of the files of a run. Payloads are not read, and so not checked:
/// [`Columns::changed`] does that.
///
/// # Errors
/// A file cannot be read, or is no event file.
pub fn read_columns<P: AsRef<Path>>(paths: &[P]) -> Result<EventColumns, ReadError> {
    let mut read = EventColumns::default();
    for path in paths {
        let mut reader = Reader::open(path)?;
        let columns = if reader.is_apart() { &mut read.apart } else { &mut read.events };
        read.lost += columns.append(&mut reader, 0)?.lost;
    }
    read.duplicates = read.events.arrange();
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
        ends.push(if reader.is_apart() { *offset } else { columns.append(&mut reader, *offset)?.end });
    }
    Ok((columns, ends))
}

/// What was read of a file.
struct Appended {
    /// Offset behind the last whole event.
    end: u64,
    /// Events in ranges that are damaged.
    lost: u64,
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
        let mut inputs: Vec<Option<Input<EventFile>>> = self.files.iter().map(|_| None).collect();
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

    /// Appends the events of a file from this offset on, in the order of writing.
    fn append(&mut self, reader: &mut Reader, offset: u64) -> Result<Appended, ReadError> {
        let file = self.files.len() as u32;
        self.files.push(reader.path().to_path_buf());
        let mut appended = Appended { end: reader.start.max(offset), lost: 0 };
        while let Some(step) = reader.step(appended.end).map_err(|error| reader.error(error))? {
            match &step {
                Step::Event(head) => self.push(head, file),
                Step::Lost(range) => {
                    appended.lost += range.events.len() as u64;
                    // What the file ends with may be an event that is being written.
                    if range.tail {
                        break;
                    }
                }
            }
            appended.end = step.end();
        }
        Ok(appended)
    }

    fn push(&mut self, head: &Head, file: u32) {
        self.event.push(head.event.id.0);
        self.file.push(file);
        self.complete.push(u8::from(head.complete));
        self.triggered.push(head.event.triggered.unwrap_or(0));
        self.source_time.push(head.event.source_time.unwrap_or(0));
        let mut offset = head.payload_offset;
        let located = head.fragments.iter().map(|(fragment, identity)| {
            let located = (fragment, identity, offset);
            offset += padded(u64::from(fragment.length));
            located
        });
        match head.fragments.is_sorted_by_key(|(fragment, _)| fragment.source) {
            true => located.for_each(|located| self.push_fragment(located)),
            false => {
                let mut sorted: Vec<_> = located.collect();
                sorted.sort_by_key(|(fragment, ..)| fragment.source);
                sorted.into_iter().for_each(|located| self.push_fragment(located));
            }
        }
        self.fragments_end.push(self.source.len() as u64);
    }

    /// Appends a fragment whose payload is at this offset.
    fn push_fragment(&mut self, (fragment, identity, offset): (&FragmentHeader, &FragmentIdentity, u64)) {
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

    /// Puts the events into the order of their ids, and keeps the best copy of each. Returns the number of the others.
    fn arrange(&mut self) -> u64 {
        if self.event.is_sorted_by(|event, next| event < next) {
            return 0;
        }
        let mut order: Vec<_> = (0..self.event.len()).collect();
        order.sort_by_key(|&event| (self.event[event], self.complete[event] == 0));
        order.dedup_by_key(|event| self.event[*event]);
        let duplicates = (self.event.len() - order.len()) as u64;
        self.take_events(&order);
        duplicates
    }

    /// Keeps these events, in this order.
    fn take_events(&mut self, order: &[usize]) {
        let end = |event: usize| self.fragments_end[event] as usize;
        let fragments = |event: usize| event.checked_sub(1).map_or(0, end)..end(event);
        let of_events: Vec<usize> = order.iter().flat_map(|&event| fragments(event)).collect();
        let counts = order.iter().map(|&event| fragments(event).len() as u64);
        let ends = counts.scan(0, |end, count| {
            *end += count;
            Some(*end)
        });
        let ends: Vec<u64> = ends.collect();
        self.fragments_end = ends;
        let Self { event, file, complete, triggered, source_time, .. } = self;
        [event, triggered, source_time].into_iter().for_each(|column| take(column, order));
        take(file, order);
        take(complete, order);
        self.take_fragments(&of_events);
    }

    /// Keeps these fragments, in this order.
    fn take_fragments(&mut self, order: &[usize]) {
        let Self { source, status, offset, length, checksum, stored_checksum, counter, mark, known, apart, .. } = self;
        [offset, counter].into_iter().for_each(|column| take(column, order));
        [length, checksum, stored_checksum, mark].into_iter().for_each(|column| take(column, order));
        [status, known, apart].into_iter().for_each(|column| take(column, order));
        take(source, order);
    }
}

/// Keeps these entries of a column, in this order.
fn take<T: Copy>(column: &mut Vec<T>, order: &[usize]) {
    *column = order.iter().map(|&entry| column[entry]).collect();
}

/// The open file, which is opened at its first use.
fn input<'a>(slot: &'a mut Option<Input<EventFile>>, path: &Path) -> io::Result<&'a mut Input<EventFile>> {
    if slot.is_none() {
        *slot = Some(Input::new(EventFile::open(path)?)?);
    }
    Ok(slot.as_mut().expect("it was just opened"))
}
