//! One node of a measurement: the machine of its pattern, driven over a message layer in real time, or in the time of a
//! simulated network.
//!
//! The nodes begin together: each waits until all others are ready. A node begins nothing more when its time is over, or
//! its number of messages is reached, and says so when what it has begun is done. Meanwhile it answers others. When all
//! nodes have said so, each tells all others how many data messages it has sent them, and ends when these have come. So
//! every message is accounted for, and nothing is under way when the next measurement begins.

use crate::{
    clock::{Clock, cpu_ns},
    error::BenchError,
    measurement::CONTROL_BYTES,
    offers::Offers,
    peers::Peers,
    rest::Rest,
    samples::{SampleSummary, Samples},
    wire::{Content, fill, is_whole, read_stamp, write_stamp},
    work::{Sizes, Work},
};
use evb_core::{Machine, NodeId, NodeRange, Span, Time};
use evb_experiment::Load;
use evb_patterns::{Pattern, Traffic, TrafficCommand, TrafficEvent, TrafficMessage};
use evb_steady::{RATES, Series};
use evb_transport::{MessageLayer, Refused};
use serde::{Deserialize, Serialize};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

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
    /// Data messages sent in all.
    pub all_sent: u64,
    /// Messages that were due under a rate, or events of gathering that the node was told of.
    pub offered: u64,
    /// Cycles and events that this node has ended in all.
    pub ended: u64,
    /// Bytes of the data messages that were received and sent in all.
    pub received_bytes: u64,
    /// Bytes of the data messages sent in all.
    pub sent_bytes: u64,
    /// Data messages that were to be shorter than a message can be, and had the shortest length.
    pub lengthened: u64,
    /// Counts since the start: those by which a window is found, then [`RECEIVED`] and those that follow it. An event of
    /// gathering counts once for each node that gathers for it.
    pub series: Series,
}

/// Index of the data messages received in [`NodeResult::series`].
pub const RECEIVED: usize = RATES;
/// Index of their bytes.
pub const RECEIVED_BYTES: usize = RATES + 1;
/// Index of the bytes sent.
pub const SENT_BYTES: usize = RATES + 2;

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

/// Takes part in a measurement as the node of this layer. `stop` ends it early.
///
/// # Errors
/// If a source cannot be opened, or a peer is lost or does not answer in time.
pub fn measure<L: MessageLayer + ?Sized>(
    layer: &mut L,
    work: &Work,
    setting: Setting,
    stop: &AtomicBool,
) -> Result<NodeResult, BenchError> {
    let config = work.config();
    if config.pattern == Pattern::Broadcast {
        layer.expect_broadcasts(config.senders.first, config.receivers, work.longest()?);
    }
    Node::new(layer, work, setting, stop)?.run()
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
    /// The node begins nothing more, and answers others.
    Stopping,
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
    work: &'a Work,
    setting: Setting,
    stop: &'a AtomicBool,
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
    ended: u64,
    series: Series,
    buffer: Vec<u8>,
    sizes: Sizes,
    /// The length of all data messages, if they have one.
    size: Option<usize>,
    /// The message that the machine is sending, and its remaining destinations.
    sending: Option<(NodeRange, TrafficMessage)>,
    /// The messages that are due, under a rate.
    offers: Option<Offers>,
    /// Time at which the nodes give up, and the messages that had moved when it was set.
    deadline: Time,
    moved: u64,
    /// Messages that are received before others are sent.
    batch: usize,
    /// Time at which all others had ended.
    all_ended: Option<Time>,
}

impl<'a, L: MessageLayer + ?Sized> Node<'a, L> {
    fn new(layer: &'a mut L, work: &'a Work, setting: Setting, stop: &'a AtomicBool) -> Result<Self, BenchError> {
        let (local, config) = (layer.local(), work.config());
        let sends = config.senders.contains(local);
        // No second message can be there before the first is answered: to look for it would only delay the answer.
        let is_alone = config.pattern == Pattern::PingPong && config.window == 1;
        let timing = match config.pattern {
            _ if work.times_messages() => Timing::Receptions,
            Pattern::PingPong if !sends => Timing::Seldom,
            Pattern::PullFarm { .. } if sends => Timing::Seldom,
            Pattern::Outfarming | Pattern::Broadcast if sends => Timing::Sending,
            _ => Timing::Receptions,
        };
        let clock = match layer.virtual_time() {
            Some(time) => Clock::Virtual(time),
            None if work.is_timed => Clock::shared(setting.epoch_ns),
            None => Clock::own(),
        };
        let mut node = Self {
            machine: Traffic::new(&config, local, work.plan.receiver_beside(Work::in_plan(local))),
            clock,
            timing,
            is_broadcast: config.pattern == Pattern::Broadcast && layer.has_broadcast(),
            is_stamped: work.times_messages() && work.has_room_for_stamp(),
            peers: Peers::new(work.nodes(), local),
            phase: Phase::Gathering,
            now: Time::ZERO,
            start: Time::ZERO,
            from: None,
            to: None,
            samples: Samples::new(),
            last_arrival: None,
            longest_gap: Span::ZERO,
            refused: 0,
            ended: 0,
            series: Series::default(),
            buffer: vec![0; work.typical()?.max(CONTROL_BYTES)],
            sizes: work.sizes(local)?,
            size: work.common_size(),
            sending: None,
            offers: None,
            deadline: Time::ZERO,
            moved: 0,
            batch: if is_alone { 1 } else { BATCH },
            all_ended: None,
            layer,
            work,
            setting,
            stop,
        };
        node.be_patient();
        Ok(node)
    }

