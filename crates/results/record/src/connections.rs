//! The connections of a simulation: what they carried, and what they had to send again.

use crate::is_zero;
use serde::{Deserialize, Serialize};

/// The connections of a simulation, each in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connections {
    /// Number of connections.
    pub count: u64,
    /// Segments sent, those sent again included.
    pub segments: u64,
    /// Segments sent again.
    pub sent_again: u64,
    /// Losses found by a timeout.
    pub timeouts: u64,
    /// Probes for lost tails (TCP).
    pub probes: u64,
    /// Losses found by what arrived behind them.
    pub recoveries: u64,
    /// Acknowledged bytes that were marked in a queue.
    pub marked_bytes: u64,
    /// Notices of congestion that senders received (DCQCN).
    pub notices: u64,
    /// Segments that switches cut to their headers (Ultra Ethernet).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trimmed: u64,
    /// Most senders at one receiver at once, of which a part had arrived and the rest had not; 0 in records from before this
    /// count.
    #[serde(default)]
    pub most_senders: u64,
    /// Bytes per second of the connections that carried something, in the measured time.
    pub rates: ConnectionRates,
    /// What they did over time; `None` in records from before it, and of a measurement without any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<ConnectionsOverTime>,
}

/// What all connections did in each step of the measured time. All lists have [`STEPS`](crate::STEPS) values, or are empty
/// where they do not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionsOverTime {
    /// Length of a step, in seconds. The first one begins with the measurement.
    pub step_s: f64,
    /// Bytes that arrived, each counted once, per second.
    pub goodput_bytes_per_s: Vec<f64>,
    /// Segments sent again.
    pub sent_again: Vec<u64>,
    /// Losses found by a timeout.
    pub timeouts: Vec<u64>,
    /// Mean number of connections with something outstanding: sent, and not acknowledged.
    pub outstanding: Vec<f64>,
    /// Mean congestion window of these connections, in bytes; `None` in a step without any. Empty for a transport whose windows
    /// do not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub window_bytes: Vec<Option<f64>>,
    /// Mean rate at which these connections may send, headers included, in bytes per second; `None` in a step without any. Empty
    /// for a transport without such rates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_bytes_per_s: Vec<Option<f64>>,
    /// Acknowledged bytes that were marked in a queue; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marked_bytes: Vec<u64>,
    /// Notices of congestion that senders received; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<u64>,
}

/// The bytes per second of several connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionRates {
    /// The mean.
    pub mean_bytes_per_s: f64,
    /// The lowest.
    pub lowest_bytes_per_s: f64,
    /// A tenth of the connections has less.
    pub p10_bytes_per_s: f64,
    /// Half of the connections has less.
    pub median_bytes_per_s: f64,
    /// A tenth of the connections has more.
    pub p90_bytes_per_s: f64,
    /// The highest.
    pub highest_bytes_per_s: f64,
    /// Jain's index of fairness: 1 if all have the same, 1/n if one of n has all (Jain, Chiu and Hawe, DEC-TR-301, 1984).
    pub fairness: f64,
}

impl ConnectionRates {
    /// The rates of some connections, in bytes per second; all 0 without any.
    pub fn of(mut rates: Vec<f64>) -> Self {
        rates.sort_by(f64::total_cmp);
        let Some(&highest) = rates.last() else { return Self::default() };
        let count = rates.len() as f64;
        let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
        let part = |part: f64| rates[(part * (count - 1.0)).round() as usize];
        let fairness = if squares > 0.0 { sum * sum / (count * squares) } else { 0.0 };
        Self {
            mean_bytes_per_s: sum / count,
            lowest_bytes_per_s: rates[0],
            p10_bytes_per_s: part(0.1),
            median_bytes_per_s: part(0.5),
            p90_bytes_per_s: part(0.9),
            highest_bytes_per_s: highest,
            fairness,
        }
    }
}
