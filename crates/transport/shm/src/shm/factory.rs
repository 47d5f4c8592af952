//! Shared memory in a registry.

use super::{Shm, ShmOptions};
use evb_transport::{
    EndpointOptions, Layer, LayerOptions, MemoryOfNode, NodeOptions, Nodes, OpenError, Settings, TransportFactory,
    TransportInfo, UseEndpoint, UseLayer,
};

/// Room for the short messages of a benchmark beside a long one, in bytes.
const SHORT_BYTES: usize = 64;

impl TransportFactory for Shm {
    const INFO: TransportInfo = TransportInfo {
        is_local: true,
        gives_up_peers: true,
        memory: |_| MemoryOfNode { own: ShmOptions::POOL_BYTES, for_each_peer: ShmOptions::RING_BYTES },
        // VELO is the engine, shared memory is where it works.
        layers: &[Layer { aliases: &["velo"], note: "the VELO engine", ..Layer::new("shm") }],
        ..TransportInfo::new(
            "shm",
            "shared memory between processes of one machine: a VELO mailbox for each node",
            Nodes::Processes,
        )
    };

    fn open<V: UseEndpoint>(_: &Settings, options: NodeOptions, use_it: V) -> Result<V::Output, V::Error> {
        let shm = Self::bind(options.node, ShmOptions::new(options.endpoint))
            .map_err(|error| OpenError::new(error).hint("`--set transport.type=tcp` needs no shared memory"))?;
        use_it.with(shm)
    }

    fn open_layer<V: UseLayer>(_: &Settings, options: LayerOptions, use_it: V) -> Result<V::Output, V::Error> {
        let shm = ShmOptions::new(EndpointOptions::new(options.nodes, options.token));
        // A message takes at most 3/8 of a ring. A ring that is larger than it must be fits the caches less well.
        let ring_bytes = (options.longest * 8 / 3 + SHORT_BYTES).next_power_of_two().max(shm.ring_bytes);
        use_it.with(Self::bind(options.node()?, ShmOptions { ring_bytes, ..shm }).map_err(OpenError::new)?)
    }
}
