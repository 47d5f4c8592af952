//! Joining of peers: the limits of time, and the pairs of media with connections, where the higher id dials the lower.

use crate::{ConnectError, EndpointOptions, Refusal};
use evb_core::NodeId;
use rustix::io::Errno;
use std::{
    collections::{BTreeMap, VecDeque},
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Most connections that have not proved that they have the token; a new one replaces the oldest of those that have sent
/// nothing yet, or the oldest of all.
const MOST_NEWCOMERS: usize = 64;

/// The time in which all peers must join.
#[derive(Debug)]
pub struct JoinDeadline {
    start: Instant,
    timeout: Duration,
    stop: Arc<AtomicBool>,
}

impl JoinDeadline {
    /// The limits of these options, from now on.
    #[must_use]
    pub fn new(options: &EndpointOptions) -> Self {
        Self { start: Instant::now(), timeout: options.connect_timeout, stop: Arc::clone(&options.stop) }
    }

    /// Checks that joining may continue, with the peers that are missing and the last error for the message.
    ///
    /// # Errors
    /// [`ConnectError::Stopped`], or [`ConnectError::Timeout`].
    pub fn check(
        &self,
        missing: impl IntoIterator<Item = NodeId>,
        last_error: impl FnOnce() -> Option<String>,
    ) -> Result<(), ConnectError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ConnectError::Stopped);
        }
        if self.start.elapsed() < self.timeout {
            return Ok(());
        }
        let (missing, last_error) = (missing.into_iter().collect(), last_error());
        Err(ConnectError::Timeout { missing, timeout: self.timeout, last_error })
    }
}

/// Progress of a handshake.
#[derive(Debug)]
pub enum HandshakeProgress<C> {
    /// The other side has not answered yet.
    Waiting(C),
    /// This peer has joined.
    Joined(NodeId),
    /// The peer refuses this node.
    Refused(Refusal),
}

/// The reason why a newcomer is rejected.
#[derive(Debug)]
pub enum NewcomerError {
    /// A stranger, which says nothing about the peers that are missing.
    Stranger,
    /// A peer that failed, or that this node does not expect.
    Failed(io::Error),
}

/// A medium with connections, while an endpoint joins its peers.
pub trait ConnectionMedium {
    /// The address of a peer.
    type Address: Clone + fmt::Display;
    /// A connection in its handshake.
    type Connection;

    /// Time between two attempts to reach a peer that does not listen yet.
    const DIAL_AGAIN: Duration;

    /// The node that joins.
    fn local(&self) -> NodeId;

    /// Its options.
    fn options(&self) -> &EndpointOptions;

    /// Returns true if this is a node of the run that has not joined.
    fn is_free(&self, peer: NodeId) -> bool;

    /// Accepts the next connection, if there is one.
    ///
    /// # Errors
    /// The connection is rejected.
    fn accept(&mut self) -> Option<io::Result<Self::Connection>>;

    /// Returns true if the newcomer has sent nothing yet.
    fn is_silent(&self, newcomer: &Self::Connection) -> bool;

    /// Continues the handshake of a newcomer, which may join if `is_expected` returns true for its id.
    ///
    /// # Errors
    /// The newcomer is rejected.
    fn answer(
        &mut self,
        newcomer: Self::Connection,
        is_expected: &dyn Fn(NodeId) -> bool,
    ) -> Result<HandshakeProgress<Self::Connection>, NewcomerError>;

    /// Dials a peer, or continues the handshake.
    ///
    /// # Errors
    /// The connection failed, and is dialed again.
    fn dial(
        &mut self,
        peer: NodeId,
        address: &Self::Address,
        connection: Option<Self::Connection>,
    ) -> io::Result<HandshakeProgress<Self::Connection>>;

    /// Counts connections that were rejected.
    fn reject(&mut self, count: usize);

    /// Sleeps until something happens on a connection, for at most [`DIAL_AGAIN`](Self::DIAL_AGAIN).
    fn sleep(&mut self);
}

/// Joins these peers, all of which must name this node, too. Strangers cost a bounded number of connections for a bounded
/// time.
///
/// # Errors
/// [`ConnectError`] names the peer that is missing or refuses this node.
pub fn join_peers<M: ConnectionMedium>(medium: &mut M, peers: &[(NodeId, M::Address)]) -> Result<(), ConnectError> {
    let mut joining = Joining { medium, missing: BTreeMap::new(), newcomers: VecDeque::new(), last_error: None };
    joining.expect(peers)?;
    joining.run()
}

