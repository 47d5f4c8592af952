//! The messages of the handshake as bytes: all have one length, and the first bytes tell whether they may be one.

use std::fmt;

/// Bytes of a handshake message.
pub const GREETING_BYTES: usize = HEAD_BYTES + super::handshake::NOISE_BYTES;
/// Bytes before the message of Noise.
const HEAD_BYTES: usize = 8;
const MAGIC: [u8; 5] = *b"evb\0s";
const VERSION: u8 = 1;

/// A message of the handshake.
pub type Greeting = [u8; GREETING_BYTES];

/// What a connection is for. Both sides must mean the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A node joins run control.
    Control = 1,
    /// A process joins the launch of a benchmark.
    Launch = 2,
    /// Two nodes exchange messages over TCP.
    Tcp = 3,
    /// A filter unit joins a builder.
    Filter = 4,
}

/// The reason why the other side refuses a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not speak this protocol, this version of it, or the connection is for something else.
    Version,
    /// It does not have the token of the run.
    Token,
    /// The other side has not proved that it has the token of the run.
    Proof,
    /// The system gives no random numbers.
    Random,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "it does not speak this version of the protocol",
            Self::Token => "it does not have the token of this run",
            Self::Proof => "it has not proved that it has the token of this run",
            Self::Random => "the system gives no random numbers",
        })
    }
}

impl From<Refusal> for evb_transport::Refusal {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Token => Self::Token,
            Refusal::Proof => Self::Proof,
            Refusal::Version | Refusal::Random => Self::Version,
        }
    }
}

/// Kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeKind {
    Hello = 1,
    Answer = 2,
    Refusal = 3,
}

/// Returns true if these first bytes may become a message for this purpose.
#[must_use]
pub fn may_begin(bytes: &[u8], purpose: Purpose) -> bool {
    let expected = MAGIC.into_iter().map(Some).chain([None, Some(purpose as u8)]);
    bytes.iter().zip(expected).all(|(&byte, expected)| expected.is_none_or(|expected| byte == expected))
}

/// The message that refuses a connection. It tells nothing but the reason, and is not authenticated.
#[must_use]
pub fn refuse(purpose: Purpose, refusal: Refusal) -> Greeting {
    let mut body = [0; super::handshake::NOISE_BYTES];
    body[0] = match refusal {
        Refusal::Version => 1,
        Refusal::Token | Refusal::Proof => 2,
        Refusal::Random => 3,
    };
    greeting(purpose, HandshakeKind::Refusal, &body)
}

pub(super) fn greeting(purpose: Purpose, kind: HandshakeKind, noise: &[u8; super::handshake::NOISE_BYTES]) -> Greeting {
    let mut bytes = [0; GREETING_BYTES];
    bytes[..5].copy_from_slice(&MAGIC);
    bytes[5..HEAD_BYTES].copy_from_slice(&[VERSION, purpose as u8, kind as u8]);
    bytes[HEAD_BYTES..].copy_from_slice(noise);
    bytes
}

/// The message of Noise in a message of this kind, or the reason to refuse it: that which it tells, if it is a refusal.
pub(super) fn noise(bytes: &Greeting, purpose: Purpose, kind: HandshakeKind) -> Result<&[u8], Refusal> {
    let (head, noise) = bytes.split_at(HEAD_BYTES);
    if !may_begin(head, purpose) || head[5] != VERSION {
        return Err(Refusal::Version);
    }
    match (head[7], noise[0]) {
        (found, _) if found == kind as u8 => Ok(noise),
        (found, 2) if found == HandshakeKind::Refusal as u8 => Err(Refusal::Token),
        (found, 3) if found == HandshakeKind::Refusal as u8 => Err(Refusal::Random),
        _ => Err(Refusal::Version),
    }
}
