//! The export of a run to one table.

use crate::{
    Compression, Format, TableError, columns,
    rows::Rows,
    run::{self, SourceNames},
    writer::{Reason, TableWriter, of_arrow},
};
use evb_events::{ExportSummary, Metadata, ReadError, StoredEvent, visit_events};
use std::{
    fs::{self, File},
    io,
    path::Path,
    sync::Arc,
};

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// The kind of file.
    pub format: Format,
    /// Compression of the columns.
    pub compression: Compression,
}

/// Writes all fragments of the files of one run to a new file, one row for each fragment, in the order of events and
/// sources; then those that were set apart.
///
/// Of an event that is stored more than once the best copy is taken. A payload that changed after it was written is
/// written as it is now, and marked. Events whose headers changed are left out, and counted. A file that cannot be
/// finished is removed.
///
/// # Errors
/// [`TableError::Exists`] before anything is overwritten, [`TableError::Runs`], and any error of reading and writing.
pub fn export_table<P: AsRef<Path>>(
    paths: &[P],
    output: &Path,
    options: TableOptions,
) -> Result<ExportSummary, TableError> {
    let metadata = run::metadata(paths)?;
    let file = File::create_new(output).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => TableError::Exists { path: output.to_path_buf() },
        _ => TableError::Write { path: output.to_path_buf(), reason: error.into() },
    })?;
    write(paths, file, options, metadata).map_err(|failed| abandon(output, failed.of(output)))
}

/// Removes the file that cannot be finished.
fn abandon(output: &Path, error: TableError) -> TableError {
    match fs::remove_file(output) {
        Ok(()) => error,
        Err(source) => TableError::Remove { error: Box::new(error), path: output.to_path_buf(), source },
    }
}

fn write<P: AsRef<Path>>(
    paths: &[P],
    file: File,
    options: TableOptions,
    metadata: Option<Metadata>,
) -> Result<ExportSummary, Failed> {
    let metadata = metadata.unwrap_or_default();
    let schema = Arc::new(columns::schema(run::described(&metadata)));
    let mut rows = Rows::new(Arc::clone(&schema), SourceNames::new(&metadata.sources));
    let mut writer = TableWriter::new(file, &schema, options.format, options.compression)?;
    let summary = visit_events(paths, |stored| put(stored, &mut rows, &mut writer))?;
    if !rows.is_empty() {
        writer.write(&rows.take().map_err(of_arrow)?)?;
    }
    writer.finish()?;
    Ok(summary)
}

/// Adds the rows of an event in the order of sources, and writes those that wait when they are many.
fn put(stored: &StoredEvent<'_>, rows: &mut Rows, writer: &mut TableWriter) -> Result<(), Failed> {
    let mut fragments: Vec<_> = stored.event.fragments.iter().collect();
    fragments.sort_by_key(|fragment| fragment.source);
    for fragment in fragments {
        if !rows.has_room(fragment.bytes.len()) {
            writer.write(&rows.take().map_err(of_arrow)?)?;
        }
        rows.push(stored, fragment);
    }
    Ok(())
}

/// What failed; the path of the table is added at the end.
enum Failed {
    Read(ReadError),
    Write(Reason),
}

impl Failed {
    fn of(self, output: &Path) -> TableError {
        match self {
            Self::Read(error) => TableError::Read(error),
            Self::Write(reason) => TableError::Write { path: output.to_path_buf(), reason },
        }
    }
}

impl From<ReadError> for Failed {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<Reason> for Failed {
    fn from(reason: Reason) -> Self {
        Self::Write(reason)
    }
}
