//! The receiving half of a link: puts frames in order, and says what has arrived and what may come.

use super::{
    records::Records,
    stream::{Arrived, Front},
};
use evb_core::{NodeId, Span, Time};
use evb_transport::{ChunkPool, Message, Received};
use std::collections::VecDeque;

/// Longest time that an acknowledgement waits for a frame that it can travel with.
const DELAY: Span = Span::from_millis(1);

/// When a status is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Now,
    At(Time),
    Never,
}

/// Frames of a peer and the messages in them.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The first frame that has not arrived.
    pub(super) expected: u64,
    /// Frames that the peer may be ahead of what was consumed.
    window: u64,
    max_body: usize,
    /// Payloads that came too early; the first is that of the expected frame, and missing.
    early: VecDeque<Option<Vec<u8>>>,
    /// Memory of such payloads, to be used again.
    spare: Vec<Vec<u8>>,
    records: Records,
    /// The bytes of a layer, in place of messages.
    arrived: Option<Arrived>,
    /// Messages for the user, each with the frame in which it ends.
    inbox: VecDeque<(Message, u64)>,
    advertised: u64,
    pub(super) due: Due,
    pub(super) failure: Option<String>,
    /// Frames that came twice or without credit.
    pub(super) repeated: u64,
}

impl Receiver {
    pub(super) fn new(window: u32, max_body: usize, is_layer: bool) -> Self {
        Self {
            expected: 0,
            window: window.into(),
            max_body,
            early: VecDeque::new(),
            spare: Vec::new(),
            records: Records::default(),
            arrived: is_layer.then(Arrived::default),
            inbox: VecDeque::new(),
            advertised: window.into(),
            due: Due::Never,
            failure: None,
            repeated: 0,
        }
    }

    /// Takes a frame of data.
    #[inline]
    pub(super) fn take(&mut self, now: Time, number: u64, asks: bool, payload: &[u8], chunks: &mut ChunkPool) {
        self.due = self.due.min(if asks { Due::Now } else { Due::At(Time(now.0 + DELAY.0)) });
        if number == self.expected && number < self.limit() {
            self.feed(payload, chunks);
            if !self.early.is_empty() {
                self.advance(chunks);
            }
            if self.has_ended() {
                self.due = Due::Now;
            }
        } else {
            self.due = Due::Now;
            self.keep(number, payload);
        }
    }

    fn feed(&mut self, payload: &[u8], chunks: &mut ChunkPool) {
        let (inbox, number) = (&mut self.inbox, self.expected);
        self.expected += 1;
        if let Some(arrived) = &mut self.arrived {
            return arrived.push(payload);
        }
        if self.failure.is_none() {
            let fed = self.records.feed(payload, self.max_body, chunks, |message| inbox.push_back((message, number)));
            self.failure = fed.err();
        }
    }

    /// Takes the early frames that have become due.
    #[cold]
    fn advance(&mut self, chunks: &mut ChunkPool) {
        self.early.pop_front();
        while let Some(Some(payload)) = self.early.front_mut().map(Option::take) {
            self.feed(&payload, chunks);
            self.spare.push(payload);
            self.early.pop_front();
        }
    }

    /// Keeps an early frame, if it is one that may come.
    #[cold]
    fn keep(&mut self, number: u64, payload: &[u8]) {
        if number < self.expected || number >= self.limit() {
            self.repeated += 1;
            return;
        }
        let place = (number - self.expected) as usize;
        while self.early.len() <= place {
            self.early.push_back(None);
        }
        if self.early[place].is_some() {
            self.repeated += 1;
            return;
        }
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.clear();
        memory.extend_from_slice(payload);
        self.early[place] = Some(memory);
    }

    /// The first frame that the peer may not send.
    pub(super) fn limit(&self) -> u64 {
        let consumed = match &self.arrived {
            None => self.inbox.front().map_or(self.expected, |(_, number)| *number),
            // What does not hold a whole message yet must not hold it up.
            Some(arrived) if !matches!(arrived.front(), Front::Message(_)) => self.expected,
            Some(arrived) => self.expected - arrived.frames() as u64,
        };
        consumed + self.window
    }

    /// Bits of the frames behind the expected one: those that have arrived are set.
    pub(super) fn early(&self) -> Vec<u8> {
        let mut bits = vec![0; self.early.len().saturating_sub(1).div_ceil(8)];
        for (place, _) in self.early.iter().skip(1).enumerate().filter(|(_, payload)| payload.is_some()) {
            bits[place / 8] |= 1 << (place % 8);
        }
        bits
    }

    /// Notes that expected frame and limit are on their way to the peer.
    pub(super) fn note_advertised(&mut self) {
        self.advertised = self.limit();
        self.due = Due::Never;
    }

    /// Something behind the expected frame has arrived.
    pub(super) fn has_gap(&self) -> bool {
        !self.early.is_empty()
    }

    pub(super) fn has_messages(&self) -> bool {
        match &self.arrived {
            None => !self.inbox.is_empty(),
            Some(arrived) => matches!(arrived.front(), Front::Message(_)),
        }
    }

    /// The goodbye has arrived.
    pub(super) fn has_ended(&self) -> bool {
        self.records.ended || self.arrived.as_ref().is_some_and(|arrived| arrived.front() == Front::Goodbye)
    }

    /// Appends at most `limit` messages; returns their number.
    pub(super) fn give(&mut self, from: NodeId, limit: usize, sink: &mut Vec<Received>) -> usize {
        let count = limit.min(self.inbox.len());
        let messages = self.inbox.drain(..count);
        sink.extend(messages.map(|(message, _)| Received::Message { from, message }));
        self.tell_credit();
        count
    }

    /// Tells the peer when it has much more credit than it knows.
    fn tell_credit(&mut self) {
        if self.limit() >= self.advertised + (self.window / 4).max(1) {
            self.due = Due::Now;
        }
    }

    /// Calls `take` with at most `limit` messages of a layer; returns their number.
    #[inline]
    pub(super) fn give_bytes(&mut self, limit: usize, mut take: impl FnMut(&[u8])) -> usize {
        let Some(arrived) = &mut self.arrived else { return 0 };
        let mut count = 0;
        while count < limit {
            match arrived.front() {
                Front::Message(length) => arrived.take(length, &mut take),
                Front::Part(length) if length > self.max_body => {
                    self.failure = Some(format!("it sends {length} bytes, above the limit of {} bytes", self.max_body));
                    break;
                }
                _ => break,
            }
            count += 1;
        }
        self.tell_credit();
        count
    }
}
