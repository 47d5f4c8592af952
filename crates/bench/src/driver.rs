//! One node of a measurement: the machine of its pattern, driven over a message layer in real time, or in the time of a
//! simulated network.
//!
//! The nodes begin together: each waits until all others are ready. The first node that finds the time over stops, and
//! tells all others how many data messages it has sent them. They stop and do the same. A node is done when it has
//! heard from all. So every message is accounted for, and nothing is under way when the next measurement begins.

use crate::{
    clock::{Clock, cpu_ns},
    error::BenchError,
    measurement::{Benchmark, CONTROL_BYTES, Measurement},
    peers::Peers,
    rest::Rest,
    samples::{SampleSummary, Samples},
    wire::{Content, SMALLEST_STAMPED, fill, is_whole, read_stamp, write_stamp},
};
use evb_core::{Machine, NodeId, NodeRange, Span, Time};
use evb_patterns::{Traffic, TrafficCommand, TrafficEvent, TrafficMessage};
use evb_transport::{MessageLayer, Refused};
use serde::{Deserialize, Serialize};
use std::{thread, time::Duration};

/// Most messages that are received before others are sent, and the reverse.
const BATCH: usize = 64;
/// Most rounds of a node between two checks of the time.
const ROUNDS_PER_LOOK: u32 = 64;

/// The measurements of one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeResult {
    /// Measured time, in seconds.
    pub seconds: f64,
    /// Processor time within the measured time, in seconds; 0 for a simulated network.
    pub cpu_seconds: f64,
    /// Data messages received within the measured time.
    pub messages: u64,
    /// Data messages sent within the measured time.
    pub sent: u64,
    /// Times of the cycles that ended within the measured time; under a rate, transfer times of the received messages.
    pub times: SampleSummary,
    /// Longest time between two receptions, in nanoseconds.
    pub longest_gap_ns: u64,
    /// Data messages received in all, including warm-up and end.
    pub all_messages: u64,
    /// Data messages that were sent to this node and did not arrive.
    pub lost: u64,
    /// Data messages with wrong bytes, a wrong length, or out of order.
    pub corrupted: u64,
    /// Messages that were due under a rate and not even queued, because too many waited.
    pub refused: u64,
}

/// The environment of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// A moment of the monotonic clock from which all nodes of a machine count, in nanoseconds.
    pub epoch_ns: u64,
    /// True if other nodes are in this process, too.
    pub shares_process: bool,
    /// True if there are more nodes than cores.
    pub shares_cores: bool,
}

/// Takes part in a measurement as the node of this layer.
///
/// # Errors
/// If a peer is lost or does not answer in time.
pub fn measure<L: MessageLayer + ?Sized>(
    layer: &mut L,
    measurement: &Measurement,
    setting: Setting,
) -> Result<NodeResult, BenchError> {
    if measurement.benchmark == Benchmark::Broadcast {
        let traffic = measurement.traffic();
        layer.expect_broadcasts(traffic.senders.first, traffic.receivers, measurement.size);
    }
    Node::new(layer, measurement, setting).run()
}

/// A moment, and the counts at that moment.
#[derive(Clone, Copy)]
struct Mark {
    at: Time,
    cpu_ns: u64,
    messages: u64,
    sent: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The node waits for others that are not ready.
    Gathering,
    Running,
    /// The node only receives messages that are under way.
    Ending,
}

/// The way in which the times of a pattern are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Timing {
    /// The pattern reports no cycles, and its partner waits for it: the clock is read rarely.
    Seldom,
    /// The clock is read at every reception.
    Receptions,
    /// The clock is read at every send.
    Sending,
}

