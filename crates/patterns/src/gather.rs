//! Second-level trigger: processors gather the data of an event from some of the buffers.
//!
//! Which processors and buffers an event concerns is drawn from the event's number, so every node knows it by itself.

use crate::{Pattern, TrafficCommand, TrafficConfig, TrafficEvent, TrafficMessage};
use alloc::{collections::VecDeque, vec::Vec};
use evb_core::{NodeId, Stream, Time, Transmit, stream};
use rand_xoshiro::rand_core::Rng;

/// Events that a processor gathers at once; what is beyond is refused by leaving it out.
const MOST_OPEN: usize = 1 << 16;

/// What the draws of an event are keyed by, beside seed and number.
const CHOICE: u64 = 41;

pub(crate) struct Gathering {
    config: TrafficConfig,
    node: NodeId,
    running: bool,
    out: VecDeque<Transmit<TrafficMessage>>,
    /// Events that this processor gathers: number, when it came, and how much of the data is missing.
    open: Vec<(u64, Time, u16)>,
}

impl Gathering {
    pub(crate) fn new(config: &TrafficConfig, node: NodeId) -> Self {
        Self { config: config.clone(), node, running: false, out: VecDeque::new(), open: Vec::new() }
    }

    pub(crate) fn handle_command(&mut self, now: Time, command: TrafficCommand) {
        match command {
            TrafficCommand::Start { .. } => self.running = true,
            TrafficCommand::Stop => self.running = false,
            TrafficCommand::Offer { number } if self.running => self.begin(now, number),
            TrafficCommand::Offer { .. } | TrafficCommand::Sent => {}
        }
    }

    pub(crate) fn handle_message(
        &mut self,
        from: NodeId,
        message: TrafficMessage,
        events: &mut VecDeque<TrafficEvent>,
    ) {
        match message {
            TrafficMessage::Ask { event, born } => {
                let data = TrafficMessage::Data { number: event, born };
                self.out.push_back(Transmit { to: from.into(), message: data });
            }
            TrafficMessage::Data { number, .. } => {
                let Some(place) = self.open.iter().position(|&(event, ..)| event == number) else { return };
                self.open[place].2 -= 1;
                if self.open[place].2 == 0 {
                    let (number, born, _) = self.open.swap_remove(place);
                    events.push_back(TrafficEvent::Gathered { number, born });
                }
            }
            TrafficMessage::Start => {}
        }
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit<TrafficMessage>> {
        self.out.pop_front()
    }

    /// An event has come: a processor asks or waits, a buffer sends what nobody asks for.
    fn begin(&mut self, now: Time, number: u64) {
        let Pattern::Gather { least, most, processors, ask } = self.config.pattern else { return };
        let (senders, receivers) = (self.config.senders, self.config.receivers);
        let mut random = stream(self.config.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15), NodeId(0), CHOICE);
        for processor in distinct(&mut random, processors, receivers.count) {
            let many = least + below(&mut random, most - least + 1);
            let buffers = distinct(&mut random, many, senders.count);
            let processor = NodeId(receivers.first.0 + processor);
            if processor == self.node && self.open.len() < MOST_OPEN {
                self.open.push((number, now, many));
                let message = TrafficMessage::Ask { event: number, born: now };
                let asked = buffers.iter().filter(|_| ask).map(|buffer| NodeId(senders.first.0 + buffer));
                self.out.extend(asked.map(|to| Transmit { to: to.into(), message }));
            }
            let is_ours = |&buffer: &u16| NodeId(senders.first.0 + buffer) == self.node;
            if !ask && buffers.iter().any(is_ours) {
                let message = TrafficMessage::Data { number, born: now };
                self.out.push_back(Transmit { to: processor.into(), message });
            }
        }
    }
}

/// A number below `bound`; by multiplication, with a bias below 2^-48.
fn below(random: &mut Stream, bound: u16) -> u16 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u16
}

/// `many` different numbers below `bound`, in the order in which they were drawn (Floyd's method).
fn distinct(random: &mut Stream, many: u16, bound: u16) -> Vec<u16> {
    let mut drawn = Vec::with_capacity(many.into());
    for top in bound - many..bound {
        let candidate = below(random, top + 1);
        drawn.push(if drawn.contains(&candidate) { top } else { candidate });
    }
    drawn
}
