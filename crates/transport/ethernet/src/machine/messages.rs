//! Messages into the machine and out of it: those of a transport, and those of a layer.

use super::Machine;
use crate::link::RECORD_BYTES;
use evb_core::{NodeId, Time};
use evb_transport::{Message, Received, Refused, SendError, Take};

/// Most messages from one peer before the next has its turn.
const TURN: usize = 64;
/// Most bytes of a layer's messages that wait for a peer: they stay in a cache.
const LAYER_QUEUE_BYTES: usize = 256 << 10;

impl Machine {
    /// Queues a message.
    pub(crate) fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let (length, limit) = (message.body.len(), self.options.endpoint.max_body);
        if length > limit {
            return Err(SendError::TooLarge { length, limit });
        }
        let Some(link) = self.links.get_mut(to.index()).and_then(Option::as_deref_mut) else {
            return Err(SendError::Lost);
        };
        if !link.takes_messages() {
            return Err(SendError::Lost);
        }
        let waiting = link.waiting_bytes();
        if waiting > 0 && waiting + length + RECORD_BYTES > self.options.send_queue_bytes {
            return Err(SendError::Full(message));
        }
        link.push(message);
        if !std::mem::replace(&mut link.is_busy, true) {
            self.busy.push_back(to.0);
        }
        Ok(())
    }

    /// Queues a message of a layer.
    #[inline]
    pub(crate) fn send_bytes(&mut self, to: NodeId, bytes: &[u8]) -> Result<(), Refused> {
        let limit = self.options.endpoint.max_body;
        if bytes.len() > limit {
            return Err(Refused::TooLarge { limit });
        }
        let link = self.links.get_mut(to.index()).and_then(Option::as_deref_mut);
        let Some(link) = link.filter(|link| link.takes_messages()) else { return Err(Refused::Lost) };
        let waiting = link.waiting_bytes();
        if waiting > 0 && waiting + bytes.len() > LAYER_QUEUE_BYTES.min(self.options.send_queue_bytes) {
            return Err(Refused::Full);
        }
        link.push_bytes(bytes);
        if !std::mem::replace(&mut link.is_busy, true) {
            self.busy.push_back(to.0);
        }
        Ok(())
    }

    /// Calls `take` with at most `limit` messages of a layer; appends peers that are gone to `lost`.
    #[inline]
    pub(crate) fn receive_bytes(
        &mut self,
        now: Time,
        limit: usize,
        take: &mut Take<'_>,
        lost: &mut Vec<NodeId>,
    ) -> usize {
        let mut given = 0;
        while given < limit
            && let Some(index) = self.active.pop_front()
        {
            let Some(link) = self.links[usize::from(index)].as_deref_mut() else { continue };
            given += link.give_bytes((limit - given).min(TURN), take);
            lost.extend(link.take_end(&mut self.pool).map(|_| NodeId(index)));
            link.is_active = false;
            self.note(now, usize::from(index));
        }
        given
    }

    /// Appends at most `limit` messages, in turn from all peers; returns their number.
    pub(crate) fn receive(&mut self, now: Time, limit: usize, sink: &mut Vec<Received>) -> usize {
        let before = sink.len();
        while let Some(&index) = self.active.front() {
            let left = limit - (sink.len() - before);
            if left == 0 {
                break;
            }
            self.active.pop_front();
            let Some(link) = self.links[usize::from(index)].as_deref_mut() else { continue };
            link.give(left.min(TURN), sink, &mut self.pool);
            link.is_active = false;
            self.note(now, usize::from(index));
        }
        sink.len() - before
    }
}
