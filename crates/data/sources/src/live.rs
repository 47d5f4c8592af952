//! Live front ends: they connect by TCP, listen for a connection, or send UDP datagrams, and deliver fragments when they
//! have them.
//!
//! One thread listens or connects, and one thread reads each connection. All parsed frames go through one bounded queue. A full
//! queue stops the readers: TCP then slows its front end down, and UDP loses datagrams, which leaves a gap in the event
//! counter. Anything else is counted by kind, outside the queue, so that it cannot displace good fragments.

pub(crate) mod connector;
mod inlet;
mod parser;
mod queue;
pub(crate) mod quiet;
pub(crate) mod readers;
pub(crate) mod serial;
mod sliced;
mod sockets;

use crate::{FrameError, FrontEndLink, HitFault, LiveSpec, OpenOptions, SourceError, path::resolve};
use bytes::Bytes;
use evb_core::Mark;
pub use inlet::INLET_BITS;
use parser::Frames;
use queue::Queue;
use quiet::Sockets;
use sliced::Slices;
pub use sockets::DatagramBuffer;
use sockets::DatagramSocket;
use std::{
    collections::VecDeque,
    fmt, io,
    net::{SocketAddr, TcpListener, UdpSocket},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

/// Most bytes in the queue, whatever the largest fragment is. As many may be taken from it and not be in use yet.
const QUEUE_BYTES: usize = 32 << 20;
/// Fewest and most fragments in the queue.
const QUEUE_ITEMS: [usize; 2] = [8, 2048];

/// An item from a live source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveItem {
    /// A fragment.
    Fragment {
        /// The front end's event counter, cut to its width.
        counter: u64,
        /// True if the front end has restarted its counter with this fragment.
        resynchronised: bool,
        /// The mark of the fragment, if it carries one.
        mark: Option<Mark>,
        /// The front end's clock in ticks, if the fragment carries it.
        clock: Option<u64>,
        /// True if the payload's checksum is right and the front end did not flag it as damaged.
        good: bool,
        /// The payload.
        bytes: Bytes,
    },
    /// A hit is in no slice, where hits go into slices of time.
    Apart {
        /// The number of its slice, 0 if there is none.
        counter: u64,
        /// The hit.
        bytes: Bytes,
        /// Why.
        reason: HitFault,
    },
    /// The front end announces that no fragment follows, perhaps several times.
    EndOfRun {
        /// The event counter of its last fragment, cut to its width; `None` if it ended without a word.
        counter: Option<u64>,
        /// Number of fragments that it has sent, modulo 2^32, if it reports that.
        sent: Option<u32>,
    },
    /// Bytes between two frames, which belong to none; they are counted as [`Rejected`](Self::Rejected), too. Of a long stretch
    /// these are the first.
    Skipped {
        /// The bytes.
        bytes: Bytes,
    },
    /// Bytes arrived that are not a frame for this source.
    Rejected {
        /// The kind of what arrived.
        kind: RejectKind,
        /// Number of occurrences since the last report.
        count: u64,
        /// The first occurrence of this kind.
        first: Refused,
    },
}

/// The first refused bytes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The sender; none for a file.
    pub peer: Option<SocketAddr>,
    /// The bytes, at most [`Refused::BYTES`].
    bytes: [u8; Self::BYTES],
    length: u8,
    /// The payload length of an oversized fragment and the limit, in bytes.
    pub oversized: Option<(u32, u32)>,
    /// Their place in the file, where it is known.
    pub offset: Option<u64>,
}

impl Refused {
    /// Number of bytes that are kept: enough to recognise a foreign protocol.
    pub const BYTES: usize = 16;

    fn new(peer: Option<SocketAddr>, sent: &[u8]) -> Self {
        let mut bytes = [0; Self::BYTES];
        let length = sent.len().min(Self::BYTES);
        bytes[..length].copy_from_slice(&sent[..length]);
        Self { peer, bytes, length: length as u8, oversized: None, offset: None }
    }

    /// The first bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer {
            Some(peer) => write!(f, "from {peer}")?,
            None => f.write_str("from its file")?,
        }
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ", which began with \"{}\"", self.bytes().escape_ascii())
    }
}

