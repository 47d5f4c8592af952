//! A live front end played from any other source: sends its fragments in the documented framing.

mod link;

use crate::{Feed, Frame, HEADER_SIZE, ReadOutcome, Source, SourceError, draw, framing::encode, live::counter_mask};
use bytes::BytesMut;
use evb_core::{EventId, Frequency, Mark};
use link::Link;
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Purpose of the draws of marks, beside seed and event.
const MARK: u64 = 3;
/// Largest UDP datagram over IPv4 in bytes.
const MAX_DATAGRAM: usize = 65_507;
/// Bytes that are sent at once on TCP.
const BATCH: usize = 1 << 16;
/// Interval of progress reports and of checks for a stop.
const TICK: Duration = Duration::from_millis(50);
/// Number of times the end of the run is sent by UDP, which may lose it.
const UDP_ENDS: usize = 3;

/// The protocol of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedProtocol {
    /// Back to back on one connection.
    Tcp,
    /// One datagram each.
    Udp,
}

/// Options of a feed.
#[derive(Clone, Debug)]
pub struct FeedOptions<'a> {
    /// Destination, `host:port`.
    pub to: String,
    /// The protocol.
    pub protocol: FeedProtocol,
    /// The source id in every frame: the index of the readout unit that listens.
    pub unit: u16,
    /// Events per second; by default as fast as the receiver takes them. A feed that falls behind catches up.
    pub rate: Option<Frequency>,
    /// The last event; by default the source's last one, or none.
    pub events: Option<u64>,
    /// Width of the event counter in bits, 1 to 64.
    pub counter_bits: u8,
    /// The counter of the first event.
    pub first_counter: u64,
    /// Seed of the marks. With it, every fragment carries a mark beside its counter: that of its recording, or one
    /// drawn from this seed and the event, equal in all sources.
    pub marked: Option<u64>,
    /// Longest time for connecting.
    pub connect_timeout: Duration,
    /// A flag that ends the feed, with a regular end of run, when it becomes true.
    pub stop: &'a AtomicBool,
}

/// Progress of a feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedProgress {
    /// Events processed.
    pub events: u64,
    /// Fragments sent.
    pub fragments: u64,
    /// Fragments sent with the damaged flag: corrupted or truncated.
    pub damaged: u64,
    /// Events without a fragment.
    pub missing: u64,
    /// Payload bytes sent.
    pub bytes: u64,
}

/// The reason why a feed ends early.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The address is invalid, or its name cannot be resolved.
    #[error("{to:?} is not a valid destination: {error}")]
    Address {
        /// The address as written.
        to: String,
        /// The error of the system.
        error: io::Error,
    },
    /// Connection refused: no listener.
    #[error("cannot connect to {to} within {} s: {error}", timeout.as_secs_f64())]
    Connect {
        /// The address as written.
        to: String,
        /// Time spent on connecting.
        timeout: Duration,
        /// The last error of the system.
        error: io::Error,
    },
    /// The peer has closed the connection, or does not take the rest after a stop.
    #[error("cannot send to {to} after {fragments} fragments: {error}")]
    Send {
        /// The address as written.
        to: String,
        /// Fragments sent before.
        fragments: u64,
        /// The error of the system.
        error: io::Error,
    },
    /// A fragment does not fit into a datagram.
    #[error("event {event} has a fragment of {bytes} bytes, but a UDP datagram carries at most {limit}: use TCP")]
    Datagram {
        /// The event.
        event: EventId,
        /// Size of its fragment in bytes.
        bytes: usize,
        /// Largest fragment in bytes.
        limit: usize,
    },
}

/// Sends the fragments of `source`, with the event counter counting from 1, and then the end of the run. `progress` is
/// called several times per second and at the end.
///
/// # Errors
/// If the source cannot be read or is live, the connection is refused, the peer closes the connection, or a fragment does not fit.
pub fn feed(
    source: Source,
    options: &FeedOptions<'_>,
    progress: impl FnMut(FeedProgress),
) -> Result<FeedProgress, FeedError> {
    let last = match source.feed() {
        Feed::Finite { events } => options.events.unwrap_or(u64::MAX).min(events),
        Feed::Endless => options.events.unwrap_or(u64::MAX),
        Feed::Live => return Err(SourceError::Live.into()),
    };
    let mask = counter_mask(options.counter_bits)?;
    let link = Link::open(options)?;
    let feeder = Feeder { source, options, mask, link, out: Vec::new(), sent: FeedProgress::default(), progress };
    feeder.run(last)
}

