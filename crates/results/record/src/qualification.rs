//! Results of the test of a fabric: every pair of nodes measured, and each held against the others.

use crate::{RecordKind, Times};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The test of a fabric over one transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Qualification {
    /// Always [`RecordKind::Qualification`].
    pub kind: RecordKind,
    /// Name of the suite that it belongs to: `bench`.
    pub experiment: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Version of evb.
    pub version: String,
    /// The pattern: `all-pairs`.
    pub pattern: String,
    /// The message layer, such as `tcp`.
    pub transport: String,
    /// Number of nodes.
    pub nodes: u16,
    /// The host of each node; empty if all are on this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Length of the messages of the round trips in bytes.
    pub size_bytes: u64,
    /// Length of the messages by which throughput is measured, in bytes.
    pub bulk_bytes: u64,
    /// Rounds in which every node had one partner.
    pub rounds: u16,
    /// Time of the test in seconds.
    pub seconds: f64,
    /// The medians of all links, measured while all other nodes were busy.
    pub usual: LinkSpeed,
    /// The medians of links that were measured alone, with which suspects are compared; `None` if there was no suspect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_alone: Option<LinkSpeed>,
    /// Every pair of nodes.
    pub links: Vec<PairOfNodes>,
    /// Growth of the counters of each node's network interfaces during the test, by interface and counter; those that
    /// did not grow are left out.
    #[serde(default)]
    pub counters: Vec<BTreeMap<String, u64>>,
    /// Limits of the acceptance file that are not met, as text.
    #[serde(default)]
    pub not_accepted: Vec<String>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
    /// True if no link is bad and all limits are met.
    pub good: bool,
}

/// The speed of a link, or the median of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSpeed {
    /// Half of the median round trip in nanoseconds.
    pub half_round_trip_ns: f64,
    /// Half of the measured time for each round trip, in nanoseconds: it has the rare long ones.
    pub mean_half_round_trip_ns: f64,
    /// Round trips per second in the slowest tenth of the measured time.
    pub least_round_trips_per_s: f64,
    /// Throughput in bytes per second, of the slower direction.
    pub bytes_per_s: f64,
}

/// A link: the way between two nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairOfNodes {
    /// The two nodes, the lower first.
    pub nodes: [u16; 2],
    /// Half of the round trips, in nanoseconds.
    pub half_round_trip_ns: Times,
    /// Round trips per second in the slowest tenth of the measured time.
    pub least_round_trips_per_s: f64,
    /// Throughput from the first node to the second, and back, in bytes per second.
    pub bytes_per_s: [f64; 2],
    /// Throughput of the slowest tenth of the measured time, in both directions, in bytes per second.
    pub least_bytes_per_s: [f64; 2],
    /// The verdict.
    pub verdict: LinkVerdict,
    /// The factor by which the link is slower than usual, in the quantity in which it is slowest; 1 is as usual. Of a
    /// suspect it is that of the best measurement alone. `None` if nothing came through, or stood still for a tenth of the
    /// time, while others went on.
    pub slower: Option<f64>,
    /// The speeds of the measurements alone; empty if the link was no suspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<LinkSpeed>,
    /// Messages that were lost or corrupted.
    pub lost: u64,
}

/// The verdict on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkVerdict {
    /// It is like the others.
    Good,
    /// It was slower than the others, and like them when it was measured alone.
    Disturbed,
    /// It was slower than the others each time, also alone.
    Bad,
}

impl LinkVerdict {
    /// The name for the reader.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Disturbed => "disturbed",
            Self::Bad => "bad",
        }
    }
}

impl Qualification {
    /// The links with this verdict.
    pub fn with(&self, verdict: LinkVerdict) -> impl Iterator<Item = &PairOfNodes> {
        self.links.iter().filter(move |link| link.verdict == verdict)
    }

    /// The name of a node: its number, and its host if it has one.
    #[must_use]
    pub fn name(&self, node: u16) -> String {
        match self.hosts.get(usize::from(node)) {
            Some(host) => format!("n{node} ({host})"),
            None => format!("n{node}"),
        }
    }
}
