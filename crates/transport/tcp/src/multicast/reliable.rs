//! A transport whose broadcasts go by multicast, over any transport that carries all other messages.
//!
//! All messages of a pair are numbered. A broadcast is one datagram with its number for each receiver. The connection
//! below carries all else; before a message that follows a broadcast it carries a mark with the number. So a receiver
//! knows the order, and which broadcasts it has missed; those it asks for, and gets over the connection. The sender keeps
//! broadcasts until they are confirmed. A receiver confirms after some broadcasts, and each mark; a sender marks what is
//! not confirmed after a while.
//!
//! A receiver that has too many unconfirmed broadcasts gets copies meanwhile, and a sender whose datagrams do not arrive
//! sends copies only, and says why.
//!
//! Marks go only before messages that follow a broadcast: one for each broadcast and receiver would cost as many
//! messages as copies. Nothing is sent again by a timer, because a receiver asks for what it misses.

use super::{
    group::{Datagrams, LONGEST_DATAGRAM},
    incoming::Incoming,
    outgoing::Outgoing,
    wire::{Beside, BroadcastPosition, Tag, again, most_front, read_again, read_datagram, write_datagram},
};
use bytes::Bytes;
use evb_core::{NodeId, bits::BitSet};
use evb_transport::{
    BroadcastWay, Broadcasts, Buffers, Message, Received, Refusals, SendError, Transport, Waker, send_copies,
};
use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

/// Most messages that waited for an earlier one which a sender gives before the next has its turn.
const TURN: usize = 64;
/// Most datagrams that are read at once.
const MOST_AT_ONCE: usize = 256;

/// Options of reliable multicast.
#[derive(Clone, Copy, Debug)]
pub struct MulticastOptions {
    /// Number of nodes; ids are below it.
    pub nodes: u16,
    /// Longest body of the transport below, in bytes.
    pub max_body: usize,
    /// Age of an unconfirmed broadcast at which its receivers are asked for it.
    pub mark_after: Duration,
    /// Address of the interface on which the group is.
    pub interface: Ipv4Addr,
}

impl MulticastOptions {
    /// The defaults for this number of nodes and these bodies: unconfirmed broadcasts are asked for after 20 ms, and the
    /// group is on the loopback interface.
    #[must_use]
    pub const fn new(nodes: u16, max_body: usize) -> Self {
        Self { nodes, max_body, mark_after: Duration::from_millis(20), interface: Ipv4Addr::LOCALHOST }
    }
}

/// A transport with multicast.
pub struct ReliableMulticast<T: Transport, D> {
    pub(super) transport: T,
    pub(super) options: MulticastOptions,
    pub(super) tag: Tag,
    /// The group, if this node is in it.
    pub(super) group: Option<D>,
    /// False if there is no group at all: then nothing is added to the transport.
    pub(super) is_numbered: bool,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    inbox: Vec<Received>,
    /// Peers that have left, with the reason until the user has it.
    left: BTreeMap<NodeId, String>,
    gone: BitSet,
    /// Senders with messages for the user that had to wait, and those that have left.
    ready: BitSet,
    turn: usize,
    /// Peers to which something beside the datagrams is to be sent.
    due: BitSet,
    /// Receivers with unconfirmed broadcasts.
    keeping: BitSet,
    ticked: Instant,
    /// There may be more datagrams than were read.
    has_more: bool,
    /// Receivers of the current broadcast that get the datagram, and the others.
    receivers: Vec<(NodeId, BroadcastPosition)>,
    others: Vec<NodeId>,
    datagram: Vec<u8>,
    buffer: Box<[u8]>,
    pub(super) state: Broadcasts,
}

impl<T: Transport, D: Datagrams> ReliableMulticast<T, D> {
    /// Joins a connected transport and a group, both of which have the same nodes. All members have the same tag.
    pub fn joined(transport: T, group: D, tag: Tag, options: MulticastOptions) -> Self {
        let mut this = Self::new(transport, Some(group), tag, options);
        this.is_numbered = true;
        this
    }

