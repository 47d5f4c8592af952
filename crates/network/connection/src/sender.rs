//! The sending end of a connection.

use crate::{
    config::{Transport, UltraEthernetControl},
    control::{self, Acked, CongestionControl},
    credit::Credit,
    outstanding::{Outstanding, Reordering},
    paths::Paths,
    reduction::RateReduction,
    round_trip::RoundTrip,
    wire::{Reply, ReplyKind, Segment},
};
use evb_core::{Bandwidth, Span, Time};
use std::collections::VecDeque;

/// Round trips by which a packet may be overtaken on another path (Ultra Ethernet). One that is later counts as lost, though a
/// full queue on each of its hops would hold it for as long.
const MOST_OVERTAKEN: u64 = 3;

/// The probe timeout before the first measurement (RFC 8985, 7.2).
const FIRST_PROBE: Span = Span::from_secs(1);

/// The sending end of a connection.
#[derive(Debug)]
pub struct Sender {
    control: Box<dyn CongestionControl>,
    outstanding: Outstanding,
    /// Most bytes of a segment.
    segment: u32,
    /// Bytes of a packet beside those of its segment.
    header: u32,
    /// The receiver's window.
    window: u64,
    /// Bytes of the stream so far.
    written: u64,
    /// The first byte that was never sent.
    next: u64,
    /// All bytes before this place have arrived.
    expected: u64,
    /// The ends of the messages, which segments do not cross (RDMA, Ultra Ethernet).
    ends: Option<VecDeque<u64>>,
    paths: Paths,
    /// Paths with congestion are left out.
    steering: bool,
    /// What the receiver has granted, if it grants.
    credit: Option<Credit>,
    recovery: Option<LossRecovery>,
    /// The time at which segments count as lost that may have been overtaken.
    losses_at: Option<Time>,
    /// Probes for lost tails; `None` without them.
    probe: Option<TailProbe>,
    timeout: Timeout,
    timeout_at: Option<Time>,
    /// The rate lets the next packet go at this time.
    paced_until: Time,
    last_sent: Time,
    /// More was there to be sent than the window allowed.
    is_window_limited: bool,
    counts: SenderCounts,
}

/// Lost segments are being sent again until the bytes before `until` have arrived.
#[derive(Clone, Copy, Debug)]
struct LossRecovery {
    until: u64,
    after_timeout: bool,
    /// Bounds what is sent meanwhile; `None` if the window alone does.
    reduction: Option<RateReduction>,
}

/// A probe for the last segments, behind which nothing comes that would show their loss (RFC 8985, 7).
#[derive(Clone, Copy, Debug)]
struct TailProbe {
    /// Longest wait of the receiver for further segments.
    ack_delay: Span,
    at: Option<Time>,
    is_due: bool,
    /// What was sent before it ends here, and whether it was sent again; `None` if no probe is under way.
    sent: Option<(u64, bool)>,
}

/// The time without an acknowledgement after which segments count as lost.
#[derive(Debug)]
enum Timeout {
    /// A few round trips. All segments count as lost.
    Measured(RoundTrip),
    /// This time. All segments count as lost.
    Fixed(Span),
    /// This time, for each segment since it was sent.
    OfSegment(Span),
}

/// What a sender did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Segments sent, with those sent again.
    pub segments: u64,
    /// Segments sent again.
    pub again: u64,
    /// Losses found by a timeout.
    pub timeouts: u64,
    /// Probes for lost tails.
    pub probes: u64,
    /// Losses found by what arrived behind them.
    pub recoveries: u64,
    /// Acknowledged bytes that met congestion.
    pub marked_bytes: u64,
    /// Notices of congestion received.
    pub notices: u64,
    /// Segments that switches cut to their headers.
    pub trimmed: u64,
}

/// What a sender does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It sends this segment now.
    Segment(Segment),
    /// It may send at this time.
    At(Time),
    /// It waits for a reply, a deadline or further bytes.
    Wait,
}

