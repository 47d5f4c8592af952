//! Fault injection: the effect of the `[[fault]]` tables of an experiment on the fragments of a readout unit.

use crate::Payload;
use evb_core::{EventId, NodeId, Span, Transmit};
use evb_experiment::{FaultAction, Plan};
use evb_protocol::{Fragment, Message, Recent};

/// Number of events whose lost fragments are remembered.
const MOST_LOST: usize = 1 << 14;

/// The faults that are injected into the fragments of one readout unit.
pub struct Injector {
    actions: Vec<FaultAction>,
    max_fragment: u32,
    /// Events whose fragment was lost once; the repeated fragment comes through.
    lost: Recent<EventId>,
}

impl Injector {
    /// The faults of a readout unit, or `None` if nothing happens to its fragments.
    pub fn new(plan: &Plan, node: NodeId) -> Option<Self> {
        let of_others =
            |action: &FaultAction| matches!(action, FaultAction::Kill { .. } | FaultAction::SlowDisk { .. });
        let faults =
            plan.faults.iter().filter(|fault| fault.node == node && fault.source.is_none()).map(|fault| fault.action);
        let actions: Vec<_> = faults.filter(|action| !of_others(action)).collect();
        let max_fragment = u32::try_from(plan.building.max_fragment.0).unwrap_or(u32::MAX);
        (!actions.is_empty()).then(|| Self { actions, max_fragment, lost: Recent::new(MOST_LOST) })
    }

    /// Sends the messages of a readout unit on, with their faults. A packet goes as single fragments, since each has a
    /// separate fate: it goes at once or after the time given to `send`, once, twice or not at all.
    pub fn inject<B: Payload>(
        &mut self,
        Transmit { to, message }: Transmit<Message<B>>,
        mut send: impl FnMut(Transmit<Message<B>>, Span),
    ) {
        let mut send = |message, delay| send(Transmit { to, message }, delay);
        match message {
            Message::Fragment(fragment) => self.inject_into(fragment, &mut send),
            Message::Packet(fragments) => fragments.into_iter().for_each(|one| self.inject_into(one, &mut send)),
            message => send(message, Span::ZERO),
        }
    }

    fn inject_into<B: Payload>(&mut self, mut fragment: Fragment<B>, send: &mut impl FnMut(Message<B>, Span)) {
        let mut copies = 1;
        let mut delay = Span::ZERO;
        for action in &self.actions {
            let hits = |one_in: u64| fragment.event.0.is_multiple_of(one_in);
            match *action {
                FaultAction::Corrupt { one_in } if hits(one_in) => B::corrupt(&mut fragment),
                FaultAction::Oversize { one_in } if hits(one_in) => {
                    B::resize(&mut fragment, self.max_fragment.saturating_add(1));
                }
                FaultAction::Duplicate { one_in } if hits(one_in) => copies = 2,
                FaultAction::Lose { one_in } if hits(one_in) && self.lost.insert(fragment.event) => copies = 0,
                FaultAction::Delay { one_in, by } if hits(one_in) => delay = by,
                _ => {}
            }
        }
        for _ in 0..copies {
            send(Message::Fragment(fragment.clone()), delay);
        }
    }
}
