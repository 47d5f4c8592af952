//! The network interface of a host: the choice of its next packet, and its access to the host's memory.

use crate::{
    connections::ConnectionId,
    jitter::JitterTimes,
    message::{Body, Message, MessageId, Messages},
    peers::Peers,
    slot_times::SlotTimes,
};
use evb_connection::{CreditPacer, Reply, Segment};
use evb_core::{Bandwidth, NodeId, NodeRange, Time};
use evb_fabric::{Dma, NicConfig};
use evb_protocol::wire;
use evb_unit::shaping::{ShapedPart, Shaper, Slot};
use std::collections::VecDeque;

/// Fewest packets for which a train is worth its cost.
const FEWEST: u32 = 3;

/// Packets that are read from memory ahead, for each port.
const READ_AHEAD: usize = 2;

/// A part of a message that goes as one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) message: MessageId,
    pub(crate) bytes: u32,
    /// Nothing of the message is left to be sent.
    pub(crate) last: bool,
    /// Packets like this one that follow it at once.
    pub(crate) others: u32,
}

/// The slots in which the fragments of a readout unit go.
pub(crate) struct Slots {
    pub(crate) shaper: Shaper<MessageId>,
    pub(crate) times: SlotTimes,
    pub(crate) node: NodeId,
    pub(crate) first_builder: NodeId,
    /// Bytes to which each bucket is filled up.
    pub(crate) full: Option<u32>,
    /// The priority of the buckets.
    pub(crate) priority: u8,
}

/// The network interface of one host.
pub(crate) struct Nic {
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
    /// Most messages of readout units that wait, beside the active ones. Further messages stay in the machine, as with a
    /// full transport.
    most_waiting: usize,
    /// Largest payload of a packet.
    packet: u32,
    pub(crate) slots: Option<Slots>,
    /// Messages that go in no slot, when peers take turns.
    pub(crate) peers: Option<Peers<MessageId>>,
    /// Messages that are in this interface or will be, and are not wholly cut into packets.
    pub(crate) backlog: usize,
    /// Nodes that hold back messages that do not fit.
    pub(crate) held_back: Vec<NodeId>,
    pub(crate) ports: Vec<NicPort>,
    pub(crate) memory: Option<Memory>,
    /// The bucket that is being sent over a connection.
    bucket: Option<MessageId>,
    /// Messages of background traffic; `None` if there is none in the network.
    pub(crate) background: Option<BackgroundQueues>,
    /// Packets of one message may go as one train.
    pub(crate) couples: bool,
    /// Random times beside the overhead of packets.
    pub(crate) jitter: Option<JitterTimes>,
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

/// One port of a network interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct NicPort {
    /// True if it waits for a packet to send.
    pub(crate) idle: bool,
    /// The message that ends with the packet that it sends now.
    pub(crate) ending: Option<MessageId>,
    /// Connections that may be able to send, in turn.
    pub(crate) ready: VecDeque<ConnectionId>,
    /// Those of lower priority, for when no other can send.
    pub(crate) lower: VecDeque<ConnectionId>,
    /// Segments that their connections have sent, and the interface has not.
    pub(crate) queue: VecDeque<(ConnectionId, Segment)>,
    /// Replies of connections that end here: they go first.
    pub(crate) replies: VecDeque<(ConnectionId, Reply)>,
    /// Connections that end here, and wait for credit.
    pub(crate) credit: CreditPacer<ConnectionId>,
}

/// The access of a network interface to the memory of its host: one bus for reading and writing.
pub(crate) struct Memory {
    dma: Dma,
    /// Bytes that cross the bus with each packet beside its payload.
    header: u32,
    pub(crate) busy: Option<Access>,
    ready: VecDeque<Chunk>,
    writes: VecDeque<Chunk>,
    ports: usize,
    read_last: bool,
}

/// One access to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    Read(Chunk),
    Write(Chunk),
}