    pub(super) fn new(transport: T, group: Option<D>, tag: Tag, options: MulticastOptions) -> Self {
        let (nodes, none) = (usize::from(options.nodes), BitSet::new(options.nodes.into()));
        Self {
            transport,
            options,
            tag,
            group,
            is_numbered: false,
            outgoing: (0..nodes).map(|_| Outgoing::default()).collect(),
            incoming: (0..nodes).map(|_| Incoming::default()).collect(),
            inbox: Vec::new(),
            left: BTreeMap::new(),
            gone: none.clone(),
            ready: none.clone(),
            turn: 0,
            due: none.clone(),
            keeping: none,
            ticked: Instant::now(),
            has_more: false,
            receivers: Vec::with_capacity(nodes),
            others: Vec::new(),
            datagram: Vec::new(),
            buffer: vec![0; LONGEST_DATAGRAM].into(),
            state: Broadcasts { was_asked: true, ..Broadcasts::new(BroadcastWay::Multicast) },
        }
    }

    /// Sends copies from now on.
    pub(super) fn fall_back(&mut self, reason: String) {
        self.state.way = BroadcastWay::Copies;
        self.state.fell_back.get_or_insert(reason);
    }

    /// Sends a message over the connection, behind a mark if broadcasts were sent since the last one.
    #[inline]
    fn post(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let Some(outgoing) = self.outgoing.get_mut(to.index()) else { return self.transport.send(to, message) };
        if outgoing.is_held_up() {
            return Err(SendError::Full(message));
        }
        if let Some(number) = outgoing.mark() {
            match self.transport.send(to, Beside::Mark(number).message(self.tag)) {
                Ok(()) => outgoing.note_mark(),
                Err(SendError::Full(_)) => return Err(SendError::Full(message)),
                Err(error) => return Err(error),
            }
        }
        let body = message.body.len();
        self.transport.send(to, message)?;
        outgoing.note_sent(body);
        Ok(())
    }

    /// Sends one datagram to the receivers in the list; false if it cannot be sent now.
    fn send_datagram(&mut self, message: &Message) -> bool {
        let Some(group) = &mut self.group else { return false };
        write_datagram(&mut self.datagram, (self.tag, self.transport.local()), &self.receivers, message);
        match group.send(&self.datagram) {
            Ok(true) => {
                for &(node, _) in &self.receivers {
                    self.outgoing[node.index()].keep(message.clone());
                    self.keeping.insert(node.index());
                }
                self.state.saved += self.receivers.len() as u64 - 1;
                true
            }
            Ok(false) => false,
            Err(error) => {
                self.fall_back(format!("the system refuses to send to the group: {error}"));
                false
            }
        }
    }

    /// Parts the receivers of a broadcast into those that a datagram reaches and the others.
    fn part(&mut self, to: &[NodeId], body: usize) {
        self.receivers.clear();
        self.others.clear();
        let fits = self.group.is_some()
            && self.state.way == BroadcastWay::Multicast
            && body <= self.options.max_body
            && most_front(to.len()) + body <= LONGEST_DATAGRAM;
        let local = self.transport.local();
        let reached = |node: NodeId| fits && node != local && !self.gone.contains(node.index());
        for &node in to {
            match self.outgoing.get(node.index()).filter(|outgoing| outgoing.has_room(body)) {
                Some(outgoing) if reached(node) => self.receivers.push((node, outgoing.place())),
                _ => self.others.push(node),
            }
        }
    }

