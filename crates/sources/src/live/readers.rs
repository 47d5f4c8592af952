//! The threads behind a live source.

use super::{LiveItem, RejectKind, Shared, spawn};
use crate::framing::{Frame, FrameParser, decode_datagram};
use evb_core::Mark;
use std::{
    io::{self, ErrorKind, Read as _},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::Arc,
    thread,
    time::Duration,
};

/// Most front ends that may be connected at a time.
const MAX_CONNECTIONS: usize = 16;
/// Interval at which a waiting thread checks for a stop.
pub(super) const POLL: Duration = Duration::from_millis(50);
/// Longest wait of a new connection.
pub(super) const ACCEPT_POLL: Duration = Duration::from_millis(5);
/// Bytes read at a time.
const READ_SIZE: usize = 1 << 16;

/// Accepts connections until the source stops, then waits for their readers.
pub(super) fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut readers = Vec::new();
    while !shared.stopped() {
        // Out of file handles or a peer that has gone already: both pass.
        let Ok((stream, peer)) = listener.accept() else {
            thread::park_timeout(ACCEPT_POLL);
            continue;
        };
        readers.retain(|reader: &thread::JoinHandle<()>| !reader.is_finished());
        let own = Arc::clone(shared);
        let room = readers.len() < MAX_CONNECTIONS;
        match room.then(|| spawn("front-end", move || read_stream(stream, peer, &own))) {
            Some(Ok(reader)) => readers.push(reader),
            _ => shared.reject(RejectKind::TooManyConnections, peer, &[]),
        }
    }
    for reader in readers {
        // A thread that panicked has said so already.
        let _ = reader.join();
    }
}

fn read_stream(mut stream: TcpStream, peer: SocketAddr, shared: &Shared) {
    if stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(POLL))).is_err() {
        return;
    }
    let mut parser = FrameParser::new(shared.max_fragment);
    let mut bytes = vec![0; READ_SIZE];
    while !shared.stopped() {
        match stream.read(&mut bytes) {
            Ok(read) if read > 0 => {
                parser.push(&bytes[..read]);
                let alive = drain(&mut parser, peer, &bytes[..read], shared);
                shared.wake();
                if !alive {
                    return;
                }
            }
            Err(error) if passes(&error) => {}
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
fn drain(parser: &mut FrameParser, peer: SocketAddr, read: &[u8], shared: &Shared) -> bool {
    loop {
        match parser.pop() {
            Ok(None) => return true,
            Ok(Some(frame)) => {
                if !take(frame, peer, shared) {
                    return false;
                }
            }
            Err(error) => {
                shared.reject(error.into(), peer, read);
                if error.ends_stream() {
                    return false;
                }
            }
        }
    }
}

/// Receives datagrams until the source stops.
pub(super) fn read_datagrams(socket: &UdpSocket, shared: &Shared) {
    let mut bytes = vec![0; READ_SIZE];
    while !shared.stopped() {
        match socket.recv_from(&mut bytes) {
            Ok((read, peer)) => match decode_datagram(&bytes[..read], shared.max_fragment) {
                Ok(frame) => {
                    if !take(frame, peer, shared) {
                        return;
                    }
                    shared.wake();
                }
                Err(error) => shared.reject(error.into(), peer, &bytes[..read]),
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
