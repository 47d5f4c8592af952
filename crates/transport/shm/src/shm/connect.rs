//! Joining of peers: the higher id dials the lower, on an abstract socket, which leaves no file behind.
//!
//! The kernel confirms that both sides belong to the same user, and the dialer shows the token. Then each side creates
//! the lane in which the other is to send, and passes its descriptors; once the other has mapped them, it closes the
//! lane to all further writers. (Before that, another process of the same user could get at it through `/proc`; but
//! such a process could trace this one as well.) A step that a dead process has begun costs a bounded time.

use super::{
    NEWCOMER, Shm,
    greeting::{self, Greeting, Introduction},
    lane::{Consumer, first_position},
    link::{Link, RING},
    map::close_to_writers,
    offer::{Offer, Taken},
    peer::{Cut, MOST_INLINE, Parts, Peer},
};
use evb_core::NodeId;
use evb_transport::{Connect, ConnectError, JoinError, Refusal};
use mio::{Interest, unix::SourceFd};
use rustix::{net::sockopt::socket_peercred, process::geteuid};
use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    },
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// Most processes that have not shown a token yet; a new one replaces the oldest.
const MOST_NEWCOMERS: usize = 64;
/// Time between two attempts to reach a peer that does not listen yet.
const DIAL_AGAIN: Duration = Duration::from_millis(5);

impl Shm {
    /// Joins these peers, all of which must name this node, too, within
    /// [`connect_timeout`](super::ShmOptions::connect_timeout). Nodes may call this in any order; a peer may send
    /// before this returns. A second call may name a new process in the place of a lost peer.
    ///
    /// # Errors
    /// [`ConnectError`] names the peer that is missing or refuses this node.
    pub fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), ConnectError> {
        let mut joining = Joining { shm: self, missing: BTreeMap::new(), newcomers: VecDeque::new(), last_error: None };
        joining.expect(peers)?;
        joining.run()
    }
}

impl Connect for Shm {
    fn address(&self) -> String {
        self.name.clone()
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        Shm::connect(self, peers).map_err(JoinError::new)
    }
}

struct Joining<'a> {
    shm: &'a mut Shm,
    missing: BTreeMap<NodeId, Missing>,
    newcomers: VecDeque<(UnixStream, Instant)>,
    last_error: Option<String>,
}

/// A peer that has not joined yet.
enum Missing {
    /// The peer has the higher id and dials.
    Comes,
    /// This node dials, and may wait for an answer.
    Dialed { address: String, again: Instant, socket: Option<UnixStream> },
}

