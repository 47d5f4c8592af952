//! The storage of a builder of the first stage: it hands super-fragments to a readout unit of the second.
//!
//! A readout unit that is gone does not come back. The second stage knows that it is gone, and misses its super-fragments. So
//! they are dropped from then on, and the first stage continues for all other readout units.
//!
//! A builder that has lost its event manager does not announce the end of its data, since the second stage would then
//! end as well. It continues as if that source were gone.

use super::event_file::EventFile;
use bytes::Bytes;
use evb_events::{WriteError, WriteSummary};
use evb_filter::StreamId;
use evb_protocol::Built;
use evb_sources::{Frame, encode};
use std::{
    io::{self, ErrorKind, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// Time between two attempts to connect.
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// The connection to the readout unit.
pub(super) struct Forward {
    /// The readout unit, as frames name it.
    unit: u16,
    path: PathBuf,
    /// The connection; `None` if the readout unit is gone.
    stream: Option<UnixStream>,
    /// Frames that are not sent yet.
    frames: Vec<u8>,
    last: u64,
    summary: WriteSummary,
}

impl Forward {
    /// Connects to the readout unit, which listens before the first stage begins.
    pub(super) fn connect(patience: Duration, unit: u16, path: PathBuf) -> Result<Self, WriteError> {
        let stream = connect(&path, patience).map_err(|error| failed(&path, 0, error))?;
        Ok(Self { unit, path, stream: Some(stream), frames: Vec::new(), last: 0, summary: WriteSummary::default() })
    }

    fn frame(&mut self, counter: u64, good: bool, end: Option<u32>, payload: &Bytes) {
        let (source, end_of_run) = (self.unit, end.is_some());
        let frame = Frame { source, counter, end_of_run, resynchronised: false, good, mark: end, payload };
        encode(&frame, &mut self.frames);
    }
}

fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let end = Instant::now() + patience;
    loop {
        match UnixStream::connect(path) {
            Err(_) if Instant::now() < end => thread::sleep(TRY_AGAIN),
            done => return done,
        }
    }
}

fn failed(path: &Path, needed: u64, source: io::Error) -> WriteError {
    WriteError::Write { path: path.to_owned(), needed, lost: 0, source }
}

impl EventFile for Forward {
    type Place = ();

    /// Takes a super-fragment: an event of one fragment, by the number in its slice.
    fn append(&mut self, _stream: StreamId, event: &Built<Bytes>) -> Result<(), WriteError> {
        let is_wanted = self.stream.is_some();
        for bundle in event.fragments.iter().flatten().filter(|_| is_wanted) {
            self.last = event.event.0;
            self.summary.events += 1;
            self.summary.bytes += u64::from(bundle.length);
            self.frame(self.last, event.complete, None, &bundle.payload);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        let sent = self.stream.as_mut().map_or(Ok(()), |stream| stream.write_all(&self.frames));
        match sent {
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                tracing::warn!(path = %self.path.display(), "the readout unit of the second stage is gone");
                self.stream = None;
            }
            other => other.map_err(|error| failed(&self.path, self.frames.len() as u64, error))?,
        }
        self.frames.clear();
        Ok(())
    }

    fn place(&self) {}

    /// What is sent cannot be taken back, and need not be: no other builder makes the same super-fragments.
    fn go_back(&mut self, (): ()) -> Result<bool, WriteError> {
        Ok(false)
    }

    fn by_stream(&self) -> Vec<WriteSummary> {
        vec![self.summary]
    }

    /// Announces the end with the number of super-fragments.
    fn finish(mut self) -> Result<Vec<WriteSummary>, WriteError> {
        self.frame(self.last, true, Some(self.last as u32), &Bytes::new());
        self.flush()?;
        Ok(self.by_stream())
    }
}
