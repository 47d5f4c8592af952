//! Background traffic of a simulation.

use crate::Latency;
use serde::{Deserialize, Serialize};

/// Traffic that shared the network with the workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// Its name in the experiment file.
    pub name: String,
    /// The name of its pattern.
    pub pattern: String,
    /// Number of hosts that send.
    pub senders: u16,
    /// Number of hosts that receive.
    pub receivers: u16,
    /// Begin of the measured time, in seconds after the start: that of the traffic, or the end of the warm-up.
    pub from_s: f64,
    /// The measured time, in seconds: until its senders stop, or the workload ends, or the last of its messages has
    /// arrived.
    pub seconds: f64,
    /// Messages that senders gave to the network, from the start. Those that neither arrived nor were lost were under way
    /// at the end.
    pub sent: u64,
    /// Their payload bytes.
    pub sent_bytes: u64,
    /// Messages that arrived, from the start.
    pub messages: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Messages of which a part was lost.
    pub lost: u64,
    /// Messages that were not sent, because too many waited at their sender.
    pub refused: u64,
    /// Payload that the senders are to send, in bytes per second; `None` if they send as much as goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_bytes_per_s: Option<f64>,
    /// Payload that arrived in the measured time, in bytes per second of it.
    pub throughput_bytes_per_s: f64,
    /// Time from the offer of a message to its arrival, of those that arrived in the measured time.
    pub latency_us: Latency,
}