struct Joining<'a, M: ConnectionMedium> {
    medium: &'a mut M,
    missing: BTreeMap<NodeId, MissingPeer<M>>,
    newcomers: VecDeque<(M::Connection, Instant)>,
    last_error: Option<String>,
}

/// A peer that has not joined yet.
enum MissingPeer<M: ConnectionMedium> {
    /// The peer has the higher id and dials.
    Dials,
    /// This node dials.
    Dialed { address: M::Address, again: Instant, connection: Option<M::Connection> },
}

impl<M: ConnectionMedium> Joining<'_, M> {
    fn expect(&mut self, peers: &[(NodeId, M::Address)]) -> Result<(), ConnectError> {
        let local = self.medium.local();
        for (peer, address) in peers {
            if *peer == local || !self.medium.is_free(*peer) || self.missing.contains_key(peer) {
                return Err(ConnectError::Peer(*peer));
            }
            let dialed = MissingPeer::Dialed { address: address.clone(), again: Instant::now(), connection: None };
            self.missing.insert(*peer, if *peer > local { MissingPeer::Dials } else { dialed });
        }
        Ok(())
    }

    fn run(mut self) -> Result<(), ConnectError> {
        let deadline = JoinDeadline::new(self.medium.options());
        loop {
            self.accept_all();
            self.hear_newcomers()?;
            self.dial_all()?;
            if self.missing.is_empty() {
                self.medium.reject(self.newcomers.len());
                return Ok(());
            }
            deadline.check(self.missing.keys().copied(), || self.last_error.clone())?;
            self.medium.sleep();
        }
    }

    fn accept_all(&mut self) {
        for _ in 0..MOST_NEWCOMERS {
            let Some(accepted) = self.medium.accept() else { return };
            let newcomer = match accepted {
                Ok(newcomer) => newcomer,
                Err(error) if is_out_of_files(&error) => {
                    // Strangers may have used them up, and are forgotten soon.
                    self.last_error = Some(error.to_string());
                    return;
                }
                Err(_) => {
                    self.medium.reject(1);
                    continue;
                }
            };
            if self.newcomers.len() == MOST_NEWCOMERS {
                let silent = self.newcomers.iter().position(|(newcomer, _)| self.medium.is_silent(newcomer));
                self.newcomers.remove(silent.unwrap_or(0));
                self.medium.reject(1);
            }
            self.newcomers.push_back((newcomer, Instant::now()));
        }
    }

    fn hear_newcomers(&mut self) -> Result<(), ConnectError> {
        let limit = self.medium.options().handshake_timeout;
        for _ in 0..self.newcomers.len() {
            let Some((newcomer, since)) = self.newcomers.pop_front() else { break };
            let missing = &self.missing;
            let is_expected = |peer: NodeId| matches!(missing.get(&peer), Some(MissingPeer::Dials));
            match self.medium.answer(newcomer, &is_expected) {
                Ok(HandshakeProgress::Joined(peer)) => drop(self.missing.remove(&peer)),
                Ok(HandshakeProgress::Waiting(newcomer)) if since.elapsed() < limit => {
                    self.newcomers.push_back((newcomer, since));
                }
                Err(NewcomerError::Failed(error)) if is_out_of_files(&error) => return Err(ConnectError::OpenFiles),
                Err(NewcomerError::Failed(error)) => {
                    self.medium.reject(1);
                    self.last_error = Some(error.to_string());
                }
                Ok(_) | Err(NewcomerError::Stranger) => self.medium.reject(1),
            }
        }
        Ok(())
    }

    fn dial_all(&mut self) -> Result<(), ConnectError> {
        let mut joined = Vec::new();
        for (&peer, missing) in &mut self.missing {
            let MissingPeer::Dialed { address, again, connection } = missing else { continue };
            if connection.is_none() && Instant::now() < *again {
                continue;
            }
            match self.medium.dial(peer, address, connection.take()) {
                Ok(HandshakeProgress::Joined(peer)) => joined.push(peer),
                Ok(HandshakeProgress::Waiting(waiting)) => *connection = Some(waiting),
                Ok(HandshakeProgress::Refused(refusal)) => {
                    return Err(ConnectError::Refused { peer, address: address.to_string(), refusal });
                }
                Err(error) if is_out_of_files(&error) => return Err(ConnectError::OpenFiles),
                Err(error) => {
                    *again = Instant::now() + M::DIAL_AGAIN;
                    self.last_error = Some(format!("{peer} at {address}: {error}"));
                }
            }
        }
        joined.iter().for_each(|peer| drop(self.missing.remove(peer)));
        Ok(())
    }
}

/// Returns true if this process may not open another file. Waiting does not help, as its peers need files, too.
fn is_out_of_files(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::MFILE)
}
