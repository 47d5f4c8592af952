//! The way to front ends, which the threads that read it and the sources that take from it share.
//!
//! Most links have one source. Where frames carry a source id, several sources may share a link: each has an outlet with a
//! queue of its own, and the readers deal the frames out. A full queue stops the readers, and so the front end; the units of
//! the other sources go on taking what is in their queues. So a front end may send the frames of one source ahead of those of
//! another by as many as the queue and the buffer of its unit hold. The first source reports bytes that belong to none.

use super::{
    Connections, DatagramSocket, Listener, LiveItem, Refused, RejectKind, outlet::Outlet, parser::Frames,
    quiet::Sockets, readers::POLL,
};
use crate::FrameError;
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
};

/// A link and its sources.
pub(super) struct Link {
    pub(super) frames: Frames,
    /// It is a file, which each of its sources reads for itself.
    pub(super) is_file: bool,
    pub(super) sockets: Sockets,
    /// The socket of a link of datagrams.
    pub(super) datagrams: OnceLock<DatagramSocket>,
    /// Sources that have joined, until they are all there.
    joined: Mutex<Vec<Arc<Outlet>>>,
    most: usize,
    outlets: OnceLock<Vec<Arc<Outlet>>>,
    /// Sources that have not left.
    present: AtomicUsize,
    stop: AtomicBool,
    listener: Mutex<Option<JoinHandle<()>>>,
    local_addr: OnceLock<SocketAddr>,
    /// Connections that are open.
    open: AtomicUsize,
    any_connected: AtomicBool,
    /// The front end that sent last.
    peer: Mutex<Option<SocketAddr>>,
}

/// An open connection of a link.
pub(super) struct OpenConnection<'a>(&'a Link);

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Link {
    /// A link that is read when this number of sources have joined it.
    pub(super) fn new(frames: Frames, is_file: bool, sources: usize) -> Arc<Self> {
        Arc::new(Self {
            frames,
            is_file,
            sockets: Sockets::default(),
            datagrams: OnceLock::new(),
            joined: Mutex::new(Vec::new()),
            most: sources,
            outlets: OnceLock::new(),
            present: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            listener: Mutex::new(None),
            local_addr: OnceLock::new(),
            open: AtomicUsize::new(0),
            any_connected: AtomicBool::new(false),
            peer: Mutex::new(None),
        })
    }

    // ---- sources

    /// Takes a source; returns true if it was the last one, and the link is to be read.
    pub(super) fn join(&self, outlet: &Arc<Outlet>) -> bool {
        self.present.fetch_add(1, Ordering::AcqRel);
        let mut joined = lock(&self.joined);
        joined.push(outlet.clone());
        let are_all = joined.len() == self.most;
        if are_all {
            let mut all = std::mem::take(&mut *joined);
            all.sort_by_key(|outlet| outlet.id);
            self.outlets.get_or_init(|| all);
        }
        are_all
    }

    /// Keeps the thread that reads the link.
    pub(super) fn begin(&self, (thread, address): Listener) {
        *lock(&self.listener) = Some(thread);
        if let Some(address) = address {
            self.local_addr.get_or_init(|| address);
        }
    }

    /// A source leaves; returns true if it was the last one. Its frames are dropped from then on.
    pub(super) fn leave(&self) -> bool {
        let is_last = self.present.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last {
            self.stop.store(true, Ordering::Release);
        }
        is_last
    }

    /// Waits for the threads of a link without sources.
    pub(super) fn end(&self) {
        let listener = lock(&self.listener).take();
        if let Some(listener) = listener {
            listener.thread().unpark();
            // A thread that panicked has said so already.
            let _ = listener.join();
        }
    }

    /// The sources, once they are all there, in the order of their ids.
    pub(super) fn outlets(&self) -> &[Arc<Outlet>] {
        self.outlets.get().map_or(&[], Vec::as_slice)
    }

    /// Returns true if this source reports what belongs to no source.
    pub(super) fn is_first(&self, outlet: &Arc<Outlet>) -> bool {
        self.outlets().first().is_some_and(|first| Arc::ptr_eq(first, outlet))
    }

    pub(super) fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr.get().copied()
    }

    pub(super) fn connections(&self) -> Connections {
        let open = self.open.load(Ordering::Acquire);
        let peer = *lock(&self.peer);
        Connections { any: open > 0 || self.any_connected.load(Ordering::Acquire), open: open > 0, peer }
    }

    // ---- readers

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(super) fn wake(&self) {
        self.outlets().iter().for_each(|outlet| outlet.wake());
    }

    /// Counts a connection until the result is dropped.
    pub(super) fn connected(&self, peer: Option<SocketAddr>) -> OpenConnection<'_> {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.any_connected.store(true, Ordering::Release);
        let mut sender = lock(&self.peer);
        *sender = sender.or(peer);
        drop(sender);
        OpenConnection(self)
    }

    /// Notes the front end that sends.
    pub(super) fn note_sender(&self, peer: Option<SocketAddr>) {
        *lock(&self.peer) = peer;
    }

    /// Queues an item for the source in this place, and waits for room. An item for a source that has left is dropped.
    /// Returns false if all have left.
    pub(super) fn deliver(&self, to: usize, item: LiveItem) -> bool {
        let Some(outlet) = self.outlets().get(to) else { return !self.stopped() };
        outlet.is_starved.store(false, Ordering::Relaxed);
        let mut waits = 0;
        let is_queued = outlet.queue.put(item, || {
            // Each source takes what it has while the link waits for one of them.
            self.wake();
            self.note_hold_up(outlet, waits);
            waits += 1;
        });
        is_queued || !self.stopped()
    }

    /// Notes that a source has no room while others have nothing: it waited this number of times before.
    fn note_hold_up(&self, outlet: &Outlet, waits: u32) {
        let is_starved = |other: &Arc<Outlet>| other.is_starved.load(Ordering::Relaxed) && other.queue.is_empty();
        if waits > 0 && self.outlets().iter().any(is_starved) {
            outlet.held_up_ms.fetch_add(POLL.as_millis() as u64, Ordering::Relaxed);
        }
    }

    /// Tells all sources that no fragment follows.
    pub(super) fn end_of_data(&self) {
        for outlet in self.outlets() {
            outlet.queue.put(LiveItem::EndOfRun { counter: None, sent: None }, || outlet.wake());
            outlet.wake();
        }
    }

    pub(super) fn reject(&self, kind: RejectKind, peer: Option<SocketAddr>, bytes: &[u8]) {
        self.refuse(kind, 1, || Refused::new(peer, bytes));
    }

    pub(super) fn reject_frame(&self, error: FrameError, peer: Option<SocketAddr>, bytes: &[u8]) {
        let oversized = match error {
            FrameError::Oversized { bytes, limit } => Some((bytes, limit)),
            _ => None,
        };
        self.refuse(error.into(), 1, || Refused { oversized, ..Refused::new(peer, bytes) });
    }

    pub(super) fn refuse(&self, kind: RejectKind, count: u64, refused: impl FnOnce() -> Refused) {
        if let Some(first) = self.outlets().first() {
            first.refuse(kind, count, refused);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
