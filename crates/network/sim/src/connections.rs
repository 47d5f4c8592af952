//! The connections of a simulation: each pair of nodes that send to each other has one in each direction and priority.

mod over_time;

use crate::{message::MessageId, slab::Slab};
use evb_connection::{Received, Receiver, Reply, Segment, Sender, SenderCounts, Transport};
use evb_core::{Bandwidth, NodeId, Time};
use evb_record::ConnectionRates;
use hashbrown::HashMap;
use over_time::{Known, OverTime};
use std::collections::VecDeque;

/// A connection, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId(pub(crate) u32);

/// What a packet of a connection carries, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CargoId(pub(crate) u32);

impl From<u32> for CargoId {
    fn from(place: u32) -> Self {
        Self(place)
    }
}

impl From<CargoId> for u32 {
    fn from(CargoId(place): CargoId) -> Self {
        place
    }
}

/// What a packet of a connection carries.
pub(crate) struct Cargo {
    pub(crate) connection: ConnectionId,
    pub(crate) part: Part,
}

/// A part of the stream, or an answer to one.
pub(crate) enum Part {
    Segment(Segment),
    Reply(Reply),
}

/// All connections, and what their packets carry.
pub(crate) struct Connections {
    transport: Transport,
    segment: u32,
    header: u32,
    /// Messages are delivered in the order in which they were sent.
    pub(crate) keep_order: bool,
    all: Vec<Connection>,
    of_pair: HashMap<(NodeId, NodeId, u8), ConnectionId>,
    pub(crate) cargo: Slab<CargoId, Cargo>,
    /// For each receiver the connections that are arriving.
    senders: HashMap<NodeId, u64>,
    most_senders: u64,
    over_time: OverTime,
}

/// One connection with both its ends.
pub(crate) struct Connection {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) priority: u8,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// What was counted of its sender over time.
    known: Known,
    /// Bytes of all messages so far.
    written: u64,
    /// Messages of which the last byte was not sent yet, with the places at which they end.
    unsent: VecDeque<(MessageId, u64)>,
    /// The ends of sent messages that their sender awaits the acknowledgement of.
    awaited: VecDeque<u64>,
    /// Messages that have not arrived whole, with the places at which they end.
    missing: VecDeque<(MessageId, u64)>,
    /// All bytes before this place were handed to their messages.
    handed: u64,
    /// Bytes that arrived before the measurement.
    arrived_before: u64,
    /// Bytes of it in the queue of its interface.
    pub(crate) queued: u64,
    /// The number of segments that were sent, modulo a large one: the plane of the next one, where they take turns.
    pub(crate) turn: usize,
    /// A part of what was written has arrived, and the rest has not.
    is_arriving: bool,
    /// The interface has it in its list of those that may send.
    pub(crate) is_ready: bool,
    /// The interface of the receiver has it in its list of those that wait for credit.
    pub(crate) awaits_credit: bool,
    /// The time for which its next deadline is planned.
    planned: Time,
}

impl Connections {
    /// The connections of a transport; `None` if it has none.
    pub(crate) fn new(transport: Transport, segment: u32, header: u32) -> Option<Self> {
        let (all, of_pair, cargo) = (Vec::new(), HashMap::new(), Slab::default());
        let keep_order = !matches!(transport, Transport::UltraEthernet(_));
        let (senders, most_senders) = (HashMap::new(), 0);
        let over_time = OverTime::new(transport.regulates());
        transport.connects().then_some(Self {
            transport,
            segment,
            header,
            keep_order,
            all,
            of_pair,
            cargo,
            senders,
            most_senders,
            over_time,
        })
    }

    /// Bytes of a connection that may wait in the queue of its interface.
    pub(crate) const fn interface_queue(&self) -> u64 {
        self.transport.interface_queue().0
    }

    /// Most bytes of a segment.
    pub(crate) const fn segment(&self) -> u64 {
        self.segment as u64
    }

    /// The connection of two nodes, over a link of this rate.
    pub(crate) fn between(&mut self, from: NodeId, to: NodeId, priority: u8, link: Bandwidth) -> ConnectionId {
        *self.of_pair.entry((from, to, priority)).or_insert_with(|| {
            self.all.push(Connection {
                from,
                to,
                priority,
                sender: Sender::new(&self.transport, self.segment, self.header, link),
                receiver: Receiver::new(&self.transport),
                known: Known::default(),
                written: 0,
                unsent: VecDeque::new(),
                awaited: VecDeque::new(),
                missing: VecDeque::new(),
                handed: 0,
                arrived_before: 0,
                queued: 0,
                turn: self.all.len(),
                is_arriving: false,
                is_ready: false,
                awaits_credit: false,
                planned: Time::MAX,
            });
            ConnectionId(self.all.len() as u32 - 1)
        })
    }

