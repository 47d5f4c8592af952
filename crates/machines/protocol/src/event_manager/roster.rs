//! The builders as the event manager sees them: which are alive, their credits, and whose turn it is.
//!
//! Round robin passes over builders without a free slot; with push only after the time that an incomplete group waits.
//! Readout units begin at different places of the list of assignments, and do not meet as long as builders follow each
//! other in turn, which doubles the rate of fixed-size fragments through wormhole switches.

use crate::{Assignment, Config};
use alloc::vec::Vec;
use evb_core::{EventId, NodeId, NodeRange};

pub(super) struct BuilderState {
    alive: bool,
    /// Events that the builder can still take.
    credits: u32,
    /// Open events of the builder.
    assigned: u32,
    /// Events to be granted at the next drain.
    pub(super) granted: Vec<EventId>,
}

impl BuilderState {
    /// Events that the builder can take, if it may have this many open ones.
    const fn room(&self, limit: u32) -> u32 {
        let may = limit.saturating_sub(self.assigned);
        if may < self.credits { may } else { self.credits }
    }
}

/// All builders of the run.
pub(super) struct Roster {
    nodes: NodeRange,
    assignment: Assignment,
    slots: u32,
    /// Open events that a builder may have now, at most its slots, and those of all builders.
    each: u32,
    all: u64,
    /// Open events of all builders.
    assigned: u64,
    builders: Vec<BuilderState>,
    turn: usize,
}

impl Roster {
    pub(super) fn new(config: &Config) -> Self {
        let builder = || BuilderState { alive: true, credits: 0, assigned: 0, granted: Vec::new() };
        let mut roster = Self {
            nodes: config.builder_nodes(),
            assignment: config.assignment,
            slots: config.builder_slots,
            each: config.builder_slots,
            all: u64::MAX,
            assigned: 0,
            builders: (0..config.builder_units).map(|_| builder()).collect(),
            turn: 0,
        };
        if let Some(first) = config.first_under_way {
            roster.limit(first.into());
        }
        roster
    }

    pub(super) fn len(&self) -> usize {
        self.builders.len()
    }

    pub(super) fn alive(&self) -> usize {
        self.builders.iter().filter(|builder| builder.alive).count()
    }

    /// Sets the number of open events that all builders together may have. All may have as many as the others; where
    /// there are more builders than events, those in turn have one.
    pub(super) fn limit(&mut self, events: u64) {
        let builders = self.builders.len() as u64;
        self.each = u32::try_from(events.div_ceil(builders.max(1))).unwrap_or(u32::MAX);
        self.all = if events < builders { events } else { u64::MAX };
    }

    /// The number of builders that events can be spread over.
    pub(super) fn spread(&self) -> usize {
        self.alive().min(usize::try_from(self.all).unwrap_or(usize::MAX)).max(1)
    }

    /// Events that all builders together can still take.
    pub(super) fn credits(&self) -> u64 {
        let credits = self.builders.iter().map(|builder| u64::from(builder.room(self.each))).sum();
        self.all.saturating_sub(self.assigned).min(credits)
    }

    /// Returns true if this builder may take an event.
    fn is_able(&self, index: usize) -> bool {
        self.assigned < self.all && self.builders[index].room(self.each) > 0
    }

    pub(super) fn get_mut(&mut self, node: NodeId) -> Option<&mut BuilderState> {
        let index = usize::from(node.0.checked_sub(self.nodes.first.0)?);
        self.builders.get_mut(index)
    }

