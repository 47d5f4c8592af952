//! The events that a builder has ended last, to tell a late fragment from a duplicate and from a stray one.

use crate::Fragment;
use alloc::{collections::VecDeque, vec::Vec};
use evb_core::{EventId, SourceId};

/// How many ended events are remembered.
const MOST: usize = 1024;

/// The last events that ended. It is searched only for stray fragments, so that it costs little otherwise.
#[derive(Default)]
pub(super) struct History {
    ended: VecDeque<EventId>,
    /// The highest that has ever ended.
    highest: Option<EventId>,
    /// Of these, the ones with missing fragments, and their sources.
    missing: VecDeque<(EventId, Vec<SourceId>)>,
}

impl History {
    /// Remembers an event and which of the fragments that were asked for did not come.
    pub(super) fn push<B>(&mut self, event: EventId, fragments: &[Option<Fragment<B>>]) {
        if fragments.iter().any(Option::is_none) {
            let sources = (0..).map(SourceId).zip(fragments);
            let missing = sources.filter(|(_, fragment)| fragment.is_none()).map(|(source, _)| source).collect();
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

    /// Whether the event ended lately. Fragments that overtake their grant ask for events to come, and need no search.
    pub(super) fn has(&self, event: EventId) -> bool {
        Some(event) <= self.highest && self.ended.contains(&event)
    }

    /// Whether the event ended lately without the fragment of this source, which was asked for.
    pub(super) fn lacks(&self, event: EventId, source: SourceId) -> bool {
        self.missing.iter().any(|(ended, missing)| *ended == event && missing.contains(&source))
    }
}
