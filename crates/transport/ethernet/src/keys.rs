//! What the nodes of a run derive from its token, which itself never leaves them.

use evb_core::NodeId;
use evb_transport::Token;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::fmt;

/// Bytes of a nonce.
pub(crate) const NONCE_BYTES: usize = 16;
/// Bytes of a proof.
pub(crate) const PROOF_BYTES: usize = 32;

/// A number that a node draws once for each peer.
pub(crate) type Nonce = [u8; NONCE_BYTES];

/// The key of a run.
#[derive(Clone)]
pub(crate) struct Keys(Hmac<Sha256>);

/// Hides the secret from logs.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

/// Two nodes and their nonces, in the order sender, receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) nodes: [NodeId; 2],
    pub(crate) nonces: [Nonce; 2],
}

impl Keys {
    pub(crate) fn new(token: &Token) -> Self {
        Self(Hmac::new_from_slice(token.to_hex().as_bytes()).expect("a key of any length"))
    }

    /// The mark of the run in all its frames.
    pub(crate) fn run(&self) -> u32 {
        let bytes: [u8; 32] = self.code(b"run", &[]).finalize().into_bytes().into();
        u32::from_le_bytes(*bytes.first_chunk().expect("32 bytes"))
    }

    /// The proof that the sender of a hello has the token, and has sent these terms for these nonces.
    pub(crate) fn proof(&self, pair: &Pair, terms: &[u8]) -> [u8; PROOF_BYTES] {
        self.of_pair(b"hello", pair, terms).finalize().into_bytes().into()
    }

    /// Returns true if that is the proof; takes the same time for all that are not.
    pub(crate) fn is_proof(&self, pair: &Pair, terms: &[u8], proof: &[u8]) -> bool {
        self.of_pair(b"hello", pair, terms).verify_slice(proof).is_ok()
    }

    /// The session from the first node of the pair to the second.
    pub(crate) fn session(&self, pair: &Pair) -> u64 {
        let bytes: [u8; 32] = self.of_pair(b"session", pair, &[]).finalize().into_bytes().into();
        u64::from_le_bytes(*bytes.first_chunk().expect("32 bytes"))
    }

    fn of_pair(&self, label: &[u8], pair: &Pair, terms: &[u8]) -> Hmac<Sha256> {
        let [from, to] = pair.nodes.map(|node| node.0.to_le_bytes());
        self.code(label, &[&from, &to, &pair.nonces[0], &pair.nonces[1], terms])
    }

    /// The code of a label and parts; all parts but the last have fixed lengths.
    fn code(&self, label: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut code = self.0.clone();
        code.update(&[label.len() as u8]);
        code.update(label);
        parts.iter().for_each(|part| code.update(part));
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_and_sessions_depend_on_everything() {
        let keys = Keys::new(&Token::new([1; Token::BYTES]));
        let pair = Pair { nodes: [NodeId(0), NodeId(1)], nonces: [[1; NONCE_BYTES], [2; NONCE_BYTES]] };
        let proof = keys.proof(&pair, b"terms");
        assert!(keys.is_proof(&pair, b"terms", &proof));
        let back = Pair { nodes: [NodeId(1), NodeId(0)], nonces: [[2; NONCE_BYTES], [1; NONCE_BYTES]] };
        let other = Pair { nonces: [[1; NONCE_BYTES], [3; NONCE_BYTES]], ..pair };
        for wrong in [back, other] {
            assert!(!keys.is_proof(&wrong, b"terms", &proof));
            assert_ne!(keys.session(&wrong), keys.session(&pair));
        }
        let strange = Keys::new(&Token::new([2; Token::BYTES]));
        assert!(!keys.is_proof(&pair, b"others", &proof) && !strange.is_proof(&pair, b"terms", &proof));
        assert!(strange.run() != keys.run() && strange.session(&pair) != keys.session(&pair));
    }
}
