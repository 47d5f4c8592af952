//! The way of a message to the links.

use super::{Pair, PieceState, UnconfirmedPiece, cost_of};
use crate::{
    Stripe,
    lane::LaneState,
    wire::{MessageKind, Run},
};
use evb_core::{NodeId, Time};
use evb_transport::{Message, SendError};

/// Bytes of a segment. With a head it fits into a frame of libfabric (48 KiB), for which no receiver is asked.
pub(crate) const SEGMENT_BYTES: usize = 44 << 10;
/// Most bytes and pieces of one run.
const RUN_BYTES: usize = 64 << 10;
const RUN_PIECES: u16 = 256;

impl Pair {
    /// Takes a message.
    pub(crate) fn send(&mut self, message: Message) -> Result<(), SendError> {
        let (length, limit) = (message.body.len(), self.max_body);
        if length > limit {
            return Err(SendError::TooLarge { length, limit });
        } else if !self.is_alive() {
            return Err(SendError::Lost);
        } else if self.kept_bytes > 0 && self.kept_bytes + cost_of(length) > self.window {
            self.was_refused = true;
            return Err(SendError::Full(message));
        }
        if self.stripe == Stripe::Size && length > SEGMENT_BYTES {
            let Message { head, body } = message;
            for begin in (0..length).step_by(SEGMENT_BYTES) {
                let body = body.slice(begin..length.min(begin + SEGMENT_BYTES));
                self.keep(Message { head, body }, length as u32);
            }
        } else {
            self.keep(message, 0);
        }
        Ok(())
    }

    fn keep(&mut self, message: Message, whole: u32) {
        let cost = cost_of(message.body.len());
        self.kept_bytes += cost;
        self.kept.push_back(UnconfirmedPiece { message, whole, cost, place: PieceState::Waits });
    }

    /// Gives links what they take now. `send` gives a message to a member.
    pub(crate) fn pump(&mut self, now: Time, send: &mut impl FnMut(usize, NodeId, Message) -> Result<(), SendError>) {
        for link in 0..self.lanes.len() {
            self.drain(link, send);
        }
        while let Some(first) = self.next_number()
            && let Some(link) = self.choose(first)
        {
            self.assign(now, first, link);
            self.drain(link, send);
        }
    }

    /// The next piece to be sent, if the peer has room for it.
    fn next_number(&self) -> Option<u64> {
        let fresh = (self.fresh < self.end() && self.ahead_bytes < self.window).then_some(self.fresh);
        self.again.first().copied().or(fresh)
    }

    /// The link for a piece.
    fn choose(&self, number: u64) -> Option<usize> {
        let kept = self.kept.get((number - self.base) as usize)?;
        match self.stripe {
            Stripe::Message => self.first_free(kept.cost),
            Stripe::Size if kept.whole > 0 => self.first_free(kept.cost),
            Stripe::Size | Stripe::Destination => self.own_lane().filter(|&link| self.lanes[link].out.is_empty()),
        }
    }

    /// The links that are used: those that live, or else those that may live.
    fn usable(&self) -> impl Iterator<Item = usize> {
        let live = self.lanes.iter().any(|lane| lane.state == LaneState::Live);
        let wanted = if live { LaneState::Live } else { LaneState::Doubted };
        let count = self.lanes.len();
        (0..count).map(move |step| (self.home + step) % count).filter(move |&link| self.lanes[link].state == wanted)
    }

    /// The link that belongs to the peer: its home, or the next one that works.
    fn own_lane(&self) -> Option<usize> {
        self.usable().next()
    }

    /// The link with room that is expected to deliver first.
    fn first_free(&self, cost: usize) -> Option<usize> {
        let best = self.usable().filter_map(|link| self.lanes[link].rate).fold(1.0, f64::max);
        let time = |link: usize| {
            let lane = &self.lanes[link];
            (lane.sent_bytes + cost) as f64 / lane.rate.unwrap_or(best)
        };
        let free = self.usable().filter(|&link| self.lanes[link].out.is_empty());
        free.map(|link| (time(link), link))
            .reduce(|one, other| if other.0 < one.0 { other } else { one })
            .map(|it| it.1)
    }

    /// Queues a run of pieces on a link, from this one on.
    fn assign(&mut self, now: Time, first: u64, link: usize) {
        let count = self.run_length(first);
        let whole = self.kept[(first - self.base) as usize].whole;
        self.say(link, MessageKind::Run(Run { first, count, whole }));
        for number in first..first + u64::from(count) {
            let kept = &mut self.kept[(number - self.base) as usize];
            kept.place = PieceState::On(link);
            let (cost, message) = (kept.cost, kept.message.clone());
            self.lanes[link].push(now, number, cost, message);
            if number == self.fresh {
                self.fresh += 1;
                self.ahead_bytes += cost;
            } else {
                self.again.remove(&number);
            }
        }
    }

    /// Number of pieces that can go together, from this one on.
    fn run_length(&self, first: u64) -> u16 {
        let at = |number: u64| &self.kept[(number - self.base) as usize];
        let (is_fresh, whole) = (first == self.fresh, at(first).whole);
        let (mut count, mut bytes) = (1, at(first).cost);
        while count < RUN_PIECES {
            let number = first + u64::from(count);
            let waits = if is_fresh { number < self.end() } else { self.again.contains(&number) };
            if !waits || at(number).whole != whole || bytes + at(number).cost > RUN_BYTES {
                break;
            }
            (count, bytes) = (count + 1, bytes + at(number).cost);
        }
        count
    }

    /// Gives a member what waits for it, as far as it takes it.
    fn drain(&mut self, link: usize, send: &mut impl FnMut(usize, NodeId, Message) -> Result<(), SendError>) {
        while let Some(message) = self.lanes[link].out.pop_front() {
            match send(link, self.peer, message) {
                Ok(()) => {}
                Err(SendError::Full(message)) => return self.lanes[link].out.push_front(message),
                // The member says why, and that nothing more comes, when all that came was given.
                Err(SendError::Lost | SendError::TooLarge { .. }) => return self.shut(link),
            }
        }
    }

    /// Ends sending over a link that takes nothing any more.
    fn shut(&mut self, link: usize) {
        self.lanes[link].out.clear();
        self.lanes[link].state = LaneState::Shut;
        self.send_again(link);
    }
}
