//! Invariants of the wire format for any bytes. The test of the corpus and the fuzz target share them.

use evb_protocol::{
    Message,
    wire::{Body, HEAD_BYTES, decode, encode},
};

/// Reads `bytes` as a head and a body; an accepted message is the same after it is sent on.
///
/// # Panics
/// If an invariant does not hold, or the reader panics: a bug, whatever the bytes are.
pub(crate) fn check(bytes: &[u8]) {
    let Some((head, body)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return };
    if let Ok(message) = decode(head, body.to_vec()) {
        assert_eq!(sent_on(message.clone()), [message]);
    }
}

fn sent_on(message: Message<Vec<u8>>) -> Vec<Message<Vec<u8>>> {
    let mut received = Vec::new();
    encode(message, |head, body| {
        let bytes = match body {
            Body::Empty => Vec::new(),
            Body::Payload(bytes) | Body::List(bytes) => bytes,
        };
        received.push(decode(&head, bytes).expect("an encoded message can be read"));
    });
    received
}
