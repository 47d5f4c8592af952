//! What the tests of the transports share.

use evb_core::NodeId;
use evb_transport::{
    Transport,
    tcp::{Tcp, TcpOptions},
};

#[allow(dead_code, reason = "not every test file boxes its nodes")]
pub(crate) fn boxed<T: Transport + 'static>(nodes: Vec<T>) -> Vec<Box<dyn Transport>> {
    nodes.into_iter().map(|node| Box::new(node) as Box<dyn Transport>).collect()
}

/// TCP nodes of this process, joined from one thread each.
pub(crate) fn tcp_nodes(count: usize, options: &TcpOptions) -> Vec<Tcp> {
    let options = TcpOptions { nodes: count as u16, ..options.clone() };
    let nodes: Vec<_> = (0..count as u16).map(|node| Tcp::bind(NodeId(node), options.clone()).unwrap()).collect();
    let addresses: Vec<_> = nodes.iter().map(|node| (node.local(), node.listen_addr())).collect();
    let joining: Vec<_> = nodes
        .into_iter()
        .map(|mut node| {
            let peers: Vec<_> = addresses.iter().copied().filter(|peer| peer.0 != node.local()).collect();
            std::thread::spawn(move || node.connect(&peers).map(|()| node).unwrap())
        })
        .collect();
    joining.into_iter().map(|node| node.join().unwrap()).collect()
}
