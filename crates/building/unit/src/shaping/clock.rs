//! Time slots by synchronised clocks.
//!
//! Slots need no message: a slot has as many bytes as its time allows, so a late unit does not run into the next one.
//! Clocks are set by questions, as in Cristian's method, where the shortest exchange has the least error. No unit waits
//! for a slow builder; that is left to the transport.

use super::rounds::builder_of;
use evb_core::{Span, Time};
use std::{collections::VecDeque, ops::Range};

/// Exchanges that are kept: the best one tells the time.
const KEPT: usize = 16;
/// Time between two exchanges once there are enough.
const INTERVAL: Span = Span::from_millis(100);
/// Longest wait for an answer before the question is asked again.
const ANSWER: Span = Span::from_millis(200);

/// The clock of a readout unit, set by that of the event manager.
///
/// The unit asks for the time again and again. An answer is right to half of the time between question and answer (F.
/// Cristian, Probabilistic clock synchronization, Distributed Computing 3 (1989) 146). The best of the last exchanges
/// counts, so that clocks may drift.
#[derive(Debug, Default)]
pub(super) struct UnitClock {
    /// The run has begun: the event manager is there and answers.
    has_begun: bool,
    exchanges: VecDeque<Exchange>,
    /// Time of the last question.
    asked: Option<Time>,
    is_answered: bool,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    /// The manager's time less that of the unit, in picoseconds.
    offset: i128,
    /// Time from question to answer.
    round_trip: Span,
}

impl UnitClock {
    /// Takes note that the run begins.
    pub(super) const fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Returns true if the time is to be asked for now.
    pub(super) fn asks(&mut self, now: Time) -> bool {
        let is_due = now >= self.asks_at();
        if is_due {
            self.asked = Some(now);
            self.is_answered = false;
        }
        is_due
    }

    /// The time of the next question.
    pub(super) fn asks_at(&self) -> Time {
        match self.asked {
            _ if !self.has_begun => Time::MAX,
            None => Time::ZERO,
            Some(asked) if !self.is_answered => asked + ANSWER,
            Some(asked) if self.exchanges.len() < KEPT => asked,
            Some(asked) => asked + INTERVAL,
        }
    }

    /// Takes the answer to the question that was asked at `asked`: the manager's time then was `manager`.
    pub(super) fn set_time(&mut self, now: Time, asked: Time, manager: Time) {
        if self.asked != Some(asked) || self.is_answered {
            return;
        }
        self.is_answered = true;
        let middle = (i128::from(asked.0) + i128::from(now.0)) / 2;
        self.exchanges.truncate(KEPT - 1);
        let offset = i128::from(manager.0) - middle;
        self.exchanges.push_front(Exchange { offset, round_trip: now.since(asked) });
    }

    /// Longest time by which this clock can differ from that of the manager; none before the first answer.
    pub(super) fn error(&self) -> Option<Span> {
        self.best().map(|best| Span(best.round_trip.0.div_ceil(2)))
    }

    /// The manager's time at `now`.
    fn of_manager(&self, now: Time) -> Option<i128> {
        Some(i128::from(now.0) + self.best()?.offset)
    }

    /// The unit's time when that of the manager is `at`.
    fn of_unit(&self, at: i128) -> Option<Time> {
        let time = at - self.best()?.offset;
        Some(Time(u64::try_from(time.max(0)).unwrap_or(u64::MAX)))
    }

    fn best(&self) -> Option<&Exchange> {
        self.exchanges.iter().min_by_key(|exchange| exchange.round_trip)
    }
}

/// The time slots of one readout unit.
///
/// In slot s of the manager's time, unit n sends to builder (n + s) mod L, at most as many bytes as the slot has time
/// for. So a slot that is begun late, or in which fragments come late, does not run into the next one. Nothing is sent
/// in the guard at its end.
#[derive(Debug)]
pub(super) struct ClockSlots {
    pub(super) clock: UnitClock,
    unit: u16,
    /// Number of slots in which every unit meets every builder.
    round: u16,
    length: Span,
    guard: Span,
    /// Bytes of a slot without its guard.
    bytes: u64,
    /// Number of the last slot in which something was sent.
    last: i128,
    /// The manager's time when all that was sent will have left.
    busy_until: i128,
}

/// What a slot has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) builder: usize,
    pub(super) bytes: u64,
    /// Nothing was sent in this slot before.
    pub(super) is_new: bool,
}

impl ClockSlots {
    pub(super) fn new(unit: u16, round: u16, length: Span, guard: Span, bytes: u64) -> Self {
        let clock = UnitClock::default();
        Self { clock, unit, round, length, guard: guard.min(length), bytes, last: -1, busy_until: 0 }
    }

