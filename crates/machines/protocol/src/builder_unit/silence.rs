//! Silent sources under a time limit.
//!
//! Without a time limit an event waits as long as its fragments can still arrive. With one, each event of a dead source
//! would wait for the whole limit: the slots of the builder fill, and the rate falls to the slots in each limit. So a
//! source that has missed the limit of several events in a row, and sent nothing since, is silent: events end as soon as
//! they have everything else. One event at a time still waits for the limit, and the builder asks for its fragment. So
//! it finds out when the source is back, even if the fragments of all other events come too late.

use super::BuilderMachine;
use alloc::vec::Vec;
use evb_core::EventId;

/// Events in a row that must end without the fragment of a source before it is silent.
const MISSED_IN_A_ROW: u8 = 3;

/// The sources that have missed the time limit.
pub(super) struct Silence {
    /// For each source, the events in a row that have ended without its fragment, up to [`MISSED_IN_A_ROW`].
    missed: Vec<u8>,
    /// Number of silent sources.
    silent: u32,
    /// The event that waits for silent sources, if it is under construction.
    probe: EventId,
}

impl Silence {
    pub(super) fn new(sources: u16) -> Self {
        Self { missed: (0..sources).map(|_| 0).collect(), silent: 0, probe: EventId(0) }
    }

    /// Returns true if the source has missed the limit of the last event.
    #[inline]
    pub(super) fn has_missed(&self, source: usize) -> bool {
        self.missed[source] > 0
    }

    /// Returns true if any source is silent.
    #[inline]
    pub(super) const fn is_any(&self) -> bool {
        self.silent > 0
    }

    /// Returns true if events do not wait for the source.
    pub(super) fn is_silent(&self, source: usize) -> bool {
        self.missed[source] >= MISSED_IN_A_ROW
    }

    fn miss(&mut self, source: usize) {
        if !self.is_silent(source) {
            self.missed[source] += 1;
            self.silent += u32::from(self.is_silent(source));
        }
    }

    /// Takes a sign of life of a source that has missed events: events wait for it again.
    #[cold]
    pub(super) fn hear(&mut self, source: usize) {
        self.silent -= u32::from(self.is_silent(source));
        self.missed[source] = 0;
    }
}

impl<B> BuilderMachine<B> {
    /// Takes note that the time limit ends an event.
    pub(super) fn note_missed(&mut self, event: EventId) {
        let Some(building) = self.building.get(&event) else { return };
        let is_missing = |source: &usize| {
            self.alive[*source] && building.lacks(*source) && !self.requests.is_pending(*source as u16, event)
        };
        let missing: Vec<_> = (0..self.alive.len()).filter(is_missing).collect();
        missing.into_iter().for_each(|source| self.silence.miss(source));
    }

    /// Ends an event that waits for nothing but silent sources, unless it is the one that waits for them.
    pub(super) fn pass_silent(&mut self, event: EventId) {
        let Some(building) = self.building.get(&event).filter(|building| building.granted) else { return };
        let is_awaited = |source: &usize| self.silence.is_silent(*source) && building.lacks(*source);
        let silent = (0..self.alive.len()).filter(is_awaited).count() as u32;
        if silent == 0 || building.waiting > silent || event == self.silence.probe {
            return;
        }
        if !self.building.contains_key(&self.silence.probe) {
            self.silence.probe = event;
            return;
        }
        self.cut(event);
    }

    /// Ends all events that wait for nothing but silent sources.
    pub(super) fn pass_all_silent(&mut self) {
        if self.silence.is_any() {
            self.select(|building, _| building.granted).into_iter().for_each(|event| self.pass_silent(event));
        }
    }
}
