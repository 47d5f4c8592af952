//! Helpers of the tests.
#![allow(dead_code, reason = "not every test file uses all of it")]

use evb_core::NodeId;
use evb_os::tools::skip_because;
use evb_transport::{Connect, Transport, tcp::Token};
use evb_transport_ofi::{Ofi, OfiLayer, OfiOptions, providers};
use std::{thread, time::Duration};

pub(crate) const TOKEN: Token = Token::new([5; Token::BYTES]);

/// The providers that every machine with libfabric has, and that are tested. `net` is the successor of `tcp`, beside it in
/// libfabric 1.16 and 1.17.
pub(crate) const PROVIDERS: [&str; 3] = ["tcp", "net", "shm"];

pub(crate) fn options(provider: &str) -> OfiOptions {
    let connect_timeout = Duration::from_secs(60);
    OfiOptions { provider: provider.into(), connect_timeout, ..OfiOptions::new(2, TOKEN) }
}

/// Returns true if the provider exists; prints the reason for a skipped test if not.
pub(crate) fn there_is(provider: &str) -> bool {
    match providers() {
        Ok(names) if names.iter().any(|name| name.split(';').next() == Some(provider)) => true,
        // Some versions of libfabric have no `net`.
        Ok(names) if provider == "net" => {
            eprintln!("skipped: libfabric has no provider {provider}, only {}", names.join(", "));
            false
        }
        Ok(names) => {
            skip_because(format_args!("libfabric has no provider {provider}, only {}", names.join(", ")));
            false
        }
        Err(error) => {
            skip_because(error);
            false
        }
    }
}

pub(crate) fn boxed<T: Transport + 'static>(nodes: Vec<T>) -> Vec<Box<dyn Transport>> {
    nodes.into_iter().map(|node| Box::new(node) as Box<dyn Transport>).collect()
}

/// Nodes of this process, joined from one thread each.
pub(crate) fn joined(count: usize, options: &OfiOptions) -> Vec<Ofi> {
    join(open(count, options, Ofi::open))
}

pub(crate) fn joined_layers(count: usize, options: &OfiOptions) -> Vec<OfiLayer> {
    join(open(count, options, OfiLayer::open))
}

pub(crate) fn open<T, E: std::fmt::Display>(
    count: usize,
    options: &OfiOptions,
    open: impl Fn(NodeId, OfiOptions) -> Result<T, E>,
) -> Vec<T> {
    let options = OfiOptions { nodes: count as u16, ..options.clone() };
    let nodes = (0..count as u16).map(NodeId);
    nodes.map(|node| open(node, options.clone()).unwrap_or_else(|error| panic!("{error}"))).collect()
}

pub(crate) fn join<T: Connect + Send + 'static>(nodes: Vec<T>) -> Vec<T> {
    let addresses: Vec<_> =
        nodes.iter().enumerate().map(|(index, node)| (NodeId(index as u16), node.address())).collect();
    let joining = nodes.into_iter().enumerate().map(|(index, mut node)| {
        let peers: Vec<_> = addresses.iter().filter(|peer| peer.0.index() != index).cloned().collect();
        thread::spawn(move || node.connect(&peers).map(|()| node).unwrap_or_else(|error| panic!("{error}")))
    });
    let joining: Vec<_> = joining.collect();
    joining.into_iter().map(|node| node.join().expect("joining does not fail")).collect()
}
