//! How the sockets of front ends are set up, and what this host loses of datagrams.

use rustix::{
    fd::AsFd,
    fs::fstat,
    io::Result as SystemResult,
    net::sockopt::{
        set_socket_keepalive, set_socket_recv_buffer_size, set_socket_recv_buffer_size_force, set_tcp_keepcnt,
        set_tcp_keepidle, set_tcp_keepintvl, socket_recv_buffer_size,
    },
};
use std::{fs, io, net::UdpSocket, time::Duration};

/// The receive buffer that a source of datagrams asks for, in bytes. It holds what comes while its reader does not run: 26 ms
/// at 10 Gbit/s. Without privilege the system grants at most `net.core.rmem_max`.
pub(super) const DATAGRAM_BUFFER: usize = 32 << 20;
/// Silence after which a connection is asked whether its front end is still there, the interval of questions, and the number
/// of them that may stay without an answer: a cut cable is noticed after 25 s.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);
/// The tables of the datagram sockets of this host. A line is a socket; its words are counted from 0.
const TABLES: [&str; 2] = ["/proc/net/udp", "/proc/net/udp6"];
const INODE_WORD: usize = 9;
const DROPS_WORD: usize = 12;

/// The receive buffer of a source of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramBuffer {
    /// Its size in bytes, as the system counts them: with about as much for its own use as for datagrams.
    pub bytes: u64,
    /// True if the source has asked for more than the system allows.
    pub is_limited: bool,
    /// Datagrams that were lost because the buffer was full, or whose checksum was wrong, since the source was opened. `None` if the system
    /// does not tell.
    pub lost: Option<u64>,
}

/// A socket whose losses the system counts.
#[derive(Debug)]
pub(super) struct DatagramSocket {
    inode: u64,
    bytes: usize,
}

impl DatagramSocket {
    /// Gives a socket the largest buffer that the system allows.
    pub(super) fn set_up(socket: &UdpSocket) -> io::Result<Self> {
        set_socket_recv_buffer_size_force(socket, DATAGRAM_BUFFER)
            .or_else(|_| set_socket_recv_buffer_size(socket, DATAGRAM_BUFFER))?;
        Ok(Self { inode: fstat(socket)?.st_ino, bytes: socket_recv_buffer_size(socket)? })
    }

    pub(super) fn buffer(&self) -> DatagramBuffer {
        DatagramBuffer {
            bytes: self.bytes as u64,
            // Linux grants, and reports, twice what is asked for.
            is_limited: self.bytes < 2 * DATAGRAM_BUFFER,
            lost: TABLES.into_iter().find_map(|table| drops(&fs::read_to_string(table).ok()?, self.inode)),
        }
    }
}

/// The losses of the socket with this inode in a table of sockets.
fn drops(table: &str, inode: u64) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_whitespace().skip(INODE_WORD);
        let is_ours = words.next()?.parse() == Ok(inode);
        is_ours.then(|| words.nth(DROPS_WORD - INODE_WORD - 1)?.parse().ok())?
    })
}

/// Lets the system notice that the other end of a connection is gone although it has closed nothing.
pub(super) fn keep_alive(stream: impl AsFd) -> SystemResult<()> {
    let (idle, interval, count) = KEEP_ALIVE;
    set_socket_keepalive(&stream, true)?;
    set_tcp_keepidle(&stream, idle)?;
    set_tcp_keepintvl(&stream, interval)?;
    set_tcp_keepcnt(&stream, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_losses_of_a_socket_are_found_in_the_table() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
             9: 0100007F:232D 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 71 2 0000000000000000 3\n\
            10: 0100007F:232E 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 72 2 0000000000000000 41\n";
        assert_eq!((drops(table, 72), drops(table, 71), drops(table, 3)), (Some(41), Some(3), None));
    }
}
