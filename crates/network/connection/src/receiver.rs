//! The receiving end of a connection.

use crate::{
    config::{RdmaControl, Recovery, Transport},
    credit::Grants,
    wire::{Reply, ReplyKind, Segment},
};
use evb_core::{Span, Time};
use std::ops::Range;

/// Most blocks ahead of their turn that a receiver keeps; segments that would make another one are thrown away.
const MOST_BLOCKS: usize = 1 << 12;

/// Longest wait of an acknowledgement of RDMA for further packets: the last packets of a message are acknowledged although
/// no more come. Adapters acknowledge at the end of each message; this time stands for that.
const ACK_DELAY_OF_RDMA: Span = Span::from_micros(1);

/// The receiving end of a connection.
#[derive(Debug)]
pub struct Receiver {
    /// All bytes before this place have arrived.
    expected: u64,
    /// Bytes that have arrived ahead of their turn, in their order.
    ahead: Vec<Range<u64>>,
    keeps_ahead: bool,
    ack_every: u16,
    ack_delay: Span,
    /// An acknowledgement covers either marked segments or unmarked ones (RFC 8257, 3.2).
    tells_marks: bool,
    notice_interval: Option<Span>,
    /// Segments that wait for their acknowledgement.
    pending: u16,
    /// The time at which the first of these was sent.
    echo: Time,
    /// The last segment was marked.
    is_marked: bool,
    ack_at: Option<Time>,
    /// The sender knows of the missing packet. The next missing one is reported again.
    has_told_missing: bool,
    next_notice_at: Time,
    grants: Grants,
    /// The path of the last segment.
    path: u16,
}

/// What came of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes that had not arrived before.
    pub new_bytes: u32,
    /// Answers, in this order.
    pub replies: [Option<Reply>; 2],
}

impl Receiver {
    /// The receiving end of a connection that is open.
    pub fn new(transport: &Transport) -> Self {
        let (keeps_ahead, ack_every, ack_delay, notice_interval) = match transport {
            Transport::None => (true, 1, Span::ZERO, None),
            Transport::Tcp(tcp) => (true, tcp.ack_every, tcp.ack_delay, None),
            Transport::Rdma(rdma) => {
                let interval = match rdma.control {
                    RdmaControl::None => None,
                    RdmaControl::Dcqcn(dcqcn) => Some(dcqcn.notice_interval),
                };
                (rdma.recovery == Recovery::Selective, rdma.ack_every, ACK_DELAY_OF_RDMA, interval)
            }
            Transport::UltraEthernet(config) => (true, config.ack_every, ACK_DELAY_OF_RDMA, None),
        };
        Self {
            expected: 0,
            ahead: Vec::new(),
            keeps_ahead,
            ack_every,
            ack_delay,
            tells_marks: matches!(transport, Transport::Tcp(_) | Transport::UltraEthernet(_)),
            notice_interval,
            pending: 0,
            echo: Time::ZERO,
            is_marked: false,
            ack_at: None,
            has_told_missing: false,
            next_notice_at: Time::ZERO,
            grants: Grants::default(),
            path: 0,
        }
    }

    /// All bytes before this place of the stream have arrived.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// The time at which it acknowledges what has come, if nothing more comes.
    pub fn deadline(&self) -> Option<Time> {
        self.ack_at
    }

    /// The deadline is over: returns the acknowledgement that waited.
    pub fn handle_deadline(&mut self) -> Option<Reply> {
        self.acknowledge(0..0)
    }

    /// A segment has arrived, marked if it met congestion.
    pub fn receive(&mut self, now: Time, segment: Segment, is_marked: bool) -> Received {
        // Segments before a change of the marks are acknowledged with the old ones (RFC 8257, 3.2).
        let before = if self.tells_marks && is_marked != self.is_marked { self.acknowledge(0..0) } else { None };
        self.is_marked = is_marked;
        self.path = segment.path;
        self.grants.note(segment.needed);
        let notice = self.notice(now, is_marked);
        let is_in_turn = segment.first <= self.expected;
        let fills_gap = is_in_turn && !self.ahead.is_empty();
        let new_bytes = if is_in_turn || self.keeps_ahead { self.keep(segment) } else { 0 };
        if self.pending == 0 {
            self.echo = segment.sent_at;
        }
        self.pending += 1;
        let is_next = is_in_turn && new_bytes > 0;
        let waits = is_next && !fills_gap && self.pending < self.ack_every;
        let answer = if waits { self.wait_to_acknowledge(now) } else { self.answer(segment, is_next) };
        let is_repeated = new_bytes == 0 && (segment.end() <= self.expected || self.block_of(segment).is_some());
        let answer = answer.map(|reply| Reply { is_repeated, ..reply });
        Received { new_bytes, replies: [before.or(notice), answer] }
    }