struct Node<'a, L: ?Sized> {
    layer: &'a mut L,
    measurement: &'a Measurement,
    setting: Setting,
    machine: Traffic,
    clock: Clock,
    timing: Timing,
    /// True if data messages carry the time at which they were due.
    is_stamped: bool,
    /// True if data messages go by the layer's own broadcast.
    is_broadcast: bool,
    peers: Peers,
    phase: Phase,
    now: Time,
    start: Time,
    /// Begin and end of the measured time.
    from: Option<Mark>,
    to: Option<Mark>,
    samples: Samples,
    last_arrival: Option<Time>,
    longest_gap: Span,
    refused: u64,
    buffer: Vec<u8>,
    /// The message that the machine is sending, and its remaining destinations.
    sending: Option<(NodeRange, TrafficMessage)>,
    /// Time at which the next message is due, under a rate.
    due: Time,
    deadline: Time,
    /// Messages that are received before others are sent.
    batch: usize,
    /// Time at which all others had ended.
    all_ended: Option<Time>,
}

impl<'a, L: MessageLayer + ?Sized> Node<'a, L> {
    fn new(layer: &'a mut L, measurement: &'a Measurement, setting: Setting) -> Self {
        let (local, traffic) = (layer.local(), measurement.traffic());
        let sends = traffic.senders.contains(local);
        // No second message can be there before the first is answered: to look for it would only delay the answer.
        let is_alone = measurement.benchmark == Benchmark::PingPong && measurement.window == 1;
        let timing = match measurement.benchmark {
            Benchmark::PingPong | Benchmark::Roundtrip if !sends => Timing::Seldom,
            Benchmark::PullFarm if sends => Timing::Seldom,
            Benchmark::Outfarming | Benchmark::Broadcast if sends => Timing::Sending,
            _ => Timing::Receptions,
        };
        let clock = match layer.virtual_time() {
            Some(time) => Clock::Virtual(time),
            None if measurement.rate.is_some() => Clock::shared(setting.epoch_ns),
            None => Clock::own(),
        };
        Self {
            machine: Traffic::new(&traffic, local, None),
            deadline: clock.now()
                + clock.patience().all
                + measurement.warmup
                + measurement.duration
                + measurement.compute,
            clock,
            timing,
            is_broadcast: measurement.benchmark == Benchmark::Broadcast && layer.has_broadcast(),
            is_stamped: measurement.rate.is_some() && measurement.size >= SMALLEST_STAMPED,
            peers: Peers::new(measurement.nodes, local),
            phase: Phase::Gathering,
            now: Time::ZERO,
            start: Time::ZERO,
            from: None,
            to: None,
            samples: Samples::new(),
            last_arrival: None,
            longest_gap: Span::ZERO,
            refused: 0,
            buffer: vec![0; measurement.size.max(CONTROL_BYTES)],
            sending: None,
            due: Time::MAX,
            batch: if is_alone { 1 } else { BATCH },
            all_ended: None,
            layer,
            measurement,
            setting,
        }
    }

    fn run(mut self) -> Result<NodeResult, BenchError> {
        self.tell_others(|_| Content::Ready)?;
        let mut rest = match self.clock.is_virtual() {
            true => Rest::virtual_time(),
            false => Rest::new(self.measurement.wait, self.setting.shares_cores),
        };
        let mut rounds = 0_u32;
        loop {
            let received = self.receive();
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(ROUNDS_PER_LOOK) || self.measurement.rate.is_some() || self.clock.is_virtual() {
                self.look()?;
            }
            self.begin_or_end()?;
            let sent = self.send()?;
            let flushed = self.layer.flush();
            self.handle_events();
            if self.phase == Phase::Ending && flushed && self.peers.all_ended() && self.is_complete() {
                return Ok(self.result());
            }
            rest.after(received > 0 || sent > 0, || self.layer.wait(self.longest_sleep()));
        }
    }

    /// Sends a message to each other node, and receives meanwhile.
    fn tell_others(&mut self, what: impl Fn(u64) -> Content) -> Result<(), BenchError> {
        for to in self.peers.others() {
            let word = what(self.peers.get(to).sent).word().to_le_bytes();
            while let Err(refused) = self.layer.send(to, &word) {
                match refused {
                    Refused::Full if self.clock.now() < self.deadline => {}
                    _ => return Err(BenchError::Refused { to, refused }),
                }
                self.layer.flush();
                self.receive();
                thread::yield_now();
            }
        }
        Ok(())
    }

