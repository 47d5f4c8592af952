//! The heads of all events in order, for the tables.

use super::{ExportFiles, ExportSummary, merge};
use crate::{
    ReadError,
    layout::{FragmentHeader, FragmentIdentity, padded},
    scan::Head,
};
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

/// The place of an event.
pub(super) struct EventFileRef<'a> {
    /// The builder that wrote the file; `None` if the metadata of the file are damaged.
    pub(super) builder: Option<u16>,
    /// Name of the file.
    pub(super) file: Cow<'a, str>,
    /// The file holds fragments that were set apart.
    pub(super) is_apart: bool,
}

/// Calls `visit` with the head of each event, in the order of ids; then with those of fragments that were set apart.
pub(super) fn visit_heads<P: AsRef<Path>, E: From<ReadError>>(
    paths: &[P],
    mut visit: impl FnMut(&Head, &EventFileRef<'_>) -> Result<(), E>,
) -> Result<ExportSummary, E> {
    let (files, mut summary) = (ExportFiles::sort(paths)?, ExportSummary::default());
    visit_files(&files.events, false, &mut summary, &mut visit)?;
    // Records of separate files have numbers of their own.
    for path in files.apart {
        visit_files(&[path], true, &mut summary, &mut visit)?;
    }
    Ok(summary)
}

fn visit_files<E: From<ReadError>>(
    paths: &[PathBuf],
    is_apart: bool,
    summary: &mut ExportSummary,
    visit: &mut impl FnMut(&Head, &EventFileRef<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let (mut merge, mut previous) = (merge(paths)?, None);
    while let Some(located) = merge.next()? {
        summary.duplicates += u64::from(previous.replace(located.id) == Some(located.id));
        let reader = merge.reader(located);
        let head = reader.head_at(located.offset).map_err(|error| reader.error(error))?;
        let Some(head) = head.filter(|head| head.event.id == located.id) else {
            summary.lost += 1;
            continue;
        };
        let builder = reader.metadata().filter(|_| !is_apart).map(|metadata| metadata.builder);
        visit(&head, &EventFileRef { builder, file: reader.path().to_string_lossy(), is_apart })?;
        let fragments = head.fragments.len() as u64;
        summary.payload_bytes += head.fragments.iter().map(|(fragment, _)| u64::from(fragment.length)).sum::<u64>();
        match is_apart {
            true => summary.apart += fragments,
            false => {
                summary.events += 1;
                summary.fragments += fragments;
            }
        }
    }
    Ok(())
}

/// A fragment and the offset of its payload.
pub(super) type FragmentEntry<'a> = (&'a FragmentHeader, &'a FragmentIdentity, u64);

/// The fragments of an event in the order of their sources.
pub(super) fn fragments(head: &Head) -> Vec<FragmentEntry<'_>> {
    let mut offset = head.payload_offset;
    let mut fragments = Vec::with_capacity(head.fragments.len());
    for (fragment, identity) in &head.fragments {
        fragments.push((fragment, identity, offset));
        offset += padded(u64::from(fragment.length));
    }
    fragments.sort_by_key(|(fragment, ..)| fragment.source);
    fragments
}
