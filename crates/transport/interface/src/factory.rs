//! Opening of endpoints for those who know a transport by name only.
//!
//! A registry finds the transport by its name and calls one of the functions of [`TransportFactory`], which hands the endpoints to
//! its visitor. The visitor is generic over their type, so that a registry can compile it for the transports that move most
//! messages, and once, behind a pointer, for all others.

use crate::{
    Connect, DEFAULT_MAX_BODY, EndpointOptions, MessageLayer, OpenError, OverTransport, Settings, Token, Transport,
    TransportInfo, doorbell::Doorbell,
};
use evb_core::NodeId;
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

/// A transport that a registry can list. It has one of [`open`](TransportFactory::open) and
/// [`open_threads`](TransportFactory::open_threads), or both; the layers of the benchmarks follow from these.
pub trait TransportFactory {
    /// Name, settings and properties of the transport.
    const INFO: TransportInfo;

    /// Opens the endpoint of a node that is a process.
    ///
    /// # Errors
    /// [`OpenError`], or that of the visitor.
    fn open<V: UseEndpoint>(settings: &Settings, options: NodeOptions, use_it: V) -> Result<V::Output, V::Error> {
        let _ = (settings, options, use_it);
        let why = Self::INFO.only_threads().unwrap_or("this transport does not join processes");
        Err(OpenError::new(why).hint("start all nodes together: `evb run FILE`").into())
    }

    /// Opens the endpoints of all nodes, which are threads of this process, from node 0 on.
    ///
    /// # Errors
    /// As [`open`](TransportFactory::open).
    fn open_threads<V: UseEndpoints>(
        settings: &Settings,
        options: ThreadOptions,
        use_them: V,
    ) -> Result<V::Output, V::Error> {
        let _ = (settings, options, use_them);
        Err(OpenError::new(format!("nodes that talk over {} are processes", Self::INFO.name)).into())
    }

    /// Opens a message layer of a node that is a process; over the transport, unless it has its own.
    ///
    /// # Errors
    /// As [`open`](TransportFactory::open).
    fn open_layer<V: UseLayer>(settings: &Settings, options: LayerOptions, use_it: V) -> Result<V::Output, V::Error> {
        let max_bytes = options.max_bytes;
        Self::open(settings, options.of_transport()?, Over { use_it, max_bytes })
    }

    /// Opens the message layers of all nodes, which are threads of this process; over the transport, unless it has one of
    /// its own.
    ///
    /// # Errors
    /// As [`open`](TransportFactory::open).
    fn open_layers<V: UseLayers>(
        settings: &Settings,
        options: LayersOptions,
        use_them: V,
    ) -> Result<V::Output, V::Error> {
        let (queue, max_body) = (options.queue, DEFAULT_MAX_BODY);
        let doorbells = (0..options.nodes).map(|_| Arc::new(Doorbell::new())).collect();
        let over = Over { use_it: use_them, max_bytes: max_body };
        Self::open_threads(settings, ThreadOptions { doorbells, queue, max_body }, over)
    }
}

/// Options of the endpoint of a node in a separate process.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The node.
    pub node: NodeId,
    /// Address at which peers connect; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// What does not depend on the transport.
    pub endpoint: EndpointOptions,
}

/// Options of the endpoints of threads.
#[derive(Clone, Debug)]
pub struct ThreadOptions {
    /// Doorbells of the threads that carry the nodes, one for each node.
    pub doorbells: Vec<Arc<Doorbell>>,
    /// Messages that a queue between two nodes holds.
    pub queue: usize,
    /// Longest body in bytes.
    pub max_body: usize,
}

/// Options of the message layer of a process.
#[derive(Clone, Debug)]
pub struct LayerOptions {
    /// Name of the layer.
    pub layer: &'static str,
    /// The node; with a launcher, that says it.
    pub node: Option<NodeId>,
    /// Number of nodes of the launch.
    pub nodes: u16,
    /// Address of this machine at which peers connect.
    pub listen: IpAddr,
    /// The secret of the launch.
    pub token: Token,
    /// Longest message of this launch in bytes, for layers that make room for it.
    pub longest: usize,
    /// Longest message of any launch in bytes.
    pub max_bytes: usize,
}

