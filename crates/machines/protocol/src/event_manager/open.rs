//! The open events: triggered and not ended.

use alloc::{collections::VecDeque, vec::Vec};
use evb_core::{EventId, NodeId, Span, Time};

#[derive(Clone, Copy, PartialEq)]
enum EventState {
    Waiting,
    Assigned(NodeId),
    Ended,
}

/// Bytes of one event.
pub(super) const EVENT_BYTES: usize = size_of::<(Time, EventState)>();

/// The open events, and the order of their assignment.
pub(super) struct OpenEvents {
    /// Events in ascending order from `first`. An ended event stays until all before it have ended.
    events: VecDeque<(Time, EventState)>,
    first: u64,
    /// Events that have not ended.
    open: usize,
    /// The next event that was never assigned.
    next_unassigned: u64,
    /// Events to be assigned again, oldest first.
    returned: VecDeque<EventId>,
}

impl OpenEvents {
    pub(super) const fn new() -> Self {
        Self { events: VecDeque::new(), first: 1, open: 0, next_unassigned: 1, returned: VecDeque::new() }
    }

    /// Events that have not ended.
    pub(super) const fn len(&self) -> usize {
        self.open
    }

    /// Events from the first that has not ended to the last triggered one.
    pub(super) fn span(&self) -> usize {
        self.events.len()
    }

    /// The oldest event that has not ended; the next event to be triggered if all have ended.
    pub(super) const fn first(&self) -> EventId {
        EventId(self.first)
    }

    /// The ended events that are newer than an open one.
    pub(super) fn ended(&self) -> Vec<EventId> {
        let numbered = (self.first..).map(EventId).zip(&self.events);
        numbered.filter(|(_, (_, state))| *state == EventState::Ended).map(|(event, _)| event).collect()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.open == 0
    }

    pub(super) fn trigger(&mut self, at: Time) {
        self.events.push_back((at, EventState::Waiting));
        self.open += 1;
    }

    /// Events that wait to be assigned.
    pub(super) fn waiting(&self) -> u64 {
        self.returned.len() as u64 + self.first + self.events.len() as u64 - self.next_unassigned
    }

    /// Returns true if the oldest open event waits for a new builder and is next.
    pub(super) fn oldest_is_returned(&self) -> bool {
        self.returned.front() == Some(&EventId(self.first))
    }

    /// Assigns the next waiting event to `builder`.
    pub(super) fn assign_next(&mut self, builder: NodeId) -> Option<EventId> {
        let event = self.next()?;
        if self.returned.pop_front().is_none() {
            self.next_unassigned += 1;
        }
        self.events[(event.0 - self.first) as usize].1 = EventState::Assigned(builder);
        Some(event)
    }

    /// The event that is assigned next.
    pub(super) fn next(&self) -> Option<EventId> {
        let new = EventId(self.next_unassigned);
        let is_triggered = new.0 < self.first + self.events.len() as u64;
        self.returned.front().copied().or(is_triggered.then_some(new))
    }

    /// Ends an event of `builder`. Returns the time since its trigger, or `None` if the builder does not have it.
    pub(super) fn end(&mut self, now: Time, event: EventId, builder: NodeId) -> Option<Span> {
        let index = usize::try_from(event.0.checked_sub(self.first)?).ok()?;
        let (triggered, state) =
            self.events.get_mut(index).filter(|(_, state)| *state == EventState::Assigned(builder))?;
        let latency = now.since(*triggered);
        *state = EventState::Ended;
        self.open -= 1;
        while self.events.front().is_some_and(|(_, state)| *state == EventState::Ended) {
            self.events.pop_front();
            self.first += 1;
        }
        Some(latency)
    }

    /// Takes back all events of a builder that is gone, and returns them.
    pub(super) fn take_back(&mut self, builder: NodeId) -> Vec<EventId> {
        let numbered = (self.first..).map(EventId).zip(&mut self.events);
        let taken =
            numbered.filter(|(_, (_, state))| *state == EventState::Assigned(builder)).map(|(event, (_, state))| {
                *state = EventState::Waiting;
                event
            });
        let taken: Vec<_> = taken.collect();
        self.returned.extend(&taken);
        self.returned.make_contiguous().sort_unstable();
        taken
    }
}
