//! The messages that wait in a network interface, and which of them the next packet is of. All ports of an interface share
//! them, unless each plane has its own.

use crate::{
    message::{Body, Message, MessageId, Messages},
    nic::{Chunk, Slots},
    peers::Peers,
};
use evb_core::Time;
use evb_fabric::NicConfig;
use std::collections::VecDeque;

/// Fewest packets for which a train is worth its cost.
const FEWEST: u32 = 3;

/// The messages that wait for a port, or for all ports of an interface.
pub(crate) struct Lineup {
    /// Messages whose packets go in turn.
    active: VecDeque<MessageId>,
    /// Messages that wait to become active.
    waiting: VecDeque<MessageId>,
    /// The interface handles the messages that keep step.
    keeps_step: bool,
    /// Messages that keep step: they go before all others.
    steps: VecDeque<MessageId>,
    /// Messages that go before those that are not urgent.
    urgent: VecDeque<MessageId>,
    most_active: usize,
    /// Largest payload of a packet.
    packet: u32,
    /// Messages that are not urgent, when peers take turns.
    pub(crate) peers: Option<Peers<MessageId>>,
    /// Messages of background traffic; `None` if there is none in the network.
    pub(crate) background: Option<BackgroundQueues>,
}

/// The messages of background traffic in an interface. Those of one sender go one after the other, those of several senders
/// in turn, packet by packet.
pub(crate) struct BackgroundQueues {
    /// The priority of the data of the workload. What has a lower one goes when nothing else waits.
    data_priority: u8,
    /// They take turns with the messages of the workload, packet by packet.
    equal: Peers<MessageId>,
    lower: Peers<MessageId>,
    /// The workload has sent the last packet.
    has_turn: bool,
}

impl Lineup {
    pub(crate) fn new(config: &NicConfig) -> Self {
        Self {
            active: VecDeque::new(),
            waiting: VecDeque::new(),
            keeps_step: config.keeps_step,
            steps: VecDeque::new(),
            urgent: VecDeque::new(),
            most_active: config.messages.into(),
            packet: u32::try_from(config.packet.0).unwrap_or(u32::MAX),
            peers: None,
            background: None,
        }
    }

    /// Takes a message to send.
    pub(crate) fn post(&mut self, id: MessageId, message: &Message) {
        if message.body.is_background()
            && let Some(background) = &mut self.background
        {
            return background.post(id, message);
        }
        let queue = if self.keeps_step && message.body.is_step() {
            &mut self.steps
        } else if message.priority > 0 && !message.body.is_data() {
            &mut self.urgent
        } else if let Some(peers) = &mut self.peers {
            return peers.post(message.to.first, id);
        } else {
            &mut self.waiting
        };
        queue.push_back(id);
    }

    /// Cuts the next packet from the waiting messages, or from the next time slot.
    #[inline]
    pub(crate) fn next(&mut self, now: Time, messages: &mut Messages, slots: &mut Option<Slots>) -> Option<Chunk> {
        for queue in [&mut self.steps, &mut self.urgent] {
            if let Some(&id) = queue.front() {
                let chunk = chunk(messages, id, self.packet);
                if chunk.last {
                    queue.pop_front();
                }
                return Some(chunk);
            }
        }
        let packet = self.packet;
        if let Some(chunk) = self.background.as_mut().and_then(|background| background.take_turn(messages, packet)) {
            return Some(chunk);
        }
        let chunk = self.next_of_workload(now, messages, slots);
        match &mut self.background {
            Some(background) if chunk.is_none() => background.take_rest(messages, packet),
            Some(background) => {
                background.has_turn = true;
                chunk
            }
            None => chunk,
        }
    }

    /// The next packet of a message of the workload that is not urgent.
    #[inline]
    fn next_of_workload(&mut self, now: Time, messages: &mut Messages, slots: &mut Option<Slots>) -> Option<Chunk> {
        if let Some(peers) = &mut self.peers {
            return serve(peers, messages, self.packet);
        }
        while self.active.len() < self.most_active {
            let Some(id) = self.waiting.pop_front() else { break };
            self.active.push_back(id);
        }
        if self.active.is_empty()
            && let Some(bucket) = slots.as_mut().and_then(|slots| slots.next_bucket(now, messages))
        {
            self.active.push_back(bucket);
        }
        if let Some(id) = self.active.pop_front() {
            let chunk = chunk(messages, id, self.packet);
            if !chunk.last {
                self.active.push_back(id);
            }
            return Some(chunk);
        }
        slots.as_mut().filter(|slots| slots.shaper.is_by_packet())?.next_packet(now, messages)
    }

    /// Cuts all packets of the same size that follow one of a message and neither end the message nor are the ones for
    /// which its receiver waits, if nothing can come between; returns their number, 0 if they are not worth a train.
    #[cold]
    pub(crate) fn cut_others(&mut self, messages: &mut Messages, chunk: Chunk) -> u32 {
        let message = messages.get_mut(chunk.message);
        let lead = match &message.body {
            Body::Bucket(bucket) => bucket.lead.filter(|&lead| lead < message.unsent + chunk.bytes).unwrap_or(0),
            _ => 0,
        };
        let others = message.unsent.saturating_sub(lead + 1) / self.packet;
        if others < FEWEST || self.active.front() != Some(&chunk.message) {
            return 0;
        }
        message.unsent -= others * self.packet;
        others
    }
}

impl BackgroundQueues {
    /// Empty queues, where data of the workload have this priority.
    pub(crate) fn new(data_priority: u8) -> Self {
        let [equal, lower] = [(); 2].map(|()| Peers::new(usize::MAX));
        Self { data_priority, equal, lower, has_turn: false }
    }

    fn post(&mut self, id: MessageId, message: &Message) {
        let queue = if message.priority < self.data_priority { &mut self.lower } else { &mut self.equal };
        queue.post(message.from, id);
    }

    /// The next packet, if it is its turn.
    fn take_turn(&mut self, messages: &mut Messages, packet: u32) -> Option<Chunk> {
        if std::mem::take(&mut self.has_turn) { serve(&mut self.equal, messages, packet) } else { None }
    }

    /// The next packet when the workload has none.
    fn take_rest(&mut self, messages: &mut Messages, packet: u32) -> Option<Chunk> {
        serve(&mut self.equal, messages, packet).or_else(|| serve(&mut self.lower, messages, packet))
    }
}

/// The next packet of the peers in turn.
fn serve(peers: &mut Peers<MessageId>, messages: &mut Messages, packet: u32) -> Option<Chunk> {
    peers.serve(|id| {
        let chunk = chunk(messages, id, packet);
        (chunk, chunk.last)
    })
}

fn chunk(messages: &mut Messages, id: MessageId, most: u32) -> Chunk {
    let message = messages.get_mut(id);
    let bytes = message.unsent.min(most);
    message.unsent -= bytes;
    Chunk { message: id, bytes, last: message.unsent == 0, others: 0 }
}
