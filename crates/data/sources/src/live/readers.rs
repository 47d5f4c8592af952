//! The threads behind a live source.

use super::{
    Listener, LiveItem, Refused, RejectKind,
    link::Link,
    parser::{Parsed, Parser},
    quiet::SocketWatch,
    serial::SerialLine,
    sockets::keep_alive,
    spawn,
    streams::Streams,
};
use crate::{
    capture::{Capture, Flow},
    eudaq::{EudaqError, EudaqEvent, EudaqFault, EudaqProducer, EudaqReader},
    framing::FrameError,
};
use bytes::Bytes;
use evb_core::Mark;
use std::{
    fs::File,
    io::{self, BufReader, ErrorKind, Read},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket},
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Most front ends that may be connected at a time. When there are as many, a new one replaces the oldest that has sent no
/// frame yet.
pub(super) const MAX_CONNECTIONS: usize = 16;
/// Reads without data after which a connection has nothing under way.
const SILENT_READS: u64 = 2;
/// Bytes that can be under way in a connection, in the buffers of both ends: above it, two front ends send at once.
const MOST_UNDER_WAY: u64 = 64 << 20;
/// Interval at which a waiting thread checks for a stop.
pub(super) const POLL: Duration = Duration::from_millis(50);
/// Longest wait of a new connection.
pub(super) const ACCEPT_POLL: Duration = Duration::from_millis(5);
/// Bytes read at a time.
pub(super) const READ_SIZE: usize = 1 << 16;

