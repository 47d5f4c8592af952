//! TCP in a registry: the transport, and the layers with and without multicast.

use super::{Tcp, TcpOptions};
use crate::{
    About, Layer, LayerOptions, MemoryOfNode, NodeOptions, Nodes, OpenError, OverTransport, Registered, Settings,
    Token, UseEndpoint, UseLayer, WithMulticast,
};
use std::net::Ipv4Addr;

/// The layer whose broadcasts go by UDP multicast, which may lose them.
const MULTICAST: &str = "udp";

impl Registered for Tcp {
    const ABOUT: About = About {
        gives_up_peers: true,
        memory: |_| {
            let TcpOptions { send_queue_bytes, .. } = TcpOptions::new(0, Token::new([0; Token::BYTES]));
            MemoryOfNode { own: 0, for_each_peer: send_queue_bytes }
        },
        layers: &[Layer::new("tcp"), Layer { note: "tcp with multicast", ..Layer::new(MULTICAST) }],
        ..About::new("tcp", "TCP between processes and machines", Nodes::Processes)
    };

    fn open<V: UseEndpoint>(_: &Settings, options: NodeOptions, use_it: V) -> Result<V::Output, V::Error> {
        use_it.with(bind(options)?)
    }

    fn open_layer<V: UseLayer>(_: &Settings, options: LayerOptions, use_it: V) -> Result<V::Output, V::Error> {
        let layer = OverTransport::new(bind(options.of_transport()?)?, options.max_bytes);
        if options.layer != MULTICAST {
            return use_it.with(layer);
        }
        let multicast = WithMulticast::new(layer, Ipv4Addr::LOCALHOST);
        use_it.with(multicast.map_err(|error| OpenError::new(format!("no multicast on this machine: {error}")))?)
    }
}

fn bind(options: NodeOptions) -> Result<Tcp, OpenError> {
    let tcp = TcpOptions {
        listen: options.listen,
        peer_timeout: options.peer_timeout,
        connect_timeout: options.connect_timeout,
        stop: options.stop,
        max_body: options.max_body,
        ..TcpOptions::new(options.nodes, options.token)
    };
    Tcp::bind(options.node, tcp).map_err(|error| {
        OpenError::new(error)
            .hint("`--listen HOST:PORT` chooses another address for this node; port 0 takes any free one")
    })
}
