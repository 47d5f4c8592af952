//! Liveness of peers as seen by a builder. The builder asks for missing fragments, and ends an event without one only
//! when its readout unit says that it has none, or is dead. After a long pause the builder also asks whether it was
//! given up itself.
//!
//! A builder that loses the connection to a readout unit may itself be cut off, and would end events without evidence.
//! So it waits for the event manager, which gives up one of the two.

use super::{BuilderEvent, BuilderMachine, Building, MOST_DAMAGED, inquiry};
use crate::{Fault, Fragment, FragmentStatus, Message};
use alloc::vec::Vec;
use core::mem::{replace, take};
use evb_core::{EventId, NodeId, SourceId, Span, Time, Transmit};

/// The state of this builder in the run, as far as it knows.
#[derive(Default)]
pub(super) struct Membership {
    /// Number of the last question to the event manager.
    number: u32,
    /// The last question has no answer yet.
    asking: bool,
    fenced: bool,
    /// The fence is not reported to the driver yet.
    news: bool,
    /// The event manager is gone.
    orphaned: bool,
}

impl Membership {
    /// Returns true if the builder may build and report.
    #[inline]
    pub(super) const fn is_firm(&self) -> bool {
        !self.asking && !self.fenced
    }

    /// The next event for the driver about the state of this builder.
    pub(super) fn take_event<B>(&mut self) -> Option<BuilderEvent<B>> {
        take(&mut self.news).then_some(BuilderEvent::Fenced)
    }
}

impl<B> BuilderMachine<B> {
    /// Time of the first check of an event whose phase begins now.
    pub(super) fn first_limit(&self) -> Time {
        let first = self.config.deadline.map_or(self.config.patience, |deadline| deadline.min(self.config.patience));
        self.now + first
    }

    pub(super) fn look_after(&mut self, at: Time) {
        self.next_look = self.next_look.min(at);
    }

    /// Ends events that are over their time limit, and asks for fragments that are overdue.
    pub(super) fn look(&mut self) {
        self.next_look = Time::MAX;
        self.requests.lapse(self.now);
        self.drop_strays();
        self.cut_overdue();
        (0..self.alive.len()).for_each(|source| self.inquire(source));
        self.ask_who_waits();
        self.plan_next_look();
    }

    /// Drops events that were not granted for a long time: they belong to another builder. If such an event is granted
    /// later, its fragments are asked for again.
    fn drop_strays(&mut self) {
        let limit = Span(self.config.patience.0 * inquiry::LONGEST_WAIT);
        if self.ungranted > 0 {
            let strays = self.select(|building, now| !building.granted && building.since + limit <= now);
            strays.into_iter().for_each(|event| self.conclude(event));
        }
    }

    /// Drops the oldest event without a grant to make room for a granted one.
    pub(super) fn drop_oldest_stray(&mut self) {
        let strays = self.building.iter().filter(|(_, building)| !building.granted);
        let oldest = strays.min_by_key(|(event, building)| (building.since, **event)).map(|(&event, _)| event);
        oldest.into_iter().for_each(|event| self.conclude(event));
    }

    /// Ends the events or first phases that are over the time limit of the experiment file.
    fn cut_overdue(&mut self) {
        let Some(limit) = self.config.deadline else { return };
        let waits = |building: &Building<B>| building.granted && building.is_collecting();
        for event in self.select(|building, now| waits(building) && building.since + limit <= now) {
            self.note_missed(event);
            self.cut(event);
        }
        self.pass_all_silent();
    }

    /// Ends an event, or its first phase, without the fragments that it waits for.
    pub(super) fn cut(&mut self, event: EventId) {
        if let Some(building) = self.building.get_mut(&event) {
            building.cut = true;
        }
        self.conclude(event);
    }

    /// Sets the time limit to the patience if the file has none or a longer one.
    pub(super) fn cut_from_now_on(&mut self) {
        let patience = self.config.patience;
        self.config.deadline = Some(self.config.deadline.map_or(patience, |deadline| deadline.min(patience)));
        self.look();
    }

