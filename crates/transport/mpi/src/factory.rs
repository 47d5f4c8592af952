//! MPI in a registry. The ranks are the nodes.

use crate::{
    Endpoint, Mpi, MpiOptions, Threads,
    link::{BYTES_PER_PEER, OWN_BYTES},
};
use evb_transport::{
    Layer, LayerOptions, MemoryOfNode, NodeOptions, Nodes, OpenError, Settings, TransportFactory, TransportInfo,
    UseEndpoint, UseLayer,
};

impl TransportFactory for Endpoint {
    const INFO: TransportInfo = TransportInfo {
        memory: |_| MemoryOfNode { own: OWN_BYTES, for_each_peer: BYTES_PER_PEER },
        layers: &[Layer { has_launcher: true, ..Layer::new("mpi") }],
        ..TransportInfo::new(
            "mpi",
            "MPI, whichever is installed: start with `mpirun -n NODES evb run FILE`, and the rank chooses the role",
            Nodes::Processes,
        )
    };

    fn open<V: UseEndpoint>(_: &Settings, options: NodeOptions, use_it: V) -> Result<V::Output, V::Error> {
        let mpi = Mpi::started().ok_or_else(|| {
            OpenError::new("nodes that talk over MPI cannot be started one by one")
                .hint("start all together: `mpirun -n NODES evb run FILE`")
        })?;
        let endpoints = mpi.endpoints(&one_on_each(&mpi), &MpiOptions { max_body: options.endpoint.max_body });
        use_it.with(first(endpoints.map_err(OpenError::new)?)?)
    }

    fn open_layer<V: UseLayer>(_: &Settings, options: LayerOptions, use_it: V) -> Result<V::Output, V::Error> {
        let mpi = Mpi::init(Threads::One).map_err(OpenError::new)?;
        if mpi.size() != usize::from(options.nodes) {
            return Err(OpenError::new(format!("{} ranks for {} nodes", mpi.size(), options.nodes)).into());
        }
        let layers = mpi.layers(&one_on_each(&mpi), &MpiOptions { max_body: options.max_bytes });
        let output = use_it.with(first(layers.map_err(OpenError::new)?)?)?;
        mpi.finish();
        Ok(output)
    }
}

fn one_on_each(mpi: &Mpi) -> Vec<usize> {
    (0..mpi.size()).collect()
}

fn first<T>(nodes: Vec<T>) -> Result<T, OpenError> {
    nodes.into_iter().next().ok_or_else(|| OpenError::new("this rank has no node"))
}
