//! Export of the fragments of each source, record by record, so that the files of all sources are in line.

use super::{ExportFiles, ExportSummary, walk::best_copies};
use crate::{Event, ExportError, Fragment, Reader, layout::identity_flags, scan::Step};
use evb_core::{Mark, SourceId};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Bytes that wait in memory for all output files together. Then each file is opened, appended to and closed, so that
/// thousands of sources do not need thousands of open files.
const BUFFER_BYTES: usize = 32 << 20;

/// Bytes of the header of a record.
pub const RAW_HEADER_BYTES: usize = 40;

/// The status of a source that was not asked for a fragment of the event.
const NOT_ASKED: u8 = 255;

/// Writes the fragments of each source in the order of event ids to `source-NNN.raw` in `directory`, which is created if
/// it does not exist.
///
/// Each event has one record in the file of every source: a header of [`RAW_HEADER_BYTES`] and the payload as it arrived.
/// A missing fragment has a record without payload. So record n of all files belongs to the same event. The header is
/// described in `docs/reference/event-file.md`. Of an event that is stored more than once the best copy is taken. Files of
/// fragments that were set apart are left out.
///
/// # Errors
/// [`ExportError::Exists`] before anything is overwritten, and any error of reading and writing.
pub fn export_raw<P: AsRef<Path>>(paths: &[P], directory: impl AsRef<Path>) -> Result<ExportSummary, ExportError> {
    let files = ExportFiles::sort(paths)?;
    let sources = sources(&files.events)?;
    let mut output = SourceFiles::new(directory.as_ref())?;
    let mut summary = ExportSummary { left_out: files.apart.len() as u64, ..ExportSummary::default() };
    best_copies(&files.events, false, &mut summary, &mut |stored, summary| {
        let by_source = stored.event.fragments.iter().map(|fragment| (fragment.source, fragment));
        let fragments: BTreeMap<_, _> = by_source.collect();
        for &source in &sources {
            let fragment = fragments.get(&source).copied();
            let bytes = fragment.map(|fragment| &fragment.bytes[..]).unwrap_or_default();
            output.put(source, &[&header(stored.event, source, fragment), bytes]);
            summary.fragments += u64::from(fragment.is_some());
            summary.payload_bytes += bytes.len() as u64;
        }
        output.spill_if_full()
    })?;
    output.spill()?;
    Ok(summary)
}

/// The header of the record of one source.
fn header(event: &Event, source: SourceId, fragment: Option<&Fragment>) -> [u8; RAW_HEADER_BYTES] {
    let (counter, mark) = fragment.map(|fragment| (fragment.counter, fragment.mark)).unwrap_or_default();
    let length = fragment.map_or(0, |fragment| fragment.bytes.len() as u32);
    let mut bytes = [0; RAW_HEADER_BYTES];
    bytes[..8].copy_from_slice(&event.id.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&event.triggered.unwrap_or(0).to_le_bytes());
    bytes[16..24].copy_from_slice(&counter.unwrap_or(0).to_le_bytes());
    bytes[24..28].copy_from_slice(&mark.map_or(0, Mark::value).to_le_bytes());
    bytes[28..32].copy_from_slice(&length.to_le_bytes());
    bytes[32..34].copy_from_slice(&source.0.to_le_bytes());
    bytes[34] = fragment.map_or(NOT_ASKED, |fragment| fragment.status as u8);
    bytes[35] = identity_flags(counter, mark);
    bytes
}

/// All sources that any event has a fragment of, present or missing.
fn sources(paths: &[PathBuf]) -> Result<BTreeSet<SourceId>, ExportError> {
    let mut sources = BTreeSet::new();
    for path in paths {
        let mut reader = Reader::open(path)?;
        let mut offset = reader.start;
        while let Some(step) = reader.step(offset).map_err(|error| reader.error(error))? {
            offset = step.end();
            if let Step::Event(head) = step {
                sources.extend(head.fragments.iter().map(|(fragment, _)| fragment.source));
            }
        }
    }
    Ok(sources)
}

/// The output files, one for each source.
pub(super) struct SourceFiles {
    directory: PathBuf,
    sources: BTreeMap<SourceId, SourceFile>,
    buffered: usize,
}

#[derive(Default)]
struct SourceFile {
    buffer: Vec<u8>,
    created: bool,
}

impl SourceFiles {
    pub(super) fn new(directory: &Path) -> Result<Self, ExportError> {
        let directory = directory.to_path_buf();
        fs::create_dir_all(&directory).map_err(|source| ExportError::Write { path: directory.clone(), source })?;
        Ok(Self { directory, sources: BTreeMap::new(), buffered: 0 })
    }

    /// Appends bytes to the file of a source.
    pub(super) fn put(&mut self, source: SourceId, parts: &[&[u8]]) {
        let file = self.sources.entry(source).or_default();
        for part in parts {
            file.buffer.extend_from_slice(part);
            self.buffered += part.len();
        }
    }

    pub(super) fn spill_if_full(&mut self) -> Result<(), ExportError> {
        if self.buffered >= BUFFER_BYTES { self.spill() } else { Ok(()) }
    }

    /// Writes the waiting bytes to the files.
    pub(super) fn spill(&mut self) -> Result<(), ExportError> {
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

impl SourceFile {
    fn spill(&mut self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create_new(!self.created).open(path)?;
        self.created = true;
        file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