    /// Reads the datagrams that are there.
    fn hear(&mut self) {
        let local = self.transport.local();
        for _ in 0..MOST_AT_ONCE {
            let Some(length) = self.group.as_mut().and_then(|group| group.receive(&mut self.buffer)) else {
                self.has_more = false;
                return;
            };
            let Some(datagram) = read_datagram(&self.buffer[..length], self.tag, local) else { continue };
            let from = datagram.from.index();
            if from < self.incoming.len() && !self.gone.contains(from) {
                self.incoming[from].hear(datagram.place, || datagram.message());
                self.note(from);
            }
        }
        self.has_more = true;
    }

    /// Notes what follows from something that has arrived.
    fn note(&mut self, from: usize) {
        let incoming = &self.incoming[from];
        if incoming.is_ready() {
            self.ready.insert(from);
        }
        if incoming.missing().is_some() || incoming.news().is_some() {
            self.due.insert(from);
        }
    }

    /// Takes a message beside the datagrams.
    fn take_beside(&mut self, peer: NodeId, beside: Beside, body: Bytes) {
        let index = peer.index();
        match beside {
            Beside::Mark(number) => self.incoming[index].mark(number),
            Beside::Again(number) => {
                if let Some(message) = read_again(body) {
                    self.incoming[index].hear_again(number, message);
                }
            }
            Beside::Have(number) => {
                if self.outgoing[index].confirm(number) {
                    self.keeping.remove(index);
                }
            }
            Beside::Miss(from, to) => {
                if self.outgoing[index].miss(from, to) {
                    self.fall_back(format!("{peer} misses one broadcast after the other"));
                }
                self.due.insert(index);
            }
        }
        self.note(index);
    }

    /// Gives at most `limit` messages that had to wait.
    fn give(&mut self, limit: usize, sink: &mut Vec<Received>) {
        let end = sink.len() + limit;
        while sink.len() < end {
            let Some(from) = self.ready.next_from(self.turn) else { return };
            let (node, last) = (NodeId(from as u16), end.min(sink.len() + TURN));
            self.turn = from + 1;
            while sink.len() < last
                && let Some(message) = self.incoming[from].next()
            {
                sink.push(Received::Message { from: node, message });
            }
            if self.incoming[from].is_ready() || sink.len() == end && self.left.contains_key(&node) {
                continue;
            }
            self.ready.remove(from);
            if let Some(reason) = self.left.remove(&node) {
                sink.push(Received::Lost { peer: node, reason });
                self.forget(from);
            } else if self.incoming[from].news().is_some() {
                self.due.insert(from);
            }
        }
    }

    fn forget(&mut self, index: usize) {
        self.gone.insert(index);
        self.outgoing[index].clear();
        self.incoming[index] = Incoming::default();
        [&mut self.due, &mut self.keeping].into_iter().for_each(|set| set.remove(index));
    }

    /// Takes what the connections have brought.
    fn take_inbox(&mut self, sink: &mut Vec<Received>) {
        let mut inbox = std::mem::take(&mut self.inbox);
        for item in inbox.drain(..) {
            match item {
                Received::Message { from, message } => match Beside::read(&message.head, self.tag) {
                    Some(beside) => self.take_beside(from, beside, message.body),
                    None => {
                        let next = self.incoming[from.index()].arrive(message);
                        sink.extend(next.map(|message| Received::Message { from, message }));
                        if self.incoming[from.index()].is_ready() {
                            self.ready.insert(from.index());
                        }
                    }
                },
                Received::Lost { peer, reason } => {
                    self.left.insert(peer, reason);
                    self.ready.insert(peer.index());
                }
            }
        }
        self.inbox = inbox;
    }

    /// Sends all that is due beside the datagrams, as far as the transport takes it.
    fn settle(&mut self) {
        if !self.keeping.is_empty() && self.ticked.elapsed() >= self.options.mark_after {
            self.tick();
        }
        let mut next = self.due.next_from(0);
        while let Some(index) = next {
            if self.settle_with(index) {
                self.due.remove(index);
            }
            next = self.due.next_from(index + 1).filter(|&after| after > index);
        }
    }

