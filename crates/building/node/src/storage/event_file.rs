//! The destination of the events of one builder.

use crate::{error::NodeError, fragment_ref::fragment_ref, limits, run_info::HostClock};
use bytes::Bytes;
use evb_events::{EventInfo, WriteError, WriteSummary, Writer};
use evb_filter::{Route, StreamId};
use evb_protocol::Built;
use std::io::ErrorKind;

/// An event with its streams.
pub(super) type RoutedEvent = (Route, Built<Bytes>);

/// The destination of events: event files, or in tests a file that stops and fails on purpose.
pub(super) trait EventFile: Send + Sized + 'static {
    type Place: Clone + Send;
    fn append(&mut self, stream: StreamId, event: &Built<Bytes>) -> Result<(), WriteError>;
    fn flush(&mut self) -> Result<(), WriteError>;
    fn place(&self) -> Self::Place;
    fn go_back(&mut self, place: Self::Place) -> Result<bool, WriteError>;
    /// Events and bytes of each stream.
    fn by_stream(&self) -> Vec<WriteSummary>;
    fn finish(self) -> Result<Vec<WriteSummary>, WriteError>;

    /// Bytes stored in all streams.
    fn stored_bytes(&self) -> u64 {
        self.by_stream().iter().map(|stream| stream.bytes).sum()
    }
}

/// Appends an event to the files of one stream.
pub(super) fn append(file: &mut Writer, event: &Built<Bytes>, clock: HostClock) -> Result<(), WriteError> {
    let fragments: Vec<_> = event.wanted().map(fragment_ref).collect();
    let triggered = Some(clock.at(event.opened));
    file.append(EventInfo { id: event.event, triggered, source_time: None }, &fragments)
}

/// The error of a builder whose events cannot be stored, with advice.
pub(crate) fn storage_error(builder: u16, error: &WriteError) -> NodeError {
    let base = NodeError::new(format!("builder unit {builder}: {error}"));
    match error {
        WriteError::Write { source, .. } if source.kind() == ErrorKind::StorageFull => {
            base.hint("free some space, or write elsewhere with `--set storage.directory=DIR`, or keep less with `--set storage.keep.one_in=N`; what was stored before is valid")
        }
        WriteError::Write { source, .. } if source.kind() == ErrorKind::FileTooLarge => {
            base.hint("no file may grow further: raise the limit (`ulimit -f`), or begin new files earlier with `--set storage.file_size=SIZE`; what was stored before is valid")
        }
        WriteError::Write { source, .. } if limits::hint(source).is_some() => base.hint(limits::MORE_FILES),
        WriteError::Write { .. } => base.hint("what was stored before is valid; `--set storage.directory=DIR` writes elsewhere"),
        _ => base,
    }
}
