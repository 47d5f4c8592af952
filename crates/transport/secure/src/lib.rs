//! Connections whose two sides prove to each other that they have the key of the run, without showing it.
//!
//! The handshake is Noise, pattern `NNpsk0` with a pre-shared key that is made of the token
//! (`handshake`). After it each side has a [`Sealer`] and an [`Opener`]: what is sealed can be read by the other side
//! alone, once, and in order. So a changed, repeated, left out or recorded record is seen and ends the connection. A
//! [`Channel`] has both for a stream that does not block.
//!
//! Three messages prove both sides: the dialer's hello, the acceptor's answer, and the dialer's first record. A hello
//! alone proves nothing, since it may be a recorded one; the answer has a new key of the acceptor, so only who has the
//! token can make a first record. [`dial`] has the dialer's part over a stream that blocks, and [`Acceptor`] the
//! acceptor's, with a bound on those who have proved nothing yet. `docs/guides/security.md` says who is kept out, and
//! `docs/reference/secure-wire.md` has the bytes.
//!
//! The handshake is a function of bytes without I/O, so that loops that block and loops that do not share it. All nodes
//! have one key, because a node is trusted with all data anyway. Control connections are always sealed; data are sealed
//! only on request, since most data networks are closed.

mod acceptor;
mod channel;
#[cfg(feature = "fuzz")]
mod fuzz;
mod greeting;
mod handshake;
mod opener;
mod sealer;
mod stream;
#[cfg(test)]
mod tests;

pub use acceptor::{AcceptResult, Acceptor, Arrived};
pub use channel::Channel;
#[cfg(feature = "fuzz")]
pub use fuzz::{fuzz_opener, fuzz_strangers};
pub use greeting::{GREETING_BYTES, Greeting, Purpose, Refusal, may_begin, refuse};
pub use handshake::{Dialer, Session, accept};
pub use opener::Opener;
pub use sealer::{MOST_PLAIN, SEAL_BYTES, Sealer};
pub use stream::{DialError, Dialed, dial};

/// Most bytes in the first record of a dialer, who has proved nothing before it.
pub const MOST_FIRST: usize = 4 << 10;