    /// The events under construction that match `predicate`, the oldest first.
    pub(super) fn select(&self, predicate: impl Fn(&Building<B>, Time) -> bool) -> Vec<EventId> {
        let selected = self.building.iter().filter(|(_, building)| predicate(building, self.now));
        let mut events: Vec<_> = selected.map(|(&event, _)| event).collect();
        events.sort_unstable();
        events
    }

    /// Asks a source for its overdue fragments if no question to it is under way.
    fn inquire(&mut self, source: usize) {
        // Without an event manager nothing is cleared, and missing fragments may never have room.
        if !self.alive[source] || self.membership.fenced || self.membership.orphaned {
            return;
        }
        let patience = self.config.patience;
        let mut lacking = self.select(|building, now| building.since + patience <= now && building.lacks(source));
        // What waits for its turn, or has it, is not overdue.
        lacking.retain(|&event| !self.requests.is_pending(source as u16, event));
        if lacking.is_empty() {
            self.inquiries[source].lapse(self.now, &mut self.window);
            return self.look_at_question(source);
        }
        let inquiry = &self.inquiries[source];
        if inquiry.due() <= self.now && (inquiry.is_under_way() || self.window.admit(source)) {
            lacking.truncate(inquiry::MOST_ASKED);
            self.counts.asked += lacking.len() as u64;
            lacking.iter().for_each(|&event| _ = self.asked.insert((event, SourceId(source as u16))));
            let message = self.inquiries[source].ask(self.now, patience, lacking, &mut self.window);
            let to = NodeId(self.config.readout_nodes().first.0 + source as u16).into();
            self.transmits.push_back(Transmit { to, message });
        }
        self.look_at_question(source);
    }

    /// Plans a check for the time when the question to a source is due. A source that is queued is asked after another
    /// source has answered.
    fn look_at_question(&mut self, source: usize) {
        let due = self.inquiries[source].due();
        if due > self.now {
            self.look_after(due);
        }
    }

    /// Plans the check for events that become overdue. Events that are overdue already are checked when their questions
    /// are due.
    fn plan_next_look(&mut self) {
        let (patience, deadline) = (self.config.patience, self.config.deadline);
        let stray = Span(patience.0 * inquiry::LONGEST_WAIT);
        let limits = |building: &Building<B>| match building.granted {
            false => [Some(building.since + stray), None],
            // It waits for a decision.
            true if !building.is_collecting() => [None, None],
            true => [Some(building.since + patience), deadline.map(|deadline| building.since + deadline)],
        };
        let next = self.building.values().flat_map(limits).flatten().filter(|&at| at > self.now).min();
        let next = next.into_iter().chain(self.requests.next_lapse());
        next.into_iter().for_each(|at| self.look_after(at));
    }

    /// Takes the answer of a readout unit. A requested fragment that is neither here nor pending was lost on the way.
    pub(super) fn hear_answer(&mut self, from: NodeId, number: u32, pending: &[EventId]) {
        let Some(source) = self.source_of(from).map(SourceId::index) else {
            return self.counts.faults.count(Fault::Unexpected);
        };
        let Some(asked) = self.inquiries[source].hear(number, &mut self.window) else { return };
        let is_lost = |event: &&EventId| {
            // Both are in the order of the events.
            pending.binary_search(event).is_err()
                && self.building.get(*event).is_some_and(|building| building.lacks(source))
        };
        let (now, lost) = (self.now, asked.iter().any(|event| is_lost(&event)));
        self.window.note(lost, self.alive.len());
        if lost {
            self.inquiries[source].hurry(now);
        } else if pending.is_empty() {
            self.inquiries[source].settle(now);
        }
        self.inquire(source);
        self.ask_who_waits();
    }

    /// Asks the queued sources that may be asked now.
    fn ask_who_waits(&mut self) {
        while let Some(source) = self.window.next() {
            self.inquire(source);
        }
    }

