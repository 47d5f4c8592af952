//! One endpoint: matching of messages and receives.
//!
//! Messages are matched in the order of the mailbox, and receives in the order in which they were posted.

use crate::lane::Lane;
use evb_libfabric_abi::{
    CqEntry, FI_ADDR_UNSPEC, FI_EHOSTUNREACH, FI_ETRUNC, FI_MSG, FI_RECV, FI_REMOTE_CQ_DATA, FI_REMOTE_WRITE, FI_RMA,
    FI_SEND, FI_TAGGED,
};
use evb_velo_device::{Address, Body, DeviceError, Envelope, Incoming, Note, Span};
use std::{
    collections::{HashMap, VecDeque},
    ops::Deref,
    time::{Duration, Instant},
};

/// Flag of an envelope: a tagged message.
pub(crate) const TAGGED: u16 = 1;
/// Flag of an envelope: `data` holds data for the completion queue.
pub(crate) const WITH_DATA: u16 = 2;
/// Flag of an envelope: no message, but the notice of a remote write.
pub(crate) const WRITTEN: u16 = 4;

/// Messages that wait for a receive; the mailbox holds the others.
const MOST_UNEXPECTED: usize = 1 << 20;
/// Receives that wait for a message.
const MOST_POSTED: usize = 1 << 20;
/// Messages taken from the mailbox in one round of progress, as long as this many do not wait for a receive already.
const ROUND: usize = 64;
/// Time between two looks at the processes of peers that messages are under way to, and rounds between two at the clock.
const LOOK: Duration = Duration::from_millis(100);
const ROUNDS: u32 = 64;

/// A finished operation: entry, source, and error with the number of bytes that did not fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    pub(crate) entry: CqEntry,
    pub(crate) source: u64,
    pub(crate) error: isize,
    pub(crate) excess: usize,
    pub(crate) wanted: bool,
}

impl Finished {
    pub(crate) fn new(entry: CqEntry, wanted: bool) -> Self {
        Self { entry, source: FI_ADDR_UNSPEC, error: 0, excess: 0, wanted }
    }
}

/// Memory of a receive. One piece is the rule, and needs no allocation.
#[derive(Clone, Debug)]
pub(crate) enum Spans {
    One([Span; 1]),
    Many(Vec<Span>),
}

impl From<&[Span]> for Spans {
    fn from(spans: &[Span]) -> Self {
        spans.try_into().map_or_else(|_| Self::Many(spans.to_vec()), Self::One)
    }
}

impl Deref for Spans {
    type Target = [Span];

    fn deref(&self) -> &[Span] {
        match self {
            Self::One(span) => span,
            Self::Many(spans) => spans,
        }
    }
}

/// A posted receive.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    pub(crate) spans: Spans,
    pub(crate) source: Option<Address>,
    pub(crate) tag: u64,
    pub(crate) ignore: u64,
    pub(crate) context: usize,
    pub(crate) wanted: bool,
}

impl Posted {
    #[inline]
    fn matches(&self, source: &Address, envelope: &Envelope) -> bool {
        (envelope.tag | self.ignore) == (self.tag | self.ignore) && self.source.is_none_or(|wanted| wanted == *source)
    }

    fn wants(&self, message: &Unexpected) -> bool {
        self.matches(&message.source, &message.envelope)
    }
}

#[derive(Clone, Debug)]
enum Bytes {
    Body(Body),
    Heap(Vec<u8>),
    /// Gone with their sender.
    Lost,
}

/// Where the bytes of a message are. One that is expected is not moved on its way.
#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    Body(&'a Body),
    Heap(&'a [u8]),
    Lost,
}

impl Bytes {
    fn place(&self) -> Place<'_> {
        match self {
            Self::Body(body) => Place::Body(body),
            Self::Heap(bytes) => Place::Heap(bytes),
            Self::Lost => Place::Lost,
        }
    }
}

/// A message that no receive was posted for.
#[derive(Clone, Debug)]
pub(crate) struct Unexpected {
    sender: u16,
    source: Address,
    pub(crate) envelope: Envelope,
    bytes: Bytes,
}

#[derive(Debug)]
struct Pull {
    sender: u16,
    index: u16,
    spans: Spans,
    done: usize,
    total: usize,
    finished: Finished,
}

