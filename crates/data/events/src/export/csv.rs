//! The table of fragment headers.

use super::{ExportSummary, merge};
use crate::{ExportError, layout::padded, scan::Head};
use std::{
    borrow::Cow,
    io::{self, BufWriter, Write},
    path::Path,
};

/// Writes a table of all fragment headers, ordered by event and source:
/// `event,builder,source,status,bytes,checksum,file,offset`.
///
/// `checksum` is the CRC-32C that came with the fragment, in hexadecimal; `offset` is where its payload begins in
/// `file`. `builder` is empty when the file's metadata are damaged. Every copy of an event that is stored more than
/// once has its rows. Payloads are not read, and so not checked.
///
/// # Errors
/// [`ExportError::Read`] and [`ExportError::Table`].
pub fn export_csv<P: AsRef<Path>>(paths: &[P], writer: impl Write) -> Result<ExportSummary, ExportError> {
    let mut writer = BufWriter::new(writer);
    let (mut merge, mut summary) = (merge(paths)?, ExportSummary::default());
    writeln!(writer, "event,builder,source,status,bytes,checksum,file,offset").map_err(ExportError::Table)?;
    let mut previous = None;
    while let Some(located) = merge.next()? {
        summary.duplicates += u64::from(previous.replace(located.id) == Some(located.id));
        let reader = merge.reader(located);
        let head = reader.head_at(located.offset).map_err(|error| reader.error(error))?;
        let Some(head) = head.filter(|head| head.id == located.id) else {
            summary.lost += 1;
            continue;
        };
        let builder = reader.metadata().map(|metadata| metadata.builder.to_string()).unwrap_or_default();
        let file = reader.path().display().to_string();
        write_rows(&mut writer, &head, &builder, &quoted(&file), &mut summary).map_err(ExportError::Table)?;
    }
    writer.flush().map_err(ExportError::Table)?;
    Ok(summary)
}

fn write_rows(
    writer: &mut impl Write,
    head: &Head,
    builder: &str,
    file: &str,
    summary: &mut ExportSummary,
) -> io::Result<()> {
    let mut offset = head.payload_offset();
    let mut rows = Vec::with_capacity(head.fragments.len());
    for fragment in &head.fragments {
        rows.push((fragment, offset));
        offset += padded(u64::from(fragment.length));
        summary.payload_bytes += u64::from(fragment.length);
    }
    rows.sort_by_key(|(fragment, _)| fragment.source);
    for (fragment, offset) in rows {
        let (event, source, status) = (head.id, fragment.source, fragment.status);
        let (bytes, checksum) = (fragment.length, fragment.checksum);
        writeln!(writer, "{event},{builder},{source},{status},{bytes},{checksum:08x},{file},{offset}")?;
        summary.fragments += 1;
    }
    summary.events += 1;
    Ok(())
}

/// A text as a field of a CSV table (RFC 4180).
fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        return Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")));
    }
    Cow::Borrowed(text)
}
