//! Helpers of the tests.
#![allow(dead_code, reason = "not every test file uses all of it")]

use evb_core::NodeId;
use evb_os::tools::skip_because;
use evb_transport::{
    EndpointOptions, Token,
    conformance::{changed, joined},
};
use evb_transport_ofi::{Ofi, OfiLayer, OfiOptions, providers};
use std::time::Duration;

pub(crate) const TOKEN: Token = Token::new([5; Token::BYTES]);

/// The providers that every machine with libfabric has, and that are tested. `net` is the successor of `tcp`, beside it in
/// libfabric 1.16 and 1.17.
pub(crate) const PROVIDERS: [&str; 3] = ["tcp", "net", "shm"];

pub(crate) fn options(provider: &str) -> OfiOptions {
    let connect_timeout = Duration::from_secs(60);
    let endpoint = EndpointOptions { connect_timeout, ..EndpointOptions::new(2, TOKEN) };
    OfiOptions { provider: provider.into(), ..OfiOptions::new(endpoint) }
}

/// The options with another endpoint.
pub(crate) fn with(options: &OfiOptions, change: impl FnOnce(&mut EndpointOptions)) -> OfiOptions {
    OfiOptions { endpoint: changed(options.endpoint.clone(), change), ..options.clone() }
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

/// Nodes of this process, joined from one thread each.
pub(crate) fn joined_nodes(count: usize, options: &OfiOptions) -> Vec<Ofi> {
    joined(open(count, options, Ofi::open))
}

pub(crate) fn joined_layers(count: usize, options: &OfiOptions) -> Vec<OfiLayer> {
    joined(open(count, options, OfiLayer::open))
}

pub(crate) fn open<T, E: std::fmt::Display>(
    count: usize,
    options: &OfiOptions,
    open: impl Fn(NodeId, OfiOptions) -> Result<T, E>,
) -> Vec<T> {
    let options = with(options, |endpoint| endpoint.nodes = count as u16);
    let nodes = (0..count as u16).map(NodeId);
    nodes.map(|node| open(node, options.clone()).unwrap_or_else(|error| panic!("{error}"))).collect()
}
