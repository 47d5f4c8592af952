//! The two messages that open a connection, without any I/O. `docs/reference/tcp-wire.md` describes the bytes.

use crate::Token;
use evb_core::NodeId;
use std::fmt;

/// Length in bytes of both messages.
pub(super) const HANDSHAKE_BYTES: usize = 48;

const MAGIC: [u8; 8] = *b"evb-tcp\0";
const VERSION: u16 = 1;

/// A handshake message: the dialer's hello, or the acceptor's answer to it.
pub(super) type Handshake = [u8; HANDSHAKE_BYTES];

/// The nodes of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) nodes: u16,
}

/// The reason why a peer refuses this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The peer does not speak this protocol, or another version of it.
    Version,
    /// The token is not that of the peer's run.
    Token,
    /// The peer is another node, expects no such node, has it already, or its run has another number of nodes.
    Node,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "it does not speak this version of the protocol",
            Self::Token => "the token is not that of its run",
            Self::Node => "it does not expect this node",
        })
    }
}

/// The dialer's message.
pub(super) fn hello(Hello { from, to, nodes }: Hello, token: &Token) -> Handshake {
    message([VERSION, from.0, to.0, nodes], token.0)
}

/// Reads the dialer's message. A dialer without the token is told nothing else.
pub(super) fn read_hello(bytes: &Handshake, token: &Token) -> Result<Hello, Refusal> {
    let ([version, from, to, nodes], theirs) = parts(bytes).ok_or(Refusal::Version)?;
    if version != VERSION {
        return Err(Refusal::Version);
    }
    if !token.matches(&theirs) {
        return Err(Refusal::Token);
    }
    Ok(Hello { from: NodeId(from), to: NodeId(to), nodes })
}

/// The acceptor's answer. It contains the token only if the dialer has shown it.
pub(super) fn answer(result: Result<(), Refusal>, local: NodeId, token: &Token) -> Handshake {
    match result {
        Ok(()) => message([VERSION, 0, local.0, 0], token.0),
        Err(refusal) => message([VERSION, 1 + refusal as u16, local.0, 0], [0; Token::BYTES]),
    }
}

/// Reads the acceptor's answer.
pub(super) fn read_answer(bytes: &Handshake, peer: NodeId, token: &Token) -> Result<(), Refusal> {
    let ([version, status, from, _], theirs) = parts(bytes).ok_or(Refusal::Version)?;
    match status {
        _ if version != VERSION => Err(Refusal::Version),
        0 if !token.matches(&theirs) => Err(Refusal::Token),
        0 if from != peer.0 => Err(Refusal::Node),
        0 => Ok(()),
        2 => Err(Refusal::Token),
        3 => Err(Refusal::Node),
        _ => Err(Refusal::Version),
    }
}

/// Returns true if these first bytes may become a handshake message.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    bytes.iter().zip(MAGIC).all(|(&byte, magic)| byte == magic)
}

fn message(fields: [u16; 4], token: [u8; Token::BYTES]) -> Handshake {
    let mut bytes = [0; HANDSHAKE_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    for (slot, field) in bytes[8..16].chunks_exact_mut(2).zip(fields) {
        slot.copy_from_slice(&field.to_le_bytes());
    }
    bytes[16..].copy_from_slice(&token);
    bytes
}

fn parts(bytes: &Handshake) -> Option<([u16; 4], [u8; Token::BYTES])> {
    let (magic, rest) = bytes.split_first_chunk()?;
    let (fields, token) = rest.split_first_chunk::<8>()?;
    let field = |index: usize| u16::from_le_bytes([fields[2 * index], fields[2 * index + 1]]);
    (*magic == MAGIC).then_some((std::array::from_fn(field), *token.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token::new([9; Token::BYTES]);
    const HELLO: Hello = Hello { from: NodeId(3), to: NodeId(1), nodes: 5 };

    #[test]
    fn a_hello_comes_back_and_a_changed_one_does_not() {
        let bytes = hello(HELLO, &TOKEN);
        assert_eq!(read_hello(&bytes, &TOKEN), Ok(HELLO));
        assert!(may_begin(&bytes) && may_begin(&bytes[..3]) && may_begin(&[]) && !may_begin(b"GET /"));
        for index in 0..HANDSHAKE_BYTES {
            let mut wrong = bytes;
            wrong[index] ^= 0x40;
            assert_ne!(read_hello(&wrong, &TOKEN), Ok(HELLO), "byte {index}");
        }
    }

    #[test]
    fn answers_come_back_and_a_refusal_does_not_show_the_token() {
        assert_eq!(read_answer(&answer(Ok(()), NodeId(1), &TOKEN), NodeId(1), &TOKEN), Ok(()));
        assert_eq!(read_answer(&answer(Ok(()), NodeId(2), &TOKEN), NodeId(1), &TOKEN), Err(Refusal::Node));
        let stranger = Token::new([8; Token::BYTES]);
        assert_eq!(read_answer(&answer(Ok(()), NodeId(1), &stranger), NodeId(1), &TOKEN), Err(Refusal::Token));
        for refusal in [Refusal::Version, Refusal::Token, Refusal::Node] {
            let bytes = answer(Err(refusal), NodeId(1), &TOKEN);
            assert_eq!(read_answer(&bytes, NodeId(1), &TOKEN), Err(refusal));
            assert_eq!(bytes[16..], [0; Token::BYTES]);
        }
        assert_eq!(read_answer(&[0; HANDSHAKE_BYTES], NodeId(1), &TOKEN), Err(Refusal::Version));
    }
}