    /// The header of a segment has arrived that a switch trimmed.
    pub fn receive_trimmed(&mut self, segment: Segment) -> Reply {
        self.path = segment.path;
        self.grants.note(segment.needed);
        self.grants.note_trimmed(segment.bytes.into());
        let (kind, echo) = (ReplyKind::Trimmed, segment.sent_at);
        Reply { block: segment.first..segment.end(), ..self.reply(kind, echo) }
    }

    /// Bytes that the sender needs, and has no credit for.
    pub fn missing_credit(&self) -> u64 {
        self.grants.missing()
    }

    /// Grants up to `most` bytes more.
    pub fn grant(&mut self, now: Time, most: u64) -> Reply {
        self.grants.grant(most);
        self.reply(ReplyKind::Credit, now)
    }

    /// An answer about nothing but what it knows.
    fn reply(&self, kind: ReplyKind, echo: Time) -> Reply {
        let (expected, credit, path) = (self.expected, self.grants.granted(), self.path);
        Reply { kind, expected, block: 0..0, echo, is_repeated: false, is_marked: false, path, credit }
    }

    /// Waits for further segments that one acknowledgement covers.
    fn wait_to_acknowledge(&mut self, now: Time) -> Option<Reply> {
        self.has_told_missing = false;
        self.ack_at.get_or_insert(Time(now.0.saturating_add(self.ack_delay.0)));
        None
    }

    /// Answers at once: enough segments wait, or this one came out of its turn, or again, or filled a gap (RFC 5681, 4.2).
    fn answer(&mut self, segment: Segment, is_next: bool) -> Option<Reply> {
        if is_next {
            self.has_told_missing = false;
            return self.acknowledge(0..0);
        }
        if segment.first > self.expected && !self.keeps_ahead {
            if std::mem::replace(&mut self.has_told_missing, true) {
                self.pending -= 1;
                return None;
            }
            return self.acknowledge(0..0).map(|reply| Reply { kind: ReplyKind::OutOfSequence, ..reply });
        }
        // The block ends with this segment as far as the sender is concerned: it learned of those behind it before.
        let block = self.block_of(segment).map_or(0..0, |block| block.start..segment.end());
        self.acknowledge(block)
    }

    /// The block ahead of its turn that a segment lies in.
    fn block_of(&self, segment: Segment) -> Option<&Range<u64>> {
        let place = self.ahead.partition_point(|block| block.end <= segment.first);
        self.ahead.get(place).filter(|block| block.start <= segment.first)
    }

    fn acknowledge(&mut self, block: Range<u64>) -> Option<Reply> {
        self.ack_at = None;
        if std::mem::take(&mut self.pending) == 0 {
            return None;
        }
        let &mut Self { echo, is_marked, .. } = self;
        Some(Reply { block, is_marked, ..self.reply(ReplyKind::Acknowledgement, echo) })
    }

    /// A notice of congestion, at most one in each interval (DCQCN).
    fn notice(&mut self, now: Time, is_marked: bool) -> Option<Reply> {
        let interval = self.notice_interval.filter(|_| is_marked && now >= self.next_notice_at)?;
        self.next_notice_at = Time(now.0.saturating_add(interval.0));
        Some(Reply { is_marked: true, ..self.reply(ReplyKind::CongestionNotice, now) })
    }

    /// Takes the bytes of a segment that had not arrived; returns their number.
    fn keep(&mut self, segment: Segment) -> u32 {
        let (mut first, mut end) = (segment.first.max(self.expected), segment.end());
        if first >= end {
            return 0;
        }
        // Blocks that touch the segment become one with it.
        let from = self.ahead.partition_point(|block| block.end < first);
        let to = self.ahead.partition_point(|block| block.start <= end);
        let touched = &self.ahead[from..to];
        let overlap: u64 = touched.iter().map(|block| block.end.min(end).saturating_sub(block.start.max(first))).sum();
        let new = end - first - overlap;
        if let (Some(front), Some(back)) = (touched.first(), touched.last()) {
            (first, end) = (first.min(front.start), end.max(back.end));
        }
        if first <= self.expected {
            self.expected = end;
            self.ahead.drain(from..to);
        } else if from == to && self.ahead.len() >= MOST_BLOCKS {
            return 0;
        } else {
            self.ahead.splice(from..to, std::iter::once(first..end));
        }
        new as u32
    }
}
