//! The requests of a builder to readout units for their fragments: their order, and the window.
//!
//! If all builders ask the same unit first, all units serve the same builders at the same time, and the fragments meet at
//! the links of those. So each builder begins with the unit that has its own index, and goes round.
//!
//! A window bounds the requests without an answer, so that few fragments at a time are on their way to a builder. A
//! request holds a place until each of its fragments has come, is no longer wanted, or is overdue. Overdue ones are
//! matter of the questions about missing fragments, which have a window of their own.

use crate::{Config, RequestOrder};
use alloc::{collections::VecDeque, sync::Arc, vec::Vec};
use core::ops::Range;
use evb_core::{EventId, Time};

/// Requests of the same events to these units, from the first of the range to the last.
struct Round {
    units: Range<u16>,
    events: Arc<[EventId]>,
}

/// A request that holds a place in the window.
struct Asked {
    unit: u16,
    /// The events whose fragments have not come.
    events: Vec<EventId>,
    /// The time from which it is overdue.
    until: Time,
}

/// The requests that wait, and those without an answer.
pub(super) struct Requests {
    /// Index of the builder, if its order depends on it.
    turn: Option<u16>,
    /// Most requests without an answer; if there is no limit, none is kept.
    window: Option<usize>,
    waiting: VecDeque<Round>,
    asked: Vec<Asked>,
}

impl Requests {
    /// The requests of the builder with this index.
    pub(super) fn new(config: &Config, builder: u16) -> Self {
        let turn = match config.request_order {
            RequestOrder::Rotated => Some(builder),
            RequestOrder::Same => None,
        };
        let window = config.request_window.map(|window| window.get() as usize);
        Self { turn, window, waiting: VecDeque::new(), asked: Vec::new() }
    }

    /// The place in a list of this many units at which this builder begins.
    pub(super) fn first_of(&self, units: usize) -> usize {
        self.turn.map_or(0, |turn| usize::from(turn) % units.max(1))
    }

    /// Adds requests of these events to each of the units.
    pub(super) fn push(&mut self, units: Range<u16>, events: Arc<[EventId]>) {
        let first = units.start + self.first_of(units.len()) as u16;
        let rounds = [first..units.end, units.start..first].into_iter().filter(|units| !units.is_empty());
        self.waiting.extend(rounds.map(|units| Round { units, events: Arc::clone(&events) }));
    }

    /// The next units to be asked at once, and for which events; `None` if there are none or the window is full. Without
    /// an order of its own or a window, a builder asks all units at once.
    pub(super) fn next(&mut self) -> Option<(Range<u16>, Arc<[EventId]>)> {
        if self.window.is_some_and(|window| self.asked.len() >= window) {
            return None;
        }
        let most = if self.window.is_none() && self.turn.is_none() { u16::MAX } else { 1 };
        let round = self.waiting.front_mut()?;
        let end = round.units.end.min(round.units.start.saturating_add(most));
        let (units, events) = (round.units.start..end, Arc::clone(&round.events));
        round.units.start = end;
        if round.units.is_empty() {
            self.waiting.pop_front();
        }
        Some((units, events))
    }

    /// Gives the request of a unit for these events a place in the window.
    pub(super) fn hold(&mut self, unit: u16, events: Vec<EventId>, until: Time) {
        self.asked.push(Asked { unit, events, until });
    }

    /// Returns true if there is a limit.
    pub(super) const fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// The fragment of an event has come from a unit, in whatever state.
    pub(super) fn hear(&mut self, unit: u16, event: EventId) {
        self.release(|asked, of| (asked, of) == (unit, event));
    }

    /// No fragment of this event is wanted any more.
    pub(super) fn end(&mut self, event: EventId) {
        self.release(|_, of| of == event);
    }

    /// Nothing comes from this unit any more.
    pub(super) fn lose(&mut self, unit: u16) {
        self.asked.retain(|asked| asked.unit != unit);
    }

    /// Takes the places of requests that are overdue.
    pub(super) fn lapse(&mut self, now: Time) {
        self.asked.retain(|asked| asked.until > now);
    }

    /// The time at which the next request is overdue.
    pub(super) fn next_lapse(&self) -> Option<Time> {
        self.asked.iter().map(|asked| asked.until).min()
    }

    /// Returns true if the request for this fragment waits, or has its place in the window.
    pub(super) fn is_pending(&self, unit: u16, event: EventId) -> bool {
        let is_asked = |asked: &Asked| asked.unit == unit && asked.events.contains(&event);
        let waits = |round: &Round| round.units.contains(&unit) && round.events.contains(&event);
        self.asked.iter().any(is_asked) || self.waiting.iter().any(waits)
    }

    fn release(&mut self, is_over: impl Fn(u16, EventId) -> bool) {
        self.asked.retain_mut(|Asked { unit, events, .. }| {
            events.retain(|&event| !is_over(*unit, event));
            !events.is_empty()
        });
    }
}
