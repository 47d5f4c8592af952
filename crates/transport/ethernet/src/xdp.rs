//! A receive queue of an interface and a socket of AF_XDP: frames pass by most of the kernel, and with a driver that can
//! share its memory all of it. A program that the driver runs for each frame gives the node its own ones, and leaves all
//! others to the kernel.
//!
//! AF_XDP is used only on request and never given up silently: it takes the place of other programs at an interface,
//! needs more capabilities and one receive queue, and drivers may reset a card for it. The program of 22 instructions
//! is our own, since a loader of programs would be larger than everything here.
//!
//! # Safety
//! Frames are in one memory, which the kernel and this process use in turn: a piece of it belongs to the ring in
//! which it is, or to this module between two rings. The socket is closed before that memory is freed, since fields are
//! dropped in their order; and no frame outlives the call in which it was taken from a ring or given to one.

#![allow(unsafe_code, reason = "memory that the kernel writes to")]

mod program;

use crate::{
    frame::MOST_ETHERNET_BYTES,
    interface::{Address, Failure},
    packet::Found,
};
use program::Link;
use rustix::{
    io::Errno,
    net::{SendFlags, send, sockopt::set_socket_send_buffer_size},
};
use std::{
    collections::VecDeque,
    fmt,
    io::{self, ErrorKind},
    os::fd::{AsRawFd, BorrowedFd},
    thread,
    time::{Duration, Instant},
};
use xdp::{
    CompletionRing, FillRing, Packet, RingConfig, RingConfigBuilder, RxRing, TxRing, Umem,
    nic::NicIndex,
    slab::Slab,
    socket::{SocketError, XdpSocket, XdpSocketBuilder},
    umem::{FrameSize, UmemCfg, UmemCfgBuilder},
};

/// The only queue of the interface.
const QUEUE: u32 = 0;
/// Frames on their way out, at most; a power of two.
const SENDING: usize = 512;
/// Most frames that are received at once.
const MOST_AT_ONCE: usize = 256;
/// Bytes of frames that may wait in the kernel to be sent.
const SEND_BUFFER_BYTES: usize = 4 << 20;
/// Calls that push out frames, each some of them, before the rest waits for the next time.
const MOST_PUSHES: usize = 2 * SENDING / 32;
/// Bytes that the kernel keeps free before a frame (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;

/// Longest time that a node waits for an interface that another one has, and the time between two attempts.
const PATIENCE: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(5);

/// A queue of an interface.
pub(super) struct Queue {
    /// Is dropped first, and so takes the program away before its socket closes.
    _link: Link,
    socket: XdpSocket,
    fill: FillRing,
    arrived: RxRing,
    outgoing: TxRing,
    sent: CompletionRing,
    memory: Umem,
    /// Frames between a ring and this module. None stays there longer than a call.
    received: Pieces,
    ready: Pieces,
    /// Frames that fit into the memory for those that arrive.
    frames: usize,
    /// Frames that the kernel has not sent yet.
    sending: usize,
    /// The kernel did not take all frames of the ring.
    is_stuck: bool,
}

// SAFETY: the pointers of pieces point into `memory`, which moves with them.
unsafe impl Send for Queue {}

impl Queue {
    /// Opens the only queue of an interface, with about `bytes` for frames that arrive.
    pub(super) fn open(found: &Found, address: Address, bytes: usize) -> Result<Self, Failure> {
        let begin = Instant::now();
        loop {
            match Self::try_open(found, address, bytes) {
                // The kernel frees the queue of a node that has just ended a little later. Its program stays as long as a
                // process has the file that holds it, as one does that is being forked.
                Err((_, error)) if error.kind() == ErrorKind::ResourceBusy && begin.elapsed() < PATIENCE => {
                    thread::sleep(RETRY);
                }
                outcome => return outcome,
            }
        }
    }

    fn try_open(found: &Found, address: Address, bytes: usize) -> Result<Self, Failure> {
        let index = NicIndex(found.index as u32);
        only_queue(index).map_err(failed("looking at its queues"))?;
        let (frame_size, chunk) = chunk_of(found.mtu).map_err(failed("looking at the length of its frames"))?;
        let frames = (bytes / chunk).next_power_of_two();
        let (memory, rings) = sizes(frame_size, frames).map_err(failed("choosing sizes"))?;
        let mut memory = Umem::map(memory).map_err(failed("mapping memory"))?;
        let mut socket = XdpSocketBuilder::new().map_err(refused("opening a socket"))?;
        let (rings, flags) = socket.build_rings(&memory, rings).map_err(refused("making rings"))?;
        let (mut fill, sent) = (rings.fill_ring, rings.completion_ring);
        let both = rings.rx_ring.zip(rings.tx_ring);
        let (arrived, outgoing) = both.ok_or(("making rings", ErrorKind::Unsupported.into()))?;
        // SAFETY: the memory outlives the socket.
        unsafe { fill.enqueue(&mut memory, frames) };
        let link = Link::attach(found.index as u32, address).map_err(failed("attaching a program"))?;
        let socket = socket.bind(index, QUEUE, flags).map_err(refused("binding a socket"))?;
        link.give(QUEUE, file_of(&socket)).map_err(failed("giving frames to the socket"))?;
        // The limit of the system holds if this is above it.
        let _unless_refused = set_socket_send_buffer_size(file_of(&socket), SEND_BUFFER_BYTES);
        let (received, ready) = (Pieces::new(MOST_AT_ONCE), Pieces::new(SENDING));
        let (sending, is_stuck) = (0, false);
        Ok(Self {
            _link: link,
            socket,
            fill,
            arrived,
            outgoing,
            sent,
            memory,
            received,
            ready,
            frames,
            sending,
            is_stuck,
        })
    }

