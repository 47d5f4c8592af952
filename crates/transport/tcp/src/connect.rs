//! Joining of peers: the higher id dials the lower. Strangers cost a bounded number of sockets for a bounded time.

use super::{
    NEWCOMER, Tcp, TcpOptions,
    handshake::{Hello, RECORD_BYTES, hello, read_hello, read_verdict, verdict},
    peer::Peer,
};
use evb_core::NodeId;
use evb_transport::{Connect, ConnectError, JoinError, Refusal, Token};
use evb_transport_secure::{self as secure, Channel, Dialer, GREETING_BYTES, Greeting, Purpose, Session, may_begin};
use mio::{
    Interest,
    net::{TcpListener, TcpStream},
};
use socket2::SockRef;
use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, Read, Write},
    net::SocketAddr,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// Most connections that have not proved that they have the token; a new one replaces the oldest of those that have said
/// nothing yet, or the oldest of all.
const MOST_NEWCOMERS: usize = 64;
/// Time between two attempts to reach a peer that does not listen yet.
const DIAL_AGAIN: Duration = Duration::from_millis(50);

impl Tcp {
    /// Joins these peers, all of which must name this node, too, within
    /// [`connect_timeout`](super::TcpOptions::connect_timeout). Nodes may call this in any order; a peer may send
    /// before this returns. Afterwards nobody can join any more.
    ///
    /// # Errors
    /// [`ConnectError`] names the peer that is missing or refuses this node.
    pub fn connect(&mut self, peers: &[(NodeId, SocketAddr)]) -> Result<(), ConnectError> {
        let mut joining = Joining { tcp: self, missing: BTreeMap::new(), newcomers: VecDeque::new(), last_error: None };
        joining.expect(peers)?;
        joining.run()
    }
}

impl Connect for Tcp {
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
    bytes: Greeting,
    filled: usize,
    stage: Stage,
}

/// What a connection waits for.
enum Stage {
    /// A connection that this node dials is established.
    Dialing,
    /// The acceptor's answer.
    Greeted(Box<Dialer>),
    /// The dialer's hello.
    Silent,
    /// The next record of the other side.
    Proving(Box<Session>),
}

impl Opening {
    fn new(stream: TcpStream, stage: Stage) -> Self {
        Self { stream, since: Instant::now(), bytes: [0; GREETING_BYTES], filled: 0, stage }
    }

    /// Continues reading this many bytes, and no more. Returns true if they are complete, and an error if they can never
    /// be.
    fn read(&mut self, wanted: usize) -> io::Result<bool> {
        while self.filled < wanted {
            match self.stream.read(&mut self.bytes[self.filled..wanted]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if wanted == GREETING_BYTES && !may_begin(&self.bytes[..self.filled], Purpose::Tcp) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the other side speaks another protocol"));
            }
        }
        self.filled = 0;
        Ok(true)
    }

