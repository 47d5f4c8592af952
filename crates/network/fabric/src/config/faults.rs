//! What fails, and the mappers that find routes again.

use evb_core::{ByteCount, Span};
use serde::{Deserialize, Serialize};

/// A fault of the network at a given time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkFault {
    /// Name of a link (one direction), of a cable (both) or of a switch.
    pub target: String,
    /// Time after the start.
    pub at: Span,
    /// Time after the start at which all is as before; `None` if it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// The kind of fault.
    pub action: NetworkFaultAction,
}

/// A kind of network fault.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum NetworkFaultAction {
    /// The target carries nothing any more. New routes without it are used after `reroute`.
    Fail {
        /// Time until the new routes are used.
        reroute: Span,
    },
    /// The target is slower by this factor (for a switch: all links that begin there).
    Slow {
        /// The factor, at least 1.
        factor: f64,
    },
    /// One in this many packets is corrupted, and discarded by its receiver.
    Corrupt {
        /// One in this many.
        one_in: u64,
    },
    /// The host at the end of the link asks its switch to pause all the time, as a broken interface does: a pause storm.
    Pause,
}

/// The mappers of the hosts of a source-routed network: they find out the routes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapperConfig {
    /// Time from the end of one look of the leader at the network to the next one.
    pub interval: Span,
    /// Time without a word of the leader after which a host takes it for gone.
    pub patience: Span,
    /// Time after which a probe is sent again, or has failed.
    pub timeout: Span,
    /// How often a probe is sent, at most.
    pub tries: u32,
    /// Probes of a mapper that are under way at once.
    pub window: u32,
    /// Bytes of a probe on the wire; a message with the map has those of the map, too.
    pub probe: ByteCount,
    /// Time of the host for each message of a mapper that it sends or receives.
    pub overhead: Span,
}
