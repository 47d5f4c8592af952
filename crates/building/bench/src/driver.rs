//! One node of a measurement: the machine of its pattern, driven over a message layer in real time, or in the time of a
//! simulated network.
//!
//! The nodes begin together: each waits until all others are ready. A node begins nothing more when its time is over, or
//! its number of messages is reached, and reports when its own messages are done. Meanwhile it answers others. When all
//! nodes have reported, each sends all others the number of its data messages to them, and ends when these have come. So
//! every message is accounted for, and nothing is under way when the next measurement begins.

mod counts;
mod messages;
mod phases;

use crate::{
    clock::Clock,
    error::BenchError,
    idle_policy::IdlePolicy,
    offers::Offers,
    peers::Peers,
    samples::Samples,
    wire::{CONTROL_BYTES, Content},
    work::{Sizes, Work},
};
use counts::Mark;
pub use counts::{NodeResult, RECEIVED, RECEIVED_BYTES, SENT_BYTES};
use evb_core::{Machine, NodeRange, Span, Time};
use evb_patterns::{Pattern, Traffic, TrafficCommand, TrafficEvent, TrafficMessage};
use evb_record::steady::Series;
use evb_transport::MessageLayer;
use serde::{Deserialize, Serialize};
use std::{sync::atomic::AtomicBool, time::Duration};

/// Most messages that are received before others are sent, and the reverse.
const BATCH: usize = 64;
/// Most rounds of a node between two checks of the time.
const ROUNDS_PER_LOOK: u32 = 64;

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
    /// The first word and the length of the message that is in `buffer` before it is sent.
    written: Option<(u64, usize)>,
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
        // No second message can be there before the first is answered: a poll for it would only delay the answer.
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
            written: None,
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

    fn run(mut self) -> Result<NodeResult, BenchError> {
        let at = self.clock.now();
        self.peers.note_ready(self.layer.local(), at);
        self.send_to_others(|_| Content::Ready { at })?;
        let mut idle_policy = match self.clock.is_virtual() {
            true => IdlePolicy::virtual_time(),
            false => IdlePolicy::new(self.work.wait, self.setting.shares_cores),
        };
        let (mut rounds, mut is_idle) = (0_u32, false);
        loop {
            let polls = if is_idle && self.offers.is_none() { idle_policy.polls() } else { 1 };
            let received = self.poll(polls);
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(ROUNDS_PER_LOOK) || self.offers.is_some() || self.clock.is_virtual() {
                self.check_time()?;
            }
            self.begin_or_end()?;
            let sent = self.send()?;
            let flushed = self.layer.flush();
            self.handle_events();
            if sent > 0 {
                self.write_ahead();
            }
            if self.phase == Phase::Ending && flushed && self.peers.all_ended() && self.is_complete() {
                return Ok(self.result());
            }
            let moved = received > 0 || sent > 0;
            is_idle = !moved && flushed;
            if idle_policy.after(moved, || self.layer.wait(self.longest_sleep())) {
                // Much time may have passed.
                rounds = ROUNDS_PER_LOOK - 1;
            }
        }
    }

    /// Checks the time, and checks for peers that are gone.
    fn check_time(&mut self) -> Result<(), BenchError> {
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

    fn set_now(&mut self) {
        self.now = self.clock.now();
        self.begin_measurement();
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
}
