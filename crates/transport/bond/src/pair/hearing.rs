//! What a peer says over its links, and their ends.

use super::{Pair, PieceState};
use crate::wire::{Head, MessageKind, Run};
use bytes::Bytes;
use evb_core::Time;
use evb_transport::Message;

impl Pair {
    /// Takes a message of a link. Returns true if a message that was refused may be taken now.
    pub(crate) fn hear(&mut self, now: Time, link: usize, message: Message) -> bool {
        self.lanes[link].heard = now;
        if let Some(run) = self.lanes[link].run {
            self.hear_piece(now, link, run, message);
            return false;
        }
        let Some(head) = Head::decode(&message.head) else {
            self.lose(now, link, "it sent something that is not a message of a bond".into());
            return false;
        };
        self.hear_head(now, link, head)
    }

    fn hear_piece(&mut self, now: Time, link: usize, run: Run, message: Message) {
        let Run { first, count, whole } = run;
        let lane = &mut self.lanes[link];
        lane.run = (count > 1).then(|| Run { first: first + 1, count: count - 1, whole });
        if !lane.is_dead() {
            lane.count(now);
        }
        if let Err(reason) = self.incoming.put(first, whole, message) {
            self.lose_all(now, reason);
        }
        self.owe(now);
    }

    fn hear_head(&mut self, now: Time, link: usize, head: Head) -> bool {
        self.progress(now, link, head.came);
        let has_room = self.release(head.taken);
        match head.kind {
            MessageKind::Run(run) if run.whole as usize > self.max_body => {
                self.lose_all(now, "it sent a body above the limit");
            }
            MessageKind::Run(run) => self.lanes[link].run = (run.count > 0).then_some(run),
            MessageKind::Ack { asks: true } if !self.lanes[link].is_dead() && self.lanes[link].out.is_empty() => {
                self.say(link, MessageKind::Ack { asks: false });
            }
            MessageKind::Ack { .. } => {}
            MessageKind::Down { link } if usize::from(link) < self.lanes.len() => {
                self.lose(now, link.into(), "the peer has lost it".into());
            }
            MessageKind::Down { .. } => {}
            MessageKind::Bye => self.is_leaving = true,
        }
        has_room
    }

    /// Learns how many pieces came to the peer over a link.
    fn progress(&mut self, now: Time, link: usize, came: u64) {
        let (kept, base, again) = (&mut self.kept, self.base, &mut self.again);
        self.lanes[link].progress(now, came, |number| {
            let place = number.checked_sub(base).map(|place| place as usize);
            if let Some(piece) = place.and_then(|place| kept.get_mut(place)) {
                // The peer has it, whatever becomes of its copies.
                (piece.place, piece.message.body) = (PieceState::There, Bytes::new());
                again.remove(&number);
            }
        });
    }

    /// Forgets the pieces that the peer's user has taken. Returns true if a message that was refused may be taken now.
    fn release(&mut self, taken: u64) -> bool {
        let before = self.base;
        while self.base < taken.min(self.fresh) {
            let Some(kept) = self.kept.pop_front() else { break };
            self.base += 1;
            (self.kept_bytes, self.ahead_bytes) = (self.kept_bytes - kept.cost, self.ahead_bytes - kept.cost);
        }
        if self.base == before {
            return false;
        }
        self.again = self.again.split_off(&self.base);
        std::mem::take(&mut self.was_refused)
    }

    /// Loses a link: what was under way on it goes over the others.
    pub(crate) fn lose(&mut self, now: Time, link: usize, reason: String) {
        if self.lanes[link].is_dead() {
            return;
        }
        self.send_again(link);
        self.lanes[link].end();
        let is_fault = !self.is_leaving;
        if is_fault || !self.is_alive() {
            self.reasons[link] = Some((now, reason));
        }
        for other in 0..self.lanes.len() {
            if is_fault && !self.lanes[other].is_dead() {
                self.say(other, MessageKind::Down { link: link as u8 });
            }
        }
        if !self.is_alive() {
            self.forget();
        }
    }

    fn lose_all(&mut self, now: Time, reason: &str) {
        for link in 0..self.lanes.len() {
            self.lose(now, link, reason.into());
        }
    }

    /// Forgets what cannot be sent any more.
    fn forget(&mut self) {
        self.kept.clear();
        self.again.clear();
        (self.base, self.kept_bytes, self.ahead_bytes, self.owes_taken) = (self.fresh, 0, 0, None);
    }
}
