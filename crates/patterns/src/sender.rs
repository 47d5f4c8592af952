//! A node that sends data to receivers of its own choice.

use crate::{
    Pattern, Start, TrafficCommand, TrafficConfig, TrafficEvent, TrafficMessage, gather::below, machine::MOST_WAITING,
};
use alloc::collections::VecDeque;
use evb_core::{NodeId, Stream, Time, Transmit, stream};

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

    /// One more receiver is ready.
    pub(crate) fn handle_start(&mut self, now: Time) {
        self.now = now;
        self.missing_starts = self.missing_starts.saturating_sub(1);
    }

    pub(crate) fn handle_command(&mut self, now: Time, command: TrafficCommand, events: &mut VecDeque<TrafficEvent>) {
        self.now = now;
        match command {
            TrafficCommand::Start { saturating, messages } => {
                (self.running, self.saturating) = (true, saturating);
                self.limit = messages.unwrap_or(u64::MAX);
            }
            TrafficCommand::Offer { .. } if self.waiting() >= MOST_WAITING => events.push_back(TrafficEvent::Refused),
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
        let to = NodeId(self.first_receiver + self.receiver(self.sent)).into();
        self.sent += 1;
        Some(Transmit { to, message: TrafficMessage::Data { number: self.sent, born } })
    }

    /// Offered messages that have not left the host: those that wait here, and those that wait below.
    fn waiting(&self) -> usize {
        self.offered.len() + self.under_way as usize
    }

    /// The receiver of the message that so many others went before.
    fn receiver(&mut self, before: u64) -> u16 {
        let (all, index) = (u64::from(self.receivers), u64::from(self.index));
        let receiver = match &self.pattern {
            Pattern::Assigned { destinations } => return destinations[usize::from(self.index)],
            Pattern::Random => return self.random_receiver(),
            Pattern::Pairs => (index + all / 2) % all,
            Pattern::Rotation { start: Start::Retarded } => (before + index) % all,
            Pattern::Rotation { start: Start::Simultaneous } | Pattern::Stream | Pattern::Gather { .. } => before % all,
        };
        receiver as u16
    }

    fn random_receiver(&mut self) -> u16 {
        let own = self.own.filter(|_| self.receivers > 1);
        let drawn = below(&mut self.random, u32::from(self.receivers) - u32::from(own.is_some()));
        drawn + u16::from(own.is_some_and(|own| drawn >= own))
    }
}