struct Feeder<'a, P> {
    source: Source,
    options: &'a FeedOptions<'a>,
    mask: u64,
    link: Link,
    /// Encoded frames that wait to be sent.
    out: Vec<u8>,
    sent: FeedProgress,
    progress: P,
}

impl<P: FnMut(FeedProgress)> Feeder<'_, P> {
    fn run(mut self, last: u64) -> Result<FeedProgress, FeedError> {
        let start = Instant::now();
        let mut reported = start;
        let mut buffer = BytesMut::new();
        while self.sent.events < last && self.wait_for_turn(start)? {
            let event = EventId(self.sent.events + 1);
            self.feed_event(event, &mut buffer)?;
            self.sent.events = event.0;
            // Looking at the clock for every event would cost as much as the event.
            if (event.0.is_multiple_of(64) || self.options.rate.is_some()) && reported.elapsed() >= TICK {
                reported = Instant::now();
                (self.progress)(self.sent);
            }
        }
        self.end_run()?;
        (self.progress)(self.sent);
        Ok(self.sent)
    }

    /// Waits until the next event is due; returns false if the feed should stop.
    fn wait_for_turn(&mut self, start: Instant) -> Result<bool, FeedError> {
        let stop = self.options.stop;
        if let Some(rate) = self.options.rate {
            let due = start + due_after(rate, self.sent.events);
            let left = || due.saturating_duration_since(Instant::now());
            if !left().is_zero() {
                self.flush()?;
            }
            while !left().is_zero() && !stop.load(Ordering::Relaxed) {
                thread::sleep(left().min(TICK));
            }
        }
        Ok(!stop.load(Ordering::Relaxed))
    }

    fn feed_event(&mut self, event: EventId, buffer: &mut BytesMut) -> Result<(), FeedError> {
        let good = match self.source.read(event, buffer)? {
            ReadOutcome::Good => true,
            ReadOutcome::Corrupted(_) | ReadOutcome::Oversized { .. } => false,
            ReadOutcome::Missing => {
                self.sent.missing += 1;
                return Ok(());
            }
        };
        let bytes = buffer.len();
        if self.link.is_udp() && bytes + HEADER_SIZE > MAX_DATAGRAM {
            return Err(FeedError::Datagram { event, bytes, limit: MAX_DATAGRAM - HEADER_SIZE });
        }
        let drawn = |seed| draw::bits(draw::key(seed, MARK, 0), event.0) as u32;
        let mark = self.source.mark(event).map(Mark::value).or(self.options.marked.map(drawn));
        self.queue(event, good, false, mark.filter(|_| self.options.marked.is_some()), buffer)?;
        self.sent.fragments += 1;
        self.sent.damaged += u64::from(!good);
        self.sent.bytes += bytes as u64;
        Ok(())
    }

    fn end_run(&mut self) -> Result<(), FeedError> {
        let times = if self.link.is_udp() { UDP_ENDS } else { 1 };
        for _ in 0..times {
            let (last, sent) = (EventId(self.sent.events), self.sent.fragments as u32);
            self.queue(last, true, true, Some(sent), &[])?;
        }
        self.flush()
    }

    fn queue(
        &mut self,
        event: EventId,
        good: bool,
        end_of_run: bool,
        mark: Option<u32>,
        payload: &[u8],
    ) -> Result<(), FeedError> {
        let counter = self.options.first_counter.wrapping_add(event.0).wrapping_sub(1) & self.mask;
        let (source, resynchronised) = (self.options.unit, false);
        encode(&Frame { source, counter, end_of_run, resynchronised, good, mark, payload }, &mut self.out);
        if self.link.is_udp() || self.out.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), FeedError> {
        let fragments = self.sent.fragments;
        let sent = self.link.send(&self.out, self.options.stop);
        self.out.clear();
        sent.map_err(|error| FeedError::Send { to: self.options.to.clone(), fragments, error })
    }
}

/// The time from the first event to event `n`, counted from 0.
fn due_after(rate: Frequency, n: u64) -> Duration {
    let nanoseconds = u128::from(n) * 1_000_000_000_000 / u128::from(rate.0.max(1));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
