//! Export of fragments from event files: the payload bytes, and a table of their headers.

mod csv;
mod json;
mod payloads;
mod raw;
mod table;
mod walk;

pub use csv::export_csv;
pub use json::export_json;
pub use payloads::export_payloads;
pub use raw::{RAW_HEADER_BYTES, export_raw};
pub use walk::{StoredEvent, visit_events};

use crate::{
    ReadError, Reader,
    merge::{Merge, MergeInput},
};
use std::path::{Path, PathBuf};

/// Counts of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// Events that were exported.
    pub events: u64,
    /// Fragments that were exported.
    pub fragments: u64,
    /// Fragments that were set apart and exported.
    pub apart: u64,
    /// Files of fragments that were set apart, and are left out of this form.
    pub left_out: u64,
    /// Their payload bytes.
    pub payload_bytes: u64,
    /// Further copies of events that are stored more than once.
    pub duplicates: u64,
    /// Exported events whose payload changed since it was written, as far as payloads were read; verify names them.
    pub damaged: u64,
    /// Events left out because their headers changed; verify names them.
    pub lost: u64,
}

/// The files of an export: those of events, and those of fragments that were set apart, which no event has.
struct ExportFiles {
    events: Vec<PathBuf>,
    apart: Vec<PathBuf>,
}

impl ExportFiles {
    fn sort<P: AsRef<Path>>(paths: &[P]) -> Result<Self, ReadError> {
        let mut files = Self { events: Vec::new(), apart: Vec::new() };
        for path in paths {
            let is_apart = Reader::open(path)?.is_apart();
            let kind = if is_apart { &mut files.apart } else { &mut files.events };
            kind.push(path.as_ref().to_path_buf());
        }
        Ok(files)
    }
}

fn merge(paths: &[PathBuf]) -> Result<Merge, ReadError> {
    let input = |path: &PathBuf| MergeInput { path: path.clone(), trust_index: true };
    Merge::new(paths.iter().map(input).collect())
}
