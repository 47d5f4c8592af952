//! One peer: its connection, its outgoing messages, and its state.

use super::{
    LOOKS,
    frame::FrameHeader,
    outbox::{Outbox, WriteProgress},
    reader::FrameReader,
};
use evb_core::NodeId;
use evb_transport::{ChunkPool, Received};
use evb_transport_secure::Channel;
use mio::{Registry, net::TcpStream};
use std::{
    io::{self, Read, Write},
    net::Shutdown,
    time::{Duration, Instant},
};

/// Most reads of one peer before the next has its turn.
const TURN_READS: usize = 2;
/// Most bytes that [`Peer::leave`] reads and discards.
const DISCARD_BYTES: usize = 8 << 20;

/// A connected peer.
#[derive(Debug)]
pub(super) struct Peer {
    node: NodeId,
    channel: Channel<TcpStream>,
    reader: FrameReader,
    pub(super) outbox: Outbox,
    /// True if the socket may have bytes. Events report changes only, so the flag stays until a read finds the socket
    /// empty.
    readable: bool,
    pub(super) writable: bool,
    /// True if the peer has closed: a short read does not mean that nothing more comes.
    closing: bool,
    /// The goodbye is queued.
    left: bool,
    /// The reason why nothing is written any more.
    write_error: Option<String>,
    /// The reason why nothing is read any more.
    failure: Option<String>,
    /// True if bytes arrived since the last check.
    heard: bool,
    last_heard: Instant,
    /// Number of checks since the last bytes.
    silent: u32,
    /// True if frames were sent since the last check.
    spoke: bool,
}

/// The outcome of a peer's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveTurn {
    /// The peer may have more.
    Over,
    /// The peer has nothing now.
    Dry,
    /// The peer is gone; the sink has the news.
    Lost,
}

impl Peer {
    pub(super) fn new(node: NodeId, channel: Channel<TcpStream>, max_body: usize, now: Instant) -> Self {
        Self {
            node,
            channel,
            reader: FrameReader::new(max_body),
            outbox: Outbox::default(),
            readable: true,
            writable: true,
            closing: false,
            left: false,
            write_error: None,
            failure: None,
            heard: true,
            last_heard: now,
            silent: 0,
            spoke: true,
        }
    }

    /// Returns true if messages to this peer can still be sent.
    pub(super) fn takes_messages(&self) -> bool {
        self.write_error.is_none() && self.failure.is_none() && !self.left
    }

    /// Handles an event. Returns true if there may be something to read.
    pub(super) fn on_event(&mut self, event: &mio::event::Event) -> bool {
        self.closing |= event.is_read_closed() || event.is_error();
        self.readable |= event.is_readable() || self.closing;
        self.writable |= event.is_writable() || event.is_write_closed();
        self.readable
    }

    /// Lets the next turn read, although no event said that there is something.
    pub(super) fn guess_readable(&mut self) {
        self.readable = true;
    }

    /// Returns true if the system has bytes of this peer.
    #[cfg(test)]
    pub(super) fn has_bytes(&mut self) -> io::Result<bool> {
        self.channel.stream_mut().peek(&mut [0]).map(|count| count > 0)
    }

    /// Writes waiting messages as far as the socket takes them. Returns true if nothing is left.
    pub(super) fn write(&mut self) -> bool {
        if !self.writable {
            return !self.has_waiting();
        }
        self.spoke |= self.has_waiting();
        match self.outbox.write_to(&mut self.channel).and_then(|written| Ok((written, self.rest_is_sent()?))) {
            Ok((WriteProgress::All, true)) => return true,
            Ok(_) => self.writable = false,
            Err(error) => {
                self.write_error = Some(describe(&error));
                self.outbox.clear();
                self.channel.forget();
                // What the peer sent before is still to be read, up to the same error.
                (self.readable, self.closing) = (true, true);
                return true;
            }
        }
        false
    }

    /// Returns true if something waits to be written.
    pub(super) fn has_waiting(&self) -> bool {
        self.outbox.bytes() > 0 || self.channel.waiting() > 0
    }