impl Sender {
    /// The sending end of an open connection, with segments of at most `segment` bytes and packets that have `header`
    /// bytes more, over a link of this rate.
    pub fn new(transport: &Transport, segment: u32, header: u32, link: Bandwidth) -> Self {
        let (reordering, window, timeout) = match transport {
            Transport::None => (Reordering::Seldom, u64::MAX, Timeout::Fixed(Span(u64::MAX))),
            Transport::Tcp(tcp) => {
                (Reordering::Seldom, tcp.window.0, Timeout::Measured(RoundTrip::new(tcp.least_timeout)))
            }
            // Each gap is a loss (Mittal et al., SIGCOMM 2018, section 3.1).
            Transport::Rdma(rdma) => (Reordering::Never, rdma.window.0, Timeout::Fixed(rdma.timeout)),
            Transport::UltraEthernet(config) => {
                let late = Span(MOST_OVERTAKEN * config.round_trip.0);
                (Reordering::Within(late), u64::MAX, Timeout::OfSegment(config.timeout))
            }
        };
        let (paths, steering, credit) = match transport {
            Transport::UltraEthernet(config) => {
                let has_credit = config.control == UltraEthernetControl::Rccc;
                (config.paths, config.steering, has_credit.then(|| Credit::new(config.window_over(link))))
            }
            _ => (1, false, None),
        };
        let crosses_messages = matches!(transport, Transport::None | Transport::Tcp(_));
        let probe = match transport {
            Transport::Tcp(tcp) if tcp.tail_probes => {
                Some(TailProbe { ack_delay: tcp.ack_delay, at: None, is_due: false, sent: None })
            }
            _ => None,
        };
        Self {
            control: control::of(transport, segment.into(), link),
            outstanding: Outstanding::new(reordering),
            segment,
            header,
            window,
            written: 0,
            next: 0,
            expected: 0,
            ends: (!crosses_messages).then(VecDeque::new),
            paths: Paths::new(paths),
            steering,
            credit,
            recovery: None,
            losses_at: None,
            probe,
            timeout,
            timeout_at: None,
            paced_until: Time::ZERO,
            last_sent: Time::ZERO,
            is_window_limited: false,
            counts: SenderCounts::default(),
        }
    }

    /// Adds a message to the stream.
    pub fn write(&mut self, bytes: u64) {
        let has_backlog = self.backlog() > 0;
        if let Some(credit) = self.credit.as_mut().filter(|_| !has_backlog) {
            credit.begin(self.outstanding.under_way());
        }
        self.written += bytes;
        if let Some(ends) = &mut self.ends {
            ends.push_back(self.written);
        }
    }

    /// The first byte that was never sent.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// All bytes before this place have arrived, as the sender knows.
    pub fn acknowledged_until(&self) -> u64 {
        self.expected
    }

    /// Bytes that are to be sent, or sent again.
    pub fn backlog(&self) -> u64 {
        self.written - self.next + self.outstanding.lost_bytes()
    }

