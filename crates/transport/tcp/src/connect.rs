//! Joining of peers over connections.

use super::{
    NEWCOMER, Tcp, TcpOptions,
    handshake::{Hello, RECORD_BYTES, hello, read_hello, read_verdict, verdict},
    peer::Peer,
};
use evb_core::NodeId;
use evb_transport::{
    Connect, ConnectError, ConnectionMedium, EndpointOptions, HandshakeProgress, JoinError, NewcomerError, Refusal,
    Token, join_peers,
};
use evb_transport_secure::{self as secure, Channel, Dialer, GREETING_BYTES, Greeting, Purpose, Session, may_begin};
use mio::{Interest, net::TcpStream};
use socket2::SockRef;
use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    time::{Duration, Instant},
};

impl Tcp {
    /// Joins these peers, all of which must name this node, too, within
    /// [`connect_timeout`](evb_transport::EndpointOptions::connect_timeout). Nodes may call this in any order; a peer may
    /// send before this returns. Afterwards no other peer can join.
    ///
    /// # Errors
    /// [`ConnectError`] names the peer that is missing or refuses this node.
    pub fn connect(&mut self, peers: &[(NodeId, SocketAddr)]) -> Result<(), ConnectError> {
        join_peers(&mut Medium(self), peers)?;
        self.listener = None;
        Ok(())
    }
}

impl Connect for Tcp {
    fn address(&self) -> String {
        self.listen_addr().to_string()
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        let parse = |(peer, text): &(NodeId, String)| {
            let reason = |_| "an IP address and a port are wanted".to_owned();
            let wrong = |reason| ConnectError::Address { peer: *peer, text: text.clone(), reason };
            text.parse().map(|address| (*peer, address)).map_err(reason).map_err(wrong)
        };
        let peers: Vec<_> = peers.iter().map(parse).collect::<Result<_, _>>().map_err(JoinError::new)?;
        Tcp::connect(self, &peers).map_err(JoinError::new)
    }
}

/// A connection in its handshake.
struct Opening {
    stream: TcpStream,
    bytes: Greeting,
    filled: usize,
    stage: HandshakeStage,
}

/// What a connection waits for.
enum HandshakeStage {
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
    fn new(stream: TcpStream, stage: HandshakeStage) -> Self {
        Self { stream, bytes: [0; GREETING_BYTES], filled: 0, stage }
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
        if !matches!(self.stage, HandshakeStage::Dialing) || self.stream.peer_addr().is_err() {
            return Ok(());
        }
        let (dialer, hello) = Dialer::new(token, Purpose::Tcp).map_err(|error| io::Error::other(error.to_string()))?;
        self.stage = HandshakeStage::Greeted(Box::new(dialer));
        // An empty socket buffer takes this at once.
        self.stream.write_all(&hello)
    }

    /// Continues the dialer's part. Returns `Some` if the peer has returned its verdict.
    fn dial(&mut self, token: &Token, identity: Hello) -> io::Result<Option<Result<(), Refusal>>> {
        self.greet(token)?;
        if matches!(self.stage, HandshakeStage::Greeted(_)) {
            if !self.read(GREETING_BYTES)? {
                return Ok(None);
            }
            let HandshakeStage::Greeted(dialer) = std::mem::replace(&mut self.stage, HandshakeStage::Dialing) else {
                return Ok(None);
            };
            let mut session = match dialer.finish(&self.bytes) {
                Ok(session) => session,
                Err(refusal) => return Ok(Some(Err(refusal.into()))),
            };
            self.stream.write_all(&hello(&mut session, identity)?)?;
            self.stage = HandshakeStage::Proving(Box::new(session));
        }
        if !matches!(self.stage, HandshakeStage::Proving(_)) || !self.read(RECORD_BYTES)? {
            return Ok(None);
        }
        let HandshakeStage::Proving(session) = &mut self.stage else { return Ok(None) };
        Ok(Some(read_verdict(session, &self.bytes[..RECORD_BYTES], identity.to)))
    }

