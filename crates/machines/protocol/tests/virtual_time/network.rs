//! The network between the nodes. Messages of a pair keep their order; faults delay, lose, double or damage them.

use crate::{
    scenario::Tag,
    schedule::{Draw, Fault, PEER_TIMEOUT},
};
use evb_core::{NodeId, Span, Stream, Time};
use evb_protocol::{Fragment, Message};
use std::collections::BTreeMap;

/// A message as it comes to its receiver.
pub(crate) enum Arrival {
    Whole(Message<Tag>),
    /// A fragment whose payload does not match its checksum.
    Damaged(Fragment<Tag>),
}

/// A fault that harms messages for some time.
struct Window {
    until: Time,
    fault: Fault,
}

#[derive(Default)]
pub(crate) struct Network {
    windows: Vec<Window>,
    /// The last arrival of each ordered pair: messages of a pair never overtake each other.
    last_arrival: BTreeMap<(NodeId, NodeId), Time>,
    /// Fragments and questions that were lost, doubled or damaged.
    pub(crate) harmed: u64,
}

impl Network {
    /// Begins a fault of the network.
    pub(crate) fn begin(&mut self, now: Time, fault: Fault) {
        let span = match fault {
            Fault::Partition { span, .. }
            | Fault::Isolation { span, .. }
            | Fault::Delay { span, .. }
            | Fault::Lose { span, .. }
            | Fault::Duplicate { span, .. }
            | Fault::Damage { span, .. } => span,
            _ => Span::ZERO,
        };
        self.windows.push(Window { until: now + span, fault });
    }

    /// The arrival time of the last message that was sent so far from one node to another.
    pub(crate) fn last_arrival(&self, from: NodeId, to: NodeId, now: Time) -> Time {
        self.last_arrival.get(&(from, to)).copied().unwrap_or(now).max(now)
    }

    /// The arrivals of a message, each with its time; none for a lost message.
    pub(crate) fn send(
        &mut self,
        now: Time,
        random: &mut Stream,
        delay: Span,
        (from, to): (NodeId, NodeId),
        message: Message<Tag>,
    ) -> Vec<(Time, Arrival)> {
        self.windows.retain(|window| window.until > now);
        let mut at = now + Draw(random).span(delay);
        let (mut copies, mut damaged) = (1, false);
        let may_be_lost = message.is_data() || matches!(message, Message::Ask { .. });
        let is_fragment = matches!(message, Message::Fragment(_));
        for window in &self.windows {
            let mut hits = |one_in: u64| Draw(random).below(one_in) == 0;
            match window.fault {
                Fault::Partition { pair, .. } if pair.contains(&from) && pair.contains(&to) => {
                    at = at.max(window.until)
                }
                Fault::Isolation { node, .. } if node == from || node == to => at = at.max(window.until),
                Fault::Delay { pair, by, .. } if pair.contains(&from) && pair.contains(&to) => at = at + by,
                Fault::Lose { one_in, .. } if may_be_lost && hits(one_in) => copies = 0,
                Fault::Duplicate { one_in, .. } if is_fragment && hits(one_in) => copies *= 2,
                Fault::Damage { one_in, .. } if is_fragment && hits(one_in) => damaged = true,
                _ => {}
            }
        }
        self.harmed += u64::from(copies != 1 || damaged);
        let last = self.last_arrival.entry((from, to)).or_default();
        *last = at.max(*last);
        (0..copies).map(|_| (*last, arrival(message.clone(), damaged))).collect()
    }

    /// A connection that was closed keeps nothing.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.last_arrival.retain(|&(from, to), _| from != node && to != node);
    }
}

fn arrival(message: Message<Tag>, damaged: bool) -> Arrival {
    match message {
        Message::Fragment(fragment) if damaged => Arrival::Damaged(fragment),
        message => Arrival::Whole(message),
    }
}

/// Returns true if a silence this long makes peers give a node up.
pub(crate) const fn is_long(span: Span) -> bool {
    span.0 >= PEER_TIMEOUT.0
}
