//! A connection that does not block, and whose bytes go sealed or in clear.

use super::{MOST_PLAIN, Session};
use std::{
    fmt,
    io::{self, ErrorKind, IoSlice, Read, Write},
};

/// A connection that does not block. What is written to it may wait here, sealed, after the stream takes no more:
/// [`flush`](Write::flush) continues. At most one record waits on each way.
pub struct Channel<S> {
    stream: S,
    sealed: Option<Box<Sealed>>,
}

struct Sealed {
    session: Session,
    /// The plain bytes of the record that is made.
    plain: Vec<u8>,
    /// The last record, of which the bytes before `gone` were sent.
    wire: Vec<u8>,
    gone: usize,
    /// Bytes came since [`Channel::take_heard`].
    heard: bool,
}

impl<S> Channel<S> {
    /// A connection whose bytes go as they are.
    pub const fn clear(stream: S) -> Self {
        Self { stream, sealed: None }
    }

    /// A connection whose bytes go in the records of a session. The other side has proved who it is.
    pub fn sealed(stream: S, mut session: Session) -> Self {
        session.opener.trust();
        let (plain, wire) = (Vec::new(), Vec::new());
        Self { stream, sealed: Some(Box::new(Sealed { session, plain, wire, gone: 0, heard: false })) }
    }

    /// The stream below. What is read from it or written to it directly is lost to the session.
    pub const fn stream(&self) -> &S {
        &self.stream
    }

    /// The stream below, to change it.
    pub const fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Returns true if the bytes go in records: a short read does not mean that the stream is empty.
    pub const fn is_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    /// Returns true if something may be read without the stream.
    pub fn has_more(&self) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.session.opener.has_more())
    }

    /// Number of sealed bytes that the stream has not taken.
    pub fn waiting(&self) -> usize {
        self.sealed.as_ref().map_or(0, |sealed| sealed.wire.len() - sealed.gone)
    }

    /// Forgets what waits to be sent. Nothing can be sent after it.
    pub fn forget(&mut self) {
        if let Some(sealed) = &mut self.sealed {
            sealed.wire.clear();
            sealed.gone = 0;
        }
    }

    /// Returns true if bytes have come since the last call, be they a part of a record. In clear it is false: what comes is
    /// read at once.
    pub fn take_heard(&mut self) -> bool {
        self.sealed.as_mut().is_some_and(|sealed| std::mem::take(&mut sealed.heard))
    }
}

impl Sealed {
    /// Gives the stream what waits. An error that says that it would block has left the rest here.
    fn push(&mut self, stream: &mut impl Write) -> io::Result<()> {
        while self.gone < self.wire.len() {
            match stream.write(&self.wire[self.gone..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.gone += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.wire.clear();
        self.gone = 0;
        Ok(())
    }

    /// Seals and sends records until all is taken or the stream takes no more. Returns the number of bytes that were sealed.
    fn write(&mut self, stream: &mut impl Write, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.push(stream)?;
        let (mut rest, mut taken) = (Slices::new(slices), 0);
        while rest.fill(&mut self.plain) {
            self.session.sealer.seal(&self.plain, &mut self.wire)?;
            taken += self.plain.len();
            match self.push(stream) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }
}

/// Slices that are cut into records.
struct Slices<'a> {
    slices: std::slice::Iter<'a, IoSlice<'a>>,
    /// What is left of the one before.
    rest: &'a [u8],
}

impl<'a> Slices<'a> {
    fn new(slices: &'a [IoSlice<'a>]) -> Self {
        Self { slices: slices.iter(), rest: &[] }
    }

    /// Replaces `plain` by the bytes of the next record; false if there are none.
    fn fill(&mut self, plain: &mut Vec<u8>) -> bool {
        plain.clear();
        while plain.len() < MOST_PLAIN {
            if self.rest.is_empty() {
                let Some(next) = self.slices.next() else { break };
                self.rest = next;
            }
            let (now, later) = self.rest.split_at(self.rest.len().min(MOST_PLAIN - plain.len()));
            plain.extend_from_slice(now);
            self.rest = later;
        }
        !plain.is_empty()
    }
}

impl<S: Write> Write for Channel<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    /// Fewer bytes than there are mean that the stream takes no more.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.sealed {
            None => match slices {
                // The kernel takes one slice sooner than a list with one.
                [only] => self.stream.write(only),
                _ => self.stream.write_vectored(slices),
            },
            Some(sealed) => sealed.write(&mut self.stream, slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sealed.as_mut().map_or(Ok(()), |sealed| sealed.push(&mut self.stream))
    }
}

impl<S: Read> Read for Channel<S> {
    /// Wrong records are errors, and so is an end within a record.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &mut self.sealed {
            None => self.stream.read(room),
            Some(sealed) => {
                sealed.session.opener.read(&mut Heard { stream: &mut self.stream, heard: &mut sealed.heard }, room)
            }
        }
    }
}

/// A stream that notes that something came.
struct Heard<'a, S> {
    stream: &'a mut S,
    heard: &'a mut bool,
}

impl<S: Read> Read for Heard<'_, S> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(room)?;
        *self.heard |= count > 0;
        Ok(count)
    }
}

/// Hides the keys from logs, and what was said.
impl<S: fmt::Debug> fmt::Debug for Channel<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_sealed = self.is_sealed();
        f.debug_struct("Channel").field("stream", &self.stream).field("is_sealed", &is_sealed).finish_non_exhaustive()
    }
}