/// Accepts connections until the source stops, then waits for their readers.
pub(super) fn accept(listener: &TcpListener, link: &Arc<Link>) {
    let mut readers: Vec<Reader> = Vec::new();
    while !link.stopped() {
        // Out of file handles or a peer that has gone already: both pass.
        let Ok((stream, peer)) = listener.accept() else {
            thread::park_timeout(ACCEPT_POLL);
            continue;
        };
        if !make_room(&mut readers, link) {
            link.reject(RejectKind::TooManyConnections, Some(peer), &[]);
            continue;
        }
        let earlier = readers.iter().map(Earlier::new).collect();
        match Reader::start(stream, peer, earlier, link) {
            Ok(reader) => readers.push(reader),
            Err(_) => link.reject(RejectKind::TooManyConnections, Some(peer), &[]),
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
    fn start(stream: TcpStream, peer: SocketAddr, earlier: Vec<Earlier>, link: &Arc<Link>) -> io::Result<Self> {
        let (stream, state) = (Arc::new(stream), Arc::new(ReaderState::default()));
        let (own, its, weak) = (Arc::clone(link), state.clone(), Arc::downgrade(&stream));
        let thread = spawn("front-end", move || {
            let _open = own.connected(Some(peer));
            read_stream(&stream, peer, &own, (&its, earlier));
            its.has_ended.store(true, Ordering::Release);
        })?;
        Ok(Self { thread, peer, stream: weak, state })
    }
}

/// Makes room for one more connection. Returns false if all places belong to front ends.
fn make_room(readers: &mut Vec<Reader>, link: &Link) -> bool {
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
    link.reject(RejectKind::TooManyConnections, Some(peer), &[]);
    let _ended = thread.join();
    true
}

/// Reads a connection to its end. A front end that connects again may still have fragments in its connection before: the
/// new one delivers its first when the old ones have ended or are silent.
fn read_stream(stream: &TcpStream, peer: SocketAddr, link: &Link, (state, earlier): (&ReaderState, Vec<Earlier>)) {
    let set_up = || {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(POLL))?;
        Ok::<_, io::Error>(keep_alive(stream)?)
    };
    if set_up().is_ok() {
        let watch = link.frames.have_times().then(|| link.sockets.watch(stream)).transpose();
        // Without a file descriptor for the watch there would be no way to tell when the source is quiet.
        let Ok(watch) = watch else { return link.reject(RejectKind::TooManyConnections, Some(peer), &[]) };
        Reading { peer: Some(peer), link, state, earlier, watch }.run(stream);
    }
}

/// Reads what a front end that was connected to sends, until it ends the connection.
pub(super) fn read_connected(stream: &TcpStream, peer: SocketAddr, link: &Link) {
    let _open = link.connected(Some(peer));
    read_stream(stream, peer, link, (&ReaderState::default(), Vec::new()));
}

/// Reads a serial line until it is gone.
pub(super) fn read_serial(line: SerialLine, link: &Link) {
    let watch = link.frames.have_times().then(|| link.sockets.watch(&line)).transpose();
    // Without a file descriptor for the watch, the line is opened again later.
    let Ok(watch) = watch else { return thread::park_timeout(ACCEPT_POLL) };
    let (_open, state) = (link.connected(None), ReaderState::default());
    Reading { peer: None, link, state: &state, earlier: Vec::new(), watch }.run(line);
}

/// Opens a file, and starts to read it.
pub(super) fn start_file(path: &Path, link: &Arc<Link>) -> io::Result<Listener> {
    let (file, link) = (File::open(path)?, Arc::clone(link));
    let read = move || {
        let _open = link.connected(None);
        let state = ReaderState::default();
        let watch = Some(link.sockets.watch_file());
        Reading { peer: None, link: &link, state: &state, earlier: Vec::new(), watch }.run(file);
        link.end_of_data();
    };
    Ok((spawn("file", read)?, None))
}

/// Opens a capture file, and starts to read the datagrams to a port.
pub(super) fn start_capture(path: &Path, (port, paced): (Option<u16>, bool), link: &Arc<Link>) -> io::Result<Listener> {
    let (capture, link) = (Capture::open(path, port)?, Arc::clone(link));
    let read = move || {
        let _open = link.connected(None);
        read_capture(capture, paced, &link);
        link.end_of_data();
    };
    Ok((spawn("capture", read)?, None))
}

fn read_capture(mut capture: Capture, paced: bool, link: &Link) {
    let mut datagrams = Datagrams::new(link);
    let (start, mut first) = (Instant::now(), None);
    let watch = link.sockets.watch_file();
    let mut next = || {
        capture.next(|time, flow, datagram| {
            let since = Duration::from_nanos(time.saturating_sub(*first.get_or_insert(time)));
            watch.set_busy(!paced);
            while paced && !link.stopped() && start.elapsed() < since {
                thread::park_timeout((since - start.elapsed().min(since)).min(POLL));
            }
            watch.set_busy(true);
            datagrams.take(flow, datagram, |_, _| ());
        })
    };
    let end = loop {
        match next() {
            Ok(true) if !link.stopped() => {}
            Ok(_) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    datagrams.end();
    if let Err(error) = end {
        link.reject(RejectKind::CutOff, None, error.to_string().as_bytes());
    }
    if capture.unreadable() > 0 {
        link.refuse(RejectKind::Unreadable, capture.unreadable(), || Refused::new(None, &[]));
    }
}

/// Opens a file of EUDAQ, and starts to read the events of a producer.
pub(super) fn start_eudaq(path: &Path, producer: &EudaqProducer, link: &Arc<Link>) -> io::Result<Listener> {
    let input = BufReader::with_capacity(READ_SIZE, File::open(path)?);
    let (mut reader, link) = (EudaqReader::new(input, producer.clone(), link.frames.max_fragment), Arc::clone(link));
    let read = move || {
        let _open = link.connected(None);
        let _watch = link.sockets.watch_file();
        let end = loop {
            match reader.next(|event| take_event(event, &link)) {
                Ok(true) if !link.stopped() => link.wake(),
                Ok(_) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(EudaqError { event, fault, .. }) = end {
            let refused = || Refused { offset: Some(event), ..Refused::new(None, reader.unfinished()) };
            link.refuse(reject_kind(&fault), 1, refused);
        }
        link.end_of_data();
    };
    Ok((spawn("eudaq", read)?, None))
}

/// Delivers an event of a producer. If the receiver is gone, the source has been stopped.
fn take_event(EudaqEvent { number, mark, clock, length, bytes, .. }: EudaqEvent, link: &Link) {
    let limit = link.frames.max_fragment;
    if length > u64::from(limit) {
        let error = FrameError::Oversized { bytes: u32::try_from(length).unwrap_or(u32::MAX), limit };
        return link.reject_frame(error, None, &bytes);
    }
    let (counter, mark) = (u64::from(number) & link.frames.counter_mask, mark.map(Mark::new));
    link.deliver(0, LiveItem::Fragment { counter, resynchronised: false, mark, clock, good: true, bytes });
}

const fn reject_kind(fault: &EudaqFault) -> RejectKind {
    match fault {
        EudaqFault::CutOff | EudaqFault::Read(_) => RejectKind::CutOff,
        EudaqFault::Unknown => RejectKind::Garbage,
        EudaqFault::TooMany(_) => RejectKind::Field,
    }
}

/// The reading of one connection.
struct Reading<'a> {
    peer: Option<SocketAddr>,
    link: &'a Link,
    state: &'a ReaderState,
    earlier: Vec<Earlier>,
    /// The watch over its socket, if the source has to know when it is quiet.
    watch: Option<SocketWatch<'a>>,
}

impl Reading<'_> {
    fn run(&mut self, mut stream: impl Read) {
        let mut parser = Parser::new(self.link);
        let mut bytes = vec![0; READ_SIZE];
        while !self.link.stopped() && !self.state.is_dismissed.load(Ordering::Relaxed) {
            let has_come = self.watch.as_ref().is_none_or(SocketWatch::wait);
            let read = if has_come { stream.read(&mut bytes) } else { Err(ErrorKind::WouldBlock.into()) };
            match read {
                Ok(read) if read > 0 => {
                    self.state.silent.store(0, Ordering::Release);
                    parser.push(&bytes[..read]);
                    if !self.drain(&mut parser, &bytes[..read], false) {
                        return;
                    }
                    self.state.delivered.fetch_add(read as u64, Ordering::Release);
                }
                Err(error) if passes(&error) => {
                    self.state.silent.fetch_add(1, Ordering::Release);
                    if !parser.is_at_boundary() && !self.drain(&mut parser, &[], true) {
                        return;
                    }
                }
                _ => return self.end(&mut parser),
            }
        }
    }

    /// Delivers what can be told when no more bytes come.
    fn end(&mut self, parser: &mut Parser) {
        if self.drain(parser, &[], true) && !parser.is_at_boundary() {
            self.link.reject(RejectKind::CutOff, self.peer, parser.unfinished());
        }
    }

    /// Delivers all whole frames; returns false if the stream cannot be used any more. `read` is the last input, and
    /// `settles` says that nothing has come for a while.
    fn drain(&mut self, parser: &mut Parser, read: &[u8], settles: bool) -> bool {
        let (link, peer) = (self.link, self.peer);
        drain(parser, (link, peer), read, settles, |parsed| {
            self.let_pass(parsed.to.is_some()) && take(parsed, peer, link)
        })
    }

    /// Waits, before the first frame for this source, until no earlier connection may have fragments that came before;
    /// returns false if the connection has to go.
    fn let_pass(&mut self, is_ours: bool) -> bool {
        if !is_ours {
            return true;
        }
        if !self.state.is_known.swap(true, Ordering::Relaxed) {
            self.link.note_sender(self.peer);
        }
        while self.earlier.iter().any(Earlier::is_awaited) {
            if self.link.stopped() || self.state.is_dismissed.load(Ordering::Relaxed) {
                return false;
            }
            thread::park_timeout(ACCEPT_POLL);
        }
        self.earlier.clear();
        true
    }
}

/// Passes all whole frames of a stream to `take`; returns false if the stream cannot be used any more, or `take` returns
/// false. `read` is the last input, and `settles` says that nothing has come for a while.
pub(super) fn drain(
    parser: &mut Parser,
    (link, peer): (&Link, Option<SocketAddr>),
    read: &[u8],
    settles: bool,
    mut take: impl FnMut(Parsed) -> bool,
) -> bool {
    let is_usable = loop {
        match parser.pop(settles) {
            Ok(None) => break true,
            Ok(Some(parsed)) => {
                if !take(parsed) {
                    break false;
                }
            }
            Err(error) => {
                link.reject_frame(error, peer, parser.skipped().unwrap_or(read));
                if error.ends_stream() || !keep_skipped(error, parser, link) {
                    break false;
                }
            }
        }
    };
    link.wake();
    is_usable
}

/// Delivers the bytes between two frames, up to the size of a fragment. Returns false if all sources have left.
fn keep_skipped(error: FrameError, parser: &Parser, link: &Link) -> bool {
    let skipped = parser.skipped().filter(|_| matches!(error, FrameError::Skipped { .. }));
    skipped.is_none_or(|bytes| {
        let kept = bytes.len().min(link.frames.max_fragment as usize);
        link.deliver(0, LiveItem::Skipped { bytes: Bytes::copy_from_slice(&bytes[..kept]) })
    })
}

/// Receives datagrams until the source stops.
pub(super) fn read_datagrams(socket: &UdpSocket, link: &Link) {
    let mut bytes = vec![0; READ_SIZE];
    let mut datagrams = Datagrams::new(link);
    let (mut open, mut sender) = (None, None);
    let mut note = |from: SocketAddr, parsed: &Parsed| {
        if parsed.to.is_some() && sender.replace(from) != Some(from) {
            open.get_or_insert_with(|| link.connected(None));
            link.note_sender(Some(from));
        }
    };
    let Ok(watch) = link.frames.have_times().then(|| link.sockets.watch(socket)).transpose() else { return };
    while !link.stopped() {
        if !watch.as_ref().is_none_or(SocketWatch::wait) {
            datagrams.settle(&mut note);
            continue;
        }
        match socket.recv_from(&mut bytes) {
            Ok((read, from)) => datagrams.take(Flow { from, to: 0 }, &bytes[..read], &mut note),
            Err(error) if passes(&error) => datagrams.settle(&mut note),
            // An error of a datagram socket belongs to one datagram; do not spin if it does not.
            Err(_) => thread::park_timeout(ACCEPT_POLL),
        }
    }
}

/// The frames of datagrams.
enum Datagrams<'a> {
    /// Each datagram has whole frames.
    Whole(Parser, &'a Link),
    /// Frames go on in the next datagram.
    Streams(Streams<'a>),
}

impl<'a> Datagrams<'a> {
    fn new(link: &'a Link) -> Self {
        match link.frames.framing.as_ref().is_some_and(|framing| framing.across_datagrams) {
            true => Self::Streams(Streams::new(link)),
            false => Self::Whole(Parser::new(link), link),
        }
    }

    /// Delivers frames, each of which `note` sees before, with its sender.
    fn take(&mut self, flow: Flow, datagram: &[u8], mut note: impl FnMut(SocketAddr, &Parsed)) {
        let (parser, link) = match self {
            Self::Streams(streams) => return streams.take(flow, datagram, |parsed| note(flow.from, parsed)),
            Self::Whole(parser, link) => (parser, *link),
        };
        let peer = (!link.is_file).then_some(flow.from);
        parser.read_datagram(datagram, |read| match read {
            Ok(parsed) => {
                note(flow.from, &parsed);
                take(parsed, peer, link)
            }
            Err(error) => {
                link.reject_frame(error, peer, datagram);
                true
            }
        });
        link.wake();
    }

    /// Delivers what can be told when nothing has come for a while.
    fn settle(&mut self, mut note: impl FnMut(SocketAddr, &Parsed)) {
        if let Self::Streams(streams) = self {
            streams.settle(|flow, parsed| note(flow.from, parsed));
        }
    }

    /// Nothing more comes.
    fn end(self) {
        if let Self::Streams(streams) = self {
            streams.end();
        }
    }
}

/// Delivers one frame; returns false if the receiver is gone.
pub(super) fn take(Parsed { to, item }: Parsed, peer: Option<SocketAddr>, link: &Link) -> bool {
    if let Some(to) = to {
        return link.deliver(to, item);
    }
    // Each of the sources in a file takes its own frames out of it.
    if link.is_file {
        return true;
    }
    let payload = if let LiveItem::Fragment { bytes, .. } = &item { bytes.as_ref() } else { &[] };
    link.reject(RejectKind::WrongSource, peer, payload);
    true
}

/// Returns true if an error of a read says only that nothing has come.
pub(crate) fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
