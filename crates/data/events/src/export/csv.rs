//! The table of fragment headers.

use super::{
    ExportSummary,
    table::{EventFileRef, fragments, visit_heads},
};
use crate::{ExportError, scan::Head};
use evb_core::Mark;
use std::{
    borrow::Cow,
    fmt::Display,
    io::{self, BufWriter, Write},
    path::Path,
};

/// The names of the columns.
const COLUMNS: &str = "event,builder,source,status,bytes,checksum,file,offset,triggered,source_time,counter,mark,apart";

/// Writes a table of all fragment headers, ordered by event and source, with these columns:
/// `event,builder,source,status,bytes,checksum,file,offset,triggered,source_time,counter,mark,apart`.
///
/// `checksum` is the CRC-32C that came with the fragment, in hexadecimal; `offset` is where its payload begins in
/// `file`. `builder` is empty when the file's metadata are damaged. `triggered` is the time of the trigger in
/// nanoseconds since 1970-01-01 UTC, `counter` the number that the source gave the fragment. A value that is not known is
/// empty. Every copy of an event that is stored more than once has its rows. Payloads are not read, and so not checked.
///
/// Fragments that were set apart follow, with an empty `event`, their time of arrival as `triggered`, and the reason as
/// `apart`. A row with the status `missing` among them has the number of fragments that were not stored as `counter`.
///
/// # Errors
/// [`ExportError::Read`] and [`ExportError::Table`].
pub fn export_csv<P: AsRef<Path>>(paths: &[P], writer: impl Write) -> Result<ExportSummary, ExportError> {
    let mut writer = BufWriter::new(writer);
    writeln!(writer, "{COLUMNS}").map_err(ExportError::Table)?;
    let summary = visit_heads(paths, |head, file| write_rows(&mut writer, head, file).map_err(ExportError::Table))?;
    writer.flush().map_err(ExportError::Table)?;
    Ok(summary)
}

fn write_rows(writer: &mut impl Write, head: &Head, file: &EventFileRef<'_>) -> io::Result<()> {
    let (event, builder) = (text((!file.is_apart).then_some(head.event.id)), text(file.builder));
    let (triggered, source_time) = (text(head.event.triggered), text(head.event.source_time));
    let name = quoted(&file.file);
    for (fragment, identity, offset) in fragments(head) {
        let (source, status, bytes, checksum) = (fragment.source, fragment.status, fragment.length, fragment.checksum);
        let (counter, mark) = (text(identity.counter), text(identity.mark.map(Mark::value)));
        let apart = identity.apart.map_or("", |reason| reason.name());
        writeln!(
            writer,
            "{event},{builder},{source},{status},{bytes},{checksum:08x},{name},{offset},{triggered},{source_time},\
             {counter},{mark},{apart}"
        )?;
    }
    Ok(())
}

/// A value, or nothing if it is not known.
fn text(value: Option<impl Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A text as a field of a CSV table (RFC 4180).
fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        return Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")));
    }
    Cow::Borrowed(text)
}
