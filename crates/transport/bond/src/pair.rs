//! One peer: pieces to it over all links, and what is known of them.
//!
//! A message is a piece, or several segments, each of which is one. Pieces are numbered. A piece is kept until it has come to
//! the peer over some link, and its number until the peer's user has taken it: so no loss of a link loses anything, and the
//! peer never holds more than a window.

mod hearing;
mod sending;

use super::{
    BondOptions, Stripe,
    incoming::Incoming,
    lane::{ACK_DELAY, DOUBT, Lane, LaneState},
    wire::MessageKind,
};
use evb_core::{NodeId, Span, Time};
use evb_transport::{Message, Received};
use std::collections::{BTreeSet, VecDeque};

/// Longest time until the death of a link is reported, if its peer still lives.
const NEWS_DELAY: Span = Span::from_secs(1);
/// Time after which an answer of a peer is looked for.
const ANSWER: Span = Span::from_millis(5);
/// Part of the window after which the peer is notified at once of what was taken.
const TELL_PART: usize = 8;
/// Bytes that a piece costs beside its body.
const PIECE_BYTES: usize = 64;

/// The cost of a piece with a body of this length.
pub(super) const fn cost_of(length: usize) -> usize {
    length + PIECE_BYTES
}

/// Where a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceState {
    Waits,
    On(usize),
    There,
}

/// A piece that the peer's user has not taken.
#[derive(Debug)]
struct UnconfirmedPiece {
    message: Message,
    /// Length of the body that it is a segment of, or 0.
    whole: u32,
    cost: usize,
    place: PieceState,
}

/// A peer.
#[derive(Debug)]
pub(super) struct Pair {
    peer: NodeId,
    stripe: Stripe,
    window: usize,
    max_body: usize,
    /// The link that is used when nothing speaks for another one.
    home: usize,
    kept: VecDeque<UnconfirmedPiece>,
    /// Number of the first kept piece.
    base: u64,
    /// Number of the first piece that was never sent.
    fresh: u64,
    /// Pieces that are to be sent again.
    again: BTreeSet<u64>,
    kept_bytes: usize,
    /// Bytes of pieces that were sent and not taken.
    ahead_bytes: usize,
    lanes: Vec<Lane>,
    reasons: Vec<Option<(Time, String)>>,
    incoming: Incoming,
    /// The peer is to be notified of what was taken, from this time on.
    owes_taken: Option<Time>,
    /// A message was refused since there was room.
    was_refused: bool,
    /// The peer has said that it leaves.
    is_leaving: bool,
    /// The end was reported.
    is_over: bool,
    pub(super) is_busy: bool,
    pub(super) is_active: bool,
}

impl Pair {
    pub(super) fn new(now: Time, local: NodeId, peer: NodeId, links: usize, options: &BondOptions) -> Self {
        Self {
            peer,
            stripe: options.stripe,
            window: options.window_bytes,
            max_body: options.max_body,
            home: (local.index() + peer.index()) % links,
            kept: VecDeque::new(),
            base: 0,
            fresh: 0,
            again: BTreeSet::new(),
            kept_bytes: 0,
            ahead_bytes: 0,
            lanes: (0..links).map(|_| Lane::new(now)).collect(),
            reasons: vec![None; links],
            incoming: Incoming::default(),
            owes_taken: None,
            was_refused: false,
            is_leaving: false,
            is_over: false,
            is_busy: false,
            is_active: false,
        }
    }

