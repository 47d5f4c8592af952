//! Faults on purpose: what the `[[fault]]` tables of an experiment do to the fragments of a readout unit.

use bytes::{Bytes, BytesMut};
use evb_core::{EventId, NodeId, Span, Time, Transmit};
use evb_experiment::{FaultAction, Plan};
use evb_protocol::{Fragment, Message, Recent};
use std::collections::VecDeque;

/// Events of which is remembered that their fragment was lost.
const MOST_LOST: usize = 1 << 14;

pub(crate) struct Harm {
    actions: Vec<FaultAction>,
    max_fragment: usize,
    /// Events whose fragment was lost once: what is sent again comes through.
    lost: Recent<EventId>,
    /// Fragments that are held back, each with the time at which it goes.
    delayed: VecDeque<(Time, Transmit<Message<Bytes>>)>,
}

impl Harm {
    /// The faults of one node; `None` when nothing happens to its fragments.
    pub(crate) fn new(plan: &Plan, node: NodeId) -> Option<Self> {
        let faults = plan.faults.iter().filter(|fault| fault.node == node);
        let of_others =
            |action: &FaultAction| matches!(action, FaultAction::Kill { .. } | FaultAction::SlowDisk { .. });
        let actions: Vec<_> = faults.map(|fault| fault.action).filter(|action| !of_others(action)).collect();
        let max_fragment = plan.building.max_fragment.0 as usize;
        (!actions.is_empty()).then(|| Self {
            actions,
            max_fragment,
            lost: Recent::new(MOST_LOST),
            delayed: VecDeque::new(),
        })
    }

    /// Sends on, harmed or not, what a readout unit wants to send.
    pub(crate) fn pass(
        &mut self,
        now: Time,
        transmit: Transmit<Message<Bytes>>,
        send: &mut dyn FnMut(Transmit<Message<Bytes>>),
    ) {
        let to = transmit.to;
        match transmit.message {
            Message::Fragment(fragment) => {
                let (fragments, held_back) = self.harm(fragment);
                for fragment in fragments {
                    let transmit = Transmit { to, message: Message::Fragment(fragment) };
                    match held_back {
                        Some(by) => self.delayed.push_back((now + by, transmit)),
                        None => send(transmit),
                    }
                }
            }
            Message::Packet(fragments) => {
                for fragment in fragments {
                    self.pass(now, Transmit { to, message: Message::Fragment(fragment) }, send);
                }
            }
            message => send(Transmit { to, message }),
        }
    }

    /// Sends what was held back long enough.
    pub(crate) fn release(&mut self, now: Time, send: &mut dyn FnMut(Transmit<Message<Bytes>>)) {
        while self.delayed.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, transmit)) = self.delayed.pop_front() {
                send(transmit);
            }
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.delayed.front().map(|(at, _)| *at)
    }

    /// What becomes of one fragment: none, one or two, now or held back.
    fn harm(&mut self, mut fragment: Fragment<Bytes>) -> (Vec<Fragment<Bytes>>, Option<Span>) {
        let (mut copies, mut held_back) = (1, None);
        for action in &self.actions {
            let hits = |one_in: u64| fragment.event.0.is_multiple_of(one_in);
            match *action {
                FaultAction::Corrupt { one_in } if hits(one_in) => flip_a_bit(&mut fragment),
                FaultAction::Oversize { one_in } if hits(one_in) => {
                    let mut larger = BytesMut::from(&fragment.payload[..]);
                    larger.resize(self.max_fragment + 1, 0);
                    (fragment.length, fragment.payload) = (larger.len() as u32, larger.freeze());
                }
                FaultAction::Duplicate { one_in } if hits(one_in) => copies = 2,
                FaultAction::Lose { one_in } if hits(one_in) && self.lost.insert(fragment.event) => copies = 0,
                FaultAction::Delay { one_in, by } if hits(one_in) => held_back = Some(by),
                _ => {}
            }
        }
        (vec![fragment; copies], held_back)
    }
}

/// Changes the payload, not its checksum; nothing when it is empty.
fn flip_a_bit(fragment: &mut Fragment<Bytes>) {
    let mut payload = BytesMut::from(&fragment.payload[..]);
    if let Some(byte) = payload.first_mut() {
        *byte ^= 1;
    }
    fragment.payload = payload.freeze();
}