impl Joining<'_> {
    fn expect(&mut self, peers: &[(NodeId, String)]) -> Result<(), ConnectError> {
        for (peer, address) in peers {
            let there = self.shm.peers.get(peer.index());
            if *peer == self.shm.local || !matches!(there, Some(None)) || self.missing.contains_key(peer) {
                return Err(ConnectError::Peer(*peer));
            }
            let dialed = Missing::Dialed { address: address.clone(), again: Instant::now(), socket: None };
            self.missing.insert(*peer, if *peer > self.shm.local { Missing::Comes } else { dialed });
        }
        Ok(())
    }

    fn run(mut self) -> Result<(), ConnectError> {
        let timeout = self.shm.options.connect_timeout;
        let start = Instant::now();
        loop {
            self.accept();
            self.hear_newcomers();
            self.dial_all()?;
            if self.missing.is_empty() {
                self.shm.rejected += self.newcomers.len() as u64;
                return Ok(());
            }
            if self.shm.options.stop.load(Ordering::Relaxed) {
                return Err(ConnectError::Stopped);
            }
            if start.elapsed() >= timeout {
                let missing = self.missing.into_keys().collect();
                return Err(ConnectError::Timeout { missing, timeout, last_error: self.last_error });
            }
            // Nothing but a signal ends this with an error.
            let _ = self.shm.poll.poll(&mut self.shm.events, Some(DIAL_AGAIN));
            self.shm.take_events();
        }
    }

    fn accept(&mut self) {
        for _ in 0..MOST_NEWCOMERS {
            let Ok((socket, _)) = self.shm.listener.accept() else { return };
            if self.newcomers.len() == MOST_NEWCOMERS {
                self.newcomers.pop_front();
                self.shm.rejected += 1;
            }
            match is_own(&socket).and_then(|()| self.watch(&socket)) {
                Ok(()) => self.newcomers.push_back((socket, Instant::now())),
                Err(_) => self.shm.rejected += 1,
            }
        }
    }

    fn watch(&self, socket: &UnixStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        self.shm.poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), NEWCOMER, Interest::READABLE)
    }

    fn hear_newcomers(&mut self) {
        let limit = self.shm.options.handshake_timeout;
        for _ in 0..self.newcomers.len() {
            let Some((socket, since)) = self.newcomers.pop_front() else { return };
            match greeting::receive(&socket, &self.shm.options.token) {
                Ok((introduction, _)) => {
                    if let Err(error) = self.answer(socket, introduction) {
                        self.shm.rejected += 1;
                        self.last_error = Some(error.to_string());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && since.elapsed() < limit => {
                    self.newcomers.push_back((socket, since));
                }
                Err(_) => self.shm.rejected += 1,
            }
        }
    }

    /// The acceptor's part: sends an offer, takes the dialer's offer, and confirms that it has mapped it.
    fn answer(&mut self, socket: UnixStream, hello: Introduction) -> io::Result<()> {
        let (local, nodes, token) = (self.shm.local, self.shm.options.nodes, self.shm.options.token);
        let wanted = |hello: &Greeting| matches!(self.missing.get(&hello.from), Some(Missing::Comes));
        let introduction = hello.and_then(|hello| {
            (hello.to == local && hello.nodes == nodes && wanted(&hello)).then_some(hello).ok_or(Refusal::Node)
        });
        let peer = match introduction {
            Ok(hello) => hello.from,
            Err(refusal) => {
                greeting::send(&socket, &Err(refusal), &token, &[])?;
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal.to_string()));
            }
        };
        self.be_patient(&socket)?;
        let ours = Offer::new(self.shm.options.ring_bytes)?;
        self.offer(&socket, peer, &ours)?;
        let (theirs, descriptors) = greeting::receive(&socket, &token)?;
        let theirs = theirs.map_err(|refusal| io::Error::other(refusal.to_string()))?;
        let taken = Taken::new(local, &theirs, descriptors)?;
        (&socket).write_all(&[RING])?;
        self.join(peer, socket, ours, taken)
    }

    fn dial_all(&mut self) -> Result<(), ConnectError> {
        let waiting: Vec<_> = self.missing.keys().copied().filter(|&peer| peer < self.shm.local).collect();
        for peer in waiting {
            let Some(Missing::Dialed { address, again, socket }) = self.missing.get_mut(&peer) else { continue };
            if Instant::now() < *again {
                continue;
            }
            let (address, socket) = (address.clone(), socket.take());
            match self.dial(peer, &address, socket) {
                Ok(Ok(())) => {}
                Ok(Err(refusal)) => return Err(ConnectError::Refused { peer, address, refusal }),
                Err(error) => {
                    let again = Instant::now() + DIAL_AGAIN;
                    self.last_error = Some(format!("{peer} at {address}: {error}"));
                    self.missing.insert(peer, Missing::Dialed { address, again, socket: None });
                }
            }
        }
        Ok(())
    }

    /// The dialer's part: shows the token, takes the acceptor's offer, and sends its own.
    fn dial(&mut self, peer: NodeId, address: &str, socket: Option<UnixStream>) -> io::Result<Result<(), Refusal>> {
        let token = self.shm.options.token;
        let socket = match socket {
            Some(socket) => socket,
            None => self.knock(peer, address)?,
        };
        let (answer, descriptors) = match greeting::receive(&socket, &token) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let dialed = Missing::Dialed { address: address.into(), again: Instant::now(), socket: Some(socket) };
                self.missing.insert(peer, dialed);
                return Ok(Ok(()));
            }
            other => other?,
        };
        let theirs = match answer {
            Ok(theirs) if theirs.from == peer => theirs,
            Ok(_) => return Ok(Err(Refusal::Node)),
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.be_patient(&socket)?;
        let taken = Taken::new(self.shm.local, &theirs, descriptors)?;
        let ours = Offer::new(self.shm.options.ring_bytes)?;
        self.offer(&socket, peer, &ours)?;
        (&socket).read_exact(&mut [0])?;
        self.join(peer, socket, ours, taken).map(Ok)
    }

    fn knock(&self, peer: NodeId, address: &str) -> io::Result<UnixStream> {
        let socket = UnixStream::connect_addr(&SocketAddr::from_abstract_name(address)?)?;
        is_own(&socket)?;
        greeting::send(&socket, &Ok(self.greeting(peer)), &self.shm.options.token, &[])?;
        self.watch(&socket)?;
        Ok(socket)
    }

    fn greeting(&self, to: NodeId) -> Greeting {
        Greeting {
            from: self.shm.local,
            to,
            nodes: self.shm.options.nodes,
            ring_bytes: self.shm.options.ring_bytes as u64,
            pool_bytes: self.shm.pool_bytes as u64,
        }
    }

    fn offer(&self, socket: &UnixStream, peer: NodeId, ours: &Offer) -> io::Result<()> {
        let descriptors = [&ours.lane_file, &ours.credit_file, &self.shm.bell_file, &self.shm.pool_file];
        greeting::send(socket, &Ok(self.greeting(peer)), &self.shm.options.token, &descriptors.map(AsFd::as_fd))
    }

    /// Waits for a peer that has shown the token, but not for long.
    fn be_patient(&self, socket: &UnixStream) -> io::Result<()> {
        self.shm.poll.registry().deregister(&mut SourceFd(&socket.as_raw_fd()))?;
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(self.shm.options.handshake_timeout))?;
        socket.set_write_timeout(Some(self.shm.options.handshake_timeout))
    }

    /// Creates the peer. Both sides have mapped all memory, and the lane has its one writer.
    fn join(&mut self, node: NodeId, socket: UnixStream, ours: Offer, taken: Taken) -> io::Result<()> {
        close_to_writers(&ours.lane_file)?;
        socket.set_nonblocking(true)?;
        let token = mio::Token(node.index());
        self.shm.poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), token, Interest::READABLE)?;
        let incoming = Consumer::new(ours.lane.clone(), first_position(node.0, self.shm.options.ring_bytes / 8));
        let Taken { outgoing, room, bell, pool, ring_bytes } = taken;
        let link = Link::new(socket, ours.lane, ours.credit, pool);
        let cut = Cut {
            max_body: self.shm.options.max_body,
            inline: self.shm.options.inline_bytes.min(ring_bytes / 8).min(MOST_INLINE),
            piece: ring_bytes / 8,
        };
        self.shm.add_peer(node, Peer::new(Parts { node, link, outgoing, incoming, room, bell }, cut));
        self.missing.remove(&node);
        Ok(())
    }
}

/// Checks with the kernel that the process at the other end belongs to the same user.
pub(super) fn is_own(socket: &UnixStream) -> io::Result<()> {
    if socket_peercred(socket)?.uid == geteuid() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "the other side is a process of another user"))
}
