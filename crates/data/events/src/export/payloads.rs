//! Export of the payload bytes of each source, and nothing else.

use super::{ExportFiles, ExportSummary, raw::SourceFiles, walk::best_copies};
use crate::{ExportError, Status};
use std::path::Path;

/// Writes the payloads of each source in the order of event ids, back to back, to `source-NNN.raw` in `directory`,
/// which is created if it does not exist.
///
/// The bytes are those that arrived: corrupted and truncated fragments are included. Missing ones leave no trace, so the
/// files of two sources are not in line; [`export_raw`](crate::export_raw) keeps them in line. Of an event that is stored
/// more than once the best copy is taken. Files of fragments that were set apart are left out.
///
/// # Errors
/// [`ExportError::Exists`] before anything is overwritten, and any error of reading and writing.
pub fn export_payloads<P: AsRef<Path>>(paths: &[P], directory: impl AsRef<Path>) -> Result<ExportSummary, ExportError> {
    let files = ExportFiles::sort(paths)?;
    let mut output = SourceFiles::new(directory.as_ref())?;
    let mut summary = ExportSummary { left_out: files.apart.len() as u64, ..ExportSummary::default() };
    best_copies(&files.events, false, &mut summary, &mut |stored, summary| {
        for fragment in stored.event.fragments.iter().filter(|fragment| fragment.status != Status::Missing) {
            output.put(fragment.source, &[&fragment.bytes]);
            summary.fragments += 1;
            summary.payload_bytes += fragment.bytes.len() as u64;
        }
        output.spill_if_full()
    })?;
    output.spill()?;
    Ok(summary)
}
