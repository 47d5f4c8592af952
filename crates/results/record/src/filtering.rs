//! The selection of events in a record.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Events by decision, and stored events by stream. An event that is not decided about again counts once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Filtering {
    /// Events that were accepted.
    pub accepted: u64,
    /// Events that were rejected.
    pub rejected: u64,
    /// Events that were kept without a decision, because their filter unit failed.
    pub quarantined: u64,
    /// Quarantined events by reason: `crashed`, `hung`, `closed`, `nonsense`, `given_up`, `lost` or `nobody`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, u64>,
    /// Number of times a filter unit was started again.
    #[serde(default)]
    pub restarts: u64,
    /// Number of times a filter unit joined from another machine.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub joined: u64,
    /// Number of times one of these ended before the run did: its connection was lost, or it failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Events decided about, per second of the run.
    #[serde(default)]
    pub decided_hz: f64,
    /// Events accepted, per second of the run.
    #[serde(default)]
    pub accepted_hz: f64,
    /// Events that were given to filter units, by their way: `memory`, `pipe` or `network`; empty in simulations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given: BTreeMap<String, Given>,
    /// Stored events by stream; empty in simulations.
    pub streams: Vec<Stream>,
}

/// Events that went to filter units one way. One that was asked about again counts each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// Number of events.
    pub events: u64,
    /// Bytes of their fragments.
    pub bytes: u64,
}

/// Stored events of one stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Name of the stream.
    pub name: String,
    /// The events are copies of events in other streams.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub copies: bool,
    /// Events written to files.
    pub events: u64,
    /// Bytes written to files.
    pub bytes: u64,
    /// Events written, per second of the run.
    #[serde(default)]
    pub events_hz: f64,
    /// Bytes written, per second of the run.
    #[serde(default)]
    pub bytes_per_s: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Filtering {
    /// Adds the counts of another builder.
    pub fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.rejected += other.rejected;
        self.quarantined += other.quarantined;
        self.restarts += other.restarts;
        self.joined += other.joined;
        self.lost += other.lost;
        for (reason, count) in &other.reasons {
            *self.reasons.entry(reason.clone()).or_default() += count;
        }
        for (way, given) in &other.given {
            let sum = self.given.entry(way.clone()).or_default();
            *sum = Given { events: sum.events + given.events, bytes: sum.bytes + given.bytes };
        }
        for stream in &other.streams {
            match self.streams.iter_mut().find(|sum| sum.name == stream.name) {
                Some(sum) => (sum.events, sum.bytes) = (sum.events + stream.events, sum.bytes + stream.bytes),
                None => self.streams.push(stream.clone()),
            }
        }
    }

    /// The stream with this name.
    pub fn stream(&self, name: &str) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.name == name)
    }

    /// Sets all rates for a run of this many seconds.
    pub fn set_rates(&mut self, seconds: f64) {
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        self.decided_hz = rate(self.accepted + self.rejected + self.quarantined);
        self.accepted_hz = rate(self.accepted);
        for stream in &mut self.streams {
            (stream.events_hz, stream.bytes_per_s) = (rate(stream.events), rate(stream.bytes));
        }
    }
}
