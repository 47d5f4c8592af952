//! The two messages that open the connection of a filter unit: its hello with the token of the run, and the builder's
//! answer. Both have the same length. `docs/filters.md` has the bytes.

use evb_transport::Token;
use std::{
    fmt,
    io::{self, ErrorKind, Read},
    net::TcpStream,
    time::{Duration, Instant},
};

/// Length in bytes of both messages.
const BYTES: usize = 16 + DIGITS;
/// Digits of a token.
const DIGITS: usize = 2 * Token::BYTES;
const MAGIC: [u8; 8] = *b"evb-flt\0";
const VERSION: u16 = 1;

pub(crate) type Handshake = [u8; BYTES];

/// The reason why a builder refuses a filter unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The other side does not speak this protocol, or another version of it.
    Version,
    /// The token is not that of the run.
    Token,
    /// The builder has as many filter units as it may have.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "the other side does not speak this version of the protocol",
            Self::Token => "the token is not that of the run",
            Self::Full => "the builder has all the filter units that it may have",
        })
    }
}

/// The message of a filter unit.
pub(crate) fn hello(token: &Token) -> Handshake {
    message(0, Some(token))
}

/// Reads the message of a filter unit.
pub(crate) fn read_hello(bytes: &Handshake, token: &Token) -> Result<(), Refusal> {
    match parts(bytes) {
        Some((VERSION, 0, theirs)) if shows(theirs, token) => Ok(()),
        Some((VERSION, 0, _)) => Err(Refusal::Token),
        _ => Err(Refusal::Version),
    }
}

/// The answer of a builder. It has the token only if the filter unit has shown it.
pub(crate) fn answer(result: Result<(), Refusal>, token: &Token) -> Handshake {
    match result {
        Ok(()) => message(0, Some(token)),
        Err(Refusal::Version) => message(1, None),
        Err(Refusal::Token) => message(2, None),
        Err(Refusal::Full) => message(3, None),
    }
}

/// Reads the answer of a builder.
pub(crate) fn read_answer(bytes: &Handshake, token: &Token) -> Result<(), Refusal> {
    match parts(bytes) {
        Some((VERSION, 0, theirs)) if shows(theirs, token) => Ok(()),
        Some((VERSION, 0 | 2, _)) => Err(Refusal::Token),
        Some((VERSION, 3, _)) => Err(Refusal::Full),
        _ => Err(Refusal::Version),
    }
}

/// Reads a message of the other side, at most for this time however slowly it comes.
pub(crate) fn read(mut stream: &TcpStream, patience: Duration) -> io::Result<Handshake> {
    let (mut bytes, mut filled, until) = ([0; BYTES], 0, Instant::now() + patience);
    while filled < BYTES {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => filled += length,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if !bytes[..filled].iter().zip(MAGIC).all(|(&byte, magic)| byte == magic) {
            return Err(io::Error::new(ErrorKind::InvalidData, "this is no filter unit of evb, and no builder"));
        }
    }
    Ok(bytes)
}

fn message(status: u16, token: Option<&Token>) -> Handshake {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[10..12].copy_from_slice(&status.to_le_bytes());
    if let Some(token) = token {
        bytes[16..].copy_from_slice(token.to_hex().as_bytes());
    }
    bytes
}

fn parts(bytes: &Handshake) -> Option<(u16, u16, &[u8])> {
    let field = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    (bytes[..8] == MAGIC).then(|| (field(8), field(10), &bytes[16..]))
}

/// Compares in constant time, as tokens do.
fn shows(digits: &[u8], token: &Token) -> bool {
    let shown = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<Token>().ok());
    shown.is_some_and(|shown| shown == *token)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token::new([9; Token::BYTES]);
    const OTHER: Token = Token::new([8; Token::BYTES]);

    #[test]
    fn only_the_token_opens_the_door() {
        assert_eq!(read_hello(&hello(&TOKEN), &TOKEN), Ok(()));
        assert_eq!(read_hello(&hello(&OTHER), &TOKEN), Err(Refusal::Token));
        for index in (0..BYTES).filter(|index| !(12..16).contains(index)) {
            let mut wrong = hello(&TOKEN);
            wrong[index] ^= 0x40;
            assert!(read_hello(&wrong, &TOKEN).is_err(), "byte {index}");
        }
    }

    #[test]
    fn a_refusal_says_why_and_does_not_show_the_token() {
        assert_eq!(read_answer(&answer(Ok(()), &TOKEN), &TOKEN), Ok(()));
        assert_eq!(read_answer(&answer(Ok(()), &OTHER), &TOKEN), Err(Refusal::Token));
        for refusal in [Refusal::Version, Refusal::Token, Refusal::Full] {
            let bytes = answer(Err(refusal), &TOKEN);
            assert_eq!(read_answer(&bytes, &TOKEN), Err(refusal));
            assert_eq!(bytes[16..], [0; DIGITS]);
        }
        assert_eq!(read_answer(&[0; BYTES], &TOKEN), Err(Refusal::Version));
    }
}
