//! iSLIP: the matching of inputs that have a queue for each output with the outputs of their switches (McKeown 1999).
//!
//! All free outputs grant an input at once, each the next one in turn after the last input that accepted it. Each input
//! accepts the next of these outputs after the last one that it accepted. What was not matched tries again, until nothing
//! can be matched. Only matches of the first round move the turns, which keeps outputs from granting the same input.

use super::{NOWHERE, Net};
use crate::packet::{LaneId, PacketId};
use evb_core::Time;
use evb_fabric::LinkId;

/// The inputs of all switches, by the links that end there; none where they are not matched.
pub(super) struct Inputs {
    inputs: Vec<Input>,
}

#[derive(Clone, Copy)]
struct Input {
    /// Time at which the packet that is read now has been read.
    free_at: Time,
    /// The output that it accepted last; [`NOWHERE`], which is behind all, at first.
    turn: LinkId,
}

/// An output that grants an input, for the packet at a place among those that wait.
#[derive(Clone, Copy)]
struct Grant {
    /// The link into the switch; `None` at a host.
    input: Option<LinkId>,
    output: LinkId,
    place: usize,
}

impl Inputs {
    pub(super) fn new(links: usize) -> Self {
        Self { inputs: vec![Input { free_at: Time::ZERO, turn: NOWHERE }; links] }
    }
}

impl Net {
    /// Time at which the input that a packet is in can send it.
    #[inline]
    pub(super) fn input_free_at(&self, id: PacketId) -> Time {
        match self.packets[id].lane {
            LaneId::NONE => Time::ZERO,
            lane => self.inputs.inputs[self.links.link_of(lane).0 as usize].free_at,
        }
    }

    /// The input that a lane belongs to sends a packet until `at`.
    pub(super) fn occupy_input(&mut self, lane: LaneId, at: Time) {
        self.inputs.inputs[self.links.link_of(lane).0 as usize].free_at = at;
    }

    /// Grants links to packets: those of hosts, and those of switches by rounds of iSLIP.
    #[inline(never)]
    pub(super) fn match_inputs(&mut self, touched: &[LinkId]) {
        touched.iter().for_each(|&link| self.links.untouch(link));
        let mut open = touched.to_vec();
        for round in 0.. {
            let grants: Vec<_> = open.iter().filter_map(|&output| self.grant_of(output)).collect();
            let accepted = self.accept(&grants);
            if accepted.is_empty() {
                return;
            }
            for &Grant { input, output, place } in &accepted {
                let turn = self.links[output].turn;
                self.grant_waiting(output, place);
                match input {
                    Some(input) if round == 0 => self.inputs.inputs[input.0 as usize].turn = output,
                    _ => self.links[output].turn = turn,
                }
            }
            open = grants.into_iter().map(|grant| grant.output).collect();
            open.retain(|&output| accepted.iter().all(|grant| grant.output != output));
        }
    }

    /// The grant of an output, if it is free and a packet that waits for it can go.
    fn grant_of(&mut self, output: LinkId) -> Option<Grant> {
        let port = &self.links[output];
        if port.waiting.is_empty() || port.failed {
            return None;
        }
        if port.free_at > self.queue.now() {
            self.plan_wake(output, port.free_at);
            return None;
        }
        match self.choose(output) {
            Ok(place) => {
                let lane = self.links[output].waiting[place].lane;
                Some(Grant { input: (lane != LaneId::NONE).then(|| self.links.link_of(lane)), output, place })
            }
            Err(later) => {
                self.plan_wake(output, later);
                None
            }
        }
    }

    /// The grants that are accepted, one for each input: the next output in turn. The order is that of the outputs.
    fn accept(&self, grants: &[Grant]) -> Vec<Grant> {
        let distance = |grant: &Grant, input: LinkId| {
            let turn = self.inputs.inputs[input.0 as usize].turn;
            (grant.output <= turn, grant.output)
        };
        let is_accepted = |grant: &&Grant| {
            let Some(input) = grant.input else { return true };
            let rivals = grants.iter().filter(|other| other.input == grant.input);
            rivals.min_by_key(|rival| distance(rival, input)).is_some_and(|best| best.output == grant.output)
        };
        grants.iter().filter(is_accepted).copied().collect()
    }
}
