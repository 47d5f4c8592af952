//! The dialer's part of the handshake over a connection that blocks.

use super::{
    greeting::{GREETING_BYTES, Greeting, Purpose, Refusal, may_begin},
    handshake::{Dialer, Session},
};
use evb_transport::Token;
use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

/// Least time that the system is asked to wait.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// A connection whose other side has proved that it has the token, and has been sent the first record.
pub type Dialed = Session;

/// The reason why a connection was not opened.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The connection failed or was closed. The other side may be starting, or had too many strangers: dial again.
    #[error("{0}")]
    Broken(io::Error),
    /// The other side refuses this one, or has not proved that it has the token: nothing was sent to it.
    #[error("{0}")]
    Refused(Refusal),
}

/// Proves both sides to each other, and sends the first record, at most [`MOST_FIRST`](super::MOST_FIRST) bytes. The
/// answer must come within `patience`, however slowly its bytes arrive. The stream has no limit for reading afterwards.
///
/// # Errors
/// [`DialError`].
pub fn dial(
    mut stream: &TcpStream,
    token: &Token,
    purpose: Purpose,
    first: &[u8],
    patience: Duration,
) -> Result<Dialed, DialError> {
    let (dialer, hello) = Dialer::new(token, purpose).map_err(DialError::Refused)?;
    stream.write_all(&hello).map_err(DialError::Broken)?;
    let answer = read_greeting(stream, purpose, patience)?;
    let mut session = dialer.finish(&answer).map_err(DialError::Refused)?;
    session.opener.trust();
    session.sealer.write(stream, first).map_err(DialError::Broken)?;
    stream.set_read_timeout(None).map_err(DialError::Broken)?;
    Ok(session)
}

fn read_greeting(mut stream: &TcpStream, purpose: Purpose, patience: Duration) -> Result<Greeting, DialError> {
    let (mut bytes, mut filled, end) = ([0; GREETING_BYTES], 0, Instant::now() + patience);
    while filled < GREETING_BYTES {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(DialError::Broken(ErrorKind::TimedOut.into()));
        }
        stream.set_read_timeout(Some(left.max(LEAST_WAIT))).map_err(DialError::Broken)?;
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Err(DialError::Broken(ErrorKind::UnexpectedEof.into())),
            Ok(count) => filled += count,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(DialError::Broken(error)),
        }
        if !may_begin(&bytes[..filled], purpose) {
            return Err(DialError::Refused(Refusal::Version));
        }
    }
    Ok(bytes)
}
