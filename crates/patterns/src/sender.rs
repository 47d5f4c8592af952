//! A node that sends data to receivers of its own choice.

use crate::{Pattern, Start, TrafficCommand, TrafficConfig, TrafficEvent, TrafficMessage};
use alloc::collections::VecDeque;
use evb_core::{NodeId, Stream, Time, Transmit, stream};
use rand_xoshiro::rand_core::Rng;

/// Offered messages that may wait in one sender.
const MOST_OFFERED: usize = 1 << 16;

/// The purpose of a sender's random stream.
const DESTINATIONS: u64 = 40;

pub(crate) struct Sender {
    pattern: Pattern,
    first_receiver: u16,
    receivers: u16,
    /// Which of the senders this is.
    index: u16,
    /// The receiver on the same host.
    own: Option<u16>,
    random: Stream,
    window: u32,
    saturating: bool,
    running: bool,
    /// Receivers that have not yet said that they are ready.
    missing_starts: u16,
    /// When each offered message came.
    offered: VecDeque<Time>,
    /// Messages sent that have not left the host.
    under_way: u32,
    sent: u64,
    limit: u64,
    now: Time,
}

impl Sender {
    pub(crate) fn new(config: &TrafficConfig, node: NodeId, own: Option<u16>) -> Self {
        let waits = config.pattern == Pattern::Stream;
        Self {
            pattern: config.pattern.clone(),
            first_receiver: config.receivers.first.0,
            receivers: config.receivers.count,
            index: node.0 - config.senders.first.0,
            own,
            random: stream(config.seed, node, DESTINATIONS),
            window: config.window,
            saturating: false,
            running: false,
            missing_starts: if waits { config.receivers.count } else { 0 },
            offered: VecDeque::new(),
            under_way: 0,
            sent: 0,
            limit: u64::MAX,
            now: Time::ZERO,
        }
    }

    pub(crate) fn handle_start(&mut self) {
        self.missing_starts = self.missing_starts.saturating_sub(1);
    }

    pub(crate) fn handle_command(&mut self, now: Time, command: TrafficCommand, events: &mut VecDeque<TrafficEvent>) {
        self.now = now;
        match command {
            TrafficCommand::Start { saturating, messages } => {
                (self.running, self.saturating) = (true, saturating);
                self.limit = messages.unwrap_or(u64::MAX);
            }
            TrafficCommand::Offer { .. } if self.offered.len() >= MOST_OFFERED => {
                events.push_back(TrafficEvent::Refused);
            }
            TrafficCommand::Offer { .. } => self.offered.push_back(now),
            TrafficCommand::Sent => self.under_way = self.under_way.saturating_sub(1),
            TrafficCommand::Stop => self.running = false,
        }
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit<TrafficMessage>> {
        if !self.running || self.missing_starts > 0 || self.sent >= self.limit {
            return None;
        }
        let born = if self.saturating {
            (self.under_way < self.window).then_some(self.now)?
        } else {
            self.offered.pop_front()?
        };
        self.under_way += 1;
        self.sent += 1;
        let receiver = self.receiver();
        let to = NodeId(self.first_receiver + receiver).into();
        Some(Transmit { to, message: TrafficMessage::Data { number: self.sent, born } })
    }

    /// The receiver of the message that is the `sent`-th.
    fn receiver(&mut self) -> u16 {
        let all = u64::from(self.receivers);
        let turn = self.sent - 1;
        let receiver = match &self.pattern {
            Pattern::Assigned { destinations } => return destinations[self.index as usize],
            Pattern::Random => return self.random_receiver(),
            Pattern::Pairs => (u64::from(self.index) + all / 2) % all,
            Pattern::Rotation { start: Start::Retarded } => (turn + u64::from(self.index)) % all,
            Pattern::Rotation { start: Start::Simultaneous } | Pattern::Stream | Pattern::Gather { .. } => turn % all,
        };
        receiver as u16
    }

    fn random_receiver(&mut self) -> u16 {
        let own = self.own.filter(|_| self.receivers > 1);
        let choices = u64::from(self.receivers) - u64::from(own.is_some());
        // By multiplication; the bias is below 2^-48.
        let drawn = ((u128::from(self.random.next_u64()) * u128::from(choices)) >> 64) as u16;
        drawn + u16::from(own.is_some_and(|own| drawn >= own))
    }
}
