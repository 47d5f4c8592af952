//! One link to one peer: what waits for it, what is under way on it, and whether it works.

use super::wire::{Head, MessageKind, Run};
use bytes::Bytes;
use evb_core::{Span, Time};
use evb_transport::{HEAD_BYTES, Message};
use std::collections::VecDeque;

/// Time without progress after which a link is doubted, if another one works meanwhile.
pub(super) const DOUBT: Span = Span::from_millis(300);
/// Longest time until the arrival of pieces is acknowledged.
pub(super) const ACK_DELAY: Span = Span::from_micros(200);
/// Shortest time and fewest bytes from which a rate is taken.
const RATE_SPAN: Span = Span::from_millis(20);
const RATE_BYTES: u64 = 256 << 10;

/// What is known of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneState {
    /// It works.
    Live,
    /// It stalls while others work: new pieces go over those, and what is under way on it a second time.
    Doubted,
    /// It takes nothing more, and is lost when all that came was given.
    Shut,
    /// It is lost.
    Dead,
}

/// A link to a peer.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) state: LaneState,
    /// Messages for the member, in order.
    pub(super) out: VecDeque<Message>,
    /// Pieces under way, each with its cost, in order.
    pub(super) sent: VecDeque<(u64, usize)>,
    /// Their costs, added up.
    pub(super) sent_bytes: usize,
    /// Pieces that came to the peer over this link.
    arrived: u64,
    /// Begin of the time without progress.
    pub(super) since: Time,
    /// Time at which anything came from the peer.
    pub(super) heard: Time,
    pub(super) asked: Time,
    /// Bytes of a second, as far as they are known, and the current measurement.
    pub(super) rate: Option<f64>,
    measured: (Time, u64),
    /// Pieces that are expected.
    pub(super) run: Option<Run>,
    /// Pieces that came, and how many of them the peer knows of.
    pub(super) came: u64,
    acknowledged: u64,
    /// The peer is to be notified, from this time on.
    pub(super) owes: Option<Time>,
}

impl Lane {
    pub(super) fn new(now: Time) -> Self {
        Self {
            state: LaneState::Live,
            out: VecDeque::new(),
            sent: VecDeque::new(),
            sent_bytes: 0,
            arrived: 0,
            since: now,
            heard: now,
            asked: now,
            rate: None,
            measured: (now, 0),
            run: None,
            came: 0,
            acknowledged: 0,
            owes: None,
        }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state == LaneState::Dead
    }

    /// Queues a message of the bond, with the acknowledgements.
    pub(super) fn say(&mut self, kind: MessageKind, taken: u64) {
        let head: [u8; HEAD_BYTES] = Head { kind, taken, came: self.came }.encode();
        (self.acknowledged, self.owes) = (self.came, None);
        self.out.push_back(Message { head, body: Bytes::new() });
    }

    /// Queues a piece behind the head of its run.
    pub(super) fn push(&mut self, now: Time, number: u64, cost: usize, message: Message) {
        if self.sent.is_empty() {
            (self.since, self.measured) = (now, (now, 0));
        }
        self.sent.push_back((number, cost));
        self.sent_bytes += cost;
        self.out.push_back(message);
    }

    /// Counts a piece that came, which is to be acknowledged.
    pub(super) fn count(&mut self, now: Time) {
        self.came += 1;
        self.owes.get_or_insert(now + ACK_DELAY);
    }

    /// Learns how many pieces came to the peer. Calls `arrived` with their numbers.
    pub(super) fn progress(&mut self, now: Time, came: u64, mut arrived: impl FnMut(u64)) {
        let new = came.saturating_sub(self.arrived).min(self.sent.len() as u64) as usize;
        if new == 0 {
            return;
        }
        self.arrived += new as u64;
        self.since = now;
        let mut bytes = 0;
        for (number, cost) in self.sent.drain(..new) {
            bytes += cost;
            arrived(number);
        }
        self.sent_bytes -= bytes;
        self.measure(now, bytes as u64);
        if self.state == LaneState::Doubted {
            self.state = LaneState::Live;
        }
    }

    /// Measures the rate, as long as there is always something under way.
    fn measure(&mut self, now: Time, bytes: u64) {
        self.measured.1 += bytes;
        let (span, bytes) = (now.since(self.measured.0), self.measured.1);
        if span >= RATE_SPAN && bytes >= RATE_BYTES {
            let rate = bytes as f64 / span.as_secs_f64();
            self.rate = Some(self.rate.map_or(rate, |known| (known + rate) / 2.0));
            self.measured = (now, 0);
        }
    }

    /// True when something under way has not moved for too long.
    pub(super) fn is_stalled(&self, now: Time) -> bool {
        self.state == LaneState::Live && !self.sent.is_empty() && now >= self.since + DOUBT
    }

    /// Forgets all that is under way, and sends nothing more.
    pub(super) fn end(&mut self) {
        self.state = LaneState::Dead;
        self.out.clear();
        self.sent.clear();
        (self.sent_bytes, self.owes) = (0, None);
    }
}
