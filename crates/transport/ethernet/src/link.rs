//! A link: the session with one peer that has joined.

mod receiver;
mod records;
mod rtt;
mod sender;
mod stream;

use crate::{
    frame::{FrameKind, HEADER_BYTES, Header, widen},
    options::LOOKS,
};
use evb_core::{NodeId, Span, Time};
use evb_transport::{ChunkPool, Message, Received, Take};
use receiver::{Due, Receiver};
pub(crate) use records::RECORD_BYTES;
use sender::Sender;

/// What a link needs to know from its machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionNames {
    pub(crate) run: u32,
    pub(crate) local: NodeId,
    pub(crate) peer: NodeId,
    /// Sessions to the peer and from it.
    pub(crate) outward: u64,
    pub(crate) inward: u64,
}

/// The limits of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkLimits {
    /// Most bytes of a payload in both directions.
    pub(crate) payload: usize,
    /// Frames that the peer grants in the beginning, and those that this node grants.
    pub(crate) granted: u32,
    pub(crate) window: u32,
    pub(crate) max_body: usize,
    /// Messages have no heads, and are borrowed for a call.
    pub(crate) is_layer: bool,
    /// Shortest time between two frames.
    pub(crate) pace: Span,
}

/// The session with a peer.
#[derive(Debug)]
pub(crate) struct PeerLink {
    names: SessionNames,
    /// The Ethernet header of frames to the peer.
    ethernet: Vec<u8>,
    sender: Sender,
    receiver: Receiver,
    /// The peer has shown that it knows the session.
    pub(crate) is_accepted: bool,
    /// The reason why the peer is gone.
    failure: Option<String>,
    /// The user has heard that the peer is gone.
    pub(crate) is_over: bool,
    /// A frame has come, or has gone, since the last check.
    heard: bool,
    spoke: bool,
    silent: u32,
    last_heard: Time,
    /// A status must ask for an answer.
    asks: bool,
    /// The link is in the list of those with something to send, or to receive.
    pub(crate) is_busy: bool,
    pub(crate) is_active: bool,
}

impl PeerLink {
    pub(crate) fn new(now: Time, names: SessionNames, ethernet: Vec<u8>, bounds: &LinkLimits) -> Self {
        Self {
            names,
            ethernet,
            sender: Sender::new(bounds.payload, bounds.granted, bounds.pace),
            receiver: Receiver::new(bounds.window, bounds.max_body, bounds.is_layer),
            is_accepted: false,
            failure: None,
            is_over: false,
            heard: true,
            spoke: false,
            silent: 0,
            last_heard: now,
            asks: false,
            is_busy: false,
            is_active: false,
        }
    }

    /// The session from the peer.
    pub(crate) const fn inward(&self) -> u64 {
        self.names.inward
    }

    /// Returns true if messages to the peer can still be sent.
    #[inline]
    pub(crate) fn takes_messages(&self) -> bool {
        self.failure.is_none() && !self.receiver.has_ended()
    }

