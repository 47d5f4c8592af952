//! What one event file holds, at a glance.

use crate::{Metadata, ReadError, Reader, scan::Step};
use evb_core::EventId;
use std::path::{Path, PathBuf};

/// What one event file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSummary {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// What it says about its run; `None` when that part is damaged or cut off.
    pub metadata: Option<Metadata>,
    /// Number of events: from the index or, without one, those whose headers are right.
    pub events: u64,
    /// Lowest and highest event id.
    pub range: Option<(EventId, EventId)>,
    /// Whether it was closed, with an index and a footer that are as they were written.
    pub closed_cleanly: bool,
    /// Bytes at its end, after the last whole event, that hold none: as after a crash.
    pub tail_bytes: u64,
}

/// Looks at one file. With an index this does not read the events; [`verify`](crate::verify()) does.
///
/// # Errors
/// As [`Reader::open`].
pub fn show(path: impl AsRef<Path>) -> Result<FileSummary, ReadError> {
    let mut reader = Reader::open(path)?;
    let mut summary = FileSummary {
        path: reader.path().to_path_buf(),
        bytes: reader.bytes(),
        metadata: reader.metadata().cloned(),
        events: 0,
        range: None,
        closed_cleanly: reader.closed_cleanly(),
        tail_bytes: 0,
    };
    if summary.closed_cleanly {
        for (id, _) in reader.take_table()? {
            summary.count(id);
        }
        return Ok(summary);
    }
    let mut offset = reader.start;
    while let Some(step) = reader.step(offset).map_err(|e| reader.error(e))? {
        offset = step.end();
        match step {
            Step::Event(head) => summary.count(head.id),
            Step::Lost(range) if range.tail => summary.tail_bytes = range.length,
            Step::Lost(_) => {}
        }
    }
    Ok(summary)
}

impl FileSummary {
    fn count(&mut self, id: EventId) {
        self.events += 1;
        let (low, high) = self.range.unwrap_or((id, id));
        self.range = Some((low.min(id), high.max(id)));
    }
}
