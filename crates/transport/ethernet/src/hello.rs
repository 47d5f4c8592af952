//! The payload of a hello: terms, nonces and a proof.

use crate::keys::{Keys, NONCE_BYTES, Nonce, PROOF_BYTES, Pair};
use evb_core::NodeId;

/// Bytes of a hello.
pub(crate) const HELLO_BYTES: usize = TERMS_BYTES + 2 * NONCE_BYTES + PROOF_BYTES;
const TERMS_BYTES: usize = 16;
/// Bit of the flags: the sender has a valid hello of the receiver.
const KNOWS: u8 = 1;
/// Bit of the flags: the sender does not take the receiver as a peer.
const REFUSES: u8 = 2;
/// Bit of the flags: messages have no heads.
const IS_LAYER: u8 = 4;

/// Terms of a node for its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Number of nodes of the run.
    pub(crate) nodes: u16,
    /// Most bytes of a payload.
    pub(crate) payload: u16,
    /// Frames that the peer may send before anything is consumed.
    pub(crate) window: u32,
    /// The sender has a valid hello of the receiver.
    pub(crate) knows: bool,
    /// The sender does not take the receiver as a peer.
    pub(crate) refuses: bool,
    /// Messages have no heads.
    pub(crate) is_layer: bool,
}

impl Terms {
    fn encode(&self) -> [u8; TERMS_BYTES] {
        let mut bytes = [0; TERMS_BYTES];
        bytes[..2].copy_from_slice(&self.nodes.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.payload.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.window.to_le_bytes());
        let flags = [(self.knows, KNOWS), (self.refuses, REFUSES), (self.is_layer, IS_LAYER)];
        bytes[8] = flags.iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag);
        bytes
    }

    fn decode(bytes: &[u8; TERMS_BYTES]) -> Self {
        Self {
            nodes: u16::from_le_bytes([bytes[0], bytes[1]]),
            payload: u16::from_le_bytes([bytes[2], bytes[3]]),
            window: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            knows: bytes[8] & KNOWS != 0,
            refuses: bytes[8] & REFUSES != 0,
            is_layer: bytes[8] & IS_LAYER != 0,
        }
    }
}

/// A hello that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hello {
    pub(crate) terms: Terms,
    /// The sender's nonce.
    pub(crate) nonce: Nonce,
    /// The receiver's nonce, as far as the sender knows it; zeros if not.
    pub(crate) echo: Nonce,
    proof: [u8; PROOF_BYTES],
}

impl Hello {
    /// The bytes of a hello from the first node of the pair to the second, whose nonce may still be zeros.
    pub(crate) fn encode(keys: &Keys, pair: &Pair, terms: &Terms) -> [u8; HELLO_BYTES] {
        let (mut bytes, terms) = ([0; HELLO_BYTES], terms.encode());
        let parts: [&[u8]; 4] = [&terms, &pair.nonces[0], &pair.nonces[1], &keys.proof(pair, &terms)];
        let mut at = 0;
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        bytes
    }

    /// Reads the payload of a hello.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (terms, rest) = bytes.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let (echo, rest) = rest.split_first_chunk()?;
        Some(Self { terms: Terms::decode(terms), nonce: *nonce, echo: *echo, proof: *rest.first_chunk()? })
    }

    /// Returns true if the sender has proved for the nonces of both that it has the token.
    pub(crate) fn is_proved(&self, keys: &Keys, from: NodeId, to: NodeId, mine: Nonce) -> bool {
        let pair = Pair { nodes: [from, to], nonces: [self.nonce, mine] };
        self.echo == mine && keys.is_proof(&pair, &self.terms.encode(), &self.proof)
    }

    /// Returns true if the sender has the token; the hello may be an old one.
    pub(crate) fn is_signed(&self, keys: &Keys, from: NodeId, to: NodeId) -> bool {
        let pair = Pair { nodes: [from, to], nonces: [self.nonce, self.echo] };
        keys.is_proof(&pair, &self.terms.encode(), &self.proof)
    }
}