    /// All builders with their nodes.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut BuilderState)> {
        self.nodes.iter().zip(&mut self.builders)
    }

    /// Takes a builder's request for events. Its credits never exceed its slots, whatever it asks for. Returns false if
    /// the node is not a living builder.
    pub(super) fn request(&mut self, node: NodeId, events: u32) -> bool {
        let slots = self.slots;
        let builder = self.get_mut(node).filter(|builder| builder.alive);
        builder
            .map(|builder| {
                let most = slots.saturating_sub(builder.assigned);
                builder.credits = builder.credits.saturating_add(events).min(most);
            })
            .is_some()
    }

    /// The builder of an event whose number decides, if it is gone.
    pub(super) fn gone_owner(&self, event: EventId) -> Option<NodeId> {
        let owner = self.owner(event)?;
        (!self.builders[owner].alive).then(|| self.node(owner))
    }

    /// The index of the builder of an event whose number decides.
    fn owner(&self, event: EventId) -> Option<usize> {
        let by_number = self.assignment == Assignment::ByNumber;
        by_number.then(|| ((event.0 - 1) % self.builders.len() as u64) as usize)
    }

    /// Takes one credit of the builder that gets the next event, if one has room.
    pub(super) fn pick(&mut self, event: EventId) -> Option<NodeId> {
        let count = self.builders.len();
        let in_turn = (0..count).map(|step| (self.turn + step) % count);
        let mut able = in_turn.filter(|&index| self.is_able(index));
        let picked = match self.assignment {
            Assignment::RoundRobin => able.next(),
            Assignment::LeastLoaded => able.min_by_key(|&index| self.builders[index].assigned),
            Assignment::ByNumber => self.owner(event).filter(|owner| able.any(|index| index == *owner)),
        }?;
        Some(self.take_credit(picked))
    }

    /// Takes one credit as [`pick`](Self::pick) does, but in round robin only from the builder whose turn it is.
    pub(super) fn pick_in_turn(&mut self, event: EventId) -> Option<NodeId> {
        if self.assignment != Assignment::RoundRobin {
            return self.pick(event);
        }
        let count = self.builders.len();
        let next = (0..count).map(|step| (self.turn + step) % count).find(|&index| self.builders[index].alive)?;
        self.is_able(next).then(|| self.take_credit(next))
    }

    /// The builder with the fewest events, unless the number of the event decides. It gets the event without a credit.
    pub(super) fn pick_without_slot(&mut self, event: EventId) -> Option<NodeId> {
        let alive = (0..self.builders.len()).filter(|&index| self.builders[index].alive);
        let fewest = alive.min_by_key(|&index| self.builders[index].assigned);
        let index = self.owner(event).or(fewest)?;
        self.builders[index].assigned += 1;
        self.assigned += 1;
        Some(self.node(index))
    }

    fn take_credit(&mut self, picked: usize) -> NodeId {
        self.turn = (picked + 1) % self.builders.len();
        self.builders[picked].credits -= 1;
        self.builders[picked].assigned += 1;
        self.assigned += 1;
        self.node(picked)
    }

    const fn node(&self, index: usize) -> NodeId {
        NodeId(self.nodes.first.0 + index as u16)
    }

    /// Takes note that an event of this builder has ended.
    pub(super) fn end(&mut self, node: NodeId) {
        if let Some(builder) = self.get_mut(node) {
            builder.assigned -= 1;
            self.assigned -= 1;
        }
    }

    /// Returns true if a node is a living builder.
    pub(super) fn is_member(&mut self, node: NodeId) -> bool {
        self.get_mut(node).is_some_and(|builder| builder.alive)
    }

    /// Takes back a builder that was gone. It has no events and asks for some.
    pub(super) fn join(&mut self, node: NodeId) {
        if let Some(builder) = self.get_mut(node).filter(|builder| !builder.alive) {
            builder.alive = true;
        }
    }

    /// Takes note that a builder is gone; returns false if that is known already.
    pub(super) fn lose(&mut self, node: NodeId) -> bool {
        let Some(builder) = self.get_mut(node).filter(|builder| builder.alive) else { return false };
        let assigned = builder.assigned;
        *builder = BuilderState { alive: false, credits: 0, assigned: 0, granted: Vec::new() };
        self.assigned -= u64::from(assigned);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_are_more_builders_than_events_those_in_turn_have_one() {
        let mut roster = Roster::new(&Config { builder_slots: 4, ..Config::new(1, 5) });
        let builders: Vec<_> = roster.nodes.iter().collect();
        builders.iter().for_each(|&builder| assert!(roster.request(builder, 4)));
        roster.limit(3);
        assert_eq!((roster.credits(), roster.spread()), (3, 3));
        let next = |roster: &mut Roster| roster.pick_in_turn(EventId(1));
        let first: Vec<_> = core::iter::from_fn(|| next(&mut roster)).collect();
        assert_eq!((&*first, roster.credits()), (&builders[..3], 0));
        roster.end(builders[1]);
        assert_eq!((next(&mut roster), next(&mut roster)), (Some(builders[3]), None));
        roster.limit(10);
        assert_eq!((roster.credits(), roster.spread()), (7, 5), "two of each, and three are taken");
    }
}
