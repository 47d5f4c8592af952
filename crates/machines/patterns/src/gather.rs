//! Second-level trigger: processors gather the data of an event from some of the buffers.
//!
//! The processors and buffers of an event are drawn from its number and the seed. So every node knows them without a
//! message. The driver announces each event to every node when it arrives, by a clock that the nodes share.
//!
//! This is the traffic alone, as on the test beds of 1998: several processors may share an event, and buffers may send
//! without being asked. The regions of interest of the event builder add an event manager, filters, storage and the
//! account.

use crate::{
    Pattern, TrafficCommand, TrafficConfig, TrafficEvent, TrafficMessage,
    message::MOST_WAITING,
    role::{Outbox, TrafficRole},
};
use alloc::{collections::BTreeMap, vec::Vec};
use evb_core::{NodeId, NodeRange, Time, distinct, some_of, stream};

/// Purpose of the draws for an event, beside seed and number.
const CHOICE: u64 = 41;

/// A processor or a buffer.
pub(crate) struct Gathering {
    config: TrafficConfig,
    node: NodeId,
    running: bool,
    /// The last event that the driver has announced.
    last: u64,
    /// Events after which no more come.
    limit: u64,
    /// Events that this processor gathers, by number: arrival time, and number of buffers whose data are missing.
    open: BTreeMap<u64, (Time, u16)>,
    /// Data that came before the announcement of their event: the number of the event, and that of the buffers.
    early: BTreeMap<u64, u16>,
    /// Data that this buffer has sent and that have not left its host.
    under_way: usize,
}

impl Gathering {
    pub(crate) fn new(config: &TrafficConfig, node: NodeId) -> Self {
        Self {
            config: config.clone(),
            node,
            running: false,
            last: 0,
            limit: u64::MAX,
            open: BTreeMap::new(),
            early: BTreeMap::new(),
            under_way: 0,
        }
    }

    /// Begins an event: a processor asks or waits, a buffer sends data without a request.
    fn begin(&mut self, now: Time, number: u64, out: &mut Outbox) {
        let Pattern::Gather { ask, .. } = self.config.pattern else { return };
        self.last = number;
        let early = self.early.remove(&number).unwrap_or(0);
        for (processor, buffers) in choose(&self.config, number) {
            let (gathers, sends) = (processor == self.node, !ask && buffers.contains(&self.node));
            if gathers && self.open.len() >= MOST_WAITING || sends && self.under_way >= MOST_WAITING {
                out.tell(TrafficEvent::Refused);
                continue;
            }
            if gathers {
                self.open.insert(number, (now, buffers.len() as u16));
                out.events.extend((0..early).filter_map(|_| self.take_data(number)));
            }
            if gathers && ask {
                let message = TrafficMessage::Ask { event: number, born: now };
                buffers.into_iter().for_each(|buffer| out.send(buffer.into(), message));
            }
            if sends {
                self.send_data(processor, number, now, out);
            }
        }
    }

    fn send_data(&mut self, to: NodeId, number: u64, born: Time, out: &mut Outbox) {
        self.under_way += 1;
        out.send(to.into(), TrafficMessage::Data { number, born });
    }

    /// Takes the data of one buffer; returns an event if they were the last ones. A buffer whose clock is ahead sends
    /// data of an event that is not announced to this node yet.
    fn take_data(&mut self, number: u64) -> Option<TrafficEvent> {
        if number > self.last && self.early.len() < MOST_WAITING {
            *self.early.entry(number).or_insert(0) += 1;
            return None;
        }
        let (born, missing) = self.open.get_mut(&number)?;
        *missing -= 1;
        let gathered = TrafficEvent::Ended { number, born: *born };
        if *missing > 0 {
            return None;
        }
        self.open.remove(&number);
        Some(gathered)
    }
}

impl TrafficRole for Gathering {
    fn handle_command(&mut self, now: Time, command: TrafficCommand, out: &mut Outbox) {
        match command {
            TrafficCommand::Start { messages, .. } => {
                self.running = true;
                self.limit = messages.unwrap_or(u64::MAX);
            }
            TrafficCommand::Stop => self.running = false,
            TrafficCommand::Offer { number } if self.running => self.begin(now, number, out),
            TrafficCommand::Sent => self.under_way = self.under_way.saturating_sub(1),
            TrafficCommand::Offer { .. } | TrafficCommand::Refuse { .. } | TrafficCommand::Computed => {}
        }
    }

    fn handle_message(&mut self, _now: Time, from: NodeId, message: TrafficMessage, out: &mut Outbox) {
        match message {
            TrafficMessage::Ask { event, born } => self.send_data(from, event, born, out),
            TrafficMessage::Data { number, .. } => out.events.extend(self.take_data(number)),
            TrafficMessage::Start | TrafficMessage::Next => {}
        }
    }

    fn is_done(&self) -> bool {
        self.open.is_empty() && (!self.running || self.last >= self.limit)
    }
}

/// The processors of event `number`, each with the buffers that it gathers from.
fn choose(config: &TrafficConfig, number: u64) -> Vec<(NodeId, Vec<NodeId>)> {
    let Pattern::Gather { least, most, processors, .. } = config.pattern else { return Vec::new() };
    let mut random = stream(config.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15), NodeId(0), CHOICE);
    let nodes = |range: NodeRange, drawn: Vec<u16>| drawn.into_iter().map(move |index| NodeId(range.first.0 + index));
    let chosen = nodes(config.receivers, distinct(&mut random, processors, config.receivers.count));
    let with_buffers = chosen.map(|processor| {
        let buffers = some_of(&mut random, (least, most), config.senders.count);
        (processor, nodes(config.senders, buffers).collect())
    });
    with_buffers.collect()
}