    /// True while a link is left.
    pub(super) fn is_alive(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.is_dead())
    }

    pub(super) fn is_readable(&self) -> bool {
        self.incoming.is_readable() || !(self.is_alive() || self.is_over)
    }

    /// True when all messages are with the members.
    pub(super) fn is_sent(&self) -> bool {
        let is_sent = self.fresh == self.end() && self.again.is_empty();
        !self.is_alive() || is_sent && self.lanes.iter().all(|lane| lane.out.is_empty())
    }

    /// True when all pieces have come to the peer, or it is lost.
    pub(super) fn has_arrived(&self) -> bool {
        !self.is_alive() || self.kept.iter().all(|kept| kept.place == PieceState::There)
    }

    /// Bytes that no member has.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.kept_bytes - self.ahead_bytes
    }

    fn end(&self) -> u64 {
        self.base + self.kept.len() as u64
    }

    fn kept(&mut self, number: u64) -> Option<&mut UnconfirmedPiece> {
        self.kept.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// Appends at most `limit` messages, and the end of the peer after its last one.
    pub(super) fn give(&mut self, now: Time, limit: usize, sink: &mut Vec<Received>) {
        let before = sink.len();
        while sink.len() - before < limit {
            match self.incoming.take() {
                Some(message) => sink.push(Received::Message { from: self.peer, message }),
                None if self.is_readable() => {
                    self.is_over = true;
                    sink.push(Received::Lost { peer: self.peer, reason: self.reason() });
                }
                None => break,
            }
        }
        self.owe(now);
    }

    /// The reason for the end: that of the link that was lost last.
    fn reason(&self) -> String {
        let last = self.reasons.iter().flatten().max_by_key(|(when, _)| *when);
        last.map_or_else(|| "all links are lost".into(), |(_, reason)| reason.clone())
    }

    /// Notes that the peer is to be notified of what was taken.
    fn owe(&mut self, now: Time) {
        let untold = self.incoming.untold_bytes;
        if untold > 0 {
            let due = if untold >= self.window / TELL_PART { now } else { now + ACK_DELAY };
            let first = self.owes_taken.get_or_insert(due);
            *first = due.min(*first);
        }
    }

    /// The time at which [`on_time`](Pair::on_time) has something to do.
    pub(super) fn next_time(&self) -> Option<Time> {
        let lanes = self.lanes.iter().flat_map(|lane| {
            let waits = lane.state == LaneState::Live && !lane.sent.is_empty();
            [lane.owes, waits.then(|| (lane.since + DOUBT).max(lane.asked + ANSWER))]
        });
        let news = self.reasons.iter().flatten().map(|(when, _)| Some(*when + NEWS_DELAY));
        lanes.chain([self.owes_taken]).chain(news.filter(|_| self.is_alive())).flatten().min()
    }

    /// Acknowledges what is due, and doubts links that stall.
    pub(super) fn on_time(&mut self, now: Time) {
        for link in 0..self.lanes.len() {
            if self.lanes[link].is_stalled(now) {
                self.judge(now, link);
            }
        }
        self.acknowledge(now);
    }

    /// Doubts a link that stalls, if the peer was heard over another one meanwhile. If not, it is asked there: a peer
    /// that answers has looked at all links.
    fn judge(&mut self, now: Time, link: usize) {
        let limit = self.lanes[link].since + DOUBT;
        let others = |&(other, lane): &(usize, &Lane)| other != link && !lane.is_dead();
        if self.lanes.iter().enumerate().filter(others).any(|(_, lane)| lane.heard >= limit) {
            self.lanes[link].state = LaneState::Doubted;
            return self.send_again(link);
        }
        if now < self.lanes[link].asked + DOUBT {
            return;
        }
        self.lanes[link].asked = now;
        let taken = self.incoming.taken();
        for (other, lane) in self.lanes.iter_mut().enumerate() {
            if other != link && !lane.is_dead() && lane.out.is_empty() {
                lane.say(MessageKind::Ack { asks: true }, taken);
            }
        }
    }

    /// Sends all pieces again that are under way on this link.
    fn send_again(&mut self, link: usize) {
        for index in 0..self.lanes[link].sent.len() {
            let number = self.lanes[link].sent[index].0;
            if let Some(kept) = self.kept(number)
                && kept.place == PieceState::On(link)
            {
                kept.place = PieceState::Waits;
                self.again.insert(number);
            }
        }
    }

    /// Tells the peer what came and was taken, where that is due.
    fn acknowledge(&mut self, now: Time) {
        let is_due = |time: Option<Time>| time.is_some_and(|time| time <= now);
        let (mut tells, taken) = (is_due(self.owes_taken), self.incoming.taken());
        for lane in &mut self.lanes {
            if is_due(lane.owes) && lane.out.is_empty() {
                lane.say(MessageKind::Ack { asks: false }, taken);
                (tells, self.owes_taken, self.incoming.untold_bytes) = (false, None, 0);
            }
        }
        if tells && let Some(link) = self.quiet_lane() {
            self.say(link, MessageKind::Ack { asks: false });
        }
    }

    /// A link on which something can be said now, the home first.
    fn quiet_lane(&self) -> Option<usize> {
        let count = self.lanes.len();
        let quiet = |state| {
            let lane = |link: &usize| self.lanes[*link].state == state && self.lanes[*link].out.is_empty();
            (0..count).map(|step| (self.home + step) % count).find(lane)
        };
        quiet(LaneState::Live).or_else(|| quiet(LaneState::Doubted))
    }

    fn say(&mut self, link: usize, kind: MessageKind) {
        self.lanes[link].say(kind, self.incoming.taken());
        (self.owes_taken, self.incoming.untold_bytes) = (None, 0);
    }

    /// Says on all links that this node leaves.
    pub(super) fn say_goodbye(&mut self) {
        for link in 0..self.lanes.len() {
            if !self.lanes[link].is_dead() {
                self.say(link, MessageKind::Bye);
            }
        }
    }

    /// Takes the deaths of links that are to be reported.
    pub(super) fn news(&mut self, now: Time, mut report: impl FnMut(usize, NodeId, String)) {
        if !self.is_alive() {
            return;
        }
        for (link, reason) in self.reasons.iter_mut().enumerate() {
            if let Some((_, reason)) = reason.take_if(|(when, _)| now >= *when + NEWS_DELAY) {
                report(link, self.peer, reason);
            }
        }
    }
}
