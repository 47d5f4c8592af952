//! Export of fragments from event files: the payload bytes, and a table of their headers.

mod csv;
mod raw;

pub use csv::export_csv;
pub use raw::export_raw;

use crate::{
    ReadError,
    merge::{Merge, MergeInput},
};
use std::path::Path;

/// Counts of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// Events that were exported.
    pub events: u64,
    /// Fragments that were exported.
    pub fragments: u64,
    /// Their payload bytes.
    pub payload_bytes: u64,
    /// Further copies of events that are stored more than once.
    pub duplicates: u64,
    /// Exported events whose payload changed since it was written, as far as payloads were read; verify names them.
    pub damaged: u64,
    /// Events left out because their headers changed; verify names them.
    pub lost: u64,
}

fn merge<P: AsRef<Path>>(paths: &[P]) -> Result<Merge, ReadError> {
    let input = |path: &P| MergeInput { path: path.as_ref().to_path_buf(), trust_index: true };
    Merge::new(paths.iter().map(input).collect())
}