/// The reason why received bytes were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectKind {
    /// Bytes that do not begin like a frame, or with another version of the framing.
    Garbage,
    /// A frame header with a wrong checksum.
    HeaderChecksum,
    /// A frame header with a field that this version does not allow.
    Field,
    /// A fragment above the largest size.
    Oversized,
    /// A datagram that is longer or shorter than its frame.
    DatagramSize,
    /// A connection or file that ended within a frame.
    CutOff,
    /// A frame that is meant for another source.
    WrongSource,
    /// A connection above the largest number of front ends.
    TooManyConnections,
    /// A packet of a capture file that is cut off, a fragment of a datagram, or of an unknown kind of link.
    Unreadable,
}

impl RejectKind {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::Garbage,
        Self::HeaderChecksum,
        Self::Field,
        Self::Oversized,
        Self::DatagramSize,
        Self::CutOff,
        Self::WrongSource,
        Self::TooManyConnections,
        Self::Unreadable,
    ];

    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Garbage => "garbage",
            Self::HeaderChecksum => "wrong header checksum",
            Self::Field => "wrong header field",
            Self::Oversized => "oversized fragment",
            Self::DatagramSize => "wrong datagram size",
            Self::CutOff => "data cut off within a frame",
            Self::WrongSource => "fragment of another source",
            Self::TooManyConnections => "too many connections",
            Self::Unreadable => "packet of a capture that cannot be read",
        }
    }
}

impl fmt::Display for RejectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<FrameError> for RejectKind {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Magic { .. } | FrameError::Version { .. } | FrameError::Skipped { .. } | FrameError::Lost => {
                Self::Garbage
            }
            FrameError::HeaderChecksum => Self::HeaderChecksum,
            FrameError::Field => Self::Field,
            FrameError::Oversized { .. } => Self::Oversized,
            FrameError::DatagramSize { .. } => Self::DatagramSize,
        }
    }
}

/// The connections of a live source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// A front end has connected since the source was opened, or has sent a datagram.
    pub any: bool,
    /// A front end is connected. A sender of datagrams always is.
    pub open: bool,
    /// Address of the front end that sent last, or else of the last one that connected.
    pub peer: Option<SocketAddr>,
}

/// A source that front ends deliver to. Dropping it closes the port and all connections and ends their threads.
pub struct LiveSource {
    /// Items that were taken from the queue.
    taken: VecDeque<LiveItem>,
    slices: Option<Box<Slices>>,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
    local_addr: Option<SocketAddr>,
}

/// The thread that listens, and its address if it has one on a network.
type Listener = (JoinHandle<()>, Option<SocketAddr>);

