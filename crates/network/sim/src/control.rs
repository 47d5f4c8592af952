//! The control network: a message on it arrives at a time that is known when it is sent.

use crate::message::MessageId;
use evb_core::{NodeId, Time};
use std::{cmp::Reverse, collections::BinaryHeap};

/// Messages on a separate control network.
///
/// Messages that arrive at one time keep the order in which they were sent; those sent at one time, the order of their
/// senders. So their order does not depend on what else happens at that time in other partitions of the network.
#[derive(Default)]
pub(crate) struct ControlNetwork {
    calls: BinaryHeap<Reverse<Call>>,
    number: u64,
}

/// A message that will arrive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    at: Time,
    sent: Time,
    from: NodeId,
    /// Place among the messages of one sender.
    number: u64,
    message: MessageId,
}

impl ControlNetwork {
    /// Adds a message that was sent at `sent` and will arrive at `at`. Messages of one sender are added in their order.
    pub(crate) fn send(&mut self, from: NodeId, sent: Time, at: Time, message: MessageId) {
        self.number += 1;
        self.calls.push(Reverse(Call { at, sent, from, number: self.number, message }));
    }

    /// The messages that have not arrived.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = MessageId> {
        self.calls.iter().map(|Reverse(call)| call.message)
    }

    /// The next message that has arrived by now.
    #[inline]
    pub(crate) fn take(&mut self, now: Time) -> Option<MessageId> {
        let due = self.calls.peek().is_some_and(|Reverse(call)| call.at <= now);
        due.then(|| self.calls.pop())?.map(|Reverse(call)| call.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_one_time_come_as_they_were_sent_and_then_by_sender() {
        let mut network = ControlNetwork::default();
        let calls = [(3, 2, 9), (1, 2, 9), (7, 1, 9), (1, 2, 9), (0, 0, 10)];
        for (message, (from, sent, at)) in calls.into_iter().enumerate() {
            network.send(NodeId(from), Time(sent), Time(at), MessageId(message as u32));
        }
        assert_eq!(network.take(Time(8)), None);
        let due: Vec<_> = std::iter::from_fn(|| network.take(Time(9))).collect();
        assert_eq!(due, [2, 1, 3, 0].map(MessageId));
        assert_eq!(network.take(Time(10)), Some(MessageId(4)));
    }
}