    /// Drops a copy whose payload changed on the way, and asks for the fragment again.
    pub(super) fn receive_damaged(&mut self, from: NodeId, fragment: Fragment<B>) {
        let (event, source, found) = (fragment.event, fragment.source, fragment.checksum);
        if self.source_of(from) != Some(source) {
            return self.receive(from, fragment);
        }
        let before = self.forget_damage(event, source);
        if before == Some(found) {
            return self.receive(from, Fragment { status: FragmentStatus::Corrupted, ..fragment });
        }
        self.counts.faults.add(Fault::Damaged, u64::from(before.is_some()));
        if self.damaged.len() >= MOST_DAMAGED {
            self.damaged.remove(0);
        }
        self.damaged.push((event, source, found));
        self.requests.hear(source.0, event);
    }

    /// Removes and returns the checksum of the last damaged copy of a fragment.
    fn forget_damage(&mut self, event: EventId, source: SourceId) -> Option<u32> {
        let index = self.damaged.iter().position(|&(of, by, _)| (of, by) == (event, source))?;
        Some(self.damaged.swap_remove(index).2)
    }

    /// Counts earlier damaged copies of a fragment that has now arrived intact.
    #[cold]
    pub(super) fn count_damage(&mut self, event: EventId, source: SourceId) {
        let was_damaged = self.forget_damage(event, source).is_some();
        self.counts.faults.add(Fault::Damaged, u64::from(was_damaged));
    }

    /// Takes the event manager's word that a readout unit is dead or back. Fragments of a dead unit are no longer
    /// awaited; those of a unit that is back are awaited again.
    pub(super) fn set_alive(&mut self, node: NodeId, alive: bool) {
        let Some(source) = self.source_of(node).map(SourceId::index) else { return };
        if replace(&mut self.alive[source], alive) == alive {
            return;
        }
        self.silence.hear(source);
        self.requests.lose(source as u16);
        self.ask_anew(node);
        self.count_in(source, |waiting| if alive { waiting + 1 } else { waiting - 1 });
        self.look_after(self.first_limit());
        self.select(|building, _| building.is_ready()).into_iter().for_each(|event| self.conclude(event));
    }

    /// Resets the questions to a readout unit that has restarted.
    pub(super) fn ask_anew(&mut self, node: NodeId) {
        if let Some(source) = self.source_of(node) {
            self.inquiries[source.index()].forget(&mut self.window);
            self.ask_who_waits();
        }
    }

    /// Changes the number of awaited sources in every event that lacks the fragment of this source.
    fn count_in(&mut self, source: usize, change: impl Fn(u32) -> u32) {
        for building in self.building.values_mut() {
            if building.awaits(source) && !building.there.contains(source) {
                building.waiting = change(building.waiting);
            }
        }
    }

    /// Takes note that the event manager is gone. Events that are complete are still built.
    pub(super) fn lose_manager(&mut self) {
        self.membership.orphaned = true;
        self.events.push_back(BuilderEvent::Orphaned);
        if self.membership.asking {
            self.fence();
        }
    }

    // ---- being away

    /// Asks the event manager whether this builder was given up while it did not run.
    pub(super) fn go_away(&mut self) {
        if self.membership.fenced {
            return;
        }
        self.membership.asking = true;
        self.membership.number += 1;
        let number = self.membership.number;
        self.tell_manager(Message::Away { number });
    }

    pub(super) fn handle_membership(&mut self, number: u32, is_member: bool) {
        if !self.membership.asking || number != self.membership.number {
            return;
        }
        match is_member {
            true => {
                self.membership.asking = false;
                self.events.push_front(BuilderEvent::Confirmed);
            }
            false => self.fence(),
        }
    }

    /// Stops all building: the builder was given up.
    fn fence(&mut self) {
        let fenced = replace(&mut self.membership.fenced, true);
        self.membership.news |= !fenced;
        self.ungranted = 0;
        self.next_look = Time::MAX;
        self.building.clear();
        self.events.clear();
    }
}
