//! A transport over any message layer: head and body of a message are its bytes, one after the other.

use crate::{
    Connect, HEAD_BYTES, JoinError, Message, MessageLayer, Received, Refused, SendError, SharesThread, Transport, Waker,
};
use bytes::Bytes;
use evb_core::NodeId;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Longest sleep. A layer cannot be woken, so a waker has to wait for its end.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// A [`Transport`] that copies each message into the bytes of a layer, and out of them.
///
/// Its waits end after a millisecond at most, which is the longest delay of a [`Waker`].
#[derive(Debug)]
pub struct OverLayer<L> {
    layer: L,
    /// The message that is being sent.
    bytes: Vec<u8>,
    called: Arc<AtomicBool>,
}

impl<L: MessageLayer> OverLayer<L> {
    /// The transport over a connected layer, which takes messages of more than [`HEAD_BYTES`].
    pub fn new(layer: L) -> Self {
        Self { layer, bytes: Vec::new(), called: Arc::default() }
    }

    /// Longest body in bytes.
    #[must_use]
    pub fn max_body(&self) -> usize {
        self.layer.max_bytes().saturating_sub(HEAD_BYTES)
    }
}

impl<L: MessageLayer> Transport for OverLayer<L> {
    fn local(&self) -> NodeId {
        self.layer.local()
    }

    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let (length, limit) = (message.body.len(), self.max_body());
        if length > limit {
            return Err(SendError::TooLarge { length, limit });
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(&message.head);
        self.bytes.extend_from_slice(&message.body);
        self.layer.send(to, &self.bytes).map_err(|refused| match refused {
            Refused::Full => SendError::Full(message),
            Refused::Lost => SendError::Lost,
            Refused::TooLarge { .. } => SendError::TooLarge { length, limit },
        })
    }

    fn flush(&mut self) -> bool {
        self.layer.flush()
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        let before = sink.len();
        self.layer.receive(limit, &mut |from, bytes| {
            // Bytes without a head do not come from this transport.
            if let Some((&head, body)) = bytes.split_first_chunk() {
                let message = Message { head, body: Bytes::copy_from_slice(body) };
                sink.push(Received::Message { from, message });
            }
        });
        while sink.len() - before < limit
            && let Some(peer) = self.layer.lost()
        {
            sink.push(Received::Lost { peer, reason: "the peer left".into() });
        }
        sink.len() - before
    }

    fn wait(&mut self, timeout: Duration) {
        if !self.called.swap(false, Ordering::Acquire) {
            self.layer.wait(timeout.min(LONGEST_SLEEP));
        }
    }

    fn waker(&self) -> Waker {
        let called = Arc::clone(&self.called);
        Arc::new(move || called.store(true, Ordering::Release))
    }
}

impl<L: MessageLayer + 'static> SharesThread for OverLayer<L> {}

impl<L: Connect> Connect for OverLayer<L> {
    fn address(&self) -> String {
        self.layer.address()
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        self.layer.connect(peers)
    }
}
