//! The network interface of a host: its ports, its time slots, and its access to the host's memory.

use crate::{
    connections::ConnectionId,
    jitter::JitterTimes,
    lineup::Lineup,
    message::{Body, Message, MessageId, Messages},
    slot_times::SlotTimes,
};
use evb_connection::{CreditPacer, Reply, Segment};
use evb_core::{Bandwidth, NodeId, NodeRange, Time};
use evb_fabric::{Dma, NicConfig};
use evb_protocol::wire;
use evb_unit::shaping::{ShapedPart, Shaper, Slot};
use std::collections::VecDeque;

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
    /// The messages that wait: one line for all ports, or one for each plane.
    pub(crate) lineups: Vec<Lineup>,
    /// Messages whose packets go in turn.
    most_active: usize,
    /// Most messages of readout units that wait, beside the active ones. Further messages stay in the machine, as with a
    /// full transport.
    most_waiting: usize,
    pub(crate) slots: Option<Slots>,
    /// Messages that are in this interface or will be, and are not wholly cut into packets.
    pub(crate) backlog: usize,
    /// Nodes that hold back messages that do not fit.
    pub(crate) held_back: Vec<NodeId>,
    pub(crate) ports: Vec<NicPort>,
    pub(crate) memory: Option<Memory>,
    /// The bucket that is being sent over a connection.
    bucket: Option<MessageId>,
    /// A packet that another port is to send, since the one that it was cut for does not reach its receiver.
    pub(crate) aside: Option<Chunk>,
    /// The plane of the next message, where messages take them in turn.
    pub(crate) turn: u8,
    /// Packets of one message may go as one train.
    pub(crate) couples: bool,
    /// Random times beside the overhead of packets.
    pub(crate) jitter: Option<JitterTimes>,
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
    /// An interface with a lineup for all its ports, or with one for each of `planes`.
    pub(crate) fn new(config: &NicConfig, planes: usize) -> Self {
        let NicConfig { header, messages, queue, dma, .. } = *config;
        let ports = usize::from(config.ports);
        let header = u32::try_from(header.0).unwrap_or(u32::MAX);
        let (ready, writes) = (VecDeque::new(), VecDeque::new());
        let memory = |dma| Memory { dma, header, busy: None, ready, writes, ports, read_last: false };
        Self {
            lineups: (0..planes).map(|_| Lineup::new(config)).collect(),
            most_active: usize::from(messages) * planes,
            most_waiting: queue.into(),
            slots: None,
            backlog: 0,
            held_back: Vec::new(),
            ports: vec![NicPort { idle: true, ..NicPort::default() }; ports],
            memory: dma.map(memory),
            bucket: None,
            aside: None,
            turn: 0,
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

    /// Takes a message to send over a plane; 0 where all ports share a lineup.
    pub(crate) fn post(&mut self, plane: usize, id: MessageId, message: &Message) {
        if !self.takes_into_slot(id, message) {
            self.lineups[plane].post(id, message);
        }
    }

    /// Cuts the next packet for a port from the waiting messages.
    #[inline]
    pub(crate) fn cut(&mut self, now: Time, port: usize, messages: &mut Messages) -> Option<Chunk> {
        let lineup = if self.lineups.len() == 1 { 0 } else { port };
        let lineup = &mut self.lineups[lineup];
        let mut chunk = lineup.next(now, messages, &mut self.slots)?;
        if !chunk.last && self.couples {
            chunk.others = lineup.cut_others(messages, chunk);
        }
        if chunk.last && (lineup.background.is_none() || !messages.get(chunk.message).body.is_background()) {
            self.backlog = self.backlog.saturating_sub(1);
        }
        Some(chunk)
    }

    /// The bucket of the next time slot, which goes over a connection, when the one before was sent.
    #[inline]
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
}

impl Slots {
    /// Fills the bucket of the next time slot; it is sent even when it is empty.
    pub(crate) fn next_bucket(&mut self, now: Time, messages: &mut Messages) -> Option<MessageId> {
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
    pub(crate) fn next_packet(&mut self, now: Time, messages: &mut Messages) -> Option<Chunk> {
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
