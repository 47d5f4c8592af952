//! The control connection between processes: one JSON object per line, over TCP.
//!
//! Lines have a bounded length. The first one must be complete within a bounded time.

use serde::{Serialize, de::DeserializeOwned};
use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
    mem,
    net::TcpStream,
    time::{Duration, Instant},
};

/// Longest line in bytes. A report names its files, so its size varies.
const LONGEST_LINE: u64 = 4 << 20;
/// Longest line of an unknown peer in bytes.
const LONGEST_HELLO: u64 = 4 << 10;

/// One end of a control connection.
#[derive(Debug)]
pub struct Lines {
    reader: BufReader<TcpStream>,
    limit: u64,
    /// The beginning of a line whose end has not come in time.
    begun: Vec<u8>,
}

impl Lines {
    /// The reading end of a connection with an unknown peer.
    ///
    /// # Errors
    /// The system gives no more files.
    pub fn new(stream: &TcpStream) -> io::Result<Self> {
        Ok(Self { reader: BufReader::new(stream.try_clone()?), limit: LONGEST_HELLO, begun: Vec::new() })
    }

    /// Accepts long lines from now on: the peer has shown who it is.
    pub const fn trust(&mut self) {
        self.limit = LONGEST_LINE;
    }

    /// The next line; `None` if the peer is gone.
    ///
    /// # Errors
    /// The line is too long or invalid, or the connection failed.
    pub fn read<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = mem::take(&mut self.begun);
        self.reader.by_ref().take(self.limit).read_until(b'\n', &mut line)?;
        parse(&line)
    }

    /// Reads a line like [`read`](Self::read), but the whole line must come within `limit`, however slowly its bytes
    /// arrive. The next call goes on with a line that was not whole.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read), or [`TimedOut`](ErrorKind::TimedOut) if the time is over.
    pub fn read_within<T: DeserializeOwned>(&mut self, limit: Duration) -> io::Result<Option<T>> {
        let end = Instant::now() + limit;
        while self.begun.last() != Some(&b'\n') && (self.begun.len() as u64) < self.limit {
            let left = end.saturating_duration_since(Instant::now());
            self.reader.get_ref().set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            let bytes = match self.reader.fill_buf() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
                // A signal came, which the program has heard of.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                bytes => bytes?,
            };
            let whole = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1);
            self.begun.extend_from_slice(&bytes[..whole]);
            self.reader.consume(whole);
            if whole == 0 {
                break;
            }
            if left.is_zero() && self.begun.last() != Some(&b'\n') {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        parse(&mem::take(&mut self.begun))
    }
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> io::Result<Option<T>> {
    match line.last() {
        None => Ok(None),
        Some(b'\n') => serde_json::from_slice(line).map(Some).map_err(io::Error::from),
        Some(_) => Err(io::Error::new(ErrorKind::InvalidData, "a line is cut off or too long")),
    }
}

/// Writes one line.
///
/// # Errors
/// The connection failed.
pub fn write<T: Serialize>(mut stream: &TcpStream, item: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(item)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Passes every line to `take` until the peer is gone or `take` returns false. Returns the reason, as text for people.
pub fn pump<T: DeserializeOwned>(lines: &mut Lines, mut take: impl FnMut(T) -> bool) -> String {
    loop {
        match lines.read() {
            Ok(Some(item)) => {
                if !take(item) {
                    return "nobody listens any more".into();
                }
            }
            Ok(None) => return "the connection to run control has closed".into(),
            Err(error) => return format!("the connection to run control failed: {error}"),
        }
    }
}
