//! The threads behind a live source.

use super::{LiveItem, RejectKind, Shared, spawn};
use crate::framing::{Frame, FrameParser, decode_datagram};
use evb_core::Mark;
use std::{
    io::{self, ErrorKind, Read as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Most front ends that may be connected at a time. When there are as many, a new one replaces the oldest that has sent no
/// frame yet.
const MAX_CONNECTIONS: usize = 16;
/// Reads without data after which a connection has nothing under way.
const SILENT_READS: u64 = 2;
/// Bytes that can be under way in a connection, in the buffers of both ends: above it, two front ends send at once.
const MOST_UNDER_WAY: u64 = 64 << 20;
/// Interval at which a waiting thread checks for a stop.
pub(super) const POLL: Duration = Duration::from_millis(50);
/// Longest wait of a new connection.
pub(super) const ACCEPT_POLL: Duration = Duration::from_millis(5);
/// Bytes read at a time.
const READ_SIZE: usize = 1 << 16;

/// Accepts connections until the source stops, then waits for their readers.
pub(super) fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut readers: Vec<Reader> = Vec::new();
    while !shared.stopped() {
        // Out of file handles or a peer that has gone already: both pass.
        let Ok((stream, peer)) = listener.accept() else {
            thread::park_timeout(ACCEPT_POLL);
            continue;
        };
        if !make_room(&mut readers, shared) {
            shared.reject(RejectKind::TooManyConnections, peer, &[]);
            continue;
        }
        let earlier = readers.iter().map(Earlier::new).collect();
        match Reader::start(stream, peer, earlier, shared) {
            Ok(reader) => readers.push(reader),
            Err(_) => shared.reject(RejectKind::TooManyConnections, peer, &[]),
        }
    }
    for reader in readers {
        // A thread that panicked has said so already.
        let _ = reader.thread.join();
    }
}

/// The thread that reads from one connection, in the order of their coming.
struct Reader {
    thread: thread::JoinHandle<()>,
    peer: SocketAddr,
    /// The connection, which closes when its thread ends.
    stream: Weak<TcpStream>,
    state: Arc<ReaderState>,
}

/// What the threads of a connection tell each other.
#[derive(Default)]
struct ReaderState {
    /// It has sent a frame for this unit: it is a front end.
    is_known: AtomicBool,
    /// It has to go.
    is_dismissed: AtomicBool,
    /// Bytes that it has delivered.
    delivered: AtomicU64,
    /// Reads in a row that found nothing.
    silent: AtomicU64,
    /// It has ended.
    has_ended: AtomicBool,
}

/// An earlier connection, and the bytes that it had delivered when a later one came.
struct Earlier {
    state: Arc<ReaderState>,
    delivered: u64,
}

impl Earlier {
    fn new(reader: &Reader) -> Self {
        Self { state: reader.state.clone(), delivered: reader.state.delivered.load(Ordering::Acquire) }
    }

    /// Returns true if the connection may have fragments that came before the later connection.
    fn is_awaited(&self) -> bool {
        let state = &self.state;
        let is_open = !state.has_ended.load(Ordering::Acquire) && state.silent.load(Ordering::Acquire) < SILENT_READS;
        is_open && state.delivered.load(Ordering::Acquire) - self.delivered < MOST_UNDER_WAY
    }
}

impl Reader {
    /// Starts to read a connection. Its fragments are delivered after those of `earlier` connections.
    fn start(stream: TcpStream, peer: SocketAddr, earlier: Vec<Earlier>, shared: &Arc<Shared>) -> io::Result<Self> {
        let (stream, state) = (Arc::new(stream), Arc::new(ReaderState::default()));
        let (own, its, weak) = (Arc::clone(shared), state.clone(), Arc::downgrade(&stream));
        let thread = spawn("front-end", move || {
            let _open = own.connected(Some(peer));
            read_stream(&stream, peer, &own, (&its, earlier));
            its.has_ended.store(true, Ordering::Release);
        })?;
        Ok(Self { thread, peer, stream: weak, state })
    }
}

/// Makes room for one more connection. Returns false if all places belong to front ends.
fn make_room(readers: &mut Vec<Reader>, shared: &Shared) -> bool {
    readers.retain(|reader| !reader.thread.is_finished());
    if readers.len() < MAX_CONNECTIONS {
        return true;
    }
    let Some(silent) = readers.iter().position(|reader| !reader.state.is_known.load(Ordering::Relaxed)) else {
        return false;
    };
    // Its thread is waited for, so that there are never more threads than places.
    let Reader { thread, peer, stream, state } = readers.remove(silent);
    state.is_dismissed.store(true, Ordering::Relaxed);
    let _closed_before = stream.upgrade().map(|stream| stream.shutdown(Shutdown::Both));
    shared.reject(RejectKind::TooManyConnections, peer, &[]);
    let _ended = thread.join();
    true
}

/// Reads a connection to its end. A front end that connects again may still have fragments in its connection before: the
/// new one delivers its first when the old ones have ended or are silent.
fn read_stream(
    mut stream: &TcpStream,
    peer: SocketAddr,
    shared: &Shared,
    (state, mut earlier): (&ReaderState, Vec<Earlier>),
) {
    if stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(POLL))).is_err() {
        return;
    }
    let mut parser = FrameParser::new(shared.max_fragment);
    let mut bytes = vec![0; READ_SIZE];
    while !shared.stopped() && !state.is_dismissed.load(Ordering::Relaxed) {
        match stream.read(&mut bytes) {
            Ok(read) if read > 0 => {
                state.silent.store(0, Ordering::Release);
                parser.push(&bytes[..read]);
                let alive = drain(&mut parser, peer, &bytes[..read], shared, (state, &mut earlier));
                shared.wake();
                if !alive {
                    return;
                }
                state.delivered.fetch_add(read as u64, Ordering::Release);
            }
            Err(error) if passes(&error) => _ = state.silent.fetch_add(1, Ordering::Release),
            _ => {
                if !parser.is_at_boundary() {
                    shared.reject(RejectKind::CutOff, peer, parser.unfinished());
                }
                return;
            }
        }
    }
}