    /// Bytes of messages that wait.
    #[inline]
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.sender.bytes
    }

    #[inline]
    pub(crate) fn push(&mut self, message: Message) {
        self.sender.push(message);
    }

    /// Queues a message of a layer.
    #[inline]
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        self.sender.push_bytes(bytes);
    }

    pub(crate) fn say_goodbye(&mut self) {
        if self.takes_messages() {
            self.sender.say_goodbye();
        }
    }

    /// Returns true if everything is in frames that were sent once at least.
    pub(crate) fn is_sent(&self) -> bool {
        !self.takes_messages() || !self.sender.has_waiting()
    }

    /// Returns true if the peer has everything, or is gone.
    pub(crate) fn is_settled(&self) -> bool {
        !self.takes_messages() || self.sender.is_settled()
    }

    /// Returns true if messages, or the news of the end, can be received.
    #[inline]
    pub(crate) fn is_readable(&self) -> bool {
        !self.is_over && (self.receiver.has_messages() || self.has_end())
    }

    fn has_end(&self) -> bool {
        self.failure.is_some() || self.receiver.has_ended() || self.receiver.failure.is_some()
    }

    /// Takes a frame of this session. Returns true if queued messages may move again.
    #[inline]
    pub(crate) fn hear(
        &mut self,
        now: Time,
        header: &Header,
        payload: &[u8],
        chunks: &mut ChunkPool,
        pool: &mut Vec<Vec<u8>>,
    ) -> bool {
        (self.heard, self.is_accepted) = (true, true);
        if self.failure.is_some() {
            return false;
        }
        let (ack, next) = (widen(header.ack, self.sender.acked()), self.receiver.expected);
        let limit = widen(header.limit, self.sender.limit());
        let is_status = header.kind == FrameKind::Status;
        let room = self.sender.hear(now, ack, limit, if is_status { payload } else { &[] }, pool);
        if is_status {
            self.receiver.due = if header.asks { Due::Now } else { self.receiver.due };
        } else {
            self.receiver.take(now, widen(header.number, next), header.asks, payload, chunks);
        }
        room
    }

    /// Appends at most `limit` messages to `sink`, and the news of the end behind the last one.
    pub(crate) fn give(&mut self, limit: usize, sink: &mut Vec<Received>, pool: &mut Vec<Vec<u8>>) -> usize {
        let before = sink.len();
        let count = self.receiver.give(self.names.peer, limit, sink);
        if count == limit {
            return count;
        }
        let reason = self.take_end(pool);
        sink.extend(reason.into_iter().map(|reason| Received::Lost { peer: self.names.peer, reason }));
        sink.len() - before
    }

    /// Calls `take` with at most `limit` messages of a layer; returns their number.
    #[inline]
    pub(crate) fn give_bytes(&mut self, limit: usize, take: &mut Take<'_>) -> usize {
        let from = self.names.peer;
        self.receiver.give_bytes(limit, |bytes| take(from, bytes))
    }

    /// The reason of the end, behind the last message and once.
    pub(crate) fn take_end(&mut self, pool: &mut Vec<Vec<u8>>) -> Option<String> {
        if self.receiver.has_messages() || !self.has_end() || self.is_over {
            return None;
        }
        let own = self.failure.take().or(self.receiver.failure.take());
        let reason = own.unwrap_or_else(|| "it left".into());
        self.fail(String::new(), pool);
        self.is_over = true;
        Some(reason)
    }

    /// Gives the peer up.
    pub(crate) fn fail(&mut self, reason: String, pool: &mut Vec<Vec<u8>>) {
        if self.failure.is_none() {
            self.failure = Some(reason);
            self.sender.clear(pool);
        }
    }

    /// Makes one of the [`LOOKS`] checks in the longest silence. What has arrived was taken before. Checks are counted in
    /// place of time: a node that was stopped itself has made none meanwhile, and blames no peer.
    pub(crate) fn look(&mut self, now: Time, pool: &mut Vec<Vec<u8>>) {
        if std::mem::take(&mut self.heard) {
            (self.last_heard, self.silent) = (now, 0);
        } else {
            self.silent += 1;
            if self.silent > LOOKS && self.takes_messages() {
                let silence = now.since(self.last_heard).as_secs_f64();
                self.fail(format!("it was silent for {silence:.1} s"), pool);
            }
        }
        if !std::mem::take(&mut self.spoke) {
            self.receiver.due = Due::Now;
        }
    }

    /// Handles timers that are over. Returns the time of the next one.
    pub(crate) fn on_time(&mut self, now: Time) -> Time {
        if self.failure.is_some() {
            return Time::MAX;
        }
        if self.sender.timer.is_some_and(|timer| timer <= now) && self.sender.time_out(now) {
            (self.asks, self.receiver.due) = (true, Due::Now);
        }
        if self.receiver.due <= Due::At(now) {
            self.receiver.due = Due::Now;
        }
        self.next_time(now)
    }

    /// The time of the next timer.
    #[inline]
    pub(crate) fn next_time(&self, now: Time) -> Time {
        let due = match self.receiver.due {
            Due::At(time) => time,
            Due::Now | Due::Never => Time::MAX,
        };
        let timer = self.sender.timer.unwrap_or(Time::MAX);
        due.min(timer).min(self.sender.paced(now).unwrap_or(Time::MAX))
    }

    /// The number of the next frame of data to be sent now, which is complete then.
    #[inline]
    pub(crate) fn next_data(&mut self, now: Time, pool: &mut Vec<Vec<u8>>) -> Option<u64> {
        if self.failure.is_some() {
            return None;
        }
        let next = self.sender.next(now, &self.ethernet, pool)?;
        let header = self.header(FrameKind::Data, next.asks, next.number);
        let begin = self.ethernet.len();
        let frame = &mut self.sender.frame_mut(next.number)[begin..];
        Header { length: (frame.len() - HEADER_BYTES) as u16, ..header }.seal(frame);
        self.receiver.note_advertised();
        self.spoke = true;
        Some(next.number)
    }

    /// A status, if one is due now. Only a status reports a gap in what has arrived.
    pub(crate) fn next_status(&mut self, pool: &mut Vec<Vec<u8>>) -> Option<Vec<u8>> {
        if self.receiver.due != Due::Now || self.failure.is_some() && self.is_over {
            return None;
        }
        let early = self.receiver.early();
        let asks = std::mem::take(&mut self.asks);
        let header = Header { length: early.len() as u16, ..self.header(FrameKind::Status, asks, 0) };
        let mut frame = pool.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(&self.ethernet);
        frame.resize(self.ethernet.len() + HEADER_BYTES, 0);
        frame.extend_from_slice(&early);
        header.seal(&mut frame[self.ethernet.len()..]);
        self.receiver.note_advertised();
        self.spoke = true;
        Some(frame)
    }

    /// A frame that tells the peer that it was given up, or that its session has ended.
    pub(crate) fn reset(&self) -> Vec<u8> {
        let mut frame = self.ethernet.clone();
        frame.resize(self.ethernet.len() + HEADER_BYTES, 0);
        self.header(FrameKind::Reset, false, 0).seal(&mut frame[self.ethernet.len()..]);
        frame
    }

    /// Sends a status in any case.
    pub(crate) fn show(&mut self) {
        self.receiver.due = Due::Now;
    }

    /// Returns true if a status is due before any data go, because something is missing.
    pub(crate) fn has_gap(&self) -> bool {
        self.receiver.has_gap()
    }

    fn header(&self, kind: FrameKind, asks: bool, number: u64) -> Header {
        let SessionNames { run, local, peer, outward, .. } = self.names;
        let (ack, limit) = (self.receiver.expected as u32, self.receiver.limit() as u32);
        Header {
            run,
            to: peer,
            from: local,
            length: 0,
            kind,
            asks,
            session: outward,
            number: number as u32,
            ack,
            limit,
        }
    }

    /// The bytes of a frame of data that was not acknowledged yet.
    #[inline]
    pub(crate) fn frame(&self, number: u64) -> Option<&[u8]> {
        self.sender.frame(number)
    }

    /// Frames that were sent again, and frames that came again.
    pub(crate) const fn repeated(&self) -> [u64; 2] {
        [self.sender.repeated, self.receiver.repeated]
    }
}