    pub(crate) fn get(&self, id: ConnectionId) -> &Connection {
        &self.all[id.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> &mut Connection {
        &mut self.all[id.0 as usize]
    }

    /// Lets the sender of a connection do something, and counts what came of it.
    #[inline]
    pub(crate) fn with_sender<T>(&mut self, now: Time, id: ConnectionId, act: impl FnOnce(&mut Sender) -> T) -> T {
        let connection = &mut self.all[id.0 as usize];
        let result = act(&mut connection.sender);
        self.over_time.note(now, &connection.sender, &mut connection.known);
        result
    }

    /// A segment has arrived, marked if it met congestion.
    pub(crate) fn receive(&mut self, now: Time, id: ConnectionId, segment: Segment, is_marked: bool) -> Received {
        let received = self.get_mut(id).receiver.receive(now, segment, is_marked);
        self.over_time.arrive(now, received.new_bytes);
        received
    }

    /// New bytes have arrived over a connection: its receiver may have one more sender now, or one less.
    pub(crate) fn count_sender(&mut self, id: ConnectionId) {
        let connection = &mut self.all[id.0 as usize];
        let is_arriving = connection.receiver.expected() < connection.written;
        if std::mem::replace(&mut connection.is_arriving, is_arriving) == is_arriving {
            return;
        }
        let senders = self.senders.entry(connection.to).or_default();
        *senders = if is_arriving { *senders + 1 } else { *senders - 1 };
        self.most_senders = self.most_senders.max(*senders);
    }

    /// The measurement begins.
    pub(crate) fn begin_to_measure(&mut self, now: Time) {
        self.over_time.begin_to_measure(now);
        for connection in &mut self.all {
            connection.arrived_before = connection.receiver.expected();
        }
    }

    /// The measurement ends, and the simulation goes on.
    pub(crate) fn end_to_measure(&mut self, now: Time) {
        self.over_time.end_to_measure(now);
    }

    /// What all connections did, in a measurement between two times.
    pub(crate) fn record(&self, measured: (Time, Time)) -> evb_record::Connections {
        let seconds = measured.1.since(measured.0).as_secs_f64();
        let sum = |count: fn(&SenderCounts) -> u64| self.all.iter().map(|one| count(one.sender.counts())).sum();
        let arrived = |one: &Connection| one.receiver.expected() - one.arrived_before;
        let rates = self.all.iter().map(arrived).filter(|&bytes| bytes > 0).map(|bytes| bytes as f64 / seconds);
        evb_record::Connections {
            count: self.all.len() as u64,
            segments: sum(|counts| counts.segments),
            sent_again: sum(|counts| counts.again),
            timeouts: sum(|counts| counts.timeouts),
            probes: sum(|counts| counts.probes),
            recoveries: sum(|counts| counts.recoveries),
            marked_bytes: sum(|counts| counts.marked_bytes),
            notices: sum(|counts| counts.notices),
            trimmed: sum(|counts| counts.trimmed),
            most_senders: self.most_senders,
            rates: ConnectionRates::of(rates.collect()),
            over_time: self.over_time.record(measured),
        }
    }
}

impl Connection {
    /// Adds a message to the stream.
    pub(crate) fn write(&mut self, id: MessageId, bytes: u32) {
        self.written += u64::from(bytes);
        self.sender.write(bytes.into());
        self.unsent.push_back((id, self.written));
        self.missing.push_back((id, self.written));
    }

    /// True if the interface has enough of it: `room` bytes, or a segment while no whole one of `segment` bytes is to be
    /// sent. Small messages go together then, as with `tcp_autocorking` of Linux.
    pub(crate) fn holds_back(&self, room: u64, segment: u64) -> bool {
        self.queued >= room || self.queued > 0 && self.sender.backlog() < segment
    }

    /// The message that the next new byte belongs to.
    pub(crate) fn next_message(&self) -> Option<MessageId> {
        self.unsent.front().map(|&(id, _)| id)
    }

    /// Takes the next message of which all bytes were sent, with the place at which it ends.
    pub(crate) fn take_sent(&mut self) -> Option<(MessageId, u64)> {
        let &(_, end) = self.unsent.front()?;
        if end <= self.sender.next() { self.unsent.pop_front() } else { None }
    }

    /// The sender of a message awaits the acknowledgement of all until its end.
    pub(crate) fn await_acknowledgement(&mut self, end: u64) {
        self.awaited.push_back(end);
    }

    /// Takes a message that was awaited and is acknowledged; returns false if there is none.
    pub(crate) fn take_acknowledged(&mut self) -> bool {
        let is_acknowledged = self.awaited.front().is_some_and(|&end| end <= self.sender.acknowledged_until());
        is_acknowledged && self.awaited.pop_front().is_some()
    }

    /// The message that the byte at a place belongs to, if it has not arrived whole.
    pub(crate) fn message_at(&self, place: u64) -> Option<MessageId> {
        let index = self.missing.partition_point(|&(_, end)| end <= place);
        self.missing.get(index).map(|&(id, _)| id)
    }

    /// Takes the next bytes that have arrived in their turn, all of one message.
    pub(crate) fn take_arrived(&mut self) -> Option<(MessageId, u32)> {
        let &(id, end) = self.missing.front()?;
        let until = end.min(self.receiver.expected());
        if until <= self.handed {
            return None;
        }
        let bytes = until - std::mem::replace(&mut self.handed, until);
        if until == end {
            self.missing.pop_front();
        }
        Some((id, bytes as u32))
    }

    /// Forgets messages that were delivered out of order.
    pub(crate) fn forget_arrived(&mut self) {
        while self.missing.front().is_some_and(|&(_, end)| end <= self.receiver.expected()) {
            self.missing.pop_front();
        }
    }

    /// The time for which an event is to be planned, if something is to happen before the one that is planned; `also` is
    /// another time at which to look.
    pub(crate) fn plan(&mut self, also: Option<Time>) -> Option<Time> {
        let deadlines = [also, self.sender.deadline(), self.receiver.deadline()];
        let at = deadlines.into_iter().flatten().min().filter(|&at| at < self.planned)?;
        self.planned = at;
        Some(at)
    }

    /// The planned event has come.
    pub(crate) fn forget_plan(&mut self, now: Time) {
        if self.planned <= now {
            self.planned = Time::MAX;
        }
    }
}
