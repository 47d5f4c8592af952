//! Mistakes on purpose, at the border of a machine: the checkers must find each of them.

use crate::{driver::What, scenario::Tag};
use evb_core::EventId;
use evb_protocol::{ManagerCommand, Message};
use std::collections::BTreeSet;

/// A mistake in a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A readout unit forgets the event behind the last one that is cleared, too.
    Clear,
    /// The event manager forgets to tell the next builder of an event that its first one has lost.
    Reassignment,
    /// A readout unit answers questions, and never sends anything again.
    Asking,
    /// The event manager does not hear of a pause.
    Pause,
    /// A node takes messages of the run before.
    Run,
}

impl Bug {
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("clear", Self::Clear),
        ("reassignment", Self::Reassignment),
        ("asking", Self::Asking),
        ("pause", Self::Pause),
        ("run", Self::Run),
    ];
}

/// A machine, perhaps with a mistake.
pub(crate) struct Planted<M> {
    pub(crate) machine: M,
    bug: Option<Bug>,
    granted: BTreeSet<EventId>,
}

impl<M> Planted<M> {
    pub(crate) fn new(machine: M, bug: Option<Bug>) -> Self {
        Self { machine, bug, granted: BTreeSet::new() }
    }

    /// A happening as the machine hears it; `None` if the planted bug hides it.
    pub(crate) fn hear(&self, what: What) -> Option<What> {
        match (self.bug, what) {
            (Some(Bug::Pause), What::Manager(ManagerCommand::Pause)) => None,
            (_, What::Message { from, message }) => Some(What::Message { from, message: self.hear_message(message) }),
            (_, what) => Some(what),
        }
    }

    fn hear_message(&self, message: Message<Tag>) -> Message<Tag> {
        match (self.bug, message) {
            (Some(Bug::Clear), Message::Clear(events)) => {
                let next = events.last().map(|event| EventId(event.0 + 1));
                Message::Clear(events.iter().copied().chain(next).collect())
            }
            (Some(Bug::Asking), Message::Ask { number, events, .. }) => {
                // Nothing that was sent is ever taken for lost.
                Message::Ask { number, heard: 0, events }
            }
            (_, message) => message,
        }
    }

    /// A message of the machine as others hear it; `None` if the planted bug hides it.
    pub(crate) fn say(&mut self, message: Message<Tag>) -> Option<Message<Tag>> {
        match (self.bug, message) {
            (Some(Bug::Reassignment), Message::Grant(events)) => {
                let new: Vec<_> = events.iter().copied().filter(|&event| self.granted.insert(event)).collect();
                (!new.is_empty()).then(|| Message::Grant(new.into()))
            }
            (_, message) => Some(message),
        }
    }
}