/// Delivers all whole frames; returns false if the stream cannot be used any more. `read` is the last input.
fn drain(
    parser: &mut FrameParser,
    peer: SocketAddr,
    read: &[u8],
    shared: &Shared,
    (state, earlier): (&ReaderState, &mut Vec<Earlier>),
) -> bool {
    loop {
        match parser.pop() {
            Ok(None) => return true,
            Ok(Some(frame)) => {
                let is_ours = frame.source == shared.unit;
                if is_ours && !state.is_known.load(Ordering::Relaxed) {
                    state.is_known.store(true, Ordering::Relaxed);
                    shared.note_sender(peer);
                }
                if is_ours && !let_pass(earlier, shared, state) {
                    return false;
                }
                if !take(frame, peer, shared) {
                    return false;
                }
            }
            Err(error) => {
                shared.reject_frame(error, peer, read);
                if error.ends_stream() {
                    return false;
                }
            }
        }
    }
}

/// Waits until no earlier connection may have fragments that came before; returns false if the connection has to go.
fn let_pass(earlier: &mut Vec<Earlier>, shared: &Shared, state: &ReaderState) -> bool {
    while earlier.iter().any(Earlier::is_awaited) {
        if shared.stopped() || state.is_dismissed.load(Ordering::Relaxed) {
            return false;
        }
        thread::park_timeout(ACCEPT_POLL);
    }
    earlier.clear();
    true
}

/// Receives datagrams until the source stops.
pub(super) fn read_datagrams(socket: &UdpSocket, shared: &Shared) {
    let mut bytes = vec![0; READ_SIZE];
    let (mut open, mut sender) = (None, None);
    while !shared.stopped() {
        match socket.recv_from(&mut bytes) {
            Ok((read, peer)) => match decode_datagram(&bytes[..read], shared.max_fragment) {
                Ok(frame) => {
                    if frame.source == shared.unit && sender.replace(peer) != Some(peer) {
                        open.get_or_insert_with(|| shared.connected(None));
                        shared.note_sender(peer);
                    }
                    if !take(frame, peer, shared) {
                        return;
                    }
                    shared.wake();
                }
                Err(error) => shared.reject_frame(error, peer, &bytes[..read]),
            },
            Err(error) if passes(&error) => {}
            // An error of a datagram socket belongs to one datagram; do not spin if it does not.
            Err(_) => thread::park_timeout(ACCEPT_POLL),
        }
    }
}

/// Delivers one frame; returns false if the receiver is gone.
fn take(frame: Frame, peer: SocketAddr, shared: &Shared) -> bool {
    if frame.source != shared.unit {
        shared.reject(RejectKind::WrongSource, peer, &frame.payload);
        return true;
    }
    let counter = frame.counter & shared.counter_mask;
    shared.deliver(item(frame, counter))
}

/// The item of a frame whose counter is cut to its width.
pub(super) fn item(frame: Frame, counter: u64) -> LiveItem {
    if frame.end_of_run {
        return LiveItem::EndOfRun { counter: Some(counter), sent: frame.mark };
    }
    let Frame { resynchronised, good, mark, payload, .. } = frame;
    LiveItem::Fragment { counter, resynchronised, mark: mark.map(Mark::new), good, bytes: payload }
}

pub(super) fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
