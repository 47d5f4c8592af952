//! The event files of a builder by stream. The default stream has files from the start, any other from its first event.

use super::event_file::{EventFile, append};
use crate::run_info::HostClock;
use bytes::Bytes;
use evb_events::{Metadata, Place, WriteError, WriteSummary, Writer, WriterOptions};
use evb_filter::StreamId;
use evb_protocol::Built;

/// The files of all streams of a builder.
pub(super) struct Streams {
    /// The options of the default stream.
    options: WriterOptions,
    files: Vec<Stream>,
    /// Number of streams that get no copies: the first ones.
    own: usize,
    clock: HostClock,
}

/// The files of one stream.
struct Stream {
    name: String,
    file: Option<(Writer, Place)>,
}

impl Streams {
    /// Creates the first file of the default stream. `names` are the streams by id; the first `own` get no copies.
    pub(super) fn create(
        options: WriterOptions,
        (names, own): (&[String], usize),
        clock: HostClock,
    ) -> Result<Self, WriteError> {
        let stream = |name: &String| Stream { name: name.clone(), file: None };
        let mut all = Self { options, files: names.iter().map(stream).collect(), own, clock };
        all.open(StreamId::PHYSICS)?;
        Ok(all)
    }

    /// The first part of the names of a stream's files. Those of the default stream do not name it.
    pub(super) fn file_name(name: &str, stream: &str, is_default: bool) -> String {
        if is_default { name.to_owned() } else { format!("{name}-{stream}") }
    }

    /// The files of a stream, which are created if there are none.
    fn open(&mut self, stream: StreamId) -> Result<&mut Writer, WriteError> {
        // An unknown stream would be a bug: its events are kept in the default one.
        let index = if stream.index() < self.files.len() { stream.index() } else { 0 };
        let Stream { name, file } = &mut self.files[index];
        if file.is_none() {
            let (is_default, copies, options) = (index == 0, index >= self.own, &self.options);
            let stream = if is_default { String::new() } else { name.clone() };
            let writer = Writer::create(WriterOptions {
                name: Self::file_name(&options.name, name, is_default),
                metadata: Metadata { stream, copies, ..options.metadata.clone() },
                ..options.clone()
            })?;
            let begin = writer.place();
            *file = Some((writer, begin));
        }
        Ok(file.as_mut().map(|(writer, _)| writer).expect("opened just now"))
    }

    fn writers(&mut self) -> impl Iterator<Item = &mut Writer> {
        self.files.iter_mut().filter_map(|stream| stream.file.as_mut()).map(|(writer, _)| writer)
    }
}

impl EventFile for Streams {
    /// The place in each stream that had files.
    type Place = Vec<Option<Place>>;

    fn append(&mut self, stream: StreamId, event: &Built<Bytes>) -> Result<(), WriteError> {
        let clock = self.clock;
        append(self.open(stream)?, event, clock)
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.writers().try_for_each(Writer::flush)
    }

    fn place(&self) -> Self::Place {
        self.files.iter().map(|stream| stream.file.as_ref().map(|(writer, _)| writer.place())).collect()
    }

    fn go_back(&mut self, place: Self::Place) -> Result<bool, WriteError> {
        let mut all = true;
        for (stream, place) in self.files.iter_mut().zip(place) {
            if let Some((writer, begin)) = &mut stream.file {
                all &= writer.go_back(place.unwrap_or(*begin))?;
            }
        }
        Ok(all)
    }

    fn by_stream(&self) -> Vec<WriteSummary> {
        let stored = |stream: &Stream| stream.file.as_ref().map(|(writer, _)| writer.stored());
        self.files.iter().map(|stream| stored(stream).unwrap_or_default()).collect()
    }

    fn finish(self) -> Result<Vec<WriteSummary>, WriteError> {
        let finish = |stream: Stream| stream.file.map(|(writer, _)| writer.finish()).transpose();
        // One stream that cannot be closed must not keep the others from it.
        let all: Vec<_> = self.files.into_iter().map(finish).collect();
        all.into_iter().map(|summary| summary.map(Option::unwrap_or_default)).collect()
    }
}
