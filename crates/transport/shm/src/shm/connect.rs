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
    link::{RING, SharedLink},
    map::close_to_writers,
    offer::{AcceptedOffer, Offer},
    peer::{Cut, MOST_INLINE, Peer, PeerParts},
};
use evb_core::NodeId;
use evb_transport::{
    Connect, ConnectError, ConnectionMedium, EndpointOptions, HandshakeProgress, JoinError, NewcomerError, Refusal,
    join_peers,
};
use mio::{Interest, unix::SourceFd};
use rustix::{net::sockopt::socket_peercred, process::geteuid};
use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    },
    time::Duration,
};

impl Shm {
    /// Joins these peers, all of which must name this node, too, within
    /// [`connect_timeout`](evb_transport::EndpointOptions::connect_timeout). Nodes may call this in any order; a peer may
    /// send before this returns. A second call may name a new process in the place of a lost peer.
    ///
    /// # Errors
    /// [`ConnectError`] names the peer that is missing or refuses this node.
    pub fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), ConnectError> {
        join_peers(&mut Medium(self), peers)
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

/// The endpoint while it joins its peers.
struct Medium<'a>(&'a mut Shm);

impl ConnectionMedium for Medium<'_> {
    type Address = String;
    type Connection = UnixStream;

    const DIAL_AGAIN: Duration = Duration::from_millis(5);

    fn local(&self) -> NodeId {
        self.0.local
    }

    fn options(&self) -> &EndpointOptions {
        &self.0.options.endpoint
    }

    fn is_free(&self, peer: NodeId) -> bool {
        matches!(self.0.peers.get(peer.index()), Some(None))
    }

    fn accept(&mut self) -> Option<io::Result<UnixStream>> {
        match self.0.listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            accepted => Some(accepted.and_then(|(socket, _)| {
                is_own(&socket)?;
                self.watch(&socket)?;
                Ok(socket)
            })),
        }
    }

    fn is_silent(&self, _: &UnixStream) -> bool {
        true
    }

    fn answer(
        &mut self,
        newcomer: UnixStream,
        is_expected: &dyn Fn(NodeId) -> bool,
    ) -> Result<HandshakeProgress<UnixStream>, NewcomerError> {
        match greeting::receive(&newcomer, &self.options().token) {
            Ok((introduction, _)) => {
                let joined = self.accept_offer(newcomer, introduction, is_expected);
                joined.map(HandshakeProgress::Joined).map_err(NewcomerError::Failed)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(HandshakeProgress::Waiting(newcomer)),
            Err(_) => Err(NewcomerError::Stranger),
        }
    }

    /// The dialer's part: shows the token, takes the acceptor's offer, and sends its own.
    fn dial(
        &mut self,
        peer: NodeId,
        address: &String,
        socket: Option<UnixStream>,
    ) -> io::Result<HandshakeProgress<UnixStream>> {
        let socket = match socket {
            Some(socket) => socket,
            None => self.open(peer, address)?,
        };
        let (answer, descriptors) = match greeting::receive(&socket, &self.options().token) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(HandshakeProgress::Waiting(socket)),
            other => other?,
        };
        let theirs = match answer {
            Ok(theirs) if theirs.from == peer => theirs,
            Ok(_) => return Ok(HandshakeProgress::Refused(Refusal::Node)),
            Err(refusal) => return Ok(HandshakeProgress::Refused(refusal)),
        };
        self.be_patient(&socket)?;
        let taken = AcceptedOffer::new(self.0.local, &theirs, descriptors)?;
        let ours = Offer::new(self.0.options.ring_bytes)?;
        self.offer(&socket, peer, &ours)?;
        (&socket).read_exact(&mut [0])?;
        self.join(peer, socket, ours, taken).map(|()| HandshakeProgress::Joined(peer))
    }

    fn reject(&mut self, count: usize) {
        self.0.rejected += count as u64;
    }

    fn sleep(&mut self) {
        // Nothing but a signal ends this with an error.
        let _ = self.0.poll.poll(&mut self.0.events, Some(Self::DIAL_AGAIN));
        self.0.take_events();
    }
}

