//! Broadcasts of a run: messages that go to several nodes.

use serde::{Deserialize, Serialize};

/// Broadcasts of all nodes of a run, or of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broadcast {
    /// The way of the transport: `copies`, `by reference`, `shared memory` or `multicast`.
    pub how: String,
    /// Messages that were sent to several nodes.
    pub messages: u64,
    /// Their receivers, added up.
    pub receivers: u64,
    /// Copies that were sent in their place, repeated ones included.
    pub copies: u64,
    /// Copies that were sent again, because a receiver had missed the broadcast.
    pub repeated: u64,
    /// True if the experiment file asked for this way.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub asked: bool,
    /// The reason why a node sent copies although multicast was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fell_back: Option<String>,
}

impl Broadcast {
    /// Adds the broadcasts of other nodes. Nodes that have not reported have no way.
    pub fn add(&mut self, other: &Self) {
        if self.how.is_empty() || other.fell_back.is_some() {
            self.how.clone_from(&other.how);
        }
        self.messages += other.messages;
        self.receivers += other.receivers;
        self.copies += other.copies;
        self.repeated += other.repeated;
        self.asked |= other.asked;
        if self.fell_back.is_none() {
            self.fell_back.clone_from(&other.fell_back);
        }
    }
}
