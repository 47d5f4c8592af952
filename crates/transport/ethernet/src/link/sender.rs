//! The sending half of a link: messages that wait, frames under way, and what became of them.
//!
//! A frame that has not arrived although one that was sent [`REORDERED`] frames later has, or a round trip later, is lost
//! (as RFC 8985 finds losses). Whatever is not acknowledged in time is asked about by sending the oldest frame again.

use super::{
    records::{GOODBYE, LENGTH_BYTES, RECORD_BYTES},
    rtt::RoundTrip,
    stream::Stream,
};
use crate::frame::HEADER_BYTES;
use evb_core::{Span, Time};
use evb_transport::{HEAD_BYTES, Message};
use std::collections::VecDeque;

/// Frames that may overtake another one.
const REORDERED: u64 = 3;
/// Frames under way before the first acknowledgement, and fewest after losses.
const FIRST_FLIGHT: f64 = 64.0;
const LEAST_FLIGHT: f64 = 8.0;
/// Most frames under way, whatever credit there is.
const MOST_FLIGHT: f64 = 4096.0;
/// Share of the flight that is left after a loss.
const AFTER_LOSS: f64 = 0.7;
/// Frames that may leave at once although the pace is slower.
const BURST: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    UnderWay,
    Lost,
    Arrived,
}

/// A frame that is not acknowledged with all before it.
#[derive(Debug)]
struct Frame {
    bytes: Vec<u8>,
    state: FrameState,
    /// Order and time of its last transmission, and whether it was the only one.
    order: u64,
    at: Time,
    is_first: bool,
}

/// Messages and frames for a peer.
#[derive(Debug)]
pub(super) struct Sender {
    waiting: VecDeque<Message>,
    /// Records of a layer, in place of messages.
    stream: Stream,
    /// Bytes of the first waiting record that are in frames already.
    offset: usize,
    /// Bytes of the messages that wait.
    pub(super) bytes: usize,
    /// The goodbye is to follow the last message.
    goodbye: bool,
    frames: VecDeque<Frame>,
    /// Number of the first of these frames.
    base: u64,
    /// The first number that the peer gives no credit for.
    limit: u64,
    /// Most bytes of a payload, and bytes of the Ethernet header.
    payload: usize,
    flight: usize,
    lost: usize,
    most_flight: f64,
    /// No congestion below this flight is known.
    threshold: f64,
    /// Frames below this number were sent before the last reaction to a loss.
    reacted: u64,
    order: u64,
    /// Latest transmission that has arrived.
    newest: (u64, Time),
    since_ask: u32,
    trip: RoundTrip,
    in_vain: u32,
    /// The timer has ended: a frame may go, however many are under way. They may all be lost.
    has_timed_out: bool,
    /// When the oldest frame is sent again, and the earliest time of the next frame.
    pub(super) timer: Option<Time>,
    pace: Time,
    /// Shortest time between two frames by the setting.
    least_pace: Span,
    pub(super) repeated: u64,
}

/// A frame to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) number: u64,
    pub(super) asks: bool,
}

impl Sender {
    pub(super) fn new(payload: usize, window: u32, least_pace: Span) -> Self {
        Self {
            waiting: VecDeque::new(),
            stream: Stream::default(),
            offset: 0,
            bytes: 0,
            goodbye: false,
            frames: VecDeque::new(),
            base: 0,
            limit: window.into(),
            payload,
            flight: 0,
            lost: 0,
            most_flight: FIRST_FLIGHT,
            threshold: f64::from(window),
            reacted: 0,
            order: 0,
            newest: (0, Time::ZERO),
            since_ask: 0,
            trip: RoundTrip::new(),
            in_vain: 0,
            has_timed_out: false,
            timer: None,
            pace: Time::ZERO,
            least_pace,
            repeated: 0,
        }
    }

    pub(super) fn push(&mut self, message: Message) {
        self.bytes += RECORD_BYTES + message.body.len();
        self.waiting.push_back(message);
    }

