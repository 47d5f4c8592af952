//! The endpoint of a node: the machine of the protocol, driven over a wire in real time.
//!
//! The user's calls drive it. When there were none for a while, a service thread does: it acknowledges, sends again and
//! gives signs of life. So a node is silent only when its process stalls, and what was flushed arrives although the
//! user computes.
//!
//! A kernel acknowledges for a process that computes; here the service thread does. It looks every 2 ms whether the
//! user has received or waited, so a node that receives often pays for an uncontended lock only.

use crate::{
    EthernetOptions, Port,
    machine::{Counts, JoinFailure, Machine},
    wire::Wire,
};
use evb_core::{NodeId, Time};
use evb_transport::{
    Connect, ConnectError, JoinDeadline, JoinError, Message, Parker, Received, Refusal, SendError, SharesThread,
    Transport, Waker,
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Most frames that are taken from the wire at once.
const MOST_AT_ONCE: usize = 256;
/// Most frames that are given to the wire at once.
const MOST_TO_WIRE: usize = 64;
/// Bytes that wait for a peer before they are sent without a flush.
pub(crate) const WRITE_AHEAD_BYTES: usize = 64 << 10;
/// Interval of the service thread.
const SERVICE: Duration = Duration::from_millis(2);
/// Longest time that a drop takes until the peers have everything.
const DROP_PATIENCE: Duration = Duration::from_secs(1);
/// Longest sleep of a node that joins its peers.
const JOIN_PAUSE: Duration = Duration::from_millis(5);

/// What the user's thread and the service thread share.
pub(crate) struct EndpointCore<W> {
    pub(crate) machine: Machine,
    wire: W,
    start: Instant,
    /// The user has driven the endpoint since the service thread looked, or sleeps in a wait. A call that only sends does
    /// not drive it.
    was_driven: bool,
    sleeps: bool,
    stops: bool,
}

/// The endpoint of one node on a wire.
pub struct Endpoint<W: Wire> {
    core: Arc<Mutex<EndpointCore<W>>>,
    /// The file of the wire.
    file: OwnedFd,
    local: NodeId,
    parker: Parker,
    service: Option<JoinHandle<()>>,
}

impl<W: Wire> EndpointCore<W> {
    pub(crate) fn now(&self) -> Time {
        Time(self.start.elapsed().as_nanos() as u64 * 1000)
    }

    /// Takes frames, handles timers, and sends what may be sent.
    #[inline]
    pub(crate) fn poll(&mut self) -> Time {
        self.was_driven = true;
        let now = self.now();
        let machine = &mut self.machine;
        self.wire.receive(MOST_AT_ONCE, &mut |frame| machine.hear(now, frame));
        machine.on_time(now);
        self.push_out(now);
        now
    }

    /// Sends what may be sent.
    #[inline]
    pub(crate) fn push_out(&mut self, now: Time) {
        self.machine.pump(now);
        while self.machine.queued() > 0 {
            let mut frames: [&[u8]; MOST_TO_WIRE] = [&[]; MOST_TO_WIRE];
            let mut count = 0;
            for (place, frame) in frames.iter_mut().zip(self.machine.frames()) {
                *place = frame;
                count += 1;
            }
            let taken = self.wire.send(&frames[..count]);
            self.machine.sent(taken);
            if taken < count {
                return;
            }
            self.machine.pump(now);
        }
    }
}

impl<W: Wire> Endpoint<W> {
    /// Opens the endpoint of node `local` on a wire.
    ///
    /// # Errors
    /// If the system refuses a thread or a file.
    ///
    /// # Panics
    /// If `local` is not below `options.endpoint.nodes`.
    pub fn open(local: NodeId, options: EthernetOptions, wire: W) -> io::Result<Self> {
        Self::start(local, options, wire, false)
    }

    pub(crate) fn start(local: NodeId, options: EthernetOptions, wire: W, is_layer: bool) -> io::Result<Self> {
        assert!(local.0 < options.endpoint.nodes, "{local} is not one of {} nodes", options.endpoint.nodes);
        let (machine, file) = (Machine::new(local, options, wire.port(), is_layer), wire.file().try_clone_to_owned()?);
        let start = Instant::now();
        let core = EndpointCore { machine, wire, start, was_driven: false, sleeps: false, stops: false };
        let core = Arc::new(Mutex::new(core));
        let served = Arc::clone(&core);
        let service = thread::Builder::new().name("ethernet".into()).spawn(move || serve(&served))?;
        Ok(Self { core, file, local, parker: Parker::new()?, service: Some(service) })
    }

    /// Properties of the interface.
    #[must_use]
    pub fn port(&self) -> Port {
        *self.lock().machine.port()
    }

    /// Counts of frames since the endpoint was opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.lock().machine.counts()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, EndpointCore<W>> {
        // A panic of the service thread is one of this crate; the state is still the best that there is.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins these peers, all of which must name this node, too. Nodes may call this in any order; a peer may send before
    /// this returns.
    ///
    /// # Errors
    /// [`ConnectError`] names the peer that is missing or refuses this node.
    pub fn connect(&mut self, peers: &[NodeId]) -> Result<(), ConnectError> {
        self.expect_all(peers)?;
        let deadline = JoinDeadline::new(&self.lock().machine.options().endpoint);
        loop {
            let mut core = self.lock();
            core.poll();
            let missing = missing(&core.machine, peers)?;
            drop(core);
            if missing.is_empty() {
                return Ok(());
            }
            deadline.check(missing, || self.last_error())?;
            self.parker.sleep(&[(self.file.as_fd(), false)], JOIN_PAUSE);
        }
    }

    fn expect_all(&self, peers: &[NodeId]) -> Result<(), ConnectError> {
        let mut core = self.lock();
        let now = core.now();
        for &peer in peers {
            if !core.machine.can_expect(peer) {
                return Err(ConnectError::Peer(peer));
            }
            let mut nonce = [0; 16];
            // Without randomness from the system the nonce is a time: old hellos still do not fit.
            if getrandom::fill(&mut nonce).is_err() {
                nonce[..8].copy_from_slice(&now.0.to_le_bytes());
            }
            core.machine.expect(now, peer, nonce);
        }
        Ok(())
    }

    fn last_error(&self) -> Option<String> {
        let Counts { harmed, foreign, .. } = self.counts();
        let strange = harmed + foreign;
        (strange > 0).then(|| format!("{strange} frames were harmed, or of another run, token or version"))
    }

    /// Lets all peers know that this node leaves, and waits until they have everything.
    fn leave(&mut self) {
        let begin = Instant::now();
        let mut core = self.lock();
        let now = core.now();
        core.machine.say_goodbye(now);
        core.poll();
        while !core.machine.is_settled() && begin.elapsed() < DROP_PATIENCE {
            let wants_room = core.machine.queued() > 0;
            drop(core);
            self.parker.sleep(&[(self.file.as_fd(), wants_room)], SERVICE);
            core = self.lock();
            core.poll();
        }
        core.machine.leave();
        core.poll();
    }
}

/// The peers that have not joined yet, in ascending order.
fn missing(machine: &Machine, peers: &[NodeId]) -> Result<Vec<NodeId>, ConnectError> {
    let mut missing = Vec::new();
    for &peer in peers {
        match machine.has_joined(peer) {
            Ok(true) => {}
            Ok(false) => missing.push(peer),
            Err(JoinFailure::Refused) => {
                let address = machine.port().mac.to_string();
                return Err(ConnectError::Refused { peer, address, refusal: Refusal::Node });
            }
        }
    }
    missing.sort_unstable();
    Ok(missing)
}

/// Drives an endpoint whose user has not driven it for an interval.
fn serve<W: Wire>(core: &Mutex<EndpointCore<W>>) {
    loop {
        thread::park_timeout(SERVICE);
        // The thread that holds the lock drives the endpoint.
        let Ok(mut core) = core.try_lock() else { continue };
        if core.stops {
            return;
        }
        if !std::mem::take(&mut core.was_driven) && !core.sleeps {
            core.poll();
            core.was_driven = false;
        }
    }
}

impl<W: Wire> Transport for Endpoint<W> {
    fn local(&self) -> NodeId {
        self.local
    }

    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let mut core = self.lock();
        match core.machine.send(to, message) {
            Ok(()) if core.machine.waiting_bytes(to) < WRITE_AHEAD_BYTES => Ok(()),
            Ok(()) => {
                let now = core.now();
                core.push_out(now);
                Ok(())
            }
            Err(SendError::Full(message)) => {
                core.poll();
                core.machine.send(to, message)
            }
            Err(error) => Err(error),
        }
    }

    fn flush(&mut self) -> bool {
        let mut core = self.lock();
        let now = core.now();
        core.push_out(now);
        if !core.machine.is_sent() {
            core.poll();
        }
        core.machine.is_sent()
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        let mut core = self.lock();
        let now = core.poll();
        core.machine.receive(now, limit, sink)
    }

    fn wait(&mut self, timeout: Duration) {
        let start = Instant::now();
        let mut core = self.lock();
        core.machine.moved = false;
        loop {
            let now = core.poll();
            let left = timeout.saturating_sub(start.elapsed());
            if core.machine.is_readable() || core.machine.moved || left.is_zero() || self.parker.was_called() {
                return;
            }
            let (next, wants_room) = (core.machine.next_time(), core.machine.queued() > 0);
            core.sleeps = true;
            drop(core);
            self.parker.sleep(&[(self.file.as_fd(), wants_room)], left.min(next.since(now).as_duration()));
            core = self.lock();
            core.sleeps = false;
        }
    }

    fn waker(&self) -> Waker {
        self.parker.waker()
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

impl<W: Wire> SharesThread for Endpoint<W> {}

impl<W: Wire> Connect for Endpoint<W> {
    /// The address of the interface: peers find each other without it, and learn from it that they share an interface.
    fn address(&self) -> String {
        self.lock().machine.port().mac.to_string()
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        let mine = self.address();
        if peers.iter().any(|(_, address)| *address == mine) {
            let heard = self.lock().wire.hear_own_machine();
            heard
                .map_err(|error| JoinError::new(format!("nodes of one machine cannot share its interface: {error}")))?;
        }
        let nodes: Vec<_> = peers.iter().map(|(node, _)| *node).collect();
        Endpoint::connect(self, &nodes).map_err(JoinError::new)
    }
}

impl<W: Wire> Drop for Endpoint<W> {
    fn drop(&mut self) {
        self.leave();
        self.lock().stops = true;
        if let Some(service) = self.service.take() {
            service.thread().unpark();
            // It has said what went wrong, if anything did.
            let _ended = service.join();
        }
    }
}
