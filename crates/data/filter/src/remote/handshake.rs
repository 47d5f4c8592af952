//! The messages that open the connection of a filter unit: both sides prove that they have the token of the run
//! (`evb_transport_secure`), and the builder says in one sealed byte whether it has a place. `docs/filters.md` has the
//! bytes.
//!
//! `docs/reference/filter-wire.md` has the bytes.

use evb_transport::Token;
use evb_transport_secure::{self as secure, Channel, DialError, Opener, Purpose, SEAL_BYTES, Sealer, dial};
use std::{
    fmt,
    io::{self, ErrorKind, Read as _},
    net::TcpStream,
    time::Duration,
};

/// What a filter unit says when it has proved itself: the version of the messages that follow.
pub(crate) const HELLO: [u8; 1] = [2];

/// The reason why a builder refuses a filter unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The other side does not speak this protocol, or another version of it.
    Version,
    /// The token is not that of the run.
    Token,
    /// The other side has not proved that it has the token.
    Proof,
    /// The builder has as many filter units as it may have.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "the other side does not speak this version of the protocol",
            Self::Token => "the token is not that of the run",
            Self::Proof => "it has not proved that it has the token of the run",
            Self::Full => "the builder has all the filter units that it may have",
        })
    }
}

/// Proves a filter unit and its builder to each other, and hears whether there is a place. The answer must come within
/// `patience`, and the proof before it, too. All that follows is sealed.
pub(crate) fn join(
    mut stream: TcpStream,
    token: &Token,
    patience: Duration,
) -> io::Result<Result<Channel<TcpStream>, Refusal>> {
    let mut session = match dial(&stream, token, Purpose::Filter, &HELLO, patience) {
        Ok(session) => session,
        Err(DialError::Broken(error)) => return Err(error),
        Err(DialError::Refused(refusal)) => return Ok(Err(refusal.into())),
    };
    stream.set_read_timeout(Some(patience))?;
    // Not a byte more: the builder's messages may follow.
    let mut record = [0; 1 + SEAL_BYTES];
    stream.read_exact(&mut record)?;
    stream.set_read_timeout(None)?;
    let answer = read_answer(&mut session.opener, &record)?;
    Ok(answer.map(|()| Channel::sealed(stream, session)))
}

fn read_answer(opener: &mut Opener, record: &[u8]) -> io::Result<Result<(), Refusal>> {
    match opener.open(record)?.as_deref() {
        Some([0]) => Ok(Ok(())),
        Some([1]) => Ok(Err(Refusal::Version)),
        Some([2]) => Ok(Err(Refusal::Full)),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

/// The builder's answer to a filter unit that has the token.
pub(crate) fn answer(sealer: &mut Sealer, result: Result<(), Refusal>, stream: &TcpStream) -> io::Result<()> {
    let status = match result {
        Ok(()) => 0,
        Err(Refusal::Full) => 2,
        Err(_) => 1,
    };
    sealer.write(stream, &[status])
}

impl From<secure::Refusal> for Refusal {
    fn from(refusal: secure::Refusal) -> Self {
        match refusal {
            secure::Refusal::Token => Self::Token,
            secure::Refusal::Proof => Self::Proof,
            secure::Refusal::Version | secure::Refusal::Random => Self::Version,
        }
    }
}