    /// Sets the time at which the node gives up: some time after the end of the measurement, or without progress for as
    /// long if its end depends on the number of messages.
    fn be_patient(&mut self) {
        let plan = &self.work.plan;
        let expected = plan.run.warmup.unwrap_or(Span::ZERO) + plan.trigger.duration.unwrap_or(Span::ZERO);
        let next = self.offers.as_ref().and_then(Offers::due).unwrap_or(Time::ZERO);
        let pause = self.clock.patience().all + expected + self.work.compute();
        self.deadline = self.clock.now().max(next) + pause;
        self.moved = self.moved();
    }

    /// A number that changes when the node sends or receives data.
    const fn moved(&self) -> u64 {
        self.peers.received + self.peers.sent
    }

    fn run(mut self) -> Result<NodeResult, BenchError> {
        let at = self.clock.now();
        self.peers.note_ready(self.layer.local(), at);
        self.tell_others(|_| Content::Ready { at })?;
        let mut rest = match self.clock.is_virtual() {
            true => Rest::virtual_time(),
            false => Rest::new(self.work.wait, self.setting.shares_cores),
        };
        let mut rounds = 0_u32;
        loop {
            let received = self.receive();
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(ROUNDS_PER_LOOK) || self.offers.is_some() || self.clock.is_virtual() {
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
        if self.work.plan.trigger.duration.is_none() && self.moved() != self.moved {
            self.be_patient();
        }
        if self.clock.now() >= self.deadline {
            return Err(BenchError::NoEnd(self.peers.missing().collect()));
        }
        if self.phase != Phase::Gathering {
            self.mark_series();
        }
        Ok(())
    }

    /// Keeps the counts over time.
    fn mark_series(&mut self) {
        let since = Time(self.now.since(self.start).0);
        if self.series.is_due(since) {
            let counts = self.counts();
            self.series.mark(since, &counts);
        }
    }

    /// The counts of [`NodeResult::series`].
    fn counts(&self) -> [u64; RATES + 3] {
        let offered = self.offers.as_ref().map_or(0, Offers::counted);
        let (started, done) = match self.work.pattern() {
            Pattern::Gather { .. } => (offered, self.ended),
            _ => (self.peers.sent, self.peers.received),
        };
        let has_cycles = self.work.pattern().has_cycles();
        let ended = if has_cycles { self.ended } else { done };
        let Peers { received, received_bytes, sent_bytes, .. } = self.peers;
        [offered, started, ended, done, received, received_bytes, sent_bytes]
    }

    fn set_now(&mut self) {
        self.now = self.clock.now();
        self.begin_measurement();
    }

    /// Begins the measured time after the warm-up.
    fn begin_measurement(&mut self) {
        let warmup = self.work.plan.run.warmup.unwrap_or(Span::ZERO);
        let warm = self.phase == Phase::Running && self.now.since(self.start) >= warmup;
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
        match self.phase {
            Phase::Gathering if self.peers.all_ready() => self.begin(),
            Phase::Running if self.is_over() => self.stop(),
            Phase::Running if self.work.traffic.messages.is_none() => {}
            Phase::Running | Phase::Stopping => self.tell_if_done()?,
            Phase::Gathering | Phase::Ending => {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let since = |from: Mark| self.now.since(from.at);
        let is_late = |duration| self.from.is_some_and(|from| since(from) >= duration);
        self.work.plan.trigger.duration.is_some_and(is_late) || self.stop.load(Ordering::Relaxed)
    }

    /// The time is over: what was begun is still done.
    fn stop(&mut self) {
        self.set_now();
        // All that was due before the end counts.
        self.offer();
        self.phase = Phase::Stopping;
        self.to = Some(self.mark());
        self.series.stop(Time(self.now.since(self.start).0), &self.counts());
        self.machine.handle_command(self.now, TrafficCommand::Stop);
    }

    /// Tells the others when this node is done; ends when all nodes are.
    fn tell_if_done(&mut self) -> Result<(), BenchError> {
        let local = self.layer.local();
        if !self.peers.is_done(local) && self.is_done() {
            self.peers.note_done(local);
            self.tell_others(|_| Content::Done)?;
        }
        if self.peers.all_done() { self.end() } else { Ok(()) }
    }

    /// True if nothing more begins here and what has begun is over, or takes very long after the time is over.
    fn is_done(&self) -> bool {
        let waited = |to: Mark| self.now.since(to.at) >= self.clock.patience().drain;
        let is_late = self.phase == Phase::Stopping && self.to.is_some_and(waited);
        self.sending.is_none() && self.machine.is_done() || is_late
    }

    fn begin(&mut self) {
        self.phase = Phase::Running;
        self.set_now();
        self.start = self.now;
        self.offers = Offers::of(self.work, self.layer.local(), self.peers.last_ready);
        self.series = Series::new(Time::ZERO, &self.counts());
        let (saturating, messages) = (self.work.traffic.load == Load::Saturating, self.work.traffic.messages);
        self.machine.handle_command(self.now, TrafficCommand::Start { saturating, messages });
        self.be_patient();
    }

    fn end(&mut self) -> Result<(), BenchError> {
        self.set_now();
        self.to = Some(self.to.unwrap_or_else(|| self.mark()));
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
        let (passes, is_measured) = (self.phase != Phase::Ending, self.phase == Phase::Running);
        let size = self.size;
        let (stamped, is_timed) = (self.is_stamped, self.timing == Timing::Receptions);
        let count = layer.receive(self.batch, &mut |from, bytes| {
            if is_timed && is_new {
                (*now, is_new) = (clock.now(), false);
            }
            match Content::read(bytes) {
                None => peers.corrupted += 1,
                Some(Content::Ready { at }) => peers.note_ready(from, at),
                Some(Content::Done) => peers.note_done(from),
                Some(Content::End { sent }) => peers.note_end(from, sent),
                Some(Content::Traffic(message)) => {
                    if let TrafficMessage::Data { number, .. } = message {
                        let fits = size.is_none_or(|size| bytes.len() == size);
                        peers.note(from, number, bytes.len(), fits && is_whole(bytes, stamped, from));
                        if stamped && is_measured {
                            samples.add(now.since(read_stamp(bytes)));
                        }
                    }
                    if passes {
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
        match self.phase {
            Phase::Gathering | Phase::Ending => return Ok(0),
            Phase::Running => self.offer(),
            Phase::Stopping => {}
        }
        for count in 0..BATCH {
            if self.sending.is_none() {
                self.sending = self.machine.poll_transmit().map(|transmit| (transmit.to, transmit.message));
            }
            let Some((to, message)) = self.sending else { return Ok(count) };
            let length = self.length(message);
            match self.post(to, message, length) {
                Ok(copies) => {
                    let rest = NodeRange { first: NodeId(to.first.0 + copies), count: to.count - copies };
                    self.sending = (rest.count > 0).then_some((rest, message));
                    if self.batch == 1 {
                        // Nothing follows that it could wait for.
                        self.layer.flush();
                    }
                    if matches!(message, TrafficMessage::Data { .. }) {
                        self.tell_sent(NodeRange { count: copies, ..to }, length);
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
        let Some(offers) = &mut self.offers else { return };
        while let Some((number, due)) = offers.take(self.now) {
            self.machine.handle_command(due, TrafficCommand::Offer { number });
        }
    }

    /// The length of a message in bytes.
    fn length(&mut self, message: TrafficMessage) -> usize {
        match message {
            TrafficMessage::Data { number, .. } => self.sizes.length(number),
            _ => CONTROL_BYTES,
        }
    }

    /// Sends a message to the first of `to`, or by broadcast to all; returns the number of copies.
    fn post(&mut self, to: NodeRange, message: TrafficMessage, length: usize) -> Result<u16, Refused> {
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
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
    fn tell_sent(&mut self, to: NodeRange, length: usize) {
        if self.timing == Timing::Sending {
            self.set_now();
        }
        for node in to.iter() {
            self.peers.note_sent(node, length);
            self.machine.handle_command(self.now, TrafficCommand::Sent);
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                TrafficEvent::Ended { born, .. } => {
                    self.ended += 1;
                    if self.phase == Phase::Running {
                        self.samples.add(self.now.since(born));
                    }
                }
                TrafficEvent::Compute { span } if self.phase == Phase::Running => self.compute(span),
                TrafficEvent::Refused => self.refused += 1,
                TrafficEvent::Compute { .. } => {}
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
        let due = self.offers.as_ref().and_then(Offers::due);
        due.map_or(longest, |due| due.since(self.now).min(longest)).as_duration()
    }

    fn result(mut self) -> NodeResult {
        self.now = self.clock.now();
        self.series.end(Time(self.now.since(self.start).0), &self.counts());
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
            all_sent: self.peers.sent,
            offered: self.offers.as_ref().map_or(0, |offers| offers.made),
            ended: self.ended,
            received_bytes: self.peers.received_bytes,
            sent_bytes: self.peers.sent_bytes,
            lengthened: self.sizes.lengthened(self.peers.sent),
            series: self.series,
        }
    }
}
