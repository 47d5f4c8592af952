//! The transport between threads in a registry.

use super::{InProcess, Queued, connect_workers};
use evb_transport::{
    Layer, MemoryOfNode, Nodes, Settings, SharesThread, ThreadOptions, TransportFactory, TransportInfo, UseEndpoints,
};

impl TransportFactory for InProcess {
    const INFO: TransportInfo = TransportInfo {
        // The queues to a node: one from each worker, of which there are at most as many as nodes.
        memory: |queue| {
            let ring = queue * size_of::<Queued>();
            MemoryOfNode { own: ring, for_each_peer: ring }
        },
        layers: &[Layer::new("threads")],
        ..TransportInfo::new("in-process", "threads of one process, messages by reference", Nodes::ThreadsOr("tcp"))
    };

    fn open_threads<V: UseEndpoints>(_: &Settings, options: ThreadOptions, use_them: V) -> Result<V::Output, V::Error> {
        use_them.with(connect_workers(options.queue, &options.doorbells))
    }
}

impl SharesThread for InProcess {
    const RINGS: bool = true;

    fn is_ready(&self) -> bool {
        self.is_ready()
    }
}
