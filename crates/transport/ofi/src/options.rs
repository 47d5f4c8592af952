//! Options of an endpoint.

use evb_transport::EndpointOptions;

/// Providers that take an IP interface; their default is this machine only.
const OVER_IP: [&str; 4] = ["tcp", "net", "sockets", "udp"];

/// Options of a libfabric endpoint. All nodes of a run have the same options, except for the interface. A node must be
/// called more often than every half of `endpoint.peer_timeout`.
#[derive(Clone, Debug)]
pub struct OfiOptions {
    /// What all transports have in common.
    pub endpoint: EndpointOptions,
    /// The provider by its name in libfabric, such as `tcp`, `shm`, `verbs`, `efa`, `cxi`, `psm3`, `opx`. libfabric
    /// adds utility providers where reliable messages need them: `tcp` becomes `tcp;ofi_rxm`.
    pub provider: String,
    /// Name or address of the interface that this node uses. `None` is this machine only for providers over IP, and the
    /// provider's choice for others.
    pub interface: Option<String>,
    /// Longest message of a layer in bytes.
    pub max_bytes: usize,
    /// Most bytes that wait for one peer or are under way to it, in a transport. One message always fits.
    pub send_queue_bytes: usize,
    /// Messages of libfabric that each peer may have under way to this node, or fewer if the provider cannot have so
    /// many receives. A node has this many buffers for each peer, of at most 48 KiB.
    pub credits: u16,
    /// True if a transport's long messages are written into the receiver's memory where the provider can do that. If not,
    /// they are sent by tag into separate receives. Nodes of a run agree on it.
    pub writes: bool,
}

impl OfiOptions {
    /// Default of `send_queue_bytes`.
    pub const SEND_QUEUE_BYTES: usize = 4 << 20;
    /// Default of `credits`.
    pub const CREDITS: u16 = 64;

    /// The defaults: provider `tcp`, because every libfabric has it; this machine only, 1 MiB messages of a layer, 4 MiB
    /// waiting for each peer, 64 credits, long messages written.
    #[must_use]
    pub fn new(endpoint: EndpointOptions) -> Self {
        Self {
            endpoint,
            provider: "tcp".into(),
            interface: None,
            max_bytes: 1 << 20,
            send_queue_bytes: Self::SEND_QUEUE_BYTES,
            credits: Self::CREDITS,
            writes: true,
        }
    }

    /// The interface that is requested from libfabric.
    pub(crate) fn source(&self) -> Option<&str> {
        let base = self.provider.split(';').next().unwrap_or_default();
        self.interface.as_deref().or_else(|| OVER_IP.contains(&base).then_some("127.0.0.1"))
    }
}