/// An endpoint.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) lane: Lane,
    /// Receives and messages without tag, and with tag.
    posted: [VecDeque<Posted>; 2],
    unexpected: [VecDeque<Unexpected>; 2],
    claimed: HashMap<usize, Unexpected>,
    sending: Vec<(Note, Finished)>,
    pulls: Vec<Pull>,
    rounds: u32,
    looked: Instant,
    /// Finished operations that the queues have not got yet.
    pub(crate) finished: Vec<Finished>,
    /// Numbers of sources in the address vector.
    numbers: HashMap<Address, u64>,
    /// Address and number of each sender that was looked up.
    sources: Vec<Option<(Address, u64)>>,
}

impl Engine {
    pub(crate) fn new(lane: Lane) -> Self {
        Self {
            lane,
            posted: Default::default(),
            unexpected: Default::default(),
            claimed: HashMap::new(),
            sending: Vec::new(),
            pulls: Vec::new(),
            rounds: 0,
            looked: Instant::now(),
            finished: Vec::new(),
            numbers: HashMap::new(),
            sources: Vec::new(),
        }
    }

    /// Address and number of a sender.
    #[inline]
    fn source(&mut self, sender: u16) -> Option<(Address, u64)> {
        match self.sources.get(usize::from(sender)) {
            Some(&Some(known)) => Some(known),
            _ => self.look_up(sender),
        }
    }

    #[cold]
    fn look_up(&mut self, sender: u16) -> Option<(Address, u64)> {
        let address = self.lane.sender(sender)?;
        let known = (address, self.numbers.get(&address).copied().unwrap_or(FI_ADDR_UNSPEC));
        self.sources.resize(self.sources.len().max(usize::from(sender) + 1), None);
        self.sources[usize::from(sender)] = Some(known);
        Some(known)
    }

    /// Gives an address a number, if it has none.
    pub(crate) fn number(&mut self, address: Address, number: u64) {
        self.numbers.entry(address).or_insert(number);
        self.sources.clear();
    }

    /// Takes this number from an address.
    pub(crate) fn forget(&mut self, address: Address, number: u64) {
        if self.numbers.get(&address) == Some(&number) {
            self.numbers.remove(&address);
        }
        self.sources.clear();
    }

    /// Remembers a message that is under way.
    pub(crate) fn under_way(&mut self, note: Note, finished: Finished) {
        self.sending.push((note, finished));
    }

    /// Posts a receive, or gives it a message that is there. False if too many are posted already.
    #[inline]
    pub(crate) fn receive(&mut self, tagged: bool, posted: Posted) -> bool {
        if !self.unexpected[usize::from(tagged)].is_empty() {
            return self.receive_unexpected(tagged, posted);
        }
        self.post(tagged, posted)
    }

    #[inline]
    fn post(&mut self, tagged: bool, posted: Posted) -> bool {
        let queue = &mut self.posted[usize::from(tagged)];
        let has_room = queue.len() < MOST_POSTED;
        if has_room {
            queue.push_back(posted);
        }
        has_room
    }

    #[cold]
    fn receive_unexpected(&mut self, tagged: bool, posted: Posted) -> bool {
        let waiting = &mut self.unexpected[usize::from(tagged)];
        let Some(place) = waiting.iter().position(|message| posted.wants(message)) else {
            return self.post(tagged, posted);
        };
        let message = taken(waiting, place);
        self.deliver(&posted, message.sender, &message.envelope, message.bytes.place());
        true
    }

    /// The message that a receive would get, kept for the receive with the same context if `claim`, thrown away if
    /// `discard`.
    pub(crate) fn peek(&mut self, posted: &Posted, claim: bool, discard: bool) -> bool {
        let waiting = &mut self.unexpected[1];
        let Some(place) = waiting.iter().position(|message| posted.wants(message)) else { return false };
        let message = waiting[place].clone();
        if claim || discard {
            waiting.remove(place);
        }
        let (entry, sender) = (entry(posted, &message.envelope), message.sender);
        if claim {
            self.claimed.insert(posted.context, message);
        } else if discard {
            self.discard(message);
        }
        let source = self.source(sender).map_or(FI_ADDR_UNSPEC, |(_, number)| number);
        self.finished.push(Finished { source, ..Finished::new(entry, posted.wanted) });
        true
    }

    /// Receives, or throws away, the message that was claimed with this context.
    pub(crate) fn take_claimed(&mut self, posted: &Posted, discard: bool) -> bool {
        let Some(message) = self.claimed.remove(&posted.context) else { return false };
        if discard {
            let entry = entry(posted, &message.envelope);
            self.discard(message);
            self.finished.push(Finished::new(entry, posted.wanted));
        } else {
            self.deliver(posted, message.sender, &message.envelope, message.bytes.place());
        }
        true
    }