    /// Sends the hello once the connection is established.
    fn greet(&mut self, token: &Token) -> io::Result<()> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        if !matches!(self.stage, Stage::Dialing) || self.stream.peer_addr().is_err() {
            return Ok(());
        }
        let (dialer, hello) = Dialer::new(token, Purpose::Tcp).map_err(|error| io::Error::other(error.to_string()))?;
        self.stage = Stage::Greeted(Box::new(dialer));
        // An empty socket buffer takes this at once.
        self.stream.write_all(&hello)
    }

    /// Continues the dialer's part. Returns `Some` if the peer has given its verdict.
    fn dial(&mut self, token: &Token, identity: Hello) -> io::Result<Option<Result<(), Refusal>>> {
        self.greet(token)?;
        if matches!(self.stage, Stage::Greeted(_)) {
            if !self.read(GREETING_BYTES)? {
                return Ok(None);
            }
            let Stage::Greeted(dialer) = std::mem::replace(&mut self.stage, Stage::Dialing) else { return Ok(None) };
            let mut session = match dialer.finish(&self.bytes) {
                Ok(session) => session,
                Err(refusal) => return Ok(Some(Err(refusal.into()))),
            };
            self.stream.write_all(&hello(&mut session, identity)?)?;
            self.stage = Stage::Proving(Box::new(session));
        }
        if !matches!(self.stage, Stage::Proving(_)) || !self.read(RECORD_BYTES)? {
            return Ok(None);
        }
        let Stage::Proving(session) = &mut self.stage else { return Ok(None) };
        Ok(Some(read_verdict(session, &self.bytes[..RECORD_BYTES], identity.to)))
    }

    /// Continues the acceptor's part. Returns who dials, once it has proved that it has the token.
    fn accept(&mut self, token: &Token) -> io::Result<Option<Hello>> {
        if matches!(self.stage, Stage::Silent) {
            if !self.read(GREETING_BYTES)? {
                return Ok(None);
            }
            match secure::accept(token, Purpose::Tcp, &self.bytes) {
                Ok((session, answer)) => {
                    self.stream.write_all(&answer)?;
                    self.stage = Stage::Proving(Box::new(session));
                }
                Err(refusal) => {
                    self.stream.write_all(&secure::refuse(Purpose::Tcp, refusal))?;
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
            }
        }
        if !self.read(RECORD_BYTES)? {
            return Ok(None);
        }
        let Stage::Proving(session) = &mut self.stage else { return Ok(None) };
        read_hello(session, &self.bytes[..RECORD_BYTES]).map(Some).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
    }

    /// Tells a dialer whether it is expected.
    fn answer(&mut self, judged: Result<(), Refusal>, local: NodeId) -> io::Result<()> {
        let Stage::Proving(session) = &mut self.stage else { return Err(io::ErrorKind::NotConnected.into()) };
        let record = verdict(session, judged, local)?;
        self.stream.write_all(&record)
    }

    /// The connection for frames, once both sides have proved themselves.
    fn channel(self, encrypt: bool) -> io::Result<Channel<TcpStream>> {
        match self.stage {
            Stage::Proving(session) if encrypt => Ok(Channel::sealed(self.stream, *session)),
            Stage::Proving(_) => Ok(Channel::clear(self.stream)),
            Stage::Dialing | Stage::Greeted(_) | Stage::Silent => Err(io::ErrorKind::NotConnected.into()),
        }
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
                self.tcp.listener = None;
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
            let Some(Ok((mut stream, _))) = self.tcp.listener.as_ref().map(TcpListener::accept) else { return };
            if self.newcomers.len() == MOST_NEWCOMERS {
                let silent = self.newcomers.iter().position(|newcomer| matches!(newcomer.stage, Stage::Silent));
                self.newcomers.remove(silent.unwrap_or(0));
                self.tcp.rejected += 1;
            }
            if self.tcp.poll.registry().register(&mut stream, NEWCOMER, Interest::READABLE).is_ok() {
                self.newcomers.push_back(Opening::new(stream, Stage::Silent));
            }
        }
    }

    fn hear_newcomers(&mut self) {
        let limit = self.tcp.options.handshake_timeout;
        for _ in 0..self.newcomers.len() {
            let Some(mut newcomer) = self.newcomers.pop_front() else { return };
            match newcomer.accept(&self.tcp.options.token) {
                Ok(Some(hello)) => self.judge(newcomer, hello),
                Ok(None) if newcomer.since.elapsed() < limit => self.newcomers.push_back(newcomer),
                Ok(None) | Err(_) => self.tcp.rejected += 1,
            }
        }
    }

    fn judge(&mut self, mut newcomer: Opening, hello: Hello) {
        let (local, nodes) = (self.tcp.local, self.tcp.options.nodes);
        let is_missing = matches!(self.missing.get(&hello.from), Some(Missing::Comes));
        let judged = match hello.to == local && hello.nodes == nodes && is_missing {
            false => Err(Refusal::Node),
            true if hello.encrypt != self.tcp.options.encrypt => Err(Refusal::Encryption),
            true => Ok(()),
        };
        let is_told = newcomer.answer(judged, local).is_ok();
        if judged.is_err() || !is_told || self.join(hello.from, newcomer).is_err() {
            self.tcp.rejected += 1;
        }
    }

    fn dial(&mut self) -> Result<(), ConnectError> {
        let mut joined = Vec::new();
        for (&peer, missing) in &mut self.missing {
            let Missing::Dialed { address, again, opening } = missing else { continue };
            let TcpOptions { nodes, encrypt, .. } = self.tcp.options;
            let identity = Hello { from: self.tcp.local, to: peer, nodes, encrypt };
            match advance(self.tcp, opening, *address, *again, &identity) {
                Ok(None) => {}
                Ok(Some(Ok(()))) => joined.extend(opening.take().map(|opening| (peer, opening))),
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
        for (peer, opening) in joined {
            if let Err(error) = self.join(peer, opening) {
                self.last_error = Some(error.to_string());
            }
        }
        Ok(())
    }

    fn join(&mut self, peer: NodeId, opening: Opening) -> io::Result<()> {
        let mut channel = opening.channel(self.tcp.options.encrypt)?;
        let stream = channel.stream_mut();
        stream.set_nodelay(true)?;
        if let Some(bytes) = self.tcp.options.socket_buffer_bytes {
            let socket = SockRef::from(&*stream);
            socket.set_recv_buffer_size(bytes)?;
            socket.set_send_buffer_size(bytes)?;
        }
        let both = Interest::READABLE | Interest::WRITABLE;
        self.tcp.poll.registry().reregister(stream, mio::Token(peer.index()), both)?;
        let peer_state = Peer::new(peer, channel, self.tcp.options.max_body, Instant::now());
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
        *opening = Some(Opening::new(stream, Stage::Dialing));
    }
    let Some(opening) = opening else { return Ok(None) };
    opening.dial(&tcp.options.token, *identity)
}
