//! Order of messages: those of one sender to one receiver are delivered in the order in which they were sent, as
//! every transport promises. If packets can overtake each other, the receiver's interface holds back early messages.

use crate::message::MessageId;
use evb_core::NodeId;
use evb_experiment::{Plan, Workload};
use evb_fabric::Service;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Messages that were sent and that have arrived, for each pair of nodes.
#[derive(Default)]
pub(crate) struct Order {
    pairs: HashMap<(NodeId, NodeId), Pair>,
}

#[derive(Default)]
struct Pair {
    sent: u32,
    next: u32,
    /// Messages that arrived before their turn; `None` for a message that was lost.
    early: BTreeMap<u32, Option<MessageId>>,
}

impl Order {
    /// Keeps the order in a network where messages may overtake each other, also because a lost one is sent again;
    /// `None` in a network where they cannot.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let config = &plan.network.config;
        let mixes = config.nic.ports > 1 || config.nic.messages > 1 || config.nic.service == Service::PeersInTurn;
        let loses =
            plan.workload == Workload::EventBuilding && (config.flow.may_lose() || !plan.network.faults.is_empty());
        (config.routing.splits_pairs() || mixes || loses).then(Self::default)
    }

    /// The place of the next message from one node to another.
    pub(crate) fn send(&mut self, from: NodeId, to: NodeId) -> u32 {
        let pair = self.pairs.entry((from, to)).or_default();
        pair.sent += 1;
        pair.sent - 1
    }

    /// Takes a message that has arrived, or (`None`) is known to be lost. Puts those whose turn it is now into `ready`.
    pub(crate) fn arrive(
        &mut self,
        (from, to): (NodeId, NodeId),
        place: u32,
        message: Option<MessageId>,
        ready: &mut Vec<MessageId>,
    ) {
        let pair = self.pairs.entry((from, to)).or_default();
        if place != pair.next {
            pair.early.insert(place, message);
            return;
        }
        pair.next += 1;
        ready.extend(message);
        while let Some(message) = pair.early.remove(&pair.next) {
            pair.next += 1;
            ready.extend(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_fabric::{Routing, Spread};
    use evb_protocol::Config;
    use evb_sources::SourceSpec;

    #[test]
    fn order_is_kept_where_packets_of_a_pair_take_several_routes() {
        let mut plan = Plan::new(Config::new(2, 2), SourceSpec::Fixed { size: evb_core::ByteCount(1000) });
        plan.network.config.nic.messages = 1;
        let mut is_kept = |routing| {
            plan.network.config.routing = routing;
            Order::of(&plan).is_some()
        };
        assert_eq!([Routing::Random, Routing::Adaptive, Routing::Valiant, Routing::Ugal].map(&mut is_kept), [true; 4]);
        assert_eq!([Routing::Fixed { spread: Spread::Pair }, Routing::Ecmp].map(&mut is_kept), [false; 2]);
    }

    #[test]
    fn an_early_message_waits_for_those_before_it_that_are_late_or_lost() {
        let (mut order, mut ready) = (Order::default(), Vec::new());
        let pair = (NodeId(1), NodeId(2));
        assert_eq!([0, 1, 2, 3].map(|_| order.send(pair.0, pair.1)), [0, 1, 2, 3]);
        order.arrive(pair, 2, Some(MessageId(12)), &mut ready);
        order.arrive(pair, 1, None, &mut ready);
        assert!(ready.is_empty());
        order.arrive(pair, 0, Some(MessageId(10)), &mut ready);
        order.arrive(pair, 3, Some(MessageId(13)), &mut ready);
        assert_eq!(ready, [10, 12, 13].map(MessageId));
    }
}