    /// Checks the time, and checks for peers that are gone.
    fn look(&mut self) -> Result<(), BenchError> {
        self.set_now();
        if let Some(peer) = self.layer.lost().filter(|&peer| self.peers.is_missed(peer)) {
            return Err(BenchError::Gone(peer));
        }
        if self.clock.now() >= self.deadline {
            return Err(BenchError::NoEnd(self.peers.missing().collect()));
        }
        Ok(())
    }

    fn set_now(&mut self) {
        self.now = self.clock.now();
        self.begin_measurement();
    }

    /// Begins the measured time after the warm-up.
    fn begin_measurement(&mut self) {
        let warm = self.phase == Phase::Running && self.now.since(self.start) >= self.measurement.warmup;
        if self.from.is_none() && warm {
            self.from = Some(self.mark());
            self.samples = Samples::new();
            (self.last_arrival, self.longest_gap) = (None, Span::ZERO);
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            at: self.now,
            cpu_ns: if self.clock.is_virtual() { 0 } else { cpu_ns(!self.setting.shares_process) },
            messages: self.peers.received,
            sent: self.peers.sent,
        }
    }

    fn begin_or_end(&mut self) -> Result<(), BenchError> {
        let is_over = || self.from.is_some_and(|from| self.now.since(from.at) >= self.measurement.duration);
        match self.phase {
            Phase::Gathering if self.peers.all_ready() => self.begin(),
            Phase::Running if is_over() || self.peers.any_ended() => self.end()?,
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self) {
        self.phase = Phase::Running;
        self.set_now();
        (self.start, self.due) = (self.now, self.now);
        let start = TrafficCommand::Start { saturating: self.measurement.rate.is_none(), messages: None };
        self.machine.handle_command(self.now, start);
    }

    fn end(&mut self) -> Result<(), BenchError> {
        self.set_now();
        self.to = Some(self.mark());
        self.phase = Phase::Ending;
        self.sending = None;
        self.tell_others(|sent| Content::End { sent })
    }

    /// Returns true if all messages from others have arrived. Broadcasts may arrive after the report of their end; a
    /// message that is still missing a while later is lost.
    fn is_complete(&mut self) -> bool {
        let since = *self.all_ended.get_or_insert_with(|| self.clock.now());
        self.peers.lost() == 0 || self.clock.now().since(since) >= self.clock.patience().stragglers
    }

    /// Passes received messages to the machine; returns their number.
    fn receive(&mut self) -> usize {
        let mut is_new = true;
        let Self { layer, peers, machine, clock, samples, now, .. } = self;
        let (running, size) = (self.phase != Phase::Ending, self.measurement.size);
        let (stamped, is_timed) = (self.is_stamped, self.timing == Timing::Receptions);
        let count = layer.receive(self.batch, &mut |from, bytes| {
            if is_timed && is_new {
                (*now, is_new) = (clock.now(), false);
            }
            match Content::read(bytes) {
                None => peers.corrupted += 1,
                Some(Content::Ready) => peers.note_ready(from),
                Some(Content::End { sent }) => peers.note_end(from, sent),
                Some(Content::Traffic(message)) => {
                    if let TrafficMessage::Data { number, .. } = message {
                        peers.note(from, number, bytes.len() == size && is_whole(bytes, stamped, from));
                        if stamped {
                            samples.add(now.since(read_stamp(bytes)));
                        }
                    }
                    if running {
                        machine.handle_message(*now, from, message);
                    }
                }
            }
        });
        if !is_new {
            self.note_arrival();
        }
        count
    }

    fn note_arrival(&mut self) {
        self.begin_measurement();
        if let Some(last) = self.last_arrival.replace(self.now) {
            self.longest_gap = self.longest_gap.max(self.now.since(last));
        }
    }

    /// Sends messages of the machine; returns their number.
    fn send(&mut self) -> Result<usize, BenchError> {
        if self.phase != Phase::Running {
            return Ok(0);
        }
        self.offer();
        for count in 0..BATCH {
            if self.sending.is_none() {
                self.sending = self.machine.poll_transmit().map(|transmit| (transmit.to, transmit.message));
            }
            let Some((to, message)) = self.sending else { return Ok(count) };
            match self.post(to, message) {
                Ok(copies) => {
                    let rest = NodeRange { first: NodeId(to.first.0 + copies), count: to.count - copies };
                    self.sending = (rest.count > 0).then_some((rest, message));
                    if self.batch == 1 {
                        // Nothing follows that it could wait for.
                        self.layer.flush();
                    }
                    if matches!(message, TrafficMessage::Data { .. }) {
                        self.tell_sent(NodeRange { count: copies, ..to });
                    }
                }
                Err(Refused::Full) => return Ok(count),
                Err(refused) => return Err(BenchError::Refused { to: to.first, refused }),
            }
        }
        Ok(BATCH)
    }

    /// Offers the machine all messages that are due.
    fn offer(&mut self) {
        let Some(rate) = self.measurement.rate else { return };
        while self.due <= self.now {
            self.machine.handle_command(self.due, TrafficCommand::Offer { number: 0 });
            self.due = self.due + Span((1e12 / rate) as u64);
        }
    }

    /// Sends a message to the first of `to`, or by broadcast to all; returns the number of copies.
    fn post(&mut self, to: NodeRange, message: TrafficMessage) -> Result<u16, Refused> {
        let length = match message {
            TrafficMessage::Data { .. } => self.measurement.size,
            _ => CONTROL_BYTES,
        };
        let bytes = &mut self.buffer[..length];
        bytes[..8].copy_from_slice(&Content::Traffic(message).word().to_le_bytes());
        if let TrafficMessage::Data { born, .. } = message {
            if self.is_stamped {
                write_stamp(bytes, born);
            }
            fill(bytes, self.is_stamped, self.layer.local());
        }
        if to.count > 1 && self.is_broadcast {
            return self.layer.broadcast(to, bytes).map(|()| to.count);
        }
        self.layer.send(to.first, bytes).map(|()| 1)
    }

    /// Tells the machine that copies of a data message for these nodes have left the host: the layer has them.
    fn tell_sent(&mut self, to: NodeRange) {
        if self.timing == Timing::Sending {
            self.set_now();
        }
        for node in to.iter() {
            self.peers.note_sent(node);
            self.machine.handle_command(self.now, TrafficCommand::Sent);
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                TrafficEvent::Ended { born, .. } if self.phase == Phase::Running => {
                    self.samples.add(self.now.since(born));
                }
                TrafficEvent::Compute { span } if self.phase == Phase::Running => self.compute(span),
                TrafficEvent::Refused => self.refused += 1,
                TrafficEvent::Ended { .. } | TrafficEvent::Compute { .. } => {}
            }
        }
    }

