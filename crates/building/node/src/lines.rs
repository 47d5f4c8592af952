//! The control connection between processes: one JSON object per line, sealed, over TCP.
//!
//! Both sides have proved that they have the token before the first line (`evb_transport_secure`), which is the last
//! message of the handshake. Lines have a bounded length.

use evb_transport::Token;
use evb_transport_secure::{Arrived, DialError, Opener, Purpose, Sealer, dial};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    io::{self, ErrorKind},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

/// Longest line in bytes. A report names its files, so its size varies.
const LONGEST_LINE: usize = 4 << 20;
/// Bytes that are opened at a time.
const PIECE: usize = 16 << 10;
/// Least time that the system is asked to wait.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// The reading end of a control connection.
#[derive(Debug)]
pub struct Lines {
    stream: TcpStream,
    opener: Opener,
    /// What was opened and not yet read: parts of a line, or several.
    begun: Vec<u8>,
    /// Bytes of it that have no end of a line.
    searched: usize,
}

/// The writing end of a control connection.
#[derive(Debug)]
pub struct Writer {
    stream: TcpStream,
    sealer: Sealer,
    /// A line was perhaps cut off: nothing can follow it.
    is_broken: bool,
}

/// Proves both sides of a connection to each other, and writes the first line.
///
/// # Errors
/// [`DialError`]: the other side has no token, refuses this one, or the connection failed.
pub fn join<T: Serialize>(
    stream: TcpStream,
    token: &Token,
    purpose: Purpose,
    first: &T,
    patience: Duration,
) -> Result<(Writer, Lines), DialError> {
    let line = line(first).map_err(DialError::Broken)?;
    stream.set_nodelay(true).map_err(DialError::Broken)?;
    let session = dial(&stream, token, purpose, &line, patience)?;
    ends(stream, session.sealer, session.opener, Vec::new()).map_err(DialError::Broken)
}

/// Both ends of a connection whose other side has the token, and its first line.
///
/// # Errors
/// The first line is not such an item, or the system has no more files.
pub fn welcome<T: DeserializeOwned>(arrived: Arrived) -> io::Result<(T, Writer, Lines)> {
    let Arrived { stream, sealer, opener, first, .. } = arrived;
    let (writer, mut lines) = ends(stream, sealer, opener, first)?;
    let first = lines.take_line().transpose()?;
    first.map(|first| (first, writer, lines)).ok_or_else(cut_off)
}

fn ends(stream: TcpStream, sealer: Sealer, opener: Opener, begun: Vec<u8>) -> io::Result<(Writer, Lines)> {
    let lines = Lines { stream: stream.try_clone()?, opener, begun, searched: 0 };
    Ok((Writer { stream, sealer, is_broken: false }, lines))
}

impl Writer {
    /// Writes one line.
    ///
    /// # Errors
    /// The connection failed, now or before.
    pub fn write<T: Serialize>(&mut self, item: &T) -> io::Result<()> {
        if self.is_broken {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let line = line(item)?;
        let written = self.sealer.write(&self.stream, &line);
        self.is_broken = written.is_err();
        written
    }

    /// The connection.
    #[must_use]
    pub const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Ends the connection in both directions, also for those who read from it.
    pub fn close(&self) {
        let _already_closed = self.stream.shutdown(Shutdown::Both);
    }
}

impl Lines {
    /// The next line; `None` if the peer is gone.
    ///
    /// # Errors
    /// The line is too long or invalid, a record was changed on its way, or the connection failed.
    pub fn read<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            if let Some(line) = self.take_line() {
                return line.map(Some);
            }
            if self.more()? == 0 {
                return if self.begun.is_empty() { Ok(None) } else { Err(cut_off()) };
            }
        }
    }

    /// Reads a line like [`read`](Self::read), but the whole line must come within `limit`, however slowly its bytes
    /// arrive. The next call continues with a line that was not whole.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read), or [`TimedOut`](ErrorKind::TimedOut) if the time is over.
    pub fn read_within<T: DeserializeOwned>(&mut self, limit: Duration) -> io::Result<Option<T>> {
        let end = Instant::now() + limit;
        loop {
            if let Some(line) = self.take_line() {
                return line.map(Some);
            }
            let left = end.saturating_duration_since(Instant::now());
            self.stream.set_read_timeout(Some(left.max(LEAST_WAIT)))?;
            match self.more() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
                Err(error) => return Err(error),
                Ok(0) => return if self.begun.is_empty() { Ok(None) } else { Err(cut_off()) },
                Ok(_) if left.is_zero() && !self.begun[self.searched..].contains(&b'\n') => {
                    return Err(ErrorKind::TimedOut.into());
                }
                Ok(_) => {}
            }
        }
    }

    /// Takes a whole line off what was opened.
    fn take_line<T: DeserializeOwned>(&mut self) -> Option<io::Result<T>> {
        match self.begun[self.searched..].iter().position(|&byte| byte == b'\n') {
            Some(at) => {
                let line: Vec<u8> = self.begun.drain(..=self.searched + at).collect();
                self.searched = 0;
                Some(serde_json::from_slice(&line).map_err(io::Error::from))
            }
            None => {
                self.searched = self.begun.len();
                (self.searched >= LONGEST_LINE).then(|| Err(cut_off()))
            }
        }
    }

    /// Opens more bytes, and returns their number.
    fn more(&mut self) -> io::Result<usize> {
        let filled = self.begun.len();
        self.begun.resize(filled + PIECE, 0);
        let read = loop {
            match self.opener.read(&mut &self.stream, &mut self.begun[filled..]) {
                // A signal came, which the program has heard of.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.begun.truncate(filled + read.as_ref().copied().unwrap_or(0));
        read
    }
}

fn line<T: Serialize>(item: &T) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(item)?;
    line.push(b'\n');
    Ok(line)
}

fn cut_off() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "a line is cut off or too long")
}

/// Passes every line to `take` until the peer is gone or `take` returns false. Returns the reason, as text for people.
pub fn pump<T: DeserializeOwned>(lines: &mut Lines, mut take: impl FnMut(T) -> bool) -> String {
    loop {
        match lines.read() {
            Ok(Some(item)) => {
                if !take(item) {
                    return "the receiver is gone".into();
                }
            }
            Ok(None) => return "the connection to run control has closed".into(),
            Err(error) => return format!("the connection to run control failed: {error}"),
        }
    }
}
