//! Options of an endpoint on Ethernet.

use evb_transport::EndpointOptions;

/// Number of checks in the longest silence. A peer is given up after one more check without a sign of life.
pub(crate) const LOOKS: u32 = 8;
/// The highest priority of a VLAN tag.
pub(crate) const HIGHEST_PRIORITY: u8 = 7;

/// Options of an endpoint on Ethernet. The token never leaves the node.
#[derive(Clone, Debug)]
pub struct EthernetOptions {
    /// What all transports have in common.
    pub endpoint: EndpointOptions,
    /// Most bytes that wait for one peer, with 36 bytes for each message. One message always fits.
    pub send_queue_bytes: usize,
    /// Priority of all frames, from 1 to 7, in a VLAN tag without a VLAN; 0 for no tag.
    pub priority: u8,
    /// Most megabits that are sent to a peer in a second; 0 for no limit.
    pub megabits: u32,
}

impl EthernetOptions {
    /// Default of `send_queue_bytes`.
    pub const SEND_QUEUE_BYTES: usize = 4 << 20;

    /// The defaults: 4 MiB waiting for each peer, no tag, no limit of the rate.
    #[must_use]
    pub fn new(endpoint: EndpointOptions) -> Self {
        Self { endpoint, send_queue_bytes: Self::SEND_QUEUE_BYTES, priority: 0, megabits: 0 }
    }
}