    /// Keeps the processor busy, as an application that does not poll for messages meanwhile.
    fn compute(&mut self, span: Span) {
        if self.clock.is_virtual() {
            self.layer.pass(span);
        } else {
            let start = self.clock.now();
            while self.clock.now().since(start) < span {}
        }
        self.set_now();
        self.machine.handle_command(self.now, TrafficCommand::Computed);
    }

    /// Longest sleep: it ends when the next message is due.
    fn longest_sleep(&self) -> Duration {
        let longest = self.clock.patience().sleep;
        let sleep = if self.measurement.rate.is_some() { self.due.since(self.now).min(longest) } else { longest };
        sleep.as_duration()
    }

    fn result(self) -> NodeResult {
        let (from, to) = match (self.from, self.to) {
            (Some(from), Some(to)) => (from, to),
            // It ended before it was warm: nothing was measured.
            _ => (self.mark(), self.mark()),
        };
        NodeResult {
            seconds: to.at.since(from.at).as_secs_f64(),
            cpu_seconds: (to.cpu_ns - from.cpu_ns) as f64 * 1e-9,
            messages: to.messages - from.messages,
            sent: to.sent - from.sent,
            times: self.samples.finish(),
            longest_gap_ns: self.longest_gap.0 / 1000,
            all_messages: self.peers.received,
            lost: self.peers.lost(),
            corrupted: self.peers.corrupted,
            refused: self.refused,
        }
    }
}
