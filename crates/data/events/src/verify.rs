//! Verification of event files byte by byte: finds every damaged event.

mod check;

pub(crate) use check::check_file;

use crate::{ReadError, Reader, Status, merge::MergeInput};
use check::check_ids;
use evb_core::{EventId, SourceId};
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

/// Largest number of findings that are kept one by one; all are counted.
pub const MAX_FINDINGS: usize = 1000;

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// The file header or the metadata changed; the events do not depend on them.
    Header,
    /// The file ends within its header or metadata, as after a crash as it was begun: it has no event.
    Start,
    /// The payload of one source changed.
    Payload,
    /// The headers or the trailer of an event changed: the data that belong to it are unknown.
    Head,
    /// The file ends within an event, as after a crash.
    Tail,
    /// Index or footer changed; the events do not depend on them.
    Index,
    /// The file was not closed. Every event in it may still be whole.
    Unclosed,
    /// The same event is stored more than once.
    Duplicate,
}

impl FindingKind {
    /// The kind in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "file header or metadata damaged",
            Self::Start => "file ends before its first event",
            Self::Payload => "payload damaged",
            Self::Head => "event header or trailer damaged",
            Self::Tail => "file ends within an event",
            Self::Index => "index or footer damaged",
            Self::Unclosed => "file was not closed",
            Self::Duplicate => "event is stored twice",
        }
    }
}

/// A defect and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// Offset of the defect, in bytes from the start of the file.
    pub offset: u64,
    /// Length of the defect in bytes.
    pub length: u64,
    /// The event, if known.
    pub event: Option<EventId>,
    /// The source, if the defect concerns only one.
    pub source: Option<SourceId>,
    /// The kind of defect.
    pub kind: FindingKind,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        if let Some(event) = self.event {
            write!(f, "event {event}: ")?;
        }
        if let Some(source) = self.source {
            write!(f, "source {source}: ")?;
        }
        write!(f, "{} at byte {}", self.kind.name(), self.offset)?;
        match self.length {
            0 => Ok(()),
            length => write!(f, " ({length} bytes)"),
        }
    }
}

/// The result of [`verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Number of files.
    pub files: u64,
    /// Size of all files in bytes.
    pub bytes: u64,
    /// Events with every byte as it was written: `complete + incomplete`.
    pub events: u64,
    /// Intact events with every fragment there and good.
    pub complete: u64,
    /// Intact events that were stored with a fragment missing, corrupted or truncated.
    pub incomplete: u64,
    /// Events that changed after they were written; where no index tells their number, one for each damaged range.
    pub damaged: u64,
    /// Intact fragments that were set apart, which belong to no event.
    pub apart: u64,
    /// Fragments that were set apart and not stored, because the file had reached its largest size.
    pub apart_unstored: u64,
    /// Payload bytes of the whole events and of the intact fragments that were set apart.
    pub payload_bytes: u64,
    /// Fragments of the whole events by status, in the order of [`Status::ALL`].
    pub fragments: [u64; Status::ALL.len()],
    /// Bytes after the last whole event of files that end within one.
    pub tail_bytes: u64,
    /// Files that were not closed.
    pub unclosed: u64,
    /// Further copies of events, in the same file or another one.
    pub duplicates: u64,
    /// Lowest and highest event id.
    pub range: Option<(EventId, EventId)>,
    /// Ids in this range that are in none of the files: normal where not every event is kept.
    pub absent: u64,
    /// The first [`MAX_FINDINGS`] runs of absent ids, first and last.
    pub gaps: Vec<(EventId, EventId)>,
    /// The first [`MAX_FINDINGS`] findings.
    pub findings: Vec<Finding>,
    /// Number of all findings.
    pub total_findings: u64,
}

impl Verification {
    /// Returns true if every stored byte is as it was written and no event is stored twice, apart from the copies in
    /// separate streams. A file that was not closed, but ends with a whole event, is intact.
    pub fn is_intact(&self) -> bool {
        self.total_findings == self.unclosed
    }
}

/// Checks all files: every byte of each, and the event ids across them.
///
/// Memory is bounded by the largest event and by 16 bytes for each event of the files whose id ranges overlap.
///
/// # Errors
/// [`ReadError`] if a file cannot be read at all. Damage is a finding, not an error.
pub fn verify<P: AsRef<Path>>(paths: &[P]) -> Result<Verification, ReadError> {
    verify_with(paths, |_| {})
}

/// Verifies as [`verify`] does, and calls `progress` with the number of bytes checked since the last call.
///
/// # Errors
/// Those of [`verify`].
pub fn verify_with<P: AsRef<Path>>(paths: &[P], mut progress: impl FnMut(u64)) -> Result<Verification, ReadError> {
    // By stream of copies, which hold events of other files again; none for all other files of events.
    let (mut verification, mut groups) = (Verification::default(), BTreeMap::<Option<String>, Vec<_>>::new());
    for path in paths {
        let path = path.as_ref().to_path_buf();
        let mut reader = Reader::open(&path)?;
        let copies = reader.metadata().filter(|metadata| metadata.copies).map(|metadata| metadata.stream.clone());
        let is_apart = reader.is_apart();
        let trust_index = check_file(&mut reader, &mut verification, &mut progress)?;
        if is_apart {
            continue;
        }
        groups.entry(copies).or_default().push(MergeInput { path, trust_index });
    }
    let only_copies = !groups.contains_key(&None);
    for (copies, inputs) in groups {
        check_ids(inputs, copies.is_none() || only_copies, &mut verification)?;
    }
    Ok(verification)
}
