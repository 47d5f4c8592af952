//! Live front ends: they connect by TCP, listen for a connection, or send UDP datagrams, and deliver fragments when they
//! have them.
//!
//! One thread listens or connects, and one thread reads each connection. A [`Link`] is what these threads share, and the
//! frames of each source of it go through an [`Outlet`] with a bounded queue. A full queue stops the readers: TCP then slows
//! its front end down, and UDP loses datagrams, which leaves a gap in the event counter. Anything else is counted by kind,
//! outside the queue, so that it cannot displace good fragments.

pub(crate) mod connector;
mod inlet;
mod link;
mod memory;
mod outlet;
mod parser;
mod queue;
pub(crate) mod quiet;
pub(crate) mod readers;
pub(crate) mod serial;
mod shared;
mod sliced;
mod sockets;
mod streams;

use crate::{FrameError, FrontEndLink, HitFault, LiveSpec, OpenOptions, SourceError, path::resolve};
use bytes::Bytes;
use evb_core::Mark;
pub use inlet::INLET_BITS;
use link::Link;
use outlet::Outlet;
use parser::Frames;
pub use shared::{SharedLinks, note_shared_links};
use sliced::Slices;
pub use sockets::DatagramBuffer;
use sockets::DatagramSocket;
use std::{
    collections::VecDeque,
    fmt, io,
    net::{SocketAddr, TcpListener, UdpSocket},
    sync::{Arc, atomic::Ordering},
    thread::{self, JoinHandle},
    time::Duration,
};
pub(crate) use streams::MOST_FLOWS;

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

/// A source that front ends deliver to. Dropping the last one of a link closes its port and all connections and ends their
/// threads.
pub struct LiveSource {
    /// Items that were taken from the queue.
    taken: VecDeque<LiveItem>,
    slices: Option<Box<Slices>>,
    outlet: Arc<Outlet>,
    link: Arc<Link>,
}

/// The thread that listens, and its address if it has one on a network.
type Listener = (JoinHandle<()>, Option<SocketAddr>);

impl LiveSource {
    /// Binds the address of `spec`, or starts to connect to it, or opens its file. `waker` is called, from other threads,
    /// when [`try_next`](Self::try_next) may have something new. A source that shares its link is started by
    /// [`SharedLinks`].
    ///
    /// # Errors
    /// If its counter width is not 1 to 64, its address cannot be bound, or its file cannot be opened.
    pub fn start(
        spec: &LiveSpec,
        options: &OpenOptions,
        waker: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Self, SourceError> {
        let link = Link::new(Frames::new(spec, options)?, spec.link.file().is_some(), 1);
        Self::join(link, spec, options, waker)
    }

    /// Joins a link. The last of its sources begins to read it.
    fn join(
        link: Arc<Link>,
        spec: &LiveSpec,
        options: &OpenOptions,
        waker: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Self, SourceError> {
        let id = spec.source_id().unwrap_or_else(|| options.unit.into());
        let slices = Slices::new(spec, link.frames.framing.as_ref(), options).map(Box::new);
        let outlet = Arc::new(Outlet::new(id, link.frames.max_fragment, waker));
        let source = Self { taken: VecDeque::new(), slices, outlet, link };
        if source.link.join(&source.outlet) {
            begin(&spec.link, options, &source.link)?;
        }
        Ok(source)
    }

    /// The address that front ends deliver to; none for an [`inlet`](Self::inlet).
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.link.local_addr()
    }

    /// The receive buffer of a source of datagrams; `None` for others. Of the sources that share it the first one has it.
    pub fn datagram_buffer(&self) -> Option<DatagramBuffer> {
        let socket = self.link.datagrams.get().filter(|_| self.link.is_first(&self.outlet));
        socket.map(DatagramSocket::buffer)
    }

    /// The connections at present.
    pub fn connections(&self) -> Connections {
        self.link.connections()
    }

    /// Returns true if nothing that front ends have sent before the call is on its way to the queue: what
    /// [`try_next`](Self::try_next) returns after that is all of it. Sockets are watched if the framing has times; a
    /// file is on its way until its end.
    pub fn is_quiet(&self) -> bool {
        self.link.sockets.are_quiet()
    }

    /// The next item, if there is one.
    pub fn try_next(&mut self) -> Option<LiveItem> {
        let rejected = self.outlet.next_rejection();
        let next = rejected.or_else(|| match self.slices {
            Some(_) => self.next_sliced(),
            None => self.outlet.queue.next(&mut self.taken),
        });
        if next.is_none() {
            self.outlet.is_starved.store(true, Ordering::Relaxed);
        }
        next
    }

    /// Time for which the source had no room for more, and so stopped its link, while other sources of the link had nothing.
    pub fn held_up(&self) -> Duration {
        Duration::from_millis(self.outlet.held_up_ms.load(Ordering::Relaxed))
    }
}

impl Drop for LiveSource {
    fn drop(&mut self) {
        let is_last = self.link.leave();
        // Readers that wait for room in the queue go on, or end.
        self.outlet.queue.close();
        if is_last {
            self.link.end();
        }
    }
}

/// Starts to read a link whose sources are all there.
fn begin(from: &FrontEndLink, options: &OpenOptions, link: &Arc<Link>) -> Result<(), SourceError> {
    let listener = match from {
        FrontEndLink::Tcp(address) => start_tcp(address, link),
        FrontEndLink::Udp(address) => start_udp(address, link),
        FrontEndLink::TcpClient(address) => connector::start(address, link),
        FrontEndLink::Serial { device, baud } => serial::start((device, *baud), link),
        FrontEndLink::File(file) => readers::start_file(&resolve(file, &options.data_directory)?, link),
        FrontEndLink::Capture { file, port, paced } => {
            readers::start_capture(&resolve(file, &options.data_directory)?, (*port, *paced), link)
        }
        FrontEndLink::Eudaq { file, producer } => {
            readers::start_eudaq(&resolve(file, &options.data_directory)?, producer, link)
        }
    };
    let failed = |error| match from {
        FrontEndLink::Tcp(address) | FrontEndLink::Udp(address) | FrontEndLink::TcpClient(address) => {
            SourceError::Listen { address: address.clone(), error }
        }
        FrontEndLink::Serial { device, .. } => SourceError::Open { path: device.clone(), error },
        FrontEndLink::File(file) | FrontEndLink::Capture { file, .. } | FrontEndLink::Eudaq { file, .. } => {
            let path = resolve(file, &options.data_directory).unwrap_or_else(|_| file.clone());
            SourceError::Open { path, error }
        }
    };
    link.begin(listener.map_err(failed)?);
    Ok(())
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

fn start_tcp(listen: &str, link: &Arc<Link>) -> io::Result<Listener> {
    let listener = TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let link = Arc::clone(link);
    Ok((spawn("listener", move || readers::accept(&listener, &link))?, Some(address)))
}

fn start_udp(listen: &str, link: &Arc<Link>) -> io::Result<Listener> {
    let socket = UdpSocket::bind(listen)?;
    let datagrams = DatagramSocket::set_up(&socket)?;
    link.datagrams.get_or_init(|| datagrams);
    socket.set_read_timeout(Some(readers::POLL))?;
    let address = socket.local_addr()?;
    let link = Arc::clone(link);
    Ok((spawn("datagrams", move || readers::read_datagrams(&socket, &link))?, Some(address)))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}
