//! Front ends that listen: evb connects to them, and connects again when the connection ends.

use super::{Listener, link::Link, readers, spawn};
use std::{
    io::{self, ErrorKind},
    net::{SocketAddr, TcpStream, ToSocketAddrs as _},
    sync::Arc,
    thread,
    time::Duration,
};

/// Longest wait for a front end to answer.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Time between two attempts: nothing says when a front end begins to listen.
pub(crate) const RETRY: Duration = Duration::from_millis(100);

/// Starts to connect to a front end at `host:port`, until it answers.
///
/// # Errors
/// If the address is none, or its name is not known.
pub(super) fn start(address: &str, link: &Arc<Link>) -> io::Result<Listener> {
    // A name that is not known stays unknown. What it stands for may change until the front end answers.
    addresses(address)?;
    let (address, link) = (address.to_owned(), Arc::clone(link));
    Ok((spawn("connector", move || connect(&address, &link))?, None))
}

fn addresses(address: &str) -> io::Result<Vec<SocketAddr>> {
    Ok(address.to_socket_addrs()?.collect())
}

fn connect(address: &str, link: &Link) {
    while !link.stopped() {
        if let Ok((stream, peer)) = attempt(address) {
            readers::read_connected(&stream, peer, link);
        }
        if !link.stopped() {
            thread::park_timeout(RETRY);
        }
    }
}

/// Connects to the first of the addresses of a front end that answers, within a second for each.
///
/// # Errors
/// The error of the last of them.
pub(crate) fn attempt(address: &str) -> io::Result<(TcpStream, SocketAddr)> {
    let mut error = ErrorKind::AddrNotAvailable.into();
    for peer in addresses(address)? {
        match TcpStream::connect_timeout(&peer, TIMEOUT) {
            Ok(stream) => return Ok((stream, peer)),
            Err(failed) => error = failed,
        }
    }
    Err(error)
}