    /// Continues the acceptor's part. Returns who dials, once it has proved that it has the token.
    fn accept(&mut self, token: &Token) -> io::Result<Option<Hello>> {
        if matches!(self.stage, HandshakeStage::Silent) {
            if !self.read(GREETING_BYTES)? {
                return Ok(None);
            }
            match secure::accept(token, Purpose::Tcp, &self.bytes) {
                Ok((session, answer)) => {
                    self.stream.write_all(&answer)?;
                    self.stage = HandshakeStage::Proving(Box::new(session));
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
        let HandshakeStage::Proving(session) = &mut self.stage else { return Ok(None) };
        read_hello(session, &self.bytes[..RECORD_BYTES]).map(Some).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
    }

    /// Tells a dialer whether it is expected.
    fn answer(&mut self, judged: Result<(), Refusal>, local: NodeId) -> io::Result<()> {
        let HandshakeStage::Proving(session) = &mut self.stage else { return Err(io::ErrorKind::NotConnected.into()) };
        let record = verdict(session, judged, local)?;
        self.stream.write_all(&record)
    }

    /// The connection for frames, once both sides have proved themselves.
    fn channel(self, encrypt: bool) -> io::Result<Channel<TcpStream>> {
        match self.stage {
            HandshakeStage::Proving(session) if encrypt => Ok(Channel::sealed(self.stream, *session)),
            HandshakeStage::Proving(_) => Ok(Channel::clear(self.stream)),
            HandshakeStage::Dialing | HandshakeStage::Greeted(_) | HandshakeStage::Silent => {
                Err(io::ErrorKind::NotConnected.into())
            }
        }
    }
}

/// The endpoint while it joins its peers.
struct Medium<'a>(&'a mut Tcp);

impl ConnectionMedium for Medium<'_> {
    type Address = SocketAddr;
    type Connection = Opening;

    const DIAL_AGAIN: Duration = Duration::from_millis(50);

    fn local(&self) -> NodeId {
        self.0.local
    }

    fn options(&self) -> &EndpointOptions {
        &self.0.options.endpoint
    }

    fn is_free(&self, peer: NodeId) -> bool {
        matches!(self.0.peers.get(peer.index()), Some(None))
    }

    fn accept(&mut self) -> Option<io::Result<Opening>> {
        match self.0.listener.as_ref()?.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            accepted => Some(accepted.and_then(|(mut stream, _)| {
                self.0.poll.registry().register(&mut stream, NEWCOMER, Interest::READABLE)?;
                Ok(Opening::new(stream, HandshakeStage::Silent))
            })),
        }
    }

    fn is_silent(&self, newcomer: &Opening) -> bool {
        matches!(newcomer.stage, HandshakeStage::Silent)
    }

    fn answer(
        &mut self,
        mut newcomer: Opening,
        is_expected: &dyn Fn(NodeId) -> bool,
    ) -> Result<HandshakeProgress<Opening>, NewcomerError> {
        let stranger = |_| NewcomerError::Stranger;
        let TcpOptions { endpoint: EndpointOptions { token, nodes, .. }, encrypt, .. } = &self.0.options;
        let Some(hello) = newcomer.accept(token).map_err(stranger)? else {
            return Ok(HandshakeProgress::Waiting(newcomer));
        };
        let judged = if hello.to != self.0.local || hello.nodes != *nodes || !is_expected(hello.from) {
            Err(Refusal::Node)
        } else if hello.encrypt != *encrypt {
            Err(Refusal::Encryption)
        } else {
            Ok(())
        };
        newcomer.answer(judged, self.0.local).map_err(stranger)?;
        judged.map_err(|_| NewcomerError::Stranger)?;
        self.join(hello.from, newcomer).map(|()| HandshakeProgress::Joined(hello.from)).map_err(stranger)
    }

    fn dial(
        &mut self,
        peer: NodeId,
        address: &SocketAddr,
        opening: Option<Opening>,
    ) -> io::Result<HandshakeProgress<Opening>> {
        let mut opening = match opening {
            Some(opening) => opening,
            None => self.open(*address)?,
        };
        let TcpOptions { endpoint: EndpointOptions { token, nodes, .. }, encrypt, .. } = &self.0.options;
        let identity = Hello { from: self.0.local, to: peer, nodes: *nodes, encrypt: *encrypt };
        match opening.dial(token, identity)? {
            None => Ok(HandshakeProgress::Waiting(opening)),
            Some(Err(refusal)) => Ok(HandshakeProgress::Refused(refusal)),
            Some(Ok(())) => self.join(peer, opening).map(|()| HandshakeProgress::Joined(peer)),
        }
    }

    fn reject(&mut self, count: usize) {
        self.0.rejected += count as u64;
    }

    /// Every connection is tried after every wake-up: there are few, and it happens once.
    fn sleep(&mut self) {
        // Nothing but a signal ends this with an error.
        let _ = self.0.poll.poll(&mut self.0.events, Some(Self::DIAL_AGAIN));
        self.0.take_events();
        // Peers that are there already may have others to wait for, or none.
        self.0.tick(Instant::now());
    }
}

impl Medium<'_> {
    fn open(&self, address: SocketAddr) -> io::Result<Opening> {
        let mut stream = TcpStream::connect(address)?;
        self.0.poll.registry().register(&mut stream, NEWCOMER, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Opening::new(stream, HandshakeStage::Dialing))
    }

    fn join(&mut self, peer: NodeId, opening: Opening) -> io::Result<()> {
        let mut channel = opening.channel(self.0.options.encrypt)?;
        let stream = channel.stream_mut();
        stream.set_nodelay(true)?;
        self.0.options.set_congestion_control(stream)?;
        if let Some(bytes) = self.0.options.socket_buffer_bytes {
            let socket = SockRef::from(&*stream);
            socket.set_recv_buffer_size(bytes)?;
            socket.set_send_buffer_size(bytes)?;
        }
        let both = Interest::READABLE | Interest::WRITABLE;
        self.0.poll.registry().reregister(stream, mio::Token(peer.index()), both)?;
        let joined = Peer::new(peer, channel, self.0.options.endpoint.max_body, Instant::now());
        self.0.peers[peer.index()] = Some(Box::new(joined));
        self.0.active.insert(peer.index());
        Ok(())
    }
}