    /// Gives the socket what is sealed already. Returns true if nothing is left.
    fn rest_is_sent(&mut self) -> io::Result<bool> {
        match self.channel.flush() {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Appends at most `limit` messages to `sink`, and the news of the peer's end after its last message.
    pub(super) fn receive(&mut self, limit: usize, pool: &mut ChunkPool, sink: &mut Vec<Received>) -> ReceiveTurn {
        let (mut left, mut reads) = (limit, TURN_READS);
        while left > 0 {
            match self.reader.next(pool) {
                Ok(Some(message)) => {
                    sink.push(Received::Message { from: self.node, message });
                    left -= 1;
                }
                Ok(None) if self.failure.is_some() => return self.lost(sink),
                Ok(None) if !self.readable => return ReceiveTurn::Dry,
                Ok(None) if reads == 0 => break,
                Ok(None) => {
                    reads -= 1;
                    self.read(pool);
                }
                Err(error) => {
                    self.failure = Some(error.to_string());
                    return self.lost(sink);
                }
            }
        }
        ReceiveTurn::Over
    }

    /// Makes one of the [`LOOKS`] checks in the longest silence. Sends a sign of life if nothing was sent since the
    /// last check or that was `late`, and gives up a peer that was silent for more checks. Bytes that this node has not
    /// read yet count as heard. Returns true if there is news to receive.
    pub(super) fn tick(&mut self, now: Instant, late: bool) -> bool {
        self.listen(now);
        if (late || !self.spoke) && self.takes_messages() {
            if !self.has_waiting() {
                self.outbox.push_control(FrameHeader::Heartbeat);
            }
            self.write();
        }
        self.spoke = false;
        self.failure.is_some() || self.readable
    }

    /// Counts checks instead of time: a node that was away itself has made none meanwhile.
    fn listen(&mut self, now: Instant) {
        if std::mem::take(&mut self.heard) || self.readable {
            (self.last_heard, self.silent) = (now, 0);
            return;
        }
        self.silent += 1;
        if self.silent > LOOKS && self.failure.is_none() {
            let silence = now.saturating_duration_since(self.last_heard);
            self.failure = Some(format!("it was silent for {:.1} s", silence.as_secs_f64()));
            self.outbox.clear();
            self.channel.forget();
        }
    }

    /// Queues the goodbye; nothing can be queued after it.
    pub(super) fn say_goodbye(&mut self) {
        if self.takes_messages() {
            self.outbox.push_control(FrameHeader::Goodbye);
        }
        self.left = true;
    }

    /// Ends this node's half of the connection. The rest of the peer's data is read, because the system answers a close
    /// over unread bytes with a reset, which would destroy data on their way to the peer.
    pub(super) fn leave(&mut self) {
        let _ = self.channel.stream().shutdown(Shutdown::Write);
        self.discard();
    }

    /// Writes what waits, ends this node's half of the connection after it, and discards the peer's data. Returns true when the
    /// peer has closed, or was silent for `patience` after `start`.
    pub(super) fn is_left(&mut self, start: Instant, patience: Duration) -> bool {
        self.writable = true;
        if self.write() {
            let _ = self.channel.stream().shutdown(Shutdown::Write);
        }
        self.discard() || self.last_heard.max(start).elapsed() >= patience
    }

    /// Discards the peer's data. Returns true if it sends no more.
    pub(super) fn discard(&mut self) -> bool {
        let (mut waste, mut left) = (vec![0; 64 << 10], DISCARD_BYTES);
        while left > 0 {
            match self.channel.stream_mut().read(&mut waste) {
                Ok(0) => return true,
                Ok(count) => {
                    left = left.saturating_sub(count);
                    self.last_heard = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
        false
    }

    /// Removes the connection from the poll.
    pub(super) fn deregister(&mut self, registry: &Registry) {
        // A socket that cannot be taken out is closed in a moment anyway.
        let _ = registry.deregister(self.channel.stream_mut());
    }

    fn read(&mut self, pool: &mut ChunkPool) {
        let result = self.reader.fill(pool, |room| self.channel.read(room));
        self.heard |= self.channel.take_heard();
        match result {
            Ok((0, _)) => self.failure = Some(self.end_of_stream()),
            Ok((_, full)) => {
                self.heard = true;
                self.readable = full || self.closing || self.channel.is_sealed();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => self.failure = Some(self.write_error.take().unwrap_or_else(|| describe(&error))),
        }
    }

    fn end_of_stream(&self) -> String {
        if self.reader.ended() {
            "it left".into()
        } else if self.reader.between_frames() {
            "its connection was closed".into()
        } else {
            "its connection was closed within a message".into()
        }
    }

    fn lost(&mut self, sink: &mut Vec<Received>) -> ReceiveTurn {
        let reason = self.failure.take().unwrap_or_default();
        sink.push(Received::Lost { peer: self.node, reason });
        ReceiveTurn::Lost
    }
}

fn describe(error: &io::Error) -> String {
    format!("its connection failed: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tcp, TcpOptions};
    use evb_transport::{EndpointOptions, Token, conformance::joined};
    use socket2::SockRef;
    use std::{net::TcpListener, thread};

    /// Every Linux has Reno, for everybody.
    #[test]
    fn connections_have_the_congestion_control_that_was_chosen() {
        let endpoint = EndpointOptions::new(2, Token::new([7; Token::BYTES]));
        let options = TcpOptions { congestion_control: Some("reno".to_owned()), ..TcpOptions::new(endpoint) };
        let nodes = joined([0, 1].map(|node| Tcp::bind(NodeId(node), options.clone()).expect("a socket")).into());
        for mut peer in nodes.into_iter().flat_map(|mut node| std::mem::take(&mut node.peers)).flatten() {
            let name = SockRef::from(&*peer.channel.stream_mut()).tcp_congestion().expect("a name");
            assert!(name.starts_with(b"reno"), "{name:?}");
        }
    }

    #[test]
    fn a_peer_is_left_when_it_has_closed_or_was_silent_for_long() {
        const LONG: Duration = Duration::from_secs(60);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let stream = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut other, _) = listener.accept().expect("a connection");
        let mut peer = Peer::new(NodeId(1), Channel::clear(stream), 1 << 20, Instant::now());
        assert!(!peer.is_left(Instant::now(), LONG), "it is there");
        assert!(peer.is_left(Instant::now(), Duration::ZERO), "it is silent");
        assert_eq!(other.read(&mut [0]).expect("the end"), 0, "this half has ended");
        other.write_all(&[1]).expect("no reset");
        assert!(!peer.is_left(Instant::now(), LONG), "it still talks");
        drop(other);
        let start = Instant::now();
        while !peer.is_left(start, LONG) {
            thread::yield_now();
        }
        assert!(start.elapsed() < LONG, "it has closed");
    }
}
