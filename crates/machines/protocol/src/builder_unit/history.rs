//! The events that a builder ended last. They tell a late fragment from a duplicate and from a stray one.

use crate::Built;
use alloc::{collections::VecDeque, vec::Vec};
use evb_core::{EventId, SourceId};

/// Most ended events that are remembered.
const MOST: usize = 1024;

/// The events that ended last. The list is searched only for stray fragments, so it costs little otherwise.
#[derive(Default)]
pub(super) struct History {
    ended: VecDeque<EventId>,
    /// The highest event that has ended.
    highest: Option<EventId>,
    /// Ended events with missing fragments, and the sources of those fragments.
    missing: VecDeque<(EventId, Vec<SourceId>)>,
}

impl History {
    /// Remembers an event and which of its requested fragments are missing.
    pub(super) fn push<B>(&mut self, built: &Built<B>) {
        let event = built.event;
        let missing = built.wanted().filter(|(_, fragment)| fragment.is_none()).map(|(source, _)| source);
        let missing: Vec<_> = missing.collect();
        if !missing.is_empty() {
            self.missing.push_back((event, missing));
        }
        self.highest = self.highest.max(Some(event));
        self.ended.push_back(event);
        if self.ended.len() > MOST
            && let Some(oldest) = self.ended.pop_front()
            && self.missing.front().is_some_and(|(event, _)| *event == oldest)
        {
            self.missing.pop_front();
        }
    }

    /// Returns true if the event ended recently. Fragments that arrive before their grant belong to later events and
    /// need no search.
    pub(super) fn has(&self, event: EventId) -> bool {
        Some(event) <= self.highest && self.ended.contains(&event)
    }

    /// Returns true if the event ended recently without the requested fragment of this source.
    pub(super) fn lacks(&self, event: EventId, source: SourceId) -> bool {
        self.missing.iter().any(|(ended, missing)| *ended == event && missing.contains(&source))
    }
}
