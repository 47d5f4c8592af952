//! The sending end of a feed.

use super::{FeedError, FeedOptions, FeedProtocol, TICK};
use std::{
    io::{self, ErrorKind, Write as _},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Time that the peer may take for the rest after a stop.
const GRACE: Duration = Duration::from_secs(2);

pub(super) enum Link {
    Tcp(TcpStream),
    Udp(UdpSocket, SocketAddr),
}

impl Link {
    pub(super) fn open(options: &FeedOptions<'_>) -> Result<Self, FeedError> {
        let address_error = |error| FeedError::Address { to: options.to.clone(), error };
        let addresses: Vec<_> = options.to.to_socket_addrs().map_err(address_error)?.collect();
        let first = *addresses.first().ok_or_else(|| address_error(ErrorKind::NotFound.into()))?;
        let connect_error =
            |error| FeedError::Connect { to: options.to.clone(), timeout: options.connect_timeout, error };
        match options.protocol {
            FeedProtocol::Tcp => connect(&addresses, options).map(Self::Tcp).map_err(connect_error),
            FeedProtocol::Udp => {
                // Not connected: a datagram without a receiver is lost without an error.
                let socket = UdpSocket::bind(any_address(first)).map_err(connect_error)?;
                Ok(Self::Udp(socket, first))
            }
        }
    }

    pub(super) const fn is_udp(&self) -> bool {
        matches!(self, Self::Udp(..))
    }

    /// Sends everything and waits while the peer is busy, but not for long once `stop` is true.
    pub(super) fn send(&mut self, bytes: &[u8], stop: &AtomicBool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => write_all(stream, bytes, stop),
            Self::Udp(..) if bytes.is_empty() => Ok(()),
            Self::Udp(socket, to) => socket.send_to(bytes, *to).map(drop),
        }
    }
}

/// Tries all addresses repeatedly until the timeout: the peer may still be starting.
fn connect(addresses: &[SocketAddr], options: &FeedOptions<'_>) -> io::Result<TcpStream> {
    let deadline = Instant::now() + options.connect_timeout;
    loop {
        let mut failure = io::Error::from(ErrorKind::TimedOut);
        for address in addresses {
            let left = deadline.saturating_duration_since(Instant::now()).max(TICK);
            match TcpStream::connect_timeout(address, left) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_write_timeout(Some(TICK))?;
                    return Ok(stream);
                }
                Err(error) => failure = error,
            }
        }
        if Instant::now() >= deadline || options.stop.load(Ordering::Relaxed) {
            return Err(failure);
        }
        thread::sleep(TICK);
    }
}

fn write_all(stream: &mut TcpStream, mut bytes: &[u8], stop: &AtomicBool) -> io::Result<()> {
    let mut give_up = None;
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if stop.load(Ordering::Relaxed) {
                    let limit = *give_up.get_or_insert_with(|| Instant::now() + GRACE);
                    if Instant::now() >= limit {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn any_address(peer: SocketAddr) -> SocketAddr {
    if peer.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() }
}