impl LiveSource {
    /// Binds the address of `spec`, or starts to connect to it, or opens its file. `waker` is called, from other threads,
    /// when [`try_next`](Self::try_next) may have something new.
    ///
    /// # Errors
    /// If its counter width is not 1 to 64, its address cannot be bound, or its file cannot be opened.
    pub fn start(
        spec: &LiveSpec,
        options: &OpenOptions,
        waker: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Self, SourceError> {
        let frames = Frames {
            framing: spec.framing.clone().map(Arc::new),
            unit: options.unit,
            max_fragment: options.max_fragment,
            counter_mask: counter_mask(spec.counter.bits)?,
        };
        let listen = |address: &String| {
            let address = address.clone();
            |error| SourceError::Listen { address, error }
        };
        let slices = Slices::new(spec, frames.framing.as_ref(), options).map(Box::new);
        let source = match &spec.link {
            FrontEndLink::Tcp(address) => {
                Self::open(frames, waker, |shared| start_tcp(address, shared)).map_err(listen(address))
            }
            FrontEndLink::Udp(address) => {
                Self::open(frames, waker, |shared| start_udp(address, shared)).map_err(listen(address))
            }
            FrontEndLink::TcpClient(address) => {
                Self::open(frames, waker, |shared| connector::start(address, shared)).map_err(listen(address))
            }
            FrontEndLink::Serial { device, baud } => {
                Self::open(frames, waker, |shared| serial::start((device, *baud), shared))
                    .map_err(|error| SourceError::Open { path: device.clone(), error })
            }
            FrontEndLink::File(file) => {
                let path = resolve(file, &options.data_directory)?;
                Self::open(frames, waker, |shared| readers::start_file(&path, shared))
                    .map_err(|error| SourceError::Open { path, error })
            }
            FrontEndLink::Capture { file, port, paced } => {
                let path = resolve(file, &options.data_directory)?;
                Self::open(frames, waker, |shared| readers::start_capture(&path, (*port, *paced), shared))
                    .map_err(|error| SourceError::Open { path, error })
            }
            FrontEndLink::Eudaq { file, producer } => {
                let path = resolve(file, &options.data_directory)?;
                Self::open(frames, waker, |shared| readers::start_eudaq(&path, producer, shared))
                    .map_err(|error| SourceError::Open { path, error })
            }
        };
        let mut source = source?;
        source.slices = slices;
        Ok(source)
    }

    /// A source with a queue and the thread that `begin` starts to fill it.
    fn open(
        frames: Frames,
        waker: Arc<dyn Fn() + Send + Sync>,
        begin: impl FnOnce(&Arc<Shared>) -> io::Result<Listener>,
    ) -> io::Result<Self> {
        let [fewest, most] = QUEUE_ITEMS;
        let items = (QUEUE_BYTES / frames.max_fragment.max(1) as usize).clamp(fewest, most);
        let shared = Arc::new(Shared {
            queue: Queue::new(items),
            waker,
            frames,
            sockets: Sockets::default(),
            datagrams: OnceLock::new(),
            stop: AtomicBool::new(false),
            any_rejected: AtomicBool::new(false),
            rejected: [const { AtomicU64::new(0) }; RejectKind::ALL.len()],
            refused: [const { OnceLock::new() }; RejectKind::ALL.len()],
            open: AtomicUsize::new(0),
            any_connected: AtomicBool::new(false),
            peer: Mutex::new(None),
        });
        let (listener, local_addr) = begin(&shared)?;
        Ok(Self { taken: VecDeque::new(), slices: None, shared, listener: Some(listener), local_addr })
    }

    /// The address that front ends deliver to; none for an [`inlet`](Self::inlet).
    pub const fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr
    }

    /// The receive buffer of a source of datagrams; `None` for others.
    pub fn datagram_buffer(&self) -> Option<DatagramBuffer> {
        self.shared.datagrams.get().map(DatagramSocket::buffer)
    }

    /// The connections at present.
    pub fn connections(&self) -> Connections {
        let open = self.shared.open.load(Ordering::Acquire);
        let peer = *self.shared.peer.lock().unwrap_or_else(PoisonError::into_inner);
        Connections { any: open > 0 || self.shared.any_connected.load(Ordering::Acquire), open: open > 0, peer }
    }

    /// Returns true if nothing that front ends have sent before the call is on its way to the queue: what
    /// [`try_next`](Self::try_next) returns after that is all of it. Sockets are watched if the framing has times; a
    /// file is on its way until its end.
    pub fn is_quiet(&self) -> bool {
        self.shared.sockets.are_quiet()
    }

    /// The next item, if there is one.
    pub fn try_next(&mut self) -> Option<LiveItem> {
        let rejected = self.shared.next_rejection();
        rejected.or_else(|| match self.slices {
            Some(_) => self.next_sliced(),
            None => self.shared.queue.next(&mut self.taken),
        })
    }
}

impl Drop for LiveSource {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Readers that wait for room in the queue end.
        self.shared.queue.close();
        if let Some(listener) = self.listener.take() {
            listener.thread().unpark();
            // A thread that panicked has said so already.
            let _ = listener.join();
        }
    }
}

/// The mask of the event counter's bits.
///
/// # Errors
/// If the width is not 1 to 64.
pub(crate) fn counter_mask(bits: u8) -> Result<u64, SourceError> {
    match bits {
        1..=64 => Ok(u64::MAX >> (64 - bits)),
        _ => Err(SourceError::Parameter {
            name: "counter_bits",
            value: bits.to_string(),
            expected: "1 to 64".to_owned(),
        }),
    }
}

