//! Joining of peers: the higher id dials the lower. Strangers cost a bounded number of sockets for a bounded time.

use super::{
    NEWCOMER, Tcp,
    handshake::{HANDSHAKE_BYTES, Handshake, Hello, Refusal, answer, hello, may_begin, read_answer, read_hello},
    peer::Peer,
};
use crate::{ConnectError, JoinError};
use evb_core::NodeId;
use mio::{Interest, net::TcpStream};
use socket2::SockRef;
use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, Read, Write},
    net::SocketAddr,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// Most connections that have not shown a token yet; a new one replaces the oldest.
const MOST_NEWCOMERS: usize = 64;
/// Time between two attempts to reach a peer that does not listen yet.
const DIAL_AGAIN: Duration = Duration::from_millis(50);

impl Tcp {
    /// Joins these peers, all of which must name this node, too, within
    /// [`connect_timeout`](super::TcpOptions::connect_timeout). Nodes may call this in any order; a peer may send
    /// before this returns.
    ///
    /// # Errors
    /// [`ConnectError`] names the peer that is missing or refuses this node.
    pub fn connect(&mut self, peers: &[(NodeId, SocketAddr)]) -> Result<(), ConnectError> {
        let mut joining = Joining { tcp: self, missing: BTreeMap::new(), newcomers: VecDeque::new(), last_error: None };
        joining.expect(peers)?;
        joining.run()
    }
}

impl crate::Connect for Tcp {
    fn address(&self) -> String {
        self.listen_addr().to_string()
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        let parse = |(node, text): &(NodeId, String)| match text.parse() {
            Ok(address) => Ok((*node, address)),
            Err(_) => {
                Err(JoinError::new(format!("{text:?} is no address of {node}: an IP address and a port are wanted")))
            }
        };
        let peers: Vec<_> = peers.iter().map(parse).collect::<Result<_, _>>()?;
        Tcp::connect(self, &peers).map_err(JoinError::new)
    }
}

struct Joining<'a> {
    tcp: &'a mut Tcp,
    missing: BTreeMap<NodeId, Missing>,
    newcomers: VecDeque<Opening>,
    last_error: Option<String>,
}

/// A peer that has not joined yet.
enum Missing {
    /// The peer has the higher id and dials.
    Comes,
    /// This node dials.
    Dialed { address: SocketAddr, again: Instant, opening: Option<Opening> },
}

/// A connection in its handshake.
struct Opening {
    stream: TcpStream,
    since: Instant,
    bytes: Handshake,
    filled: usize,
    /// True if the dialer's hello was sent.
    greeted: bool,
}

impl Opening {
    fn new(stream: TcpStream) -> Self {
        Self { stream, since: Instant::now(), bytes: [0; HANDSHAKE_BYTES], filled: 0, greeted: false }
    }

    /// Continues reading. Returns the message if it is complete, and an error if it can never be.
    fn read(&mut self) -> io::Result<Option<Handshake>> {
        while self.filled < HANDSHAKE_BYTES {
            match self.stream.read(&mut self.bytes[self.filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if !may_begin(&self.bytes[..self.filled]) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the other side speaks another protocol"));
            }
        }
        Ok(Some(self.bytes))
    }

    /// Sends the hello once the connection is established.
    fn greet(&mut self, message: &Handshake) -> io::Result<()> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        if self.greeted || self.stream.peer_addr().is_err() {
            return Ok(());
        }
        self.greeted = true;
        // An empty socket buffer takes this at once.
        self.stream.write_all(message)
    }
}

