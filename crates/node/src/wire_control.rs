//! The control connection between run control and a node in another process: one JSON object a line, over TCP.
//!
//! A node dials, says hello with the run's token and what it is, and is welcomed with the addresses of all nodes, or
//! refused. From then on orders go one way and notices the other. A connection that ends means that its other end is
//! gone. Lines are bounded, and so is the time until the first one is whole.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// Longest line in bytes. A report names its files, so it is no fixed size.
const LONGEST_LINE: u64 = 4 << 20;
/// Longest line of a stranger in bytes.
const LONGEST_HELLO: u64 = 4 << 10;

/// The first line of a node.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The run's token, in hexadecimal digits.
    pub(crate) token: String,
    /// The node's id.
    pub(crate) node: u16,
    /// Version of evb.
    pub(crate) version: String,
    /// Fingerprint of the experiment: all nodes must have the same.
    pub(crate) experiment: u32,
    /// Where its peers reach it.
    pub(crate) listen: SocketAddr,
}

/// The answer of run control.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The run begins when all are ready.
    Welcome {
        /// The number of the run.
        run: u64,
        /// All nodes and their addresses.
        peers: Vec<(u16, SocketAddr)>,
    },
    /// This node has no place in the run.
    Refused {
        /// Why, for people.
        reason: String,
    },
}

/// One end of a control connection.
pub(crate) struct Lines {
    reader: BufReader<TcpStream>,
    limit: u64,
}

impl Lines {
    pub(crate) fn new(stream: &TcpStream) -> io::Result<Self> {
        Ok(Self { reader: BufReader::new(stream.try_clone()?), limit: LONGEST_HELLO })
    }

    /// Takes long lines from now on: the other end has shown who it is.
    pub(crate) const fn trust(&mut self) {
        self.limit = LONGEST_LINE;
    }

    /// The next line; `None` when the other end is gone.
    pub(crate) fn read<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = Vec::new();
        self.reader.by_ref().take(self.limit).read_until(b'\n', &mut line)?;
        parse(&line)
    }

    /// As [`read`](Self::read), but the whole line must come within `limit`, however slowly its bytes drip.
    pub(crate) fn read_within<T: DeserializeOwned>(&mut self, limit: Duration) -> io::Result<Option<T>> {
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
pub(crate) fn write<T: Serialize>(mut stream: &TcpStream, item: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(item)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Gives every line to `take` until the other end is gone or `take` says no; the reason, for people.
pub(crate) fn pump<T: DeserializeOwned>(lines: &mut Lines, mut take: impl FnMut(T) -> bool) -> String {
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