/// State shared by the threads of a source.
struct Shared {
    queue: Queue<LiveItem>,
    waker: Arc<dyn Fn() + Send + Sync>,
    frames: Frames,
    sockets: Sockets,
    /// The socket of a source of datagrams.
    datagrams: OnceLock<DatagramSocket>,
    stop: AtomicBool,
    any_rejected: AtomicBool,
    rejected: [AtomicU64; RejectKind::ALL.len()],
    /// The first occurrence of each kind.
    refused: [OnceLock<Refused>; RejectKind::ALL.len()],
    /// Connections that are open.
    open: AtomicUsize,
    any_connected: AtomicBool,
    /// The front end that sent last.
    peer: Mutex<Option<SocketAddr>>,
}

/// An open connection of a source.
struct OpenConnection<'a>(&'a Shared);

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn wake(&self) {
        (self.waker)();
    }

    /// Counts a connection until the result is dropped.
    fn connected(&self, peer: Option<SocketAddr>) -> OpenConnection<'_> {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.any_connected.store(true, Ordering::Release);
        let mut sender = self.peer.lock().unwrap_or_else(PoisonError::into_inner);
        *sender = sender.or(peer);
        drop(sender);
        OpenConnection(self)
    }

    /// Notes the front end that sends.
    fn note_sender(&self, peer: Option<SocketAddr>) {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner) = peer;
    }

    /// Queues an item and waits for room; returns false if the receiver is gone.
    fn deliver(&self, item: LiveItem) -> bool {
        // The thread that makes room may be asleep.
        self.queue.put(item, || self.wake())
    }

    fn reject(&self, kind: RejectKind, peer: Option<SocketAddr>, bytes: &[u8]) {
        self.refuse(kind, 1, || Refused::new(peer, bytes));
    }

    fn reject_frame(&self, error: FrameError, peer: Option<SocketAddr>, bytes: &[u8]) {
        let oversized = match error {
            FrameError::Oversized { bytes, limit } => Some((bytes, limit)),
            _ => None,
        };
        self.refuse(error.into(), 1, || Refused { oversized, ..Refused::new(peer, bytes) });
    }

    fn refuse(&self, kind: RejectKind, count: u64, refused: impl FnOnce() -> Refused) {
        self.refused[kind as usize].get_or_init(refused);
        self.rejected[kind as usize].fetch_add(count, Ordering::Relaxed);
        self.any_rejected.store(true, Ordering::Release);
        self.wake();
    }

    fn next_rejection(&self) -> Option<LiveItem> {
        if !self.any_rejected.load(Ordering::Relaxed) || !self.any_rejected.swap(false, Ordering::AcqRel) {
            return None;
        }
        let take = |kind: RejectKind| (kind, self.rejected[kind as usize].swap(0, Ordering::Relaxed));
        let (kind, count) = RejectKind::ALL.into_iter().map(take).find(|&(_, count)| count > 0)?;
        let first = *self.refused[kind as usize].get()?;
        // There may be more kinds: they are looked for at the next call.
        self.any_rejected.store(true, Ordering::Release);
        Some(LiveItem::Rejected { kind, count, first })
    }
}

fn start_tcp(listen: &str, shared: &Arc<Shared>) -> io::Result<Listener> {
    let listener = TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let shared = Arc::clone(shared);
    Ok((spawn("listener", move || readers::accept(&listener, &shared))?, Some(address)))
}

fn start_udp(listen: &str, shared: &Arc<Shared>) -> io::Result<Listener> {
    let socket = UdpSocket::bind(listen)?;
    let datagrams = DatagramSocket::set_up(&socket)?;
    shared.datagrams.get_or_init(|| datagrams);
    socket.set_read_timeout(Some(readers::POLL))?;
    let address = socket.local_addr()?;
    let shared = Arc::clone(shared);
    Ok((spawn("datagrams", move || readers::read_datagrams(&socket, &shared))?, Some(address)))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}
