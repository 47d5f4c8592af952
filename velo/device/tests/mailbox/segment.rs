//! A segment in the memory of loom: the words of a mailbox, and the bytes of its messages.
//!
//! Bytes are copied without atomics, so they are cells here that fail when one thread uses what another may be writing. A
//! cell is a word: messages have whole words.

use crate::{
    fetch::{self, Span},
    layout as at,
    sync::{Half, Word},
};
use evb_velo::mailbox::{HEADER_AT, MESSAGE_AT};
use loom::cell::Cell;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// Bytes of a cell.
const CELL_BYTES: usize = 8;

/// The mailbox of a segment, for all threads of a case.
#[derive(Clone, Debug)]
pub(crate) struct Segment(Arc<Memory>);

#[derive(Debug)]
struct Memory {
    words: BTreeMap<usize, Word>,
    bell: Half,
    /// Never locked while another thread runs: the lock is there for the compiler, and loom does not see it.
    cells: Mutex<BTreeMap<usize, Cell<u64>>>,
}

impl Segment {
    /// An empty mailbox.
    pub(crate) fn new() -> Self {
        let slots = || (0..at::SLOTS).map(|slot| at::SLOTS_AT + slot * at::SLOT_BYTES);
        let in_slots = |from: usize, to: usize| slots().flat_map(move |slot| (slot + from..slot + to).step_by(8));
        let headers = slots().map(|slot| slot + HEADER_AT as usize);
        let words = headers.chain(in_slots(at::ENVELOPE_AT, at::SLOT_BYTES)).chain([at::TAIL_AT]);
        let rests = (at::RESTS_AT..at::RESTS_AT + at::SLOTS * at::REST_BYTES).step_by(CELL_BYTES);
        let cells = in_slots(MESSAGE_AT as usize, at::ENVELOPE_AT).chain(rests);
        Self(Arc::new(Memory {
            words: words.map(|at| (at, Word::default())).collect(),
            bell: Half::default(),
            cells: Mutex::new(cells.map(|at| (at, Cell::new(0))).collect()),
        }))
    }

    pub(crate) fn word(&self, at: usize) -> &Word {
        &self.0.words[&at]
    }

    pub(crate) fn half(&self, at: usize) -> &Half {
        assert_eq!(at, at::BELL_AT);
        &self.0.bell
    }

    pub(crate) fn fill(&self, at: usize, room: usize, spans: &[Span], skip: usize) -> usize {
        let mut bytes = vec![0; room];
        assert_eq!(fetch::copy_in(spans, skip, &mut bytes), room);
        let cells = self.0.cells.lock().unwrap();
        for (index, word) in bytes.as_chunks::<CELL_BYTES>().0.iter().enumerate() {
            cells[&(at + index * CELL_BYTES)].set(u64::from_ne_bytes(*word));
        }
        room
    }

    pub(crate) fn read(&self, at: usize, bytes: &mut [u8]) {
        let cells = self.0.cells.lock().unwrap();
        for (index, word) in bytes.as_chunks_mut::<CELL_BYTES>().0.iter_mut().enumerate() {
            *word = cells[&(at + index * CELL_BYTES)].get().to_ne_bytes();
        }
    }
}
