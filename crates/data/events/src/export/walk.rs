//! The walk through whole events, which all exports of payloads share.

use super::{ExportFiles, ExportSummary, merge};
use crate::{Event, Found, ReadError};
use evb_core::{EventId, SourceId};
use std::path::{Path, PathBuf};

/// A whole event of an export, and what is known beside it.
#[derive(Clone, Copy, Debug)]
pub struct StoredEvent<'a> {
    /// The event, with the bytes as they are now.
    pub event: &'a Event,
    /// The sources whose bytes changed after they were written.
    pub changed: &'a [SourceId],
    /// Index of the builder that stored it; `None` if the metadata of its file are damaged, and in a file of fragments
    /// that were set apart.
    pub builder: Option<u16>,
    /// True if this is a record of fragments that were set apart: its id is no number of an event.
    pub is_apart: bool,
}

/// Calls `visit` with each event of the files, in the order of ids; then with each record of fragments that were set
/// apart, file by file. Of an event that is stored more than once the best copy is taken.
///
/// Memory is bounded by the two largest events, and by 16 bytes for each event of the files whose id ranges overlap.
///
/// # Errors
/// [`ReadError`] if a file cannot be read at all, and the errors of `visit`. Damaged and lost events are counted.
pub fn visit_events<P: AsRef<Path>, E: From<ReadError>>(
    paths: &[P],
    mut visit: impl FnMut(&StoredEvent<'_>) -> Result<(), E>,
) -> Result<ExportSummary, E> {
    let (files, mut summary) = (ExportFiles::sort(paths)?, ExportSummary::default());
    let mut put = |stored: &StoredEvent<'_>, summary: &mut ExportSummary| -> Result<(), E> {
        visit(stored)?;
        count(stored, summary);
        Ok(())
    };
    best_copies(&files.events, false, &mut summary, &mut put)?;
    // Records of separate files have numbers of their own.
    for path in files.apart {
        best_copies(&[path], true, &mut summary, &mut put)?;
    }
    Ok(summary)
}

fn count(stored: &StoredEvent<'_>, summary: &mut ExportSummary) {
    let fragments = stored.event.fragments.len() as u64;
    let kind = if stored.is_apart { &mut summary.apart } else { &mut summary.fragments };
    *kind += fragments;
    summary.payload_bytes += stored.event.payload_bytes();
}

/// A copy of an event.
struct Copy {
    id: EventId,
    builder: Option<u16>,
    found: Found,
}

/// Calls `put` with each event in the order of ids; of copies with the best one. Counts events, copies and damage.
pub(super) fn best_copies<E: From<ReadError>>(
    paths: &[PathBuf],
    is_apart: bool,
    summary: &mut ExportSummary,
    put: &mut impl FnMut(&StoredEvent<'_>, &mut ExportSummary) -> Result<(), E>,
) -> Result<(), E> {
    let (mut merge, mut best) = (merge(paths)?, None::<Copy>);
    while let Some(located) = merge.next()? {
        let reader = merge.reader(located);
        let found = reader.event_at(located.offset, located.id)?;
        let builder = reader.metadata().filter(|_| !is_apart).map(|metadata| metadata.builder);
        let copy = Copy { id: located.id, builder, found };
        match &mut best {
            Some(other) if other.id == copy.id => {
                summary.duplicates += 1;
                if worth(&copy.found) > worth(&other.found) {
                    *other = copy;
                }
            }
            _ => best.replace(copy).map_or(Ok(()), |ended| put_best(&ended, is_apart, summary, put))?,
        }
    }
    best.map_or(Ok(()), |last| put_best(&last, is_apart, summary, put))
}

fn put_best<E>(
    copy: &Copy,
    is_apart: bool,
    summary: &mut ExportSummary,
    put: &mut impl FnMut(&StoredEvent<'_>, &mut ExportSummary) -> Result<(), E>,
) -> Result<(), E> {
    let (event, changed) = match &copy.found {
        Found::Event(event) => (event, &[][..]),
        Found::Damaged { event, sources } => (event, &sources[..]),
        Found::Lost(_) => {
            summary.lost += 1;
            return Ok(());
        }
    };
    summary.events += u64::from(!is_apart);
    summary.damaged += u64::from(!changed.is_empty());
    put(&StoredEvent { event, changed, builder: copy.builder, is_apart }, summary)
}

/// Rank of a copy of an event among its copies.
fn worth(found: &Found) -> u8 {
    match found {
        Found::Event(event) if event.complete => 3,
        Found::Event(_) => 2,
        Found::Damaged { .. } => 1,
        Found::Lost(_) => 0,
    }
}