    /// Takes back a posted receive.
    pub(crate) fn cancel(&mut self, context: usize) -> Option<(Posted, bool)> {
        for tagged in [false, true] {
            let queue = &mut self.posted[usize::from(tagged)];
            if let Some(place) = queue.iter().position(|posted| posted.context == context) {
                return queue.remove(place).map(|posted| (posted, tagged));
            }
        }
        None
    }

    fn discard(&mut self, message: Unexpected) {
        if let (Bytes::Body(Body::Note(index)), Some(device)) = (message.bytes, self.lane.memory()) {
            device.refuse(message.sender, index);
        }
    }

    fn deliver(&mut self, posted: &Posted, sender: u16, envelope: &Envelope, place: Place<'_>) {
        let (room, length) = (posted.spans.iter().map(|span| span.length).sum(), envelope.length as usize);
        let (mut error, excess) = if length > room { (FI_ETRUNC, length - room) } else { (0, 0) };
        let mut pulled = None;
        match place {
            Place::Body(Body::Line(line)) => {
                evb_velo_device::copy_out(&posted.spans, 0, &line[..length.min(line.len())]);
            }
            Place::Heap(bytes) => {
                evb_velo_device::copy_out(&posted.spans, 0, bytes);
            }
            Place::Body(&Body::Block(index)) => {
                if !self.lane.deliver_block(sender, index, length, &posted.spans) {
                    error = FI_EHOSTUNREACH;
                }
            }
            Place::Lost => error = FI_EHOSTUNREACH,
            Place::Body(&Body::Note(index)) => match self.fetch_note(sender, index, &posted.spans) {
                Ok(whole) => pulled = (!whole).then_some(index),
                Err(_) => error = FI_EHOSTUNREACH,
            },
        }
        let source = self.source(sender).map_or(FI_ADDR_UNSPEC, |(_, number)| number);
        let entry = CqEntry { len: length.min(room), ..entry(posted, envelope) };
        let finished = Finished { entry, source, error, excess, wanted: posted.wanted };
        match pulled {
            Some(index) => {
                let spans = posted.spans.clone();
                self.pulls.push(Pull { sender, index, spans, done: 0, total: length, finished });
            }
            None => self.finished.push(finished),
        }
    }

    /// Returns true if there is nothing to do. It is what most looks of a program that waits find.
    #[inline]
    pub(crate) fn is_idle(&mut self) -> bool {
        !self.lane.may_have_next() && self.sending.is_empty() && self.pulls.is_empty() && self.finished.is_empty()
    }

    /// Takes messages from the mailbox, and drives those under way.
    pub(crate) fn progress(&mut self) {
        for _ in 0..self.round() {
            let mut incoming = Incoming::default();
            if !self.lane.poll_into(&mut incoming) {
                break;
            }
            self.arrived(&incoming);
        }
        if self.lane.is_lost() {
            self.give_up();
        }
        if self.sending.is_empty() && self.pulls.is_empty() {
            return;
        }
        let look = self.must_look();
        self.drive_sends(look);
        self.drive_pulls(look);
    }

    /// Returns true if it is time to look at the processes of peers.
    #[inline]
    fn must_look(&mut self) -> bool {
        self.rounds = self.rounds.wrapping_add(1);
        let must = self.rounds.is_multiple_of(ROUNDS) && self.looked.elapsed() >= LOOK;
        if must {
            self.looked = Instant::now();
        }
        must
    }

    /// Messages to take now. When many wait, only one: the others stay with their senders until the program receives, and need
    /// no memory here. It is never none before the last limit, since what the program waits for may be behind them.
    #[inline]
    fn round(&self) -> usize {
        match self.unexpected[0].len() + self.unexpected[1].len() {
            0..ROUND => ROUND,
            ROUND..MOST_UNEXPECTED => 1,
            _ => 0,
        }
    }

    #[inline]
    fn arrived(&mut self, incoming: &Incoming) {
        let Incoming { sender, envelope, body } = incoming;
        let Some((source, number)) = self.source(*sender) else { return };
        if envelope.flags & WRITTEN != 0 {
            return self.written(envelope, number);
        }
        let tagged = usize::from(envelope.flags & TAGGED != 0);
        match self.posted[tagged].iter().position(|posted| posted.matches(&source, envelope)) {
            Some(place) => {
                let posted = taken(&mut self.posted[tagged], place);
                self.deliver(&posted, *sender, envelope, Place::Body(body));
            }
            None => self.keep(incoming, source),
        }
    }