    /// Sends what is due to one peer; false if the transport has no room for it now.
    fn settle_with(&mut self, index: usize) -> bool {
        let (peer, tag, transport) = (NodeId(index as u16), self.tag, &mut self.transport);
        let mut send = |message| !matches!(transport.send(peer, message), Err(SendError::Full(_)));
        let (incoming, outgoing) = (&mut self.incoming[index], &mut self.outgoing[index]);
        if let Some((from, to)) = incoming.missing() {
            if !send(Beside::Miss(from, to).message(tag)) {
                return false;
            }
            incoming.note_asked();
        }
        if let Some(number) = incoming.news() {
            if !send(Beside::Have(number).message(tag)) {
                return false;
            }
            incoming.note_confirmed();
        }
        while let Some((number, message)) = outgoing.wanted() {
            if !send(again(tag, number, message)) {
                return false;
            }
            outgoing.note_again();
            self.state.repeated += 1;
        }
        true
    }

    /// Marks broadcasts that are not confirmed for a while.
    fn tick(&mut self) {
        self.ticked = Instant::now();
        for index in self.keeping.iter() {
            let outgoing = &mut self.outgoing[index];
            if let Some(number) = outgoing.due_mark()
                && self.transport.send(NodeId(index as u16), Beside::Mark(number).message(self.tag)).is_ok()
            {
                outgoing.note_mark();
            }
            outgoing.tick();
        }
    }
}

impl<T: Transport, D: Datagrams> Transport for ReliableMulticast<T, D> {
    fn local(&self) -> NodeId {
        self.transport.local()
    }

    #[inline]
    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        if self.is_numbered { self.post(to, message) } else { self.transport.send(to, message) }
    }

    fn broadcast(&mut self, to: &[NodeId], message: Message, refused: &mut Refusals<'_>) {
        if !self.is_numbered {
            return send_copies(&mut self.transport, to, message, refused);
        }
        self.part(to, message.body.len());
        if self.receivers.len() < 2 || !self.send_datagram(&message) {
            return send_copies(self, to, message, refused);
        }
        let others = std::mem::take(&mut self.others);
        send_copies(self, &others, message, refused);
        self.others = others;
    }

    fn broadcasts(&self) -> Broadcasts {
        self.state.clone()
    }

    fn flush(&mut self) -> bool {
        if self.is_numbered {
            self.settle();
        }
        self.transport.flush() && self.due.is_empty()
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        if !self.is_numbered {
            return self.transport.receive(limit, sink);
        }
        let before = sink.len();
        self.hear();
        self.give(limit, sink);
        // Without room for a message, too, since the transport checks its connections there.
        self.transport.receive(limit - (sink.len() - before), &mut self.inbox);
        self.take_inbox(sink);
        self.give(limit - (sink.len() - before), sink);
        self.settle();
        sink.len() - before
    }

    fn wait(&mut self, timeout: Duration) {
        if self.has_more || !self.ready.is_empty() {
            return;
        }
        let tick = self.options.mark_after.saturating_sub(self.ticked.elapsed());
        let timeout = if self.keeping.is_empty() { timeout } else { timeout.min(tick) };
        self.transport.wait(timeout);
    }

    fn waker(&self) -> Waker {
        self.transport.waker()
    }

    fn buffers(&self) -> Option<Buffers> {
        self.transport.buffers()
    }
}

/// Broadcasts that a receiver may have missed go over the connection, since no receiver can ask later.
impl<T: Transport, D> Drop for ReliableMulticast<T, D> {
    fn drop(&mut self) {
        for index in self.keeping.iter() {
            let (outgoing, receiver) = (&mut self.outgoing[index], NodeId(index as u16));
            outgoing.want_all();
            while let Some((number, message)) = outgoing.wanted() {
                if self.transport.send(receiver, again(self.tag, number, message)).is_err() {
                    break;
                }
                outgoing.note_again();
            }
        }
        self.transport.flush();
    }
}