impl Nic {
    pub(crate) fn new(config: &NicConfig) -> Self {
        let NicConfig { packet, header, messages, queue, dma, keeps_step, .. } = *config;
        let ports = usize::from(config.ports);
        let [packet, header] = [packet, header].map(|bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX));
        let (ready, writes) = (VecDeque::new(), VecDeque::new());
        let memory = |dma| Memory { dma, header, busy: None, ready, writes, ports, read_last: false };
        Self {
            active: VecDeque::new(),
            waiting: VecDeque::new(),
            keeps_step,
            steps: VecDeque::new(),
            urgent: VecDeque::new(),
            most_active: messages.into(),
            most_waiting: queue.into(),
            packet,
            slots: None,
            peers: None,
            backlog: 0,
            held_back: Vec::new(),
            ports: vec![NicPort { idle: true, ..NicPort::default() }; ports],
            memory: dma.map(memory),
            bucket: None,
            background: None,
            couples: false,
            jitter: None,
        }
    }

    /// Number of messages of a readout unit that it still takes now.
    pub(crate) fn room(&self) -> usize {
        match self.slots {
            None => (self.most_waiting + self.most_active).saturating_sub(self.backlog),
            // Each slot takes the messages to its builder.
            Some(_) => usize::MAX,
        }
    }

    /// True when nodes that hold something back should send it now: before the interface runs empty.
    pub(crate) fn is_hungry(&self) -> bool {
        !self.held_back.is_empty() && self.backlog <= self.most_waiting / 2
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
        } else if self.slots.is_none()
            && let Some(peers) = &mut self.peers
        {
            return peers.post(message.to.first, id);
        } else if self.takes_into_slot(id, message) {
            return;
        } else {
            &mut self.waiting
        };
        queue.push_back(id);
    }

    /// Cuts the next packet from the waiting messages.
    pub(crate) fn cut(&mut self, now: Time, messages: &mut Messages) -> Option<Chunk> {
        let mut chunk = self.next_chunk(now, messages)?;
        if !chunk.last && self.couples {
            chunk.others = self.cut_others(messages, chunk);
        }
        if chunk.last && (self.background.is_none() || !messages.get(chunk.message).body.is_background()) {
            self.backlog = self.backlog.saturating_sub(1);
        }
        Some(chunk)
    }

    /// The bucket of the next time slot, which goes over a connection, when the one before was sent.
    pub(crate) fn next_bucket(&mut self, now: Time, messages: &mut Messages) -> Option<MessageId> {
        if self.bucket.is_none() {
            self.bucket = self.slots.as_mut()?.next_bucket(now, messages);
            return self.bucket;
        }
        None
    }

    /// All of a message was sent over its connection.
    pub(crate) fn note_cut(&mut self, id: MessageId, message: &Message) {
        if self.bucket == Some(id) {
            self.bucket = None;
        } else if !message.body.is_background() {
            self.backlog = self.backlog.saturating_sub(1);
        }
    }

    /// Puts a message into the slots of a barrel shifter, if it goes in one.
    pub(crate) fn takes_into_slot(&mut self, id: MessageId, message: &Message) -> bool {
        let Some(slots) = &mut self.slots else { return false };
        if !matches!(message.body, Body::Protocol(_)) || !message.body.is_data() {
            return false;
        }
        let builder = message.to.first.index() - slots.first_builder.index();
        slots.shaper.push(builder, id, message.unsent.into());
        true
    }

    /// Cuts all packets of the same size that follow one of a message and neither end the message nor are the ones for
    /// which its receiver waits, if nothing can come between; returns their number, 0 if they are not worth a train.
    #[cold]
    fn cut_others(&mut self, messages: &mut Messages, chunk: Chunk) -> u32 {
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

    fn next_chunk(&mut self, now: Time, messages: &mut Messages) -> Option<Chunk> {
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
        let chunk = self.next_of_workload(now, messages);
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
    fn next_of_workload(&mut self, now: Time, messages: &mut Messages) -> Option<Chunk> {
        if let Some(peers) = &mut self.peers {
            return serve(peers, messages, self.packet);
        }
        while self.active.len() < self.most_active {
            let Some(id) = self.waiting.pop_front() else { break };
            self.active.push_back(id);
        }
        if self.active.is_empty()
            && let Some(bucket) = self.slots.as_mut().and_then(|slots| slots.next_bucket(now, messages))
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
        self.slots.as_mut().filter(|slots| slots.shaper.is_by_packet())?.next_packet(now, messages)
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

impl Slots {
    /// Fills the bucket of the next time slot; it is sent even when it is empty.
    fn next_bucket(&mut self, now: Time, messages: &mut Messages) -> Option<MessageId> {
        if self.shaper.is_by_packet() {
            return None;
        }
        let Slot { builder, mut parts, told_after, round } = self.shaper.next(now)?;
        let mut bucket = messages.new_bucket();
        bucket.parts.extend(parts.drain(..).map(|part| take(messages, part)));
        self.shaper.reuse(parts);
        let bytes = |parts: &[(MessageId, u32)]| parts.iter().map(|&(_, bytes)| bytes).sum::<u32>();
        let size = self.full.unwrap_or_else(|| bytes(&bucket.parts) + wire::HEAD_BYTES as u32);
        bucket.lead = self.shaper.ends_slots().then(|| bytes(&bucket.parts[told_after..]));
        bucket.size = size;
        bucket.round = round;
        bucket.late = self.times.before_bucket();
        let to = NodeRange::from(NodeId(self.first_builder.0 + builder as u16));
        let message = Message::new(self.node, to, Body::Bucket(bucket));
        let priority = self.priority;
        Some(messages.insert(Message { unsent: size, missing: size, priority, ..message }))
    }

    /// The next packet of the builder whose turn it is.
    fn next_packet(&mut self, now: Time, messages: &mut Messages) -> Option<Chunk> {
        let mut parts = self.shaper.next(now)?.parts;
        let part = parts.pop()?;
        self.shaper.reuse(parts);
        let last = part.last;
        let (message, bytes) = take(messages, part);
        Some(Chunk { message, bytes, last, others: 0 })
    }
}

/// Takes a part of a message; returns the message and the number of bytes.
fn take(messages: &mut Messages, part: ShapedPart<MessageId>) -> (MessageId, u32) {
    let bytes = part.bytes as u32;
    messages.get_mut(part.item).unsent -= bytes;
    (part.item, bytes)
}

impl Memory {
    /// Begins the next access, if there is one and the bus is free; returns the bytes with those of the header, and the
    /// rate. `next` cuts a packet to read; reading and writing take turns.
    pub(crate) fn begin(&mut self, next: impl FnOnce() -> Option<Chunk>) -> Option<(u32, Bandwidth)> {
        if self.busy.is_some() {
            return None;
        }
        let is_writers_turn = self.read_last && !self.writes.is_empty();
        let may_read = self.ready.len() < READ_AHEAD * self.ports && !is_writers_turn;
        let read = if may_read { next() } else { None };
        let access = match read {
            Some(chunk) => Access::Read(chunk),
            None => Access::Write(self.writes.pop_front()?),
        };
        self.busy = Some(access);
        match access {
            Access::Read(chunk) => {
                self.read_last = true;
                Some((chunk.bytes.saturating_add(self.header), self.dma.read))
            }
            Access::Write(chunk) => {
                self.read_last = false;
                Some((chunk.bytes.saturating_add(self.header), self.dma.write))
            }
        }
    }

    /// Packets that have been received and wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.writes.len()
    }

    /// A packet that has been received waits to be written.
    pub(crate) fn write(&mut self, chunk: Chunk) {
        self.writes.push_back(chunk);
    }

    /// A packet has been read and can be sent.
    pub(crate) fn have_read(&mut self, chunk: Chunk) {
        self.ready.push_back(chunk);
    }

    /// The next packet that has been read.
    pub(crate) fn take_ready(&mut self) -> Option<Chunk> {
        self.ready.pop_front()
    }
}
