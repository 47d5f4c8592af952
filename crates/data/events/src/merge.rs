//! Merge of the events of several files in the order of their ids. It holds no payloads and only the tables of files
//! that overlap.
//!
//! The files of one builder follow each other. A file's table of offsets is in memory only while the merge is between
//! its lowest and its highest id. So B builders need about B tables, of 16 bytes for each event.

use crate::{ReadError, Reader};
use evb_core::EventId;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    path::PathBuf,
};

/// A file to merge.
pub(crate) struct MergeInput {
    pub(crate) path: PathBuf,
    /// False if the index is known to be wrong: the file is then scanned.
    pub(crate) trust_index: bool,
}

/// The location of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Located {
    pub(crate) id: EventId,
    /// Number of the file in the order given.
    pub(crate) file: usize,
    pub(crate) offset: u64,
}

struct Cursor {
    reader: Reader,
    table: std::vec::IntoIter<(EventId, u64)>,
}

/// Walks through the events of several files in the order of id, file and offset.
pub(crate) struct Merge {
    inputs: Vec<MergeInput>,
    /// Files that are not reached yet, sorted by their lowest id; the last one is next.
    pending: Vec<(EventId, usize)>,
    cursors: BTreeMap<usize, Cursor>,
    heap: BinaryHeap<Reverse<Located>>,
    /// The file whose last event was returned: its reader is needed until the next call.
    exhausted: Option<usize>,
}

impl Merge {
    pub(crate) fn new(inputs: Vec<MergeInput>) -> Result<Self, ReadError> {
        let mut pending = Vec::new();
        for (file, input) in inputs.iter().enumerate() {
            if let Some(&(lowest, _)) = open(input)?.1.first() {
                pending.push((lowest, file));
            }
        }
        pending.sort_unstable_by_key(|&entry| Reverse(entry));
        Ok(Self { inputs, pending, cursors: BTreeMap::new(), heap: BinaryHeap::new(), exhausted: None })
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Result<Option<Located>, ReadError> {
        if let Some(file) = self.exhausted.take() {
            self.cursors.remove(&file);
        }
        self.reach()?;
        let Some(Reverse(located)) = self.heap.pop() else { return Ok(None) };
        if !self.push_next(located.file) {
            self.exhausted = Some(located.file);
        }
        Ok(Some(located))
    }

    /// The reader of the file of the last event from [`next`](Merge::next).
    pub(crate) fn reader(&mut self, located: Located) -> &mut Reader {
        &mut self.cursors.get_mut(&located.file).expect("the file of the last event is open").reader
    }

    /// Opens the files that begin at or before the next event.
    fn reach(&mut self) -> Result<(), ReadError> {
        while let Some(&(lowest, file)) = self.pending.last() {
            if self.heap.peek().is_some_and(|Reverse(next)| next.id < lowest) {
                break;
            }
            self.pending.pop();
            let (reader, table) = open(&self.inputs[file])?;
            self.cursors.insert(file, Cursor { reader, table: table.into_iter() });
            self.push_next(file);
        }
        Ok(())
    }

    /// Puts the next event of `file` into the heap; returns false if there is none.
    fn push_next(&mut self, file: usize) -> bool {
        let next = self.cursors.get_mut(&file).and_then(|cursor| cursor.table.next());
        next.map(|(id, offset)| self.heap.push(Reverse(Located { id, file, offset }))).is_some()
    }
}

type Table = Vec<(EventId, u64)>;

fn open(input: &MergeInput) -> Result<(Reader, Table), ReadError> {
    let mut reader = Reader::open(&input.path)?;
    let table = if input.trust_index { reader.take_table()? } else { reader.scan_table()? };
    Ok((reader, table))
}
