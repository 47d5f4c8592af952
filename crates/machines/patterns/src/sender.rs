//! A node that chooses the receivers of its data.

use crate::{
    Pattern, Start, TrafficCommand, TrafficConfig, TrafficEvent, TrafficMessage,
    message::MOST_WAITING,
    role::{Outbox, TrafficRole},
};
use alloc::collections::VecDeque;
use evb_core::{NodeId, Stream, Time, Transmit, below, stream};

/// The purpose of a sender's random stream.
const DESTINATIONS: u64 = 40;

pub(crate) struct Sender {
    pattern: Pattern,
    first_receiver: u16,
    receivers: u16,
    /// Index of this sender.
    index: u16,
    /// The receiver on the same host.
    own: Option<u16>,
    random: Stream,
    window: u32,
    /// True if a message is under way until the receiver is done with it, not only until it has left the host.
    is_awaited: bool,
    saturating: bool,
    running: bool,
    /// Number of receivers that are not ready yet.
    missing_starts: u16,
    /// Time of each offered message that waits.
    offered: VecDeque<Time>,
    /// Messages offered so far, those refused among them.
    offers: u64,
    /// Messages sent that have not left the host, or that the receiver is not done with.
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
            is_awaited: matches!(config.pattern, Pattern::Funnel | Pattern::PushFarm { .. }),
            saturating: false,
            running: false,
            missing_starts: if waits { config.receivers.count } else { 0 },
            offered: VecDeque::new(),
            offers: 0,
            under_way: 0,
            sent: 0,
            limit: u64::MAX,
            now: Time::ZERO,
        }
    }

    /// Number of offered messages that wait here, and of those under way.
    fn waiting(&self) -> usize {
        self.offered.len() + self.under_way as usize
    }

    /// The receiver of the message with this many predecessors.
    fn receiver(&mut self, before: u64) -> u16 {
        let (all, index) = (u64::from(self.receivers), u64::from(self.index));
        let receiver = match &self.pattern {
            Pattern::Assigned { destinations } => return destinations[usize::from(self.index)],
            Pattern::Random => return self.random_receiver(),
            Pattern::Pairs => (index + all / 2) % all,
            Pattern::Rotation { start: Start::Retarded } => (before + index) % all,
            _ => before % all,
        };
        receiver as u16
    }

    fn random_receiver(&mut self) -> u16 {
        let own = self.own.filter(|_| self.receivers > 1);
        let drawn = below(&mut self.random, u32::from(self.receivers) - u32::from(own.is_some()));
        drawn + u16::from(own.is_some_and(|own| drawn >= own))
    }
}

impl TrafficRole for Sender {
    fn handle_command(&mut self, now: Time, command: TrafficCommand, out: &mut Outbox) {
        self.now = now;
        match command {
            TrafficCommand::Start { saturating, messages } => {
                self.running = true;
                self.saturating = saturating;
                self.limit = messages.unwrap_or(u64::MAX);
            }
            TrafficCommand::Offer { .. } => {
                self.offers += 1;
                if self.waiting() < MOST_WAITING {
                    self.offered.push_back(now)
                } else {
                    out.tell(TrafficEvent::Refused)
                }
            }
            TrafficCommand::Refuse { count } => self.offers += count,
            TrafficCommand::Sent if !self.is_awaited => self.under_way = self.under_way.saturating_sub(1),
            TrafficCommand::Sent | TrafficCommand::Computed => {}
            TrafficCommand::Stop => self.running = false,
        }
    }

    fn handle_message(&mut self, now: Time, _from: NodeId, message: TrafficMessage, _out: &mut Outbox) {
        self.now = now;
        match message {
            TrafficMessage::Start => self.missing_starts = self.missing_starts.saturating_sub(1),
            TrafficMessage::Next => self.under_way = self.under_way.saturating_sub(1),
            TrafficMessage::Ask { .. } | TrafficMessage::Data { .. } => {}
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit<TrafficMessage>> {
        if !self.running || self.missing_starts > 0 || self.sent >= self.limit {
            return None;
        }
        let may_send = self.under_way < self.window;
        let born = match self.saturating {
            true => may_send.then_some(self.now)?,
            false if may_send || !self.is_awaited => self.offered.pop_front()?,
            false => return None,
        };
        self.under_way += 1;
        let to = NodeId(self.first_receiver + self.receiver(self.sent)).into();
        self.sent += 1;
        Some(Transmit { to, message: TrafficMessage::Data { number: self.sent, born } })
    }

    fn is_done(&self) -> bool {
        match self.saturating {
            _ if !self.running => true,
            true => self.sent >= self.limit,
            false => self.offers >= self.limit && self.offered.is_empty(),
        }
    }
}