impl Joining<'_> {
    fn expect(&mut self, peers: &[(NodeId, SocketAddr)]) -> Result<(), ConnectError> {
        for &(peer, address) in peers {
            let there = self.tcp.peers.get(peer.index());
            if peer == self.tcp.local || !matches!(there, Some(None)) || self.missing.contains_key(&peer) {
                return Err(ConnectError::Peer(peer));
            }
            let dialed = Missing::Dialed { address, again: Instant::now(), opening: None };
            self.missing.insert(peer, if peer > self.tcp.local { Missing::Comes } else { dialed });
        }
        Ok(())
    }

    fn run(mut self) -> Result<(), ConnectError> {
        let timeout = self.tcp.options.connect_timeout;
        let start = Instant::now();
        loop {
            self.accept();
            self.hear_newcomers();
            self.dial()?;
            if self.missing.is_empty() {
                self.tcp.rejected += self.newcomers.len() as u64;
                return Ok(());
            }
            if self.tcp.options.stop.load(Ordering::Relaxed) {
                return Err(ConnectError::Stopped);
            }
            if start.elapsed() >= timeout {
                let missing = self.missing.into_keys().collect();
                return Err(ConnectError::Timeout { missing, timeout, last_error: self.last_error });
            }
            self.sleep();
        }
    }

    /// Sleeps until an event. Every connection is tried after every wake-up: there are few, and it happens once.
    fn sleep(&mut self) {
        // Nothing but a signal ends this with an error.
        let _ = self.tcp.poll.poll(&mut self.tcp.events, Some(DIAL_AGAIN));
        self.tcp.take_events();
        // Peers that are there already may have others to wait for, or none.
        self.tcp.tick(Instant::now());
    }

    fn accept(&mut self) {
        for _ in 0..MOST_NEWCOMERS {
            let Ok((mut stream, _)) = self.tcp.listener.accept() else { return };
            if self.newcomers.len() == MOST_NEWCOMERS {
                self.newcomers.pop_front();
                self.tcp.rejected += 1;
            }
            if self.tcp.poll.registry().register(&mut stream, NEWCOMER, Interest::READABLE).is_ok() {
                self.newcomers.push_back(Opening::new(stream));
            }
        }
    }

    fn hear_newcomers(&mut self) {
        let limit = self.tcp.options.handshake_timeout;
        for _ in 0..self.newcomers.len() {
            let Some(mut newcomer) = self.newcomers.pop_front() else { return };
            match newcomer.read() {
                Ok(Some(message)) => self.judge(newcomer.stream, &message),
                Ok(None) if newcomer.since.elapsed() < limit => self.newcomers.push_back(newcomer),
                Ok(None) | Err(_) => self.tcp.rejected += 1,
            }
        }
    }

    fn judge(&mut self, mut stream: TcpStream, message: &Handshake) {
        let (local, nodes) = (self.tcp.local, self.tcp.options.nodes);
        let known = |hello: &Hello| matches!(self.missing.get(&hello.from), Some(Missing::Comes));
        let result = read_hello(message, &self.tcp.options.token).and_then(|hello| {
            (hello.to == local && hello.nodes == nodes && known(&hello)).then_some(hello).ok_or(Refusal::Node)
        });
        let reply = answer(result.map(|_| ()), local, &self.tcp.options.token);
        let sent = stream.write_all(&reply).is_ok();
        match result {
            Ok(hello) if sent && self.join(hello.from, stream).is_ok() => {}
            _ => self.tcp.rejected += 1,
        }
    }

    fn dial(&mut self) -> Result<(), ConnectError> {
        let mut joined = Vec::new();
        for (&peer, missing) in &mut self.missing {
            let Missing::Dialed { address, again, opening } = missing else { continue };
            let identity = Hello { from: self.tcp.local, to: peer, nodes: self.tcp.options.nodes };
            match advance(self.tcp, opening, *address, *again, &identity) {
                Ok(None) => {}
                Ok(Some(Ok(()))) => joined.extend(opening.take().map(|opening| (peer, opening.stream))),
                Ok(Some(Err(refusal))) => {
                    let address = address.to_string();
                    return Err(ConnectError::Refused { peer, address, refusal });
                }
                Err(error) => {
                    *opening = None;
                    *again = Instant::now() + DIAL_AGAIN;
                    self.last_error = Some(format!("{peer} at {address}: {error}"));
                }
            }
        }
        for (peer, stream) in joined {
            if let Err(error) = self.join(peer, stream) {
                self.last_error = Some(error.to_string());
            }
        }
        Ok(())
    }

    fn join(&mut self, peer: NodeId, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        if let Some(bytes) = self.tcp.options.socket_buffer_bytes {
            let socket = SockRef::from(&stream);
            socket.set_recv_buffer_size(bytes)?;
            socket.set_send_buffer_size(bytes)?;
        }
        let both = Interest::READABLE | Interest::WRITABLE;
        self.tcp.poll.registry().reregister(&mut stream, mio::Token(peer.index()), both)?;
        let peer_state = Peer::new(peer, stream, self.tcp.options.max_body, Instant::now());
        self.tcp.peers[peer.index()] = Some(Box::new(peer_state));
        self.tcp.active.insert(peer.index());
        self.missing.remove(&peer);
        Ok(())
    }
}

/// Advances one dialed connection. Returns `Some` if the peer has answered.
fn advance(
    tcp: &Tcp,
    opening: &mut Option<Opening>,
    address: SocketAddr,
    again: Instant,
    identity: &Hello,
) -> io::Result<Option<Result<(), Refusal>>> {
    if opening.is_none() {
        if Instant::now() < again {
            return Ok(None);
        }
        let mut stream = TcpStream::connect(address)?;
        tcp.poll.registry().register(&mut stream, NEWCOMER, Interest::READABLE | Interest::WRITABLE)?;
        *opening = Some(Opening::new(stream));
    }
    let Some(opening) = opening else { return Ok(None) };
    opening.greet(&hello(*identity, &tcp.options.token))?;
    if !opening.greeted {
        return Ok(None);
    }
    let message = opening.read()?;
    Ok(message.map(|message| read_answer(&message, identity.to, &tcp.options.token)))
}
