//! Summary of one event file.

use crate::{Metadata, ReadError, Reader, scan::Step};
use evb_core::EventId;
use std::path::{Path, PathBuf};

/// The content of one event file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSummary {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// The metadata of the file; `None` if they are damaged or cut off.
    pub metadata: Option<Metadata>,
    /// Version of the format; `None` if the file header is damaged.
    pub version: Option<u32>,
    /// Times of the first and of the last event of the file, in nanoseconds since 1970-01-01 UTC.
    pub times: Option<(u64, u64)>,
    /// Number of events: from the index or, without one, the number of events with intact headers.
    pub events: u64,
    /// Lowest and highest event id.
    pub range: Option<(EventId, EventId)>,
    /// True if the file was closed, with an intact index and footer.
    pub closed_cleanly: bool,
    /// Bytes at the end of the file after the last whole event, as after a crash.
    pub tail_bytes: u64,
}

/// Summarises one file. With an index it does not read the events; [`verify`](crate::verify()) does.
///
/// # Errors
/// Those of [`Reader::open`].
pub fn show(path: impl AsRef<Path>) -> Result<FileSummary, ReadError> {
    let mut reader = Reader::open(path)?;
    let mut summary = FileSummary {
        path: reader.path().to_path_buf(),
        bytes: reader.bytes(),
        metadata: reader.metadata().cloned(),
        version: reader.version(),
        times: None,
        events: 0,
        range: None,
        closed_cleanly: reader.closed_cleanly(),
        tail_bytes: 0,
    };
    if summary.closed_cleanly {
        let table = reader.take_table()?;
        let offsets = table.iter().map(|(_, offset)| *offset);
        for offset in offsets.clone().min().into_iter().chain(offsets.max()) {
            let head = reader.head_at(offset).map_err(|error| reader.error(error))?;
            summary.note_time(head.and_then(|head| head.event.triggered));
        }
        table.iter().for_each(|(id, _)| summary.count(*id));
        return Ok(summary);
    }
    let mut offset = reader.start;
    while let Some(step) = reader.step(offset).map_err(|e| reader.error(e))? {
        offset = step.end();
        match step {
            Step::Event(head) => {
                summary.count(head.event.id);
                summary.note_time(head.event.triggered);
            }
            Step::Lost(range) if range.tail => summary.tail_bytes = range.length,
            Step::Lost(_) => {}
        }
    }
    Ok(summary)
}

impl FileSummary {
    fn note_time(&mut self, time: Option<u64>) {
        if let Some(time) = time {
            self.times = Some((self.times.map_or(time, |times| times.0), time));
        }
    }

    fn count(&mut self, id: EventId) {
        self.events += 1;
        let (low, high) = self.range.unwrap_or((id, id));
        self.range = Some((low.min(id), high.max(id)));
    }
}