impl Medium<'_> {
    fn watch(&self, socket: &UnixStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        self.0.poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), NEWCOMER, Interest::READABLE)
    }

    /// The acceptor's part: sends an offer, takes the dialer's offer, and confirms that it has mapped it.
    fn accept_offer(
        &mut self,
        socket: UnixStream,
        hello: Introduction,
        is_expected: &dyn Fn(NodeId) -> bool,
    ) -> io::Result<NodeId> {
        let (local, EndpointOptions { nodes, token, .. }) = (self.0.local, self.options().clone());
        let is_wanted = |hello: &Greeting| hello.to == local && hello.nodes == nodes && is_expected(hello.from);
        let peer = match hello.and_then(|hello| if is_wanted(&hello) { Ok(hello.from) } else { Err(Refusal::Node) }) {
            Ok(peer) => peer,
            Err(refusal) => {
                greeting::send(&socket, &Err(refusal), &token, &[])?;
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal.to_string()));
            }
        };
        self.be_patient(&socket)?;
        let ours = Offer::new(self.0.options.ring_bytes)?;
        self.offer(&socket, peer, &ours)?;
        let (theirs, descriptors) = greeting::receive(&socket, &token)?;
        let theirs = theirs.map_err(|refusal| io::Error::other(refusal.to_string()))?;
        let taken = AcceptedOffer::new(local, &theirs, descriptors)?;
        (&socket).write_all(&[RING])?;
        self.join(peer, socket, ours, taken)?;
        Ok(peer)
    }

    fn open(&self, peer: NodeId, address: &str) -> io::Result<UnixStream> {
        let socket = UnixStream::connect_addr(&SocketAddr::from_abstract_name(address)?)?;
        is_own(&socket)?;
        greeting::send(&socket, &Ok(self.greeting(peer)), &self.0.options.endpoint.token, &[])?;
        self.watch(&socket)?;
        Ok(socket)
    }

    fn greeting(&self, to: NodeId) -> Greeting {
        Greeting {
            from: self.0.local,
            to,
            nodes: self.0.options.endpoint.nodes,
            ring_bytes: self.0.options.ring_bytes as u64,
            pool_bytes: self.0.pool_bytes as u64,
        }
    }

    fn offer(&self, socket: &UnixStream, peer: NodeId, ours: &Offer) -> io::Result<()> {
        let descriptors = [&ours.lane_file, &ours.credit_file, &self.0.bell_file, &self.0.pool_file];
        greeting::send(socket, &Ok(self.greeting(peer)), &self.0.options.endpoint.token, &descriptors.map(AsFd::as_fd))
    }

    /// Waits for a peer that has shown the token, but not for long.
    fn be_patient(&self, socket: &UnixStream) -> io::Result<()> {
        self.0.poll.registry().deregister(&mut SourceFd(&socket.as_raw_fd()))?;
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(self.0.options.endpoint.handshake_timeout))?;
        socket.set_write_timeout(Some(self.0.options.endpoint.handshake_timeout))
    }

    /// Creates the peer. Both sides have mapped all memory, and the lane has its one writer.
    fn join(&mut self, node: NodeId, socket: UnixStream, ours: Offer, taken: AcceptedOffer) -> io::Result<()> {
        close_to_writers(&ours.lane_file)?;
        socket.set_nonblocking(true)?;
        let token = mio::Token(node.index());
        self.0.poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), token, Interest::READABLE)?;
        let incoming = Consumer::new(ours.lane.clone(), first_position(node.0, self.0.options.ring_bytes / 8));
        let AcceptedOffer { outgoing, room, bell, pool, ring_bytes } = taken;
        let link = SharedLink::new(socket, ours.lane, ours.credit, pool);
        let cut = Cut {
            max_body: self.0.options.endpoint.max_body,
            inline: self.0.options.inline_bytes.min(ring_bytes / 8).min(MOST_INLINE),
            piece: ring_bytes / 8,
        };
        self.0.add_peer(node, Peer::new(PeerParts { node, link, outgoing, incoming, room, bell }, cut));
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