    /// Frames that the queue holds for this node.
    pub(super) const fn frames(&self) -> usize {
        self.frames
    }

    /// Sends frames, but those without bytes. Returns how many were taken, with those left out before them.
    #[inline]
    pub(super) fn send(&mut self, frames: &[&[u8]]) -> usize {
        if self.is_stuck && !self.push_out() {
            return 0;
        }
        self.sending -= self.sent.dequeue(&mut self.memory, SENDING);
        let mut taken = 0;
        for frame in frames {
            if !frame.is_empty() && !self.put(frame) {
                break;
            }
            taken += 1;
        }
        // SAFETY: the memory outlives the socket.
        unsafe { self.outgoing.send(&mut self.ready) };
        self.push_out();
        taken
    }

    /// Copies a frame into the memory; false if there is no room. A frame that is too long is lost, as on a wire.
    #[inline]
    fn put(&mut self, frame: &[u8]) -> bool {
        if self.sending == SENDING {
            return false;
        }
        // SAFETY: the frame goes to the ring, or back.
        let Some(mut packet) = (unsafe { self.memory.alloc() }) else { return false };
        if packet.append(frame).is_err() {
            self.memory.free_packet(packet);
            return true;
        }
        self.sending += 1;
        self.ready.push_front(packet);
        true
    }

    /// Lets the kernel send what is in the ring, of which each call takes a part. Returns false if it has no room now. An
    /// interface that refuses frames is a wire that loses them.
    #[inline]
    fn push_out(&mut self) -> bool {
        let outcome = (0..MOST_PUSHES).find_map(|_| match send(file_of(&self.socket), &[], SendFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => None,
            outcome => Some(outcome),
        });
        self.is_stuck = matches!(outcome, None | Some(Err(Errno::NOBUFS | Errno::BUSY)));
        !self.is_stuck
    }

    /// Calls `take` with at most `limit` frames; returns their number.
    #[inline]
    pub(super) fn receive(&mut self, limit: usize, take: &mut dyn FnMut(&[u8])) -> usize {
        if self.is_stuck {
            self.push_out();
        }
        self.received.most = limit.min(MOST_AT_ONCE);
        // SAFETY: the frames go back to the memory before this returns.
        let count = unsafe { self.arrived.recv(&self.memory, &mut self.received) };
        while let Some(packet) = self.received.pop_back() {
            take(&packet);
            self.memory.free_packet(packet);
        }
        if count > 0 {
            // SAFETY: the memory outlives the socket.
            unsafe { self.fill.enqueue(&mut self.memory, count) };
        }
        count
    }

    /// The socket.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        file_of(&self.socket)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("frames", &self.frames).field("sending", &self.sending).finish_non_exhaustive()
    }
}

/// Frames between a ring and this module, first in, first out.
struct Pieces {
    packets: VecDeque<Packet>,
    most: usize,
}

impl Pieces {
    fn new(most: usize) -> Self {
        Self { packets: VecDeque::with_capacity(most), most }
    }
}

impl Slab for Pieces {
    fn available(&self) -> usize {
        self.most - self.packets.len()
    }

    fn len(&self) -> usize {
        self.packets.len()
    }

    fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    fn push_front(&mut self, packet: Packet) -> Option<Packet> {
        if self.available() == 0 {
            return Some(packet);
        }
        self.packets.push_front(packet);
        None
    }

    fn pop_back(&mut self) -> Option<Packet> {
        self.packets.pop_back()
    }
}

/// Checks that an interface has one receive queue: a socket hears one queue, and which one a frame takes is up to the
/// interface.
fn only_queue(index: NicIndex) -> io::Result<()> {
    match index.queue_counts()?.rx_count() {
        0 | 1 => Ok(()),
        several => Err(io::Error::new(
            ErrorKind::Unsupported,
            format!("it has {several} receive queues, and only one can be heard"),
        )),
    }
}

/// The size of a piece of memory that takes a frame with `mtu` bytes behind its Ethernet header, as such and in bytes.
fn chunk_of(mtu: usize) -> io::Result<(FrameSize, usize)> {
    let needed = HEADROOM + MOST_ETHERNET_BYTES + mtu;
    let sizes = [(FrameSize::TwoK, 2048), (FrameSize::FourK, 4096)];
    let size = sizes.into_iter().find(|&(_, bytes)| needed <= bytes);
    size.ok_or_else(|| {
        let most = 4096 - HEADROOM - MOST_ETHERNET_BYTES;
        io::Error::new(ErrorKind::Unsupported, format!("frames have at most {most} bytes there, and not {mtu}"))
    })
}

/// The sizes of the memory and of the rings.
fn sizes(frame_size: FrameSize, frames: usize) -> io::Result<(UmemCfg, RingConfig)> {
    let memory = UmemCfgBuilder { frame_size, frame_count: (frames + SENDING) as u32, ..Default::default() };
    let rings = RingConfigBuilder {
        rx_count: frames as u32,
        fill_count: frames as u32,
        tx_count: SENDING as u32,
        completion_count: SENDING as u32,
    };
    Ok((memory.build().map_err(io::Error::other)?, rings.build().map_err(io::Error::other)?))
}

fn file_of(socket: &XdpSocket) -> BorrowedFd<'_> {
    // SAFETY: the socket keeps its file open.
    unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) }
}

fn failed(step: &'static str) -> impl Fn(io::Error) -> Failure {
    move |source| (step, source)
}

fn refused(step: &'static str) -> impl Fn(SocketError) -> Failure {
    move |error| match error {
        SocketError::SocketCreation(source) | SocketError::Bind(source) => (step, source),
        SocketError::SetSockOpt { inner, .. }
        | SocketError::GetSockOpt { inner, .. }
        | SocketError::RingMap { inner, .. } => (step, inner),
    }
}