    /// Reports the notice of a remote write.
    fn written(&mut self, envelope: &Envelope, number: u64) {
        let flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
        let entry = CqEntry { flags, len: envelope.tag as usize, data: envelope.data, ..CqEntry::default() };
        self.finished.push(Finished { source: number, ..Finished::new(entry, true) });
    }

    /// Keeps a message that no receive was posted for. A block belongs to the sender, who may need it for what is received
    /// first.
    #[cold]
    fn keep(&mut self, incoming: &Incoming, source: Address) {
        let Incoming { sender, envelope, body } = *incoming;
        let bytes = match body {
            Body::Block(index) => {
                let taken = self.lane.take_block(sender, index, envelope.length as usize);
                taken.map_or(Bytes::Lost, Bytes::Heap)
            }
            _ => Bytes::Body(body),
        };
        let tagged = usize::from(envelope.flags & TAGGED != 0);
        self.unexpected[tagged].push_back(Unexpected { sender, source, envelope, bytes });
    }

    /// Ends all receives, since nothing comes any more.
    #[cold]
    fn give_up(&mut self) {
        self.lane.complain();
        for posted in self.posted.iter_mut().flat_map(|queue| queue.drain(..)) {
            let entry = CqEntry { op_context: posted.context, flags: FI_RECV, tag: posted.tag, ..CqEntry::default() };
            self.finished.push(Finished { error: FI_EHOSTUNREACH, ..Finished::new(entry, true) });
        }
    }

    fn fetch_note(&mut self, sender: u16, index: u16, spans: &[Span]) -> Result<bool, DeviceError> {
        self.lane.memory().ok_or(DeviceError::Gone)?.fetch_note(sender, index, spans)
    }

    fn drive_sends(&mut self, look: bool) {
        let (Some(device), finished) = (self.lane.memory(), &mut self.finished) else { return };
        self.sending.retain_mut(|(note, done)| {
            if device.serve(note) {
                finished.push(*done);
                return false;
            }
            if look && !device.is_alive(device.peer_of(note)) {
                device.abandon(note);
                device.bury(device.peer_of(note));
                finished.push(Finished { error: FI_EHOSTUNREACH, ..*done });
                return false;
            }
            true
        });
    }

    fn drive_pulls(&mut self, look: bool) {
        let (Some(device), finished) = (self.lane.memory(), &mut self.finished) else { return };
        self.pulls.retain_mut(|pull| match device.pull(pull.sender, pull.index, &pull.spans, pull.done, pull.total) {
            Ok(0) if look && !device.is_sender_alive(pull.sender) => {
                finished.push(Finished { error: FI_EHOSTUNREACH, ..pull.finished });
                false
            }
            Ok(length) => {
                pull.done += length;
                let more = pull.done < pull.total;
                if !more {
                    finished.push(pull.finished);
                }
                more
            }
            Err(_) => {
                finished.push(Finished { error: FI_EHOSTUNREACH, ..pull.finished });
                false
            }
        });
    }
}

/// The entry of a receive that gets a message.
#[inline]
fn entry(posted: &Posted, envelope: &Envelope) -> CqEntry {
    let &Envelope { length, tag, data, flags } = envelope;
    let kind = if flags & TAGGED != 0 { FI_TAGGED } else { FI_MSG };
    let with_data = if flags & WITH_DATA != 0 { FI_REMOTE_CQ_DATA } else { 0 };
    let buf = posted.spans.first().map_or(0, |span| span.address);
    CqEntry { op_context: posted.context, flags: FI_RECV | kind | with_data, len: length as usize, buf, data, tag }
}

/// Takes an element out of a queue. It is the first one as a rule.
#[inline]
fn taken<T>(queue: &mut VecDeque<T>, place: usize) -> T {
    let element = if place == 0 { queue.pop_front() } else { queue.remove(place) };
    element.expect("a place in the queue")
}

/// The entry of a finished send.
pub(crate) fn sent(context: usize, tagged: bool) -> CqEntry {
    CqEntry { op_context: context, flags: FI_SEND | if tagged { FI_TAGGED } else { FI_MSG }, ..CqEntry::default() }
}
