//! Events as JSON, one object on each line.

use super::{
    ExportSummary,
    table::{EventFileRef, FragmentEntry, fragments, visit_heads},
};
use crate::{ExportError, scan::Head};
use evb_core::Mark;
use serde::Serialize;
use std::{
    io::{BufWriter, Write},
    path::Path,
};

/// One event, or one fragment that was set apart, as a line. Values that are not known are absent.
#[derive(Serialize)]
struct EventLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    triggered: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_time: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    builder: Option<u16>,
    file: &'a str,
    fragments: Vec<FragmentLine>,
}

#[derive(Serialize)]
struct FragmentLine {
    source: u16,
    status: &'static str,
    bytes: u32,
    checksum: String,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    apart: Option<&'static str>,
}

/// Writes the headers of all events, one JSON object on each line, in the order of ids. The names and their meaning are
/// those of the columns of [`export_csv`](crate::export_csv); an object of a fragment that was set apart has no `event`.
///
/// # Errors
/// [`ExportError::Read`] and [`ExportError::Table`].
pub fn export_json<P: AsRef<Path>>(paths: &[P], writer: impl Write) -> Result<ExportSummary, ExportError> {
    let mut writer = BufWriter::new(writer);
    let summary = visit_heads(paths, |head, file| {
        let json = serde_json::to_string(&line(head, file)).map_err(std::io::Error::from);
        json.and_then(|json| writeln!(writer, "{json}")).map_err(ExportError::Table)
    })?;
    writer.flush().map_err(ExportError::Table)?;
    Ok(summary)
}

fn line<'a>(head: &Head, file: &'a EventFileRef<'_>) -> EventLine<'a> {
    let fragment = |(fragment, identity, offset): FragmentEntry<'_>| FragmentLine {
        source: fragment.source.0,
        status: fragment.status.name(),
        bytes: fragment.length,
        checksum: format!("{:08x}", fragment.checksum),
        offset,
        counter: identity.counter,
        mark: identity.mark.map(Mark::value),
        apart: identity.apart.map(|reason| reason.name()),
    };
    EventLine {
        event: (!file.is_apart).then_some(head.event.id.0),
        complete: (!file.is_apart).then_some(head.complete),
        triggered: head.event.triggered,
        source_time: head.event.source_time,
        builder: file.builder,
        file: &file.file,
        fragments: fragments(head).into_iter().map(fragment).collect(),
    }
}
