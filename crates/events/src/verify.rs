//! Checks event files byte by byte and says which event is bad.

mod check;

pub(crate) use check::check_file;

use crate::{ReadError, Reader, Status, merge::MergeInput};
use check::check_ids;
use evb_core::{EventId, SourceId};
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Largest number of findings that are kept one by one; all are counted.
pub const MAX_FINDINGS: usize = 1000;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// The file header or the metadata changed; the events do not depend on them.
    Header,
    /// The payload of one source changed.
    Payload,
    /// The headers of an event changed: what belongs to it cannot be told.
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
            Self::Payload => "payload damaged",
            Self::Head => "event header damaged",
            Self::Tail => "file ends within an event",
            Self::Index => "index or footer damaged",
            Self::Unclosed => "file was not closed",
            Self::Duplicate => "event is stored twice",
        }
    }
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// How many bytes it concerns.
    pub length: u64,
    /// The event, if it is known.
    pub event: Option<EventId>,
    /// The source, if it concerns only one.
    pub source: Option<SourceId>,
    /// What is wrong.
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

/// What [`verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Number of files.
    pub files: u64,
    /// Size of all files in bytes.
    pub bytes: u64,
    /// Events of which every byte is as it was written: `complete + incomplete`.
    pub events: u64,
    /// Of these, events of which every fragment came and was good.
    pub complete: u64,
    /// Of these, events that were stored with a fragment missing, corrupted or cut.
    pub incomplete: u64,
    /// Events that changed after they were written; where no index tells their number, one for each damaged range.
    pub damaged: u64,
    /// Payload bytes of the whole events.
    pub payload_bytes: u64,
    /// Fragments of the whole events by status, in the order of [`Status::ALL`].
    pub fragments: [u64; Status::ALL.len()],
    /// Bytes after the last whole event of files that end within one.
    pub tail_bytes: u64,
    /// Files that were not closed.
    pub unclosed: u64,
    /// Events that are stored again, in the same or another of the files given.
    pub duplicates: u64,
    /// Lowest and highest event id.
    pub range: Option<(EventId, EventId)>,
    /// Ids between these two that are in none of the files: normal where not every event is kept.
    pub absent: u64,
    /// The first [`MAX_FINDINGS`] runs of absent ids, first and last.
    pub gaps: Vec<(EventId, EventId)>,
    /// The first [`MAX_FINDINGS`] findings.
    pub findings: Vec<Finding>,
    /// Number of all findings.
    pub total_findings: u64,
}

impl Verification {
    /// Whether every stored byte is as it was written and no event is stored twice. A file that was not closed, but
    /// ends with a whole event, is intact.
    pub fn is_intact(&self) -> bool {
        self.total_findings == self.unclosed
    }
}

/// Checks all files: every byte of each, and the event ids across them.
///
/// Memory is bounded by the largest event and by 16 bytes for each event of the files whose id ranges overlap.
///
/// # Errors
/// [`ReadError`] when a file cannot be read at all; damage is no error, but a finding.
pub fn verify<P: AsRef<Path>>(paths: &[P]) -> Result<Verification, ReadError> {
    verify_with(paths, |_| {})
}

/// [`verify`], which tells `progress` the number of bytes that were checked since the last call.
///
/// # Errors
/// As [`verify`].
pub fn verify_with<P: AsRef<Path>>(paths: &[P], mut progress: impl FnMut(u64)) -> Result<Verification, ReadError> {
    let (mut verification, mut inputs) = (Verification::default(), Vec::new());
    for path in paths {
        let path = path.as_ref().to_path_buf();
        let trust_index = check_file(&mut Reader::open(&path)?, &mut verification, &mut progress)?;
        inputs.push(MergeInput { path, trust_index });
    }
    check_ids(inputs, &mut verification)?;
    Ok(verification)
}