    /// Queues a message of a layer.
    #[inline]
    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        self.stream.push(&(bytes.len() as u32).to_le_bytes());
        self.stream.push(bytes);
        self.bytes += LENGTH_BYTES + bytes.len();
    }

    pub(super) fn say_goodbye(&mut self) {
        self.goodbye = true;
    }

    /// Returns true if something is not in frames yet.
    pub(super) fn has_waiting(&self) -> bool {
        self.bytes > 0 || self.goodbye
    }

    /// Returns true if all frames have arrived.
    pub(super) fn is_settled(&self) -> bool {
        self.frames.is_empty() && !self.has_waiting()
    }

    /// The first number that is not acknowledged, and the first without credit.
    #[inline]
    pub(super) const fn acked(&self) -> u64 {
        self.base
    }

    #[inline]
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    fn next_number(&self) -> u64 {
        self.base + self.frames.len() as u64
    }

    /// The next frame to be sent, if flight, credit and pace allow one. Its memory is filled but for the header.
    #[inline]
    pub(super) fn next(&mut self, now: Time, ethernet: &[u8], pool: &mut Vec<Vec<u8>>) -> Option<Next> {
        let may_fly = (self.flight as f64) < self.most_flight || self.has_timed_out && self.lost > 0;
        let has_credit = self.next_number() < self.limit;
        if !may_fly || self.lost == 0 && !(has_credit && self.has_waiting()) || self.pace > now {
            self.arm(now);
            return None;
        }
        let number = if self.lost > 0 { self.again(now) } else { self.build(now, ethernet, pool) };
        (self.flight, self.has_timed_out) = (self.flight + 1, false);
        self.keep_pace(now);
        let is_last = self.flight as f64 >= self.most_flight || self.next_number() >= self.limit;
        self.since_ask += 1;
        let asks = is_last || f64::from(self.since_ask) >= self.most_flight / 4.0 || self.in_vain > 0;
        if asks {
            self.since_ask = 0;
        }
        self.arm(now);
        Some(Next { number, asks })
    }

    /// Chooses the first lost frame.
    #[cold]
    fn again(&mut self, now: Time) -> u64 {
        let place = self.frames.iter().position(|frame| frame.state == FrameState::Lost).expect("one is lost");
        (self.order, self.lost, self.repeated) = (self.order + 1, self.lost - 1, self.repeated + 1);
        let frame = &mut self.frames[place];
        (frame.state, frame.order, frame.at, frame.is_first) = (FrameState::UnderWay, self.order, now, false);
        self.base + place as u64
    }

    /// Builds a frame of messages that wait.
    #[inline]
    fn build(&mut self, now: Time, ethernet: &[u8], pool: &mut Vec<Vec<u8>>) -> u64 {
        let mut bytes = pool.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(ethernet);
        bytes.resize(ethernet.len() + HEADER_BYTES, 0);
        let end = bytes.len() + self.payload;
        self.append_stream(&mut bytes);
        while bytes.len() < end {
            let Some(message) = self.waiting.front() else {
                self.append_goodbye(&mut bytes, end);
                break;
            };
            let whole = RECORD_BYTES + message.body.len();
            if self.offset == 0 && bytes.len() + whole <= end {
                bytes.extend_from_slice(&(message.body.len() as u32).to_le_bytes());
                bytes.extend_from_slice(&message.head);
                bytes.extend_from_slice(&message.body);
            } else {
                self.offset += append_part(&mut bytes, end, message, self.offset);
                if self.offset < whole {
                    break;
                }
            }
            (self.offset, self.bytes) = (0, self.bytes - whole);
            self.waiting.pop_front();
        }
        self.order += 1;
        self.frames.push_back(Frame { bytes, state: FrameState::UnderWay, order: self.order, at: now, is_first: true });
        self.next_number() - 1
    }

    /// Appends as much of the records of a layer as fits into a payload.
    #[inline]
    fn append_stream(&mut self, bytes: &mut Vec<u8>) {
        let front = self.stream.front();
        let count = front.len().min(self.payload);
        if count > 0 {
            bytes.extend_from_slice(&front[..count]);
            self.stream.advance(count);
            self.bytes -= count;
        }
    }

    fn append_goodbye(&mut self, bytes: &mut Vec<u8>, end: usize) {
        if self.goodbye && self.bytes == 0 && bytes.len() + LENGTH_BYTES <= end {
            bytes.extend_from_slice(&GOODBYE.to_le_bytes());
            self.goodbye = false;
        }
    }

    /// The bytes of a frame, from the Ethernet header on.
    #[inline]
    pub(super) fn frame(&self, number: u64) -> Option<&[u8]> {
        let place = number.checked_sub(self.base)?;
        self.frames.get(place as usize).map(|frame| &frame.bytes[..])
    }

    pub(super) fn frame_mut(&mut self, number: u64) -> &mut [u8] {
        &mut self.frames[(number - self.base) as usize].bytes
    }

    /// Takes what the peer says has arrived: all frames before `ack`, and those behind it whose bits are set. Returns
    /// true if that gives room for more.
    pub(super) fn hear(&mut self, now: Time, ack: u64, limit: u64, early: &[u8], pool: &mut Vec<Vec<u8>>) -> bool {
        if ack < self.base || ack > self.next_number() {
            return false;
        }
        let (before, mut looks) = (self.flight, !early.is_empty());
        let has_credit = limit > self.limit;
        self.limit = self.limit.max(limit);
        let mut newly = 0;
        while self.base < ack {
            newly += usize::from(self.arrive(0, now));
            let Some(frame) = self.frames.pop_front() else { break };
            self.base += 1;
            looks |= !frame.is_first;
            pool.push(frame.bytes);
        }
        for place in (0..8 * early.len()).filter(|place| early[place / 8] & 1 << (place % 8) != 0) {
            newly += usize::from(place + 1 < self.frames.len() && self.arrive(place + 1, now));
        }
        if newly > 0 {
            self.grow(newly);
            self.in_vain = 0;
            self.timer = None;
        }
        if looks {
            self.find_losses();
        }
        self.arm(now);
        has_credit || newly > 0 || self.flight < before
    }

    /// Notes that a frame has arrived; returns true if that is news.
    fn arrive(&mut self, place: usize, now: Time) -> bool {
        let frame = &mut self.frames[place];
        match frame.state {
            FrameState::Arrived => return false,
            FrameState::UnderWay => self.flight -= 1,
            FrameState::Lost => self.lost -= 1,
        }
        frame.state = FrameState::Arrived;
        self.newest = self.newest.max((frame.order, frame.at));
        if frame.is_first {
            self.trip.measure(now.since(frame.at));
        }
        true
    }

    fn grow(&mut self, frames: usize) {
        let more = frames as f64;
        self.most_flight += if self.most_flight < self.threshold { more } else { more / self.most_flight };
        self.most_flight = self.most_flight.min(MOST_FLIGHT);
    }

    /// Finds frames that others have overtaken by too much.
    #[cold]
    fn find_losses(&mut self) {
        let ((order, at), trip) = (self.newest, self.trip.mean());
        let is_lost = |frame: &Frame| {
            let is_overtaken = frame.order + REORDERED <= order || frame.order < order && at.since(frame.at) > trip;
            frame.state == FrameState::UnderWay && is_overtaken
        };
        let mut last = None;
        for (place, frame) in self.frames.iter_mut().enumerate().filter(|(_, frame)| is_lost(frame)) {
            frame.state = FrameState::Lost;
            (self.flight, self.lost) = (self.flight - 1, self.lost + 1);
            last = Some(self.base + place as u64);
        }
        if last.is_some_and(|last| last >= self.reacted) {
            self.most_flight = (self.most_flight * AFTER_LOSS).max(LEAST_FLIGHT);
            (self.threshold, self.reacted) = (self.most_flight, self.next_number());
        }
    }

    /// Sets the pace: as fast as the setting says, and after losses as evenly as the round trip allows.
    fn keep_pace(&mut self, now: Time) {
        let is_congested = self.reacted > self.base;
        let even = if is_congested { (self.trip.mean().0 as f64 * 0.8 / self.most_flight) as u64 } else { 0 };
        let gap = even.max(self.least_pace.0);
        if gap > 0 {
            self.pace = Time(self.pace.0.max(now.0.saturating_sub(BURST * gap)) + gap);
        }
    }

    /// The time at which a frame that must keep its pace may be sent.
    pub(super) fn paced(&self, now: Time) -> Option<Time> {
        (self.pace > now && (self.lost > 0 || self.has_waiting())).then_some(self.pace)
    }

    /// Starts the timer if something is under way, or credit is missing.
    #[inline]
    fn arm(&mut self, now: Time) {
        let waits = self.flight > 0 || self.has_waiting() && self.next_number() >= self.limit;
        if !waits {
            self.timer = None;
        } else if self.timer.is_none() {
            self.timer = Some(Time(now.0 + self.trip.patience(self.in_vain).0));
        }
    }

    /// Handles the end of the timer. Returns true if a status is to ask for credit, because nothing is under way.
    pub(super) fn time_out(&mut self, now: Time) -> bool {
        self.in_vain = self.in_vain.saturating_add(1);
        self.timer = None;
        if let Some(frame) = self.frames.iter_mut().find(|frame| frame.state == FrameState::UnderWay) {
            frame.state = FrameState::Lost;
            (self.flight, self.lost) = (self.flight - 1, self.lost + 1);
        }
        self.has_timed_out = true;
        self.arm(now);
        self.timer.get_or_insert(Time(now.0 + self.trip.patience(self.in_vain).0));
        self.flight == 0 && self.lost == 0
    }

    /// Drops everything: the peer is gone.
    pub(super) fn clear(&mut self, pool: &mut Vec<Vec<u8>>) {
        self.waiting.clear();
        self.stream.clear();
        pool.extend(self.frames.drain(..).map(|frame| frame.bytes));
        (self.bytes, self.offset, self.flight, self.lost) = (0, 0, 0, 0);
        (self.goodbye, self.timer, self.limit) = (false, None, 0);
    }
}

