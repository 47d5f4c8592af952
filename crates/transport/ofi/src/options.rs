//! Options of an endpoint.

use evb_transport::{DEFAULT_MAX_BODY, Token};
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// Providers that take an IP interface; their default is this machine only.
const OVER_IP: [&str; 4] = ["tcp", "net", "sockets", "udp"];

/// Options of a libfabric endpoint: provider, the run's token and the limits. All nodes of a run have the same options,
/// except for the interface.
#[derive(Clone, Debug)]
pub struct OfiOptions {
    /// The provider by its name in libfabric, such as `tcp`, `shm`, `verbs`, `efa`, `cxi`, `psm3`, `opx`. libfabric
    /// adds utility providers where reliable messages need them: `tcp` becomes `tcp;ofi_rxm`.
    pub provider: String,
    /// Name or address of the interface that this node uses. `None` is this machine only for providers over IP, and the
    /// provider's choice for others.
    pub interface: Option<String>,
    /// The secret of the run, known to its nodes only.
    pub token: Token,
    /// Number of nodes of the run; ids are below it.
    pub nodes: u16,
    /// Longest silence of a peer, and of this node towards its peers. A node must be called more often than every half
    /// of it.
    pub peer_timeout: Duration,
    /// Longest time that joining the peers takes.
    pub connect_timeout: Duration,
    /// A flag that ends joining early when it is set.
    pub stop: Arc<AtomicBool>,
    /// Longest body of a transport's message in bytes, sent and received.
    pub max_body: usize,
    /// Longest message of a layer in bytes.
    pub max_bytes: usize,
    /// Most bytes that wait for one peer or are under way to it, in a transport. One message always fits.
    pub send_queue_bytes: usize,
    /// Messages of libfabric that each peer may have under way to this node, or fewer if the provider cannot have so
    /// many receives. A node has this many buffers for each peer, of at most 48 KiB.
    pub credits: u16,
    /// True if a transport's long messages are written into the receiver's memory where the provider can do that. If not,
    /// they are sent by tag into receives of their own. Nodes of a run agree on it.
    pub writes: bool,
}

impl OfiOptions {
    /// The defaults: provider `tcp`, because every libfabric has it; this machine only, 10 s of silence, 30 s to
    /// connect, 64 MiB bodies, 1 MiB messages of a layer, 4 MiB waiting for each peer, 64 credits, long messages written.
    #[must_use]
    pub fn new(nodes: u16, token: Token) -> Self {
        Self {
            provider: "tcp".into(),
            interface: None,
            token,
            nodes,
            peer_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(30),
            stop: Arc::default(),
            max_body: DEFAULT_MAX_BODY,
            max_bytes: 1 << 20,
            send_queue_bytes: 4 << 20,
            credits: 64,
            writes: true,
        }
    }

    /// The interface that is requested from libfabric.
    pub(crate) fn source(&self) -> Option<&str> {
        let base = self.provider.split(';').next().unwrap_or_default();
        self.interface.as_deref().or_else(|| OVER_IP.contains(&base).then_some("127.0.0.1"))
    }
}