    /// True if something was sent that is not acknowledged.
    pub fn has_outstanding(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// What it did so far.
    pub fn counts(&self) -> &SenderCounts {
        &self.counts
    }

    /// Most bytes that may be under way now.
    pub fn congestion_window(&self) -> u64 {
        self.control.window()
    }

    /// The rate at which packets go now; `None` if the window alone bounds them.
    pub fn rate(&self) -> Option<Bandwidth> {
        self.control.rate()
    }

    /// The time at which something happens if no reply comes before.
    pub fn deadline(&self) -> Option<Time> {
        let probe_at = self.probe.and_then(|probe| probe.at);
        // The rate of a connection at rest matters to nobody: it catches up when there is something to send.
        let control_at = self.control.deadline().filter(|_| self.backlog() > 0 || !self.outstanding.is_empty());
        [self.timeout_at, self.losses_at, probe_at, control_at].into_iter().flatten().min()
    }

    /// The rate changes as time went by.
    fn catch_up(&mut self, now: Time) {
        while let Some(at) = self.control.deadline().filter(|&at| at <= now) {
            self.control.handle_deadline(at);
        }
    }

    /// What it does now.
    pub fn send(&mut self, now: Time) -> Next {
        self.catch_up(now);
        if let Some(segment) = self.take_probe(now) {
            return self.sent(now, segment);
        }
        let rate = self.control.rate();
        let segment = match self.next_size() {
            None => {
                self.await_credit(now);
                return Next::Wait;
            }
            Some(_) if rate.is_some() && self.paced_until > now => return Next::At(self.paced_until),
            Some(size) => self.outstanding.send_again(now).unwrap_or_else(|| self.send_new(now, size)),
        };
        self.sent(now, segment)
    }

    fn sent(&mut self, now: Time, segment: Segment) -> Next {
        let backlog = self.backlog();
        let needed = self.credit.as_mut().map_or(0, |credit| credit.take(segment.bytes.into(), backlog));
        let segment = Segment { path: self.paths.pick(), needed, ..segment };
        let wire = u64::from(segment.bytes) + u64::from(self.header);
        self.control.sent(now, wire);
        if let Some(rate) = self.control.rate() {
            self.paced_until = Time(self.paced_until.max(now).0 + rate.time_for(wire).0);
        }
        if let Some(reduction) = self.reduction() {
            reduction.sent(segment.bytes.into());
        }
        self.counts.segments += 1;
        self.counts.again += u64::from(segment.is_again);
        self.last_sent = now;
        if self.timeout_at.is_none() {
            self.start_timeout(now);
        }
        if !segment.is_again {
            self.start_probe(now);
        }
        Next::Segment(segment)
    }

    /// The size of the next segment: a lost one, or new bytes; `None` if there is none, or a window is full.
    fn next_size(&mut self) -> Option<u32> {
        let (size, is_new) = match self.outstanding.next_lost() {
            Some(bytes) => (bytes, false),
            None => (self.new_size()?, true),
        };
        let under_way = self.outstanding.under_way();
        // A window below one segment lets one go.
        let in_window = under_way == 0 || under_way + u64::from(size) <= self.control.window();
        let fits = self.reduction().map_or(in_window, |reduction| reduction.allows(size.into()));
        self.is_window_limited = !fits;
        let backlog = self.backlog();
        let may_go = self.credit.as_ref().is_none_or(|credit| credit.allows(size.into(), backlog, under_way));
        let is_taken =
            !is_new || self.outstanding.is_empty() || self.outstanding.bytes() + u64::from(size) <= self.window;
        (fits && may_go && is_taken).then_some(size)
    }

    /// A sender without credit asks for it once more after a timeout.
    fn await_credit(&mut self, now: Time) {
        if self.credit.is_some() && self.timeout_at.is_none() {
            self.start_timeout(now);
        }
    }

    fn new_size(&mut self) -> Option<u32> {
        let end = match &mut self.ends {
            None => self.written,
            Some(ends) => {
                while ends.front().is_some_and(|&end| end <= self.next) {
                    ends.pop_front();
                }
                *ends.front()?
            }
        };
        (end > self.next).then(|| (end - self.next).min(self.segment.into()) as u32)
    }

    fn send_new(&mut self, now: Time, bytes: u32) -> Segment {
        if self.outstanding.is_empty() && now.since(self.last_sent) > self.timeout.time() {
            self.control.was_idle();
        }
        let segment = Segment { first: self.next, bytes, sent_at: now, is_again: false, path: 0, needed: 0 };
        self.next = segment.end();
        self.outstanding.push(segment);
        segment
    }

    /// A reply has come.
    pub fn handle(&mut self, now: Time, reply: &Reply) {
        self.catch_up(now);
        if let Some(credit) = &mut self.credit {
            credit.grant(reply.credit);
        }
        if self.steering && (reply.is_marked || reply.kind == ReplyKind::Trimmed) {
            self.paths.note_congestion(reply.path);
        }
        match reply.kind {
            ReplyKind::CongestionNotice => {
                self.counts.notices += 1;
                self.control.notified(now);
            }
            ReplyKind::OutOfSequence => {
                self.acknowledged(now, reply);
                self.outstanding.lose_all();
                self.counts.recoveries += 1;
            }
            ReplyKind::Acknowledgement => self.acknowledged(now, reply),
            ReplyKind::Trimmed => self.trimmed(now, reply),
            ReplyKind::Credit => {}
        }
    }

    /// The header of a segment has arrived alone.
    fn trimmed(&mut self, now: Time, reply: &Reply) {
        let bytes = reply.block.end - reply.block.start;
        if let Some(credit) = &mut self.credit {
            credit.note_trimmed(bytes);
        }
        if self.outstanding.lose_trimmed(reply.block.start, reply.echo) {
            self.counts.trimmed += 1;
            self.control.trimmed(now, bytes, self.outstanding.under_way());
        }
    }

    fn acknowledged(&mut self, now: Time, reply: &Reply) {
        let (window, under_way, outstanding) =
            (self.control.window(), self.outstanding.under_way(), self.outstanding.bytes());
        let bytes =
            self.outstanding.acknowledge(now, reply.expected) + self.outstanding.note_arrived(now, &reply.block);
        let is_advance = reply.expected > self.expected;
        if is_advance {
            self.expected = reply.expected;
            self.timeout.measure(now.since(reply.echo));
            self.start_timeout(now);
        }
        let was_recovering = self.is_in_fast_recovery();
        self.recovery = self.recovery.filter(|recovery| recovery.until > self.expected);
        self.find_losses(now, outstanding);
        self.reduce_rate(bytes);
        self.judge_probe(now, reply, outstanding);
        if is_advance {
            self.start_probe(now);
        }
        if bytes == 0 {
            return;
        }
        self.counts.marked_bytes += if reply.is_marked { bytes } else { 0 };
        let is_recovering = was_recovering || self.is_in_fast_recovery();
        let is_window_limited = self.is_window_limited || 2 * under_way > window;
        self.control.acknowledged(&Acked {
            now,
            bytes,
            is_marked: reply.is_marked,
            expected: self.expected,
            next: self.next,
            round_trip: self.timeout.round_trip(),
            sample: now.since(reply.echo),
            under_way: self.outstanding.under_way(),
            is_recovering,
            may_grow: is_advance && is_window_limited && !is_recovering,
        });
    }

    /// Looks for lost segments, while `outstanding` bytes had no acknowledgement.
    fn find_losses(&mut self, now: Time, outstanding: u64) {
        let losses = self.outstanding.find_losses(now, self.recovery.is_some());
        self.losses_at = losses.next_at;
        if losses.are_new && self.recovery.is_none() {
            self.recover(now, outstanding);
        }
    }

    fn recover(&mut self, now: Time, outstanding: u64) {
        let reduction = self.control.reduces_rate().then(|| RateReduction::new(outstanding, self.segment.into()));
        self.recovery = Some(LossRecovery { until: self.next, after_timeout: false, reduction });
        self.counts.recoveries += 1;
        self.control.lost(now, outstanding);
    }

    /// Plans a probe, unless something else will show what is lost.
    fn start_probe(&mut self, now: Time) {
        let is_clear = self.recovery.is_none() && !self.outstanding.has_gaps() && !self.outstanding.is_empty();
        let (round_trip, segments, timeout_at) = (self.timeout.round_trip(), self.outstanding.len(), self.timeout_at);
        let Some(probe) = &mut self.probe else { return };
        let wait = if round_trip == Span::ZERO { FIRST_PROBE } else { Span(2 * round_trip.0) };
        let for_reply = if segments == 1 { probe.ack_delay } else { Span::ZERO };
        let at = Time(now.0 + wait.0 + for_reply.0);
        probe.at = (is_clear && probe.sent.is_none() && timeout_at.is_none_or(|timeout| at < timeout)).then_some(at);
    }

    /// The probe that is due: new bytes, or else the last segment again.
    fn take_probe(&mut self, now: Time) -> Option<Segment> {
        let is_due = self.probe.as_mut().is_some_and(|probe| std::mem::take(&mut probe.is_due));
        if !is_due || self.outstanding.is_empty() {
            return None;
        }
        let size = self.new_size().filter(|&size| self.outstanding.bytes() + u64::from(size) <= self.window);
        let segment = match size {
            Some(size) => self.send_new(now, size),
            None => self.outstanding.send_last_again(now)?,
        };
        self.counts.probes += 1;
        self.start_timeout(now);
        if let Some(probe) = &mut self.probe {
            (probe.sent, probe.at) = (Some((self.next, segment.is_again)), None);
        }
        Some(segment)
    }

    /// A reply may say what became of a probe (RFC 8985, 7.4.2). If it filled a gap, a segment was lost.
    fn judge_probe(&mut self, now: Time, reply: &Reply, outstanding: u64) {
        let Some(probe) = &mut self.probe else { return };
        let Some((end, is_again)) = probe.sent.filter(|&(end, _)| reply.expected >= end) else { return };
        if is_again && !reply.is_repeated && reply.expected == end {
            return;
        }
        probe.sent = None;
        if is_again && !reply.is_repeated && self.recovery.is_none() {
            self.counts.recoveries += 1;
            self.control.lost(now, outstanding);
        }
    }

    /// In a recovery, bytes that have arrived let others go.
    fn reduce_rate(&mut self, arrived: u64) {
        let (window, under_way) = (self.control.window(), self.outstanding.under_way());
        if let Some(reduction) = self.reduction() {
            reduction.arrived(arrived, under_way, window);
        }
    }

    fn reduction(&mut self) -> Option<&mut RateReduction> {
        self.recovery.as_mut().and_then(|recovery| recovery.reduction.as_mut())
    }

    fn is_in_fast_recovery(&self) -> bool {
        self.recovery.is_some_and(|recovery| !recovery.after_timeout)
    }

    /// The deadline is over.
    pub fn handle_deadline(&mut self, now: Time) {
        self.catch_up(now);
        if self.losses_at.is_some_and(|at| at <= now) {
            self.find_losses(now, self.outstanding.bytes());
        }
        if let Some(probe) = self.probe.as_mut().filter(|probe| probe.at.is_some_and(|at| at <= now)) {
            (probe.at, probe.is_due) = (None, true);
        }
        if self.timeout_at.is_some_and(|at| at <= now) {
            self.time_out(now);
        }
    }

    /// Nothing was acknowledged for too long: all that has not arrived is sent again.
    fn time_out(&mut self, now: Time) {
        if let Timeout::OfSegment(time) = self.timeout {
            return self.time_out_segments(now, time);
        }
        (self.timeout_at, self.losses_at) = (None, None);
        if self.outstanding.is_empty() {
            return;
        }
        if let Some(probe) = &mut self.probe {
            *probe = TailProbe { ack_delay: probe.ack_delay, at: None, is_due: false, sent: None };
        }
        self.counts.timeouts += 1;
        // A segment that is lost once more says nothing new (RFC 5681, 3.1).
        if !self.recovery.is_some_and(|recovery| recovery.after_timeout) {
            self.control.timed_out(now, self.outstanding.bytes());
        }
        self.recovery = Some(LossRecovery { until: self.next, after_timeout: true, reduction: None });
        self.outstanding.lose_all();
        self.timeout.double();
    }

    /// The segments are sent again that were sent this time ago. A sender that waits for credit alone asks for it again.
    fn time_out_segments(&mut self, now: Time, time: Span) {
        let lost_before = self.outstanding.lost_bytes();
        self.outstanding.lose_until(Time(now.0.saturating_sub(time.0)));
        if self.outstanding.lost_bytes() > lost_before {
            self.counts.timeouts += 1;
            self.control.timed_out(now, self.outstanding.bytes());
        }
        let oldest = self.outstanding.oldest();
        if let Some(credit) = self.credit.as_mut().filter(|_| oldest.is_none()) {
            credit.ask_again();
        }
        self.timeout_at = None;
        self.start_timeout(oldest.unwrap_or(now));
    }

    fn start_timeout(&mut self, now: Time) {
        let at = Time(now.0.saturating_add(self.timeout.time().0));
        let at = match self.timeout {
            // It is for the oldest segment, however many came after it.
            Timeout::OfSegment(_) => self.timeout_at.unwrap_or(at),
            Timeout::Measured(_) | Timeout::Fixed(_) => at,
        };
        let waits = !self.outstanding.is_empty() || self.credit.is_some() && self.backlog() > 0;
        self.timeout_at = waits.then_some(at);
    }
}

impl Timeout {
    fn time(&self) -> Span {
        match self {
            Self::Measured(round_trip) => round_trip.timeout(),
            Self::Fixed(time) | Self::OfSegment(time) => *time,
        }
    }

    fn round_trip(&self) -> Span {
        match self {
            Self::Measured(round_trip) => round_trip.smoothed().unwrap_or_default(),
            Self::Fixed(_) | Self::OfSegment(_) => Span::ZERO,
        }
    }

    fn measure(&mut self, measured: Span) {
        if let Self::Measured(round_trip) = self {
            round_trip.measure(measured);
        }
    }

    fn double(&mut self) {
        if let Self::Measured(round_trip) = self {
            round_trip.double();
        }
    }
}