    /// The room in the present slot, or `None` if it has none or the time is not known yet.
    pub(super) fn room(&self, now: Time) -> Option<Room> {
        let now = self.clock.of_manager(now)?;
        let slot = self.slot_at(now);
        let left = (self.times(slot).end - now.max(self.busy_until)).max(0);
        let bytes = (left * i128::from(self.bytes) / self.sending()) as u64;
        let builder = builder_of(self.unit, u64::try_from(slot).ok()?, self.round);
        (bytes >= self.least()).then_some(Room { builder, bytes, is_new: slot != self.last })
    }

    /// Takes note that bytes are sent in the present slot.
    pub(super) fn send(&mut self, now: Time, bytes: u64) {
        let Some(now) = self.clock.of_manager(now) else { return };
        self.last = self.slot_at(now);
        let time = i128::from(bytes) * self.sending() / i128::from(self.bytes);
        self.busy_until = now.max(self.busy_until) + time;
    }

    /// The unit's time at which the next slot for one of these builders begins; `now` if it has begun and has room.
    pub(super) fn next_for(&self, now: Time, mut waits: impl FnMut(usize) -> bool) -> Option<Time> {
        let slot = self.slot_at(self.clock.of_manager(now)?);
        if self.room(now).is_some_and(|room| waits(room.builder)) {
            return Some(now);
        }
        let next = (slot + 1..=slot + i128::from(self.round))
            .find(|&slot| u64::try_from(slot).is_ok_and(|slot| waits(builder_of(self.unit, slot, self.round))))?;
        self.clock.of_unit(self.times(next).start)
    }

    /// The fewest bytes that are worth a separate message.
    fn least(&self) -> u64 {
        (self.bytes / 16).max(1)
    }

    /// Length of a slot without its guard, in picoseconds.
    fn sending(&self) -> i128 {
        i128::from(self.length.0 - self.guard.0).max(1)
    }

    fn slot_at(&self, manager: i128) -> i128 {
        manager.div_euclid(i128::from(self.length.0.max(1)))
    }

    fn times(&self, slot: i128) -> Range<i128> {
        let start = slot * i128::from(self.length.0.max(1));
        start..start + self.sending()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    /// A clock that is `behind` that of the manager, after exchanges with these one-way times.
    fn clock(behind: u64, ways: &[(u64, u64)]) -> (UnitClock, Time) {
        let (mut clock, mut now) = (UnitClock::default(), Time(0));
        assert!(!clock.asks(now), "the answer has not come yet");
        clock.begin();
        for &(there, back) in ways {
            assert!(clock.asks(now));
            let asked = now;
            now = Time(now.0 + there + back);
            clock.set_time(now, asked, Time(asked.0 + behind + there));
        }
        (clock, now)
    }

    #[test]
    fn the_shortest_exchange_tells_the_time() {
        let (clock, now) = clock(7 * MS, &[(4000, 0), (100, 300), (0, 9000)]);
        assert_eq!(clock.error(), Some(Span(200)));
        let off = clock.of_manager(now).unwrap() - i128::from(now.0 + 7 * MS);
        assert!(off.abs() <= 200, "{off}");
        assert!(clock.of_unit(clock.of_manager(now).unwrap()) == Some(now));
    }

    #[test]
    fn answers_to_old_questions_do_not_count_and_a_lost_one_is_asked_again() {
        let mut clock = UnitClock { has_begun: true, ..UnitClock::default() };
        assert!(clock.asks(Time(5)) && !clock.asks(Time(6)));
        clock.set_time(Time(9), Time(4), Time(1000));
        assert_eq!(clock.error(), None);
        assert!(clock.asks(Time(5) + ANSWER));
        clock.set_time(Time(6) + ANSWER, Time(5), Time(1000));
        assert_eq!(clock.error(), None, "the second question counts");
    }

    #[test]
    fn a_slot_has_room_for_the_bytes_of_its_time() {
        let (clock, now) = clock(0, &[(0, 0); KEPT]);
        let (length, guard) = (Span(10 * MS), Span(2 * MS));
        let mut slots = ClockSlots { clock, ..ClockSlots::new(1, 4, length, guard, 800) };
        assert_eq!(slots.room(now), Some(Room { builder: 1, bytes: 800, is_new: true }));
        slots.send(now, 300);
        assert_eq!(slots.room(now), Some(Room { builder: 1, bytes: 500, is_new: false }));
        assert_eq!(slots.room(Time(4 * MS)).unwrap().bytes, 400, "time has passed");
        assert_eq!(slots.room(Time(9 * MS)), None, "guard");
        assert_eq!(slots.room(Time(11 * MS)), Some(Room { builder: 2, bytes: 700, is_new: true }));
        assert_eq!(slots.next_for(Time(11 * MS), |builder| builder == 1), Some(Time(40 * MS)));
        assert_eq!(slots.next_for(Time(11 * MS), |builder| builder == 2), Some(Time(11 * MS)));
        assert_eq!(slots.next_for(Time(9 * MS), |builder| builder == 1), Some(Time(40 * MS)));
        assert_eq!(slots.next_for(Time(9 * MS), |_| false), None);
    }
}