/// Appends what is left of a record behind `offset`, up to `end`; returns the number of bytes.
fn append_part(bytes: &mut Vec<u8>, end: usize, message: &Message, offset: usize) -> usize {
    let (begin, length) = (bytes.len(), (message.body.len() as u32).to_le_bytes());
    let mut skip = offset;
    for part in [&length[..], &message.head[..HEAD_BYTES], &message.body[..]] {
        let from = skip.min(part.len());
        let to = part.len().min(from + end - bytes.len());
        bytes.extend_from_slice(&part[from..to]);
        skip -= from;
    }
    bytes.len() - begin
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends all that may be sent now; returns the numbers of the frames.
    fn send(sender: &mut Sender, now: Time) -> Vec<u64> {
        std::iter::from_fn(|| sender.next(now, &[], &mut Vec::new()).map(|next| next.number)).collect()
    }

    /// A burst of which the end is lost leaves more frames under way than may be after the loss. They must not keep the first one
    /// from being sent again.
    #[test]
    fn a_timeout_sends_although_too_many_frames_are_under_way() {
        let (mut sender, mut pool) = (Sender::new(1000, 200, Span::ZERO), Vec::new());
        sender.push_bytes(&[0; 200_000]);
        assert_eq!(send(&mut sender, Time::ZERO).len(), 64);
        let later = Time::ZERO + Span::from_micros(500);
        sender.hear(later, 20, 200, &[], &mut pool);
        assert_eq!(send(&mut sender, later).len(), 40, "as many as arrived, and as many more");
        // Frame 24 has arrived, and all others from 20 on are lost.
        let status = later + Span::from_micros(500);
        sender.hear(status, 20, 200, &[1 << 3], &mut pool);
        assert_eq!(send(&mut sender, status), [], "too many are under way");
        let end = sender.timer.expect("some are under way");
        sender.time_out(end);
        assert_eq!(send(&mut sender, end), [20]);
        // Its arrival shows that the others are lost.
        sender.hear(end + Span::from_micros(500), 21, 200, &[1 << 2], &mut pool);
        assert!(sender.lost > 70, "{}", sender.lost);
    }
}
