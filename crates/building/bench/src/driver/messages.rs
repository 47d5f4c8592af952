//! Messages from the layer to the machine, and from the machine to the layer.

use super::{BATCH, Node, Phase, Timing};
use crate::{
    error::BenchError,
    wire::{CONTROL_BYTES, Content, fill, is_whole, read_stamp, write_stamp},
};
use evb_core::{Machine, NodeId, NodeRange};
use evb_patterns::{TrafficCommand, TrafficMessage};
use evb_transport::{MessageLayer, Refused};
use std::thread;

/// Most messages that are offered in a round.
const MOST_OFFERED: usize = 1024;

impl<L: MessageLayer + ?Sized> Node<'_, L> {
    /// Sends a message to each other node, and receives meanwhile.
    pub(super) fn send_to_others(&mut self, what: impl Fn(u64) -> Content) -> Result<(), BenchError> {
        for to in self.peers.others() {
            let word = what(self.peers.get(to).sent).word().to_le_bytes();
            while let Err(refused) = self.layer.send(to, &word) {
                match refused {
                    Refused::Full if self.clock.now() < self.deadline => {}
                    _ => return Err(BenchError::Refused { to, refused }),
                }
                self.layer.flush();
                self.receive();
                thread::yield_now();
            }
        }
        Ok(())
    }

    /// Receives as soon as messages come, with at most this number of polls. In a node that has nothing else to do, a message
    /// waits for less time between two polls than it would between two rounds.
    #[inline]
    pub(super) fn poll(&mut self, polls: u32) -> usize {
        (0..polls).map(|_| self.receive()).find(|&count| count > 0).unwrap_or(0)
    }

    /// Passes received messages to the machine; returns their number.
    pub(super) fn receive(&mut self) -> usize {
        let mut is_new = true;
        let Self { layer, peers, machine, clock, samples, now, .. } = self;
        let (passes, is_measured) = (self.phase != Phase::Ending, self.phase == Phase::Running);
        let size = self.size;
        let (stamped, is_timed) = (self.is_stamped, self.timing == Timing::Receptions);
        let count = layer.receive(self.batch, &mut |from, bytes| {
            if is_timed && is_new {
                (*now, is_new) = (clock.now(), false);
            }
            match Content::read(bytes) {
                None => peers.corrupted += 1,
                Some(Content::Ready { at }) => peers.note_ready(from, at),
                Some(Content::Done) => peers.note_done(from),
                Some(Content::End { sent }) => peers.note_end(from, sent),
                Some(Content::Traffic(message)) => {
                    if let TrafficMessage::Data { number, .. } = message {
                        let fits = size.is_none_or(|size| bytes.len() == size);
                        peers.note(from, number, bytes.len(), fits && is_whole(bytes, stamped, from));
                        if stamped && is_measured {
                            samples.add(now.since(read_stamp(bytes)));
                        }
                    }
                    if passes {
                        machine.handle_message(*now, from, message);
                    }
                }
            }
        });
        if !is_new {
            self.note_arrival();
        }
        count
    }

    /// Sends messages of the machine; returns their number.
    pub(super) fn send(&mut self) -> Result<usize, BenchError> {
        match self.phase {
            Phase::Gathering | Phase::Ending => return Ok(0),
            Phase::Running => self.offer(),
            Phase::Stopping => {}
        }
        for count in 0..BATCH {
            if self.sending.is_none() {
                self.sending = self.machine.poll_transmit().map(|transmit| (transmit.to, transmit.message));
            }
            let Some((to, message)) = self.sending else { return Ok(count) };
            let length = self.length(message);
            match self.post(to, message, length) {
                Ok(copies) => {
                    let remaining = NodeRange { first: NodeId(to.first.0 + copies), count: to.count - copies };
                    self.sending = (remaining.count > 0).then_some((remaining, message));
                    if self.batch == 1 {
                        // Nothing follows that it could wait for.
                        self.layer.flush();
                    }
                    if matches!(message, TrafficMessage::Data { .. }) {
                        self.tell_sent(NodeRange { count: copies, ..to }, length);
                    }
                }
                Err(Refused::Full) => return Ok(count),
                Err(refused) => return Err(BenchError::Refused { to: to.first, refused }),
            }
        }
        Ok(BATCH)
    }

    /// Offers the machine messages that are due. A rate beyond reach must not keep the node from sending and from its
    /// peers: while the queue of the machine is full, all that is due is refused at once.
    pub(super) fn offer(&mut self) {
        let Some(offers) = &mut self.offers else { return };
        for _ in 0..MOST_OFFERED {
            let Some((number, due)) = offers.take(self.now) else { return };
            self.machine.handle_command(due, TrafficCommand::Offer { number });
        }
        let (is_separate, refused) = (offers.is_separate(), self.refused);
        self.handle_events();
        // The nodes of gathering agree on the numbers of their events.
        if is_separate && self.refused > refused {
            self.refuse_due();
        }
    }

    /// Refuses all messages that are due.
    pub(super) fn refuse_due(&mut self) {
        let Some(offers) = &mut self.offers else { return };
        let count = offers.pass(self.now);
        self.refused += count;
        self.machine.handle_command(self.now, TrafficCommand::Refuse { count });
    }

    /// The length of a message in bytes.
    fn length(&mut self, message: TrafficMessage) -> usize {
        match message {
            TrafficMessage::Data { number, .. } => self.sizes.length(number),
            _ => CONTROL_BYTES,
        }
    }

    /// Sends a message to the first of `to`, or by broadcast to all; returns the number of copies.
    fn post(&mut self, to: NodeRange, message: TrafficMessage, length: usize) -> Result<u16, Refused> {
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        let word = Content::Traffic(message).word();
        if self.written.take() != Some((word, length)) {
            self.write(message, length);
        }
        let bytes = &self.buffer[..length];
        if to.count > 1 && self.is_broadcast {
            return self.layer.broadcast(to, bytes).map(|()| to.count);
        }
        self.layer.send(to.first, bytes).map(|()| 1)
    }

    /// Writes a message.
    fn write(&mut self, message: TrafficMessage, length: usize) {
        let bytes = &mut self.buffer[..length];
        bytes[..8].copy_from_slice(&Content::Traffic(message).word().to_le_bytes());
        if let TrafficMessage::Data { born, .. } = message {
            if self.is_stamped {
                write_stamp(bytes, born);
            }
            fill(bytes, self.is_stamped, self.layer.local());
        }
    }

    /// Writes the data message that follows the last one if it is known: a node that waits for an answer has the time for
    /// it now, and not when the answer has come.
    pub(super) fn write_ahead(&mut self) {
        let (1, false, Some(length)) = (self.batch, self.is_stamped, self.size) else { return };
        let Some(Content::Traffic(TrafficMessage::Data { number, born })) = Content::read(&self.buffer) else { return };
        let message = TrafficMessage::Data { number: number + 1, born };
        self.write(message, length);
        self.written = Some((Content::Traffic(message).word(), length));
    }

    /// Tells the machine that copies of a data message for these nodes have left the host: the layer has them.
    fn tell_sent(&mut self, to: NodeRange, length: usize) {
        if self.timing == Timing::Sending {
            self.set_now();
        }
        for node in to.iter() {
            self.peers.note_sent(node, length);
            self.machine.handle_command(self.now, TrafficCommand::Sent);
        }
    }
}