impl LayerOptions {
    /// The node of a process that no launcher numbers.
    ///
    /// # Errors
    /// The options name no node.
    pub fn node(&self) -> Result<NodeId, OpenError> {
        self.node.ok_or_else(|| OpenError::new("the node has no number"))
    }

    /// Options of the transport below the layer, with the default timeouts.
    ///
    /// # Errors
    /// As [`node`](LayerOptions::node).
    pub fn of_transport(&self) -> Result<NodeOptions, OpenError> {
        let endpoint = EndpointOptions { max_body: self.max_bytes, ..EndpointOptions::new(self.nodes, self.token) };
        Ok(NodeOptions { node: self.node()?, listen: (self.listen, 0).into(), endpoint })
    }
}

/// Options of the message layers of threads.
#[derive(Clone, Copy, Debug)]
pub struct LayersOptions {
    /// Number of nodes.
    pub nodes: u16,
    /// Messages that a queue between two nodes holds.
    pub queue: usize,
}

/// Endpoints of which several may be carried by one thread.
pub trait SharesThread: Transport + 'static {
    /// Messages ring the doorbell of the thread that carries their receiver, and the thread sleeps on that. Otherwise it
    /// waits in its first endpoint.
    const RINGS: bool = false;

    /// True when there may be something to do; a thread that sleeps on its doorbell asks.
    fn is_ready(&self) -> bool {
        true
    }
}

/// A visitor that uses the endpoint of a process.
pub trait UseEndpoint {
    /// The visitor's result.
    type Output;
    /// The visitor's error.
    type Error: From<OpenError>;

    /// Uses the endpoint, which is not connected yet.
    ///
    /// # Errors
    /// Those of the user.
    fn with<T: Transport + Connect + 'static>(self, endpoint: T) -> Result<Self::Output, Self::Error>;
}

/// A visitor that uses the endpoints of threads.
pub trait UseEndpoints {
    /// The visitor's result.
    type Output;
    /// The visitor's error.
    type Error: From<OpenError>;

    /// Uses the endpoints, which are connected.
    ///
    /// # Errors
    /// Those of the user.
    fn with<T: SharesThread>(self, endpoints: Vec<T>) -> Result<Self::Output, Self::Error>;
}

/// A visitor that uses a message layer of a process.
pub trait UseLayer {
    /// The visitor's result.
    type Output;
    /// The visitor's error.
    type Error: From<OpenError>;

    /// Uses the layer, which is not connected yet.
    ///
    /// # Errors
    /// Those of the user.
    fn with<L: MessageLayer + Connect>(self, layer: L) -> Result<Self::Output, Self::Error>;
}

/// A visitor that uses the message layers of threads.
pub trait UseLayers {
    /// The visitor's result.
    type Output;
    /// The visitor's error.
    type Error: From<OpenError>;

    /// Uses the layers, which are connected.
    ///
    /// # Errors
    /// Those of the user.
    fn with<L: MessageLayer>(self, layers: Vec<L>) -> Result<Self::Output, Self::Error>;
}

/// Makes message layers of endpoints.
struct Over<V> {
    use_it: V,
    max_bytes: usize,
}

impl<V: UseLayer> UseEndpoint for Over<V> {
    type Output = V::Output;
    type Error = V::Error;

    fn with<T: Transport + Connect>(self, endpoint: T) -> Result<V::Output, V::Error> {
        self.use_it.with(OverTransport::new(endpoint, self.max_bytes))
    }
}

impl<V: UseLayers> UseEndpoints for Over<V> {
    type Output = V::Output;
    type Error = V::Error;

    fn with<T: SharesThread>(self, endpoints: Vec<T>) -> Result<V::Output, V::Error> {
        let layer = |endpoint| OverTransport::new(endpoint, self.max_bytes);
        self.use_it.with(endpoints.into_iter().map(layer).collect())
    }
}
