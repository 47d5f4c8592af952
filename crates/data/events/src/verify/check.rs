//! The two passes of a verification: every byte of each file, then the ids across all of them.

use super::{Finding, FindingKind, MAX_FINDINGS, Verification};
use crate::{
    Event, Found, LostRange, ReadError, Reader, Status,
    index::Index,
    layout::padded,
    merge::{Merge, MergeInput},
};
use evb_core::{EventId, SourceId};
use std::{
    io::{Read, Seek},
    path::Path,
};

/// Checks one file; returns true if its index, if it has one, is right.
pub(crate) fn check_file<R: Read + Seek>(
    reader: &mut Reader<R>,
    verification: &mut Verification,
    progress: &mut dyn FnMut(u64),
) -> Result<bool, ReadError> {
    let file = reader.path().to_path_buf();
    let mut pass = Pass { file: &file, verification, entries: 0, index_agrees: true };
    pass.verification.files += 1;
    pass.verification.bytes += reader.bytes();
    if !reader.header_intact() {
        let kind = if reader.ends_in_header() { FindingKind::Start } else { FindingKind::Header };
        pass.add(kind, 0, reader.start, None, None);
    }
    let (mut events, mut done) = (reader.events(), 0);
    while let Some(found) = events.next() {
        pass.found(&found?, events.reader.index.as_ref());
        progress(events.offset() - done);
        done = events.offset();
    }
    progress(reader.bytes() - done);
    pass.closing(reader, done.max(reader.start));
    Ok(pass.index_agrees)
}

/// Searches for ids that are stored twice, and if `gaps` says so, for those that are not stored at all.
pub(crate) fn check_ids(inputs: Vec<MergeInput>, gaps: bool, verification: &mut Verification) -> Result<(), ReadError> {
    let paths: Vec<_> = inputs.iter().map(|input| input.path.clone()).collect();
    let mut merge = Merge::new(inputs)?;
    let mut previous = None;
    while let Some(located) = merge.next()? {
        let (id, last) = (located.id, previous.unwrap_or(located.id));
        if gaps {
            let first = verification.range.map_or(id, |range| range.0);
            verification.range = Some((first, id));
        }
        if previous == Some(id) {
            verification.duplicates += 1;
            let (file, offset, kind) = (paths[located.file].clone(), located.offset, FindingKind::Duplicate);
            verification.add(Finding { file, offset, length: 0, event: Some(id), source: None, kind });
        } else if gaps && id.0 - last.0 > 1 {
            verification.add_gap(last.next(), EventId(id.0 - 1));
        }
        previous = Some(id);
    }
    Ok(())
}

impl Verification {
    fn add(&mut self, finding: Finding) {
        self.total_findings += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    fn add_gap(&mut self, first: EventId, last: EventId) {
        self.absent += last.0 - first.0 + 1;
        if self.gaps.len() < MAX_FINDINGS {
            self.gaps.push((first, last));
        }
    }

    fn add_whole(&mut self, event: &Event) {
        if event.is_apart() {
            return self.add_apart(event);
        }
        self.events += 1;
        self.complete += u64::from(event.complete);
        self.incomplete += u64::from(!event.complete);
        self.payload_bytes += event.payload_bytes();
        for fragment in &event.fragments {
            self.fragments[fragment.status as usize] += 1;
        }
    }

    /// Counts the record of a fragment that was set apart. One without a payload says how many were not stored.
    fn add_apart(&mut self, event: &Event) {
        self.payload_bytes += event.payload_bytes();
        for fragment in &event.fragments {
            match fragment.status {
                Status::Missing => {
                    self.apart_unstored = self.apart_unstored.saturating_add(fragment.counter.unwrap_or(0))
                }
                _ => self.apart += 1,
            }
        }
    }
}

/// The pass through one file.
struct Pass<'a> {
    file: &'a Path,
    verification: &'a mut Verification,
    /// Number of index entries that were matched.
    entries: usize,
    index_agrees: bool,
}

impl Pass<'_> {
    fn found(&mut self, found: &Found, index: Option<&Index>) {
        match found {
            Found::Event(event) => {
                self.compare(event, index);
                self.verification.add_whole(event);
            }
            Found::Damaged { event, sources } => {
                self.compare(event, index);
                self.damaged(event, sources);
            }
            Found::Lost(range) => {
                self.entries += range.events.len();
                self.lost(range);
            }
        }
    }

    fn compare(&mut self, event: &Event, index: Option<&Index>) {
        if let Some(index) = index {
            self.index_agrees &= self.entries < index.len() && index.get(self.entries) == (event.id, event.offset);
        }
        self.entries += 1;
    }

    fn damaged(&mut self, event: &Event, sources: &[SourceId]) {
        self.verification.damaged += 1;
        let mut offset = event.payload_offset;
        for fragment in &event.fragments {
            let length = fragment.bytes.len() as u64;
            if sources.contains(&fragment.source) {
                self.add(FindingKind::Payload, offset, length, Some(event.id), Some(fragment.source));
            }
            offset += padded(length);
        }
    }

    fn lost(&mut self, range: &LostRange) {
        if range.tail {
            self.verification.tail_bytes += range.length;
            return self.add(FindingKind::Tail, range.offset, range.length, None, None);
        }
        self.verification.damaged += range.events.len().max(1) as u64;
        for &event in &range.events {
            self.add(FindingKind::Head, range.offset, range.length, Some(event), None);
        }
        if range.events.is_empty() {
            self.add(FindingKind::Head, range.offset, range.length, None, None);
        }
    }

    /// Checks the part of the file after the events, which end at `end`.
    fn closing<R: Read + Seek>(&mut self, reader: &Reader<R>, end: u64) {
        self.index_agrees &= reader.index.as_ref().is_none_or(|index| index.len() == self.entries);
        // Events that end before the end of the file end at an index, even where the footer is not to be read.
        let was_closed = reader.has_footer || end < reader.end;
        if !was_closed {
            self.verification.unclosed += 1;
            self.add(FindingKind::Unclosed, reader.bytes(), 0, None, None);
        } else if !reader.closed_cleanly() || !self.index_agrees {
            self.add(FindingKind::Index, end, reader.bytes() - end, None, None);
        }
    }

    fn add(&mut self, kind: FindingKind, offset: u64, length: u64, event: Option<EventId>, source: Option<SourceId>) {
        let file = self.file.to_path_buf();
        self.verification.add(Finding { file, offset, length, event, source, kind });
    }
}
