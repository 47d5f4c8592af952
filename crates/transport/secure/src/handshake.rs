//! The handshake, without any I/O: a hello, an answer, and the keys of a session.

use super::{
    Opener, Sealer,
    greeting::{Greeting, HandshakeKind, Purpose, Refusal, greeting, noise},
};
use evb_transport::Token;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use snow::{Builder, HandshakeState};
use std::{fmt, sync::Arc};

/// Bytes of a message of Noise in this handshake: a public key and a tag.
pub(super) const NOISE_BYTES: usize = 32 + 16;
/// Pattern and algorithms. Neither side has its own key: all nodes of a run are equal before its token.
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// What the handshake is bound to, before the purpose: a message for another protocol or version proves nothing here.
const PROLOGUE: [u8; 8] = *b"evb\0sec1";
/// Label of the pre-shared key. The token itself is never used as a key of two things.
const LABEL: &[u8] = b"evb noise psk 1";

/// The keys of a connection.
#[derive(Debug)]
pub struct Session {
    /// Seals what this side sends.
    pub sealer: Sealer,
    /// Opens what the other side has sealed.
    pub opener: Opener,
}

/// A dialer that waits for the answer.
pub struct Dialer {
    state: HandshakeState,
    purpose: Purpose,
}

impl Dialer {
    /// A new dialer, and its hello.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn new(token: &Token, purpose: Purpose) -> Result<(Self, Greeting), Refusal> {
        let key = key(token);
        let mut state = builder(&key, &prologue(purpose))?.build_initiator().map_err(|_| Refusal::Random)?;
        let hello = write(&mut state, purpose, HandshakeKind::Hello)?;
        Ok((Self { state, purpose }, hello))
    }

    /// Reads the answer: the acceptor has the token, and has answered this hello.
    ///
    /// # Errors
    /// The acceptor refuses the connection, or has not proved that it has the token.
    pub fn finish(mut self, answer: &Greeting) -> Result<Session, Refusal> {
        read(&mut self.state, noise(answer, self.purpose, HandshakeKind::Answer)?).map_err(|_| Refusal::Proof)?;
        session(self.state)
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

/// The acceptor's part: reads a hello and makes the answer. The dialer has proved nothing before its first record can be
/// opened, since the hello may be a recorded one.
///
/// # Errors
/// The reason to [refuse](super::refuse) the connection.
pub fn accept(token: &Token, purpose: Purpose, hello: &Greeting) -> Result<(Session, Greeting), Refusal> {
    let message = noise(hello, purpose, HandshakeKind::Hello)?;
    let key = key(token);
    let mut state = builder(&key, &prologue(purpose))?.build_responder().map_err(|_| Refusal::Random)?;
    read(&mut state, message)?;
    let answer = write(&mut state, purpose, HandshakeKind::Answer)?;
    Ok((session(state)?, answer))
}

fn key(token: &Token) -> [u8; 32] {
    let mut code = Hmac::<Sha256>::new_from_slice(token.as_bytes()).expect("a key of any length");
    code.update(LABEL);
    code.finalize().into_bytes().into()
}

fn prologue(purpose: Purpose) -> [u8; 9] {
    let mut bytes = [purpose as u8; 9];
    bytes[..8].copy_from_slice(&PROLOGUE);
    bytes
}

fn builder<'a>(key: &'a [u8; 32], prologue: &'a [u8]) -> Result<Builder<'a>, Refusal> {
    let pattern = PATTERN.parse().map_err(|_| Refusal::Version)?;
    Builder::new(pattern).psk(0, key).and_then(|builder| builder.prologue(prologue)).map_err(|_| Refusal::Version)
}

fn write(state: &mut HandshakeState, purpose: Purpose, kind: HandshakeKind) -> Result<Greeting, Refusal> {
    let mut bytes = [0; NOISE_BYTES];
    match state.write_message(&[], &mut bytes) {
        Ok(NOISE_BYTES) => Ok(greeting(purpose, kind, &bytes)),
        Ok(_) | Err(_) => Err(Refusal::Random),
    }
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Result<(), Refusal> {
    match state.read_message(message, &mut []) {
        Ok(0) => Ok(()),
        Ok(_) | Err(_) => Err(Refusal::Token),
    }
}

fn session(state: HandshakeState) -> Result<Session, Refusal> {
    let state = Arc::new(state.into_stateless_transport_mode().map_err(|_| Refusal::Token)?);
    Ok(Session { sealer: Sealer::new(state.clone()), opener: Opener::new(state) })
}
