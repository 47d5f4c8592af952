//! The control connection between processes: one JSON object a line, over TCP.
//!
//! Lines are bounded, and so is the time until the first one is whole.

use serde::{Serialize, de::DeserializeOwned};
use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

/// Longest line in bytes. A report names its files, so it is no fixed size.
const LONGEST_LINE: u64 = 4 << 20;
/// Longest line of a stranger in bytes.
const LONGEST_HELLO: u64 = 4 << 10;

/// One end of a control connection.
#[derive(Debug)]
pub struct Lines {
    reader: BufReader<TcpStream>,
    limit: u64,
}

impl Lines {
    /// The reading end of a connection with a stranger.
    ///
    /// # Errors
    /// The system gives no more files.
    pub fn new(stream: &TcpStream) -> io::Result<Self> {
        Ok(Self { reader: BufReader::new(stream.try_clone()?), limit: LONGEST_HELLO })
    }

    /// Takes long lines from now on: the other end has shown who it is.
    pub const fn trust(&mut self) {
        self.limit = LONGEST_LINE;
    }

    /// The next line; `None` when the other end is gone.
    ///
    /// # Errors
    /// The line is too long or means something else, or the connection failed.
    pub fn read<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = Vec::new();
        self.reader.by_ref().take(self.limit).read_until(b'\n', &mut line)?;
        parse(&line)
    }

    /// As [`read`](Self::read), but the whole line must come within `limit`, however slowly its bytes drip.
    ///
    /// # Errors
    /// As [`read`](Self::read), or the time is over.
    pub fn read_within<T: DeserializeOwned>(&mut self, limit: Duration) -> io::Result<Option<T>> {
        let (mut line, end) = (Vec::new(), Instant::now() + limit);
        while line.last() != Some(&b'\n') && (line.len() as u64) < self.limit {
            let left = end.saturating_duration_since(Instant::now());
            self.reader.get_ref().set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            let bytes = self.reader.fill_buf()?;
            let whole = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1);
            line.extend_from_slice(&bytes[..whole]);
            self.reader.consume(whole);
            if whole == 0 {
                break;
            }
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        parse(&line)
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

/// Gives every line to `take` until the other end is gone or `take` says no; the reason, for people.
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
