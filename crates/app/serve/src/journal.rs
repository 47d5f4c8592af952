//! The log that people read on the page: the last entries, numbered.

use serde::Serialize;
use std::collections::VecDeque;

/// Most entries that are kept.
const LONGEST: usize = 2000;

/// The weight of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// All is well.
    Info,
    /// Something is not as it should be, and the run goes on.
    Warning,
    /// Something failed.
    Error,
}

impl Level {
    /// The level with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "info" => Some(Self::Info),
            "warning" => Some(Self::Warning),
            "error" => Some(Self::Error),
            _ => None,
        }
    }
}

/// An entry.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    /// Number of the entry, from 1.
    pub(crate) seq: u64,
    /// Time in seconds since 1970.
    pub(crate) time: f64,
    /// Weight of the entry.
    pub(crate) level: Level,
    /// The node that it is about.
    pub(crate) node: Option<String>,
    /// Number of the run, if one went on.
    pub(crate) run: Option<u64>,
    /// The text.
    pub(crate) text: String,
}

/// The last entries.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: VecDeque<Entry>,
    written: u64,
}

impl Journal {
    /// Appends an entry, and gives it back with its number.
    pub(crate) fn write(&mut self, mut entry: Entry) -> Entry {
        self.written += 1;
        entry.seq = self.written;
        if self.entries.len() == LONGEST {
            self.entries.pop_front();
        }
        self.entries.push_back(entry.clone());
        entry
    }

    /// The entries behind this number, of this weight or more.
    pub(crate) fn after(&self, seq: u64, level: Level) -> Vec<Entry> {
        self.entries.iter().filter(|entry| entry.seq > seq && entry.level >= level).cloned().collect()
    }
}
