//! Export of the payload bytes of each source.

use super::{ExportSummary, merge};
use crate::{Event, ExportError, Found, Status};
use evb_core::{EventId, SourceId};
use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Bytes that wait in memory for all output files together. Then each file is opened, appended to and closed, so that
/// thousands of sources do not need thousands of open files.
const BUFFER_BYTES: usize = 32 << 20;

/// Writes the payloads of each source in the order of event ids, back to back, to `source-NNN.raw` in `directory`,
/// which is created if it does not exist.
///
/// The bytes are those that arrived: corrupted and truncated fragments are included, missing ones left out. Of an event
/// that is stored more than once the best copy is taken.
///
/// # Errors
/// [`ExportError::Exists`] before anything is overwritten, and any error of reading and writing.
pub fn export_raw<P: AsRef<Path>>(paths: &[P], directory: impl AsRef<Path>) -> Result<ExportSummary, ExportError> {
    let mut output = RawOutput::new(directory.as_ref())?;
    let mut merge = merge(paths)?;
    let mut best: Option<(EventId, Found)> = None;
    while let Some(located) = merge.next()? {
        let found = merge.reader(located).event_at(located.offset, located.id)?;
        match &mut best {
            Some((id, other)) if *id == located.id => {
                output.summary.duplicates += 1;
                if worth(&found) > worth(other) {
                    *other = found;
                }
            }
            _ => {
                if let Some((_, event)) = best.replace((located.id, found)) {
                    output.put(&event)?;
                }
            }
        }
    }
    if let Some((_, event)) = best {
        output.put(&event)?;
    }
    output.spill()?;
    Ok(output.summary)
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

struct RawOutput {
    directory: PathBuf,
    sources: BTreeMap<SourceId, RawSource>,
    buffered: usize,
    summary: ExportSummary,
}

#[derive(Default)]
struct RawSource {
    buffer: Vec<u8>,
    created: bool,
}

impl RawOutput {
    fn new(directory: &Path) -> Result<Self, ExportError> {
        let directory = directory.to_path_buf();
        fs::create_dir_all(&directory).map_err(|source| ExportError::Write { path: directory.clone(), source })?;
        Ok(Self { directory, sources: BTreeMap::new(), buffered: 0, summary: ExportSummary::default() })
    }

    fn put(&mut self, found: &Found) -> Result<(), ExportError> {
        match found {
            Found::Event(event) => self.put_event(event),
            Found::Damaged { event, .. } => {
                self.summary.damaged += 1;
                self.put_event(event)
            }
            Found::Lost(_) => {
                self.summary.lost += 1;
                Ok(())
            }
        }
    }

    fn put_event(&mut self, event: &Event) -> Result<(), ExportError> {
        self.summary.events += 1;
        for fragment in event.fragments.iter().filter(|fragment| fragment.status != Status::Missing) {
            self.sources.entry(fragment.source).or_default().buffer.extend_from_slice(&fragment.bytes);
            self.buffered += fragment.bytes.len();
            self.summary.fragments += 1;
            self.summary.payload_bytes += fragment.bytes.len() as u64;
        }
        if self.buffered >= BUFFER_BYTES { self.spill() } else { Ok(()) }
    }

    /// Writes the waiting bytes to the files.
    fn spill(&mut self) -> Result<(), ExportError> {
        self.buffered = 0;
        for (id, source) in &mut self.sources {
            let path = self.directory.join(format!("source-{:03}.raw", id.0));
            source.spill(&path).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => ExportError::Exists { path },
                _ => ExportError::Write { path, source: error },
            })?;
        }
        Ok(())
    }
}

impl RawSource {
    fn spill(&mut self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create_new(!self.created).open(path)?;
        self.created = true;
        file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
