//! Patterns with cycles: the benchmarks of ATLAS DAQ note 77.

mod support;

use evb_core::{Machine, NodeId, Span, Time};
use evb_patterns::{Pattern, Traffic, TrafficCommand, TrafficConfig, TrafficEvent, TrafficMessage};
use std::collections::VecDeque;
use support::config;

const WORK: Span = Span(50);
const PUSH: Pattern = Pattern::PushFarm { work: WORK };
const PULL: Pattern = Pattern::PullFarm { work: WORK };

/// All nodes of a pattern. A message needs 10, after its sender's messages before; computing is over when a test says
/// so.
struct Nodes {
    machines: Vec<(NodeId, Traffic)>,
    under_way: VecDeque<(NodeId, NodeId, TrafficMessage)>,
    events: Vec<(NodeId, TrafficEvent)>,
    /// Every data message: who sent it to whom, and its number.
    data: Vec<(u16, u16, u64)>,
    now: u64,
}

impl Nodes {
    fn new(config: &TrafficConfig) -> Self {
        let ids = config.senders.iter().chain(config.receivers.iter());
        let machines = ids.map(|id| (id, Traffic::new(config, id, None))).collect();
        Self { machines, under_way: VecDeque::new(), events: Vec::new(), data: Vec::new(), now: 0 }
    }

    fn started(config: &TrafficConfig, cycles: u64) -> Self {
        let mut nodes = Self::new(config);
        nodes.command_all(TrafficCommand::Start { saturating: true, messages: Some(cycles) });
        nodes
    }

    fn command_all(&mut self, command: TrafficCommand) {
        self.machines.iter_mut().for_each(|(_, machine)| machine.handle_command(Time(self.now), command));
        self.drain();
    }

    fn command(&mut self, node: u16, command: TrafficCommand) {
        let (_, machine) = self.machines.iter_mut().find(|(id, _)| id.0 == node).expect("the node is there");
        machine.handle_command(Time(self.now), command);
        self.drain();
    }

    /// Takes what the machines want; each message leaves its host at once.
    fn drain(&mut self) {
        loop {
            let mut sent = Vec::new();
            for (from, machine) in &mut self.machines {
                while let Some(transmit) = machine.poll_transmit() {
                    sent.extend(transmit.to.iter().map(|to| (*from, to, transmit.message)));
                }
                self.events.extend(std::iter::from_fn(|| machine.poll_event()).map(|event| (*from, event)));
            }
            if sent.is_empty() {
                return;
            }
            for (from, to, message) in sent {
                self.under_way.push_back((from, to, message));
                if let TrafficMessage::Data { number, .. } = message {
                    self.data.push((from.0, to.0, number));
                    let (_, machine) = self.machines.iter_mut().find(|(id, _)| *id == from).expect("it has sent");
                    machine.handle_command(Time(self.now), TrafficCommand::Sent);
                }
            }
        }
    }

    /// One step: everything that is under way arrives.
    fn step(&mut self) {
        self.now += 10;
        for (from, to, message) in std::mem::take(&mut self.under_way) {
            let (_, machine) = self.machines.iter_mut().find(|(id, _)| *id == to).expect("the receiver is there");
            machine.handle_message(Time(self.now), from, message);
        }
        self.drain();
    }

    fn settle(&mut self) {
        while !self.under_way.is_empty() {
            self.step();
        }
    }

    /// The ended cycles: node, number and time.
    fn ended(&self) -> Vec<(u16, u64, u64)> {
        let ended = self.events.iter().filter_map(|(node, event)| match event {
            TrafficEvent::Ended { number, born } => Some((node.0, *number, born.0)),
            _ => None,
        });
        ended.collect()
    }

    fn computes(&self) -> usize {
        self.events.iter().filter(|(_, event)| *event == TrafficEvent::Compute { span: WORK }).count()
    }
}

#[test]
fn a_ping_comes_back_before_the_next_one_goes() {
    let config = TrafficConfig { window: 1, ..config(Pattern::PingPong, 2, 2) };
    let mut nodes = Nodes::started(&config, 3);
    nodes.step();
    assert_eq!(nodes.ended(), []);
    nodes.settle();
    // Round trips of 20; sender 1 plays with receiver 3, sender 2 with receiver 4.
    assert_eq!(nodes.ended(), [(1, 1, 0), (2, 1, 0), (1, 2, 20), (2, 2, 20), (1, 3, 40), (2, 3, 40)]);
    assert_eq!(nodes.data.iter().filter(|(from, to, _)| (*from, *to) == (3, 1)).count(), 3);
    assert_eq!((nodes.now, nodes.data.len()), (60, 12));
}

#[test]
fn a_pipeline_has_several_pings_under_way() {
    let mut nodes = Nodes::started(&TrafficConfig { window: 2, ..config(Pattern::PingPong, 1, 1) }, 4);
    nodes.settle();
    // Both of the first are back at 20, when the other two go.
    assert_eq!(nodes.ended(), [(1, 1, 0), (1, 2, 0), (1, 3, 20), (1, 4, 20)]);
    assert_eq!(nodes.data.len(), 8);
}

#[test]
fn two_ways_need_half_of_a_round_trip() {
    let mut nodes = Nodes::started(&config(Pattern::TwoWay, 1, 1), 3);
    nodes.settle();
    assert_eq!(nodes.ended(), [(1, 1, 0), (1, 2, 10), (1, 3, 20)], "only senders tell");
    assert_eq!((nodes.now, nodes.data.len()), (30, 6));
}

#[test]
fn a_two_way_cycle_waits_until_the_own_message_has_left() {
    let config = config(Pattern::TwoWay, 1, 1);
    let mut machine = Traffic::new(&config, NodeId(1), None);
    machine.handle_command(Time(0), support::saturate(None));
    assert!(machine.poll_transmit().is_some());
    machine.handle_message(Time(5), NodeId(2), TrafficMessage::Data { number: 1, born: Time(0) });
    assert_eq!((machine.poll_event(), machine.poll_transmit()), (None, None));
    machine.handle_command(Time(9), TrafficCommand::Sent);
    assert_eq!(machine.poll_event(), Some(TrafficEvent::Ended { number: 1, born: Time(0) }));
    assert!(machine.poll_transmit().is_some());
}

#[test]
fn all_send_to_all_others() {
    let mut nodes = Nodes::started(&config(Pattern::AllToAll, 2, 3), 2);
    nodes.settle();
    let mut first: Vec<_> = nodes.data.iter().filter(|data| data.2 == 1).map(|data| (data.0, data.1)).collect();
    first.sort_unstable();
    let expected: Vec<_> = (1..6).flat_map(|from| (1..6).map(move |to| (from, to))).filter(|(a, b)| a != b).collect();
    assert_eq!(first, expected);
    assert_eq!((nodes.ended().len(), nodes.data.len(), nodes.now), (2 * 5, 2 * 20, 20));
}

/// A node that is ahead by a cycle is not forgotten.
#[test]
fn early_data_count_for_the_next_cycle() {
    let config = config(Pattern::AllToAll, 2, 1);
    let mut machine = Traffic::new(&config, NodeId(1), None);
    let data = |number| TrafficMessage::Data { number, born: Time(0) };
    machine.handle_message(Time(0), NodeId(2), data(1));
    machine.handle_command(Time(0), support::saturate(None));
    (0..2).for_each(|_| machine.handle_command(Time(1), TrafficCommand::Sent));
    machine.handle_message(Time(2), NodeId(2), data(2));
    assert_eq!(machine.poll_event(), None, "node 3 is missing");
    machine.handle_message(Time(3), NodeId(3), data(1));
    assert!(matches!(machine.poll_event(), Some(TrafficEvent::Ended { number: 1, .. })));
    (0..2).for_each(|_| machine.handle_command(Time(4), TrafficCommand::Sent));
    machine.handle_message(Time(5), NodeId(3), data(2));
    assert!(matches!(machine.poll_event(), Some(TrafficEvent::Ended { number: 2, .. })));
}

#[test]
fn outfarming_sends_one_message_to_each_and_broadcast_one_to_all() {
    for (pattern, messages) in [(Pattern::Outfarming, 3), (Pattern::Broadcast, 1)] {
        let config = config(pattern, 1, 3);
        let mut machine = Traffic::new(&config, NodeId(1), None);
        machine.handle_command(Time(0), support::saturate(Some(1)));
        let sent: Vec<_> = std::iter::from_fn(|| machine.poll_transmit()).collect();
        let to: Vec<_> = sent.iter().flat_map(|transmit| transmit.to.iter()).map(|node| node.0).collect();
        assert_eq!((sent.len(), to), (messages, vec![2, 3, 4]));
        (0..2).for_each(|_| machine.handle_command(Time(5), TrafficCommand::Sent));
        assert_eq!(machine.poll_event(), None);
        machine.handle_command(Time(7), TrafficCommand::Sent);
        assert_eq!(machine.poll_event(), Some(TrafficEvent::Ended { number: 1, born: Time(0) }));
        assert_eq!(machine.poll_transmit(), None, "one cycle was wanted");
    }
}

#[test]
fn a_funnel_takes_one_message_of_each_sender() {
    let mut nodes = Nodes::started(&config(Pattern::Funnel, 3, 1), 4);
    nodes.settle();
    assert_eq!(
        nodes.ended().iter().map(|ended| (ended.0, ended.1)).collect::<Vec<_>>(),
        [(4, 1), (4, 2), (4, 3), (4, 4)]
    );
    assert_eq!(nodes.data.len(), 12);
}

/// The window is two: one event that is computed, and the next one on its way.
#[test]
fn a_push_farm_never_has_more_than_one_future_event() {
    let mut nodes = Nodes::started(&config(PUSH, 3, 1), 4);
    for event in 1..=4_u64 {
        nodes.settle();
        let sent = nodes.data.iter().map(|data| data.2).max();
        assert_eq!(sent, Some((event + 1).min(4)), "while event {event} is computed");
        assert_eq!((nodes.computes() as u64, nodes.ended().len() as u64), (event, event - 1));
        nodes.now += 50;
        nodes.command(4, TrafficCommand::Computed);
    }
    assert_eq!(nodes.ended().len(), 4);
}

/// A sender of a farm with its own clock keeps to the window, too, and what it cannot send is bounded.
#[test]
fn a_sender_with_a_rate_waits_for_the_receiver() {
    let mut nodes = Nodes::new(&config(PUSH, 2, 1));
    nodes.command_all(TrafficCommand::Start { saturating: false, messages: None });
    (0..65_536).for_each(|_| nodes.command(1, TrafficCommand::Offer { number: 0 }));
    assert_eq!((nodes.data.len(), nodes.events.len()), (2, 0));
    nodes.command(1, TrafficCommand::Offer { number: 0 });
    assert_eq!(nodes.events, [(NodeId(1), TrafficEvent::Refused)]);
}

#[test]
fn a_pull_farm_asks_for_the_next_event_before_it_computes() {
    let mut nodes = Nodes::started(&config(PULL, 3, 1), 3);
    assert_eq!(nodes.under_way.len(), 3, "all are asked at once");
    nodes.settle();
    // The first event is computed, and the second one is there already.
    assert_eq!((nodes.computes(), nodes.ended().len(), nodes.data.len()), (1, 0, 6));
    nodes.now += 50;
    nodes.command(4, TrafficCommand::Computed);
    assert_eq!((nodes.computes(), nodes.ended()), (2, vec![(4, 1, 0)]));
    nodes.settle();
    nodes.command(4, TrafficCommand::Computed);
    nodes.settle();
    nodes.command(4, TrafficCommand::Computed);
    assert_eq!((nodes.computes(), nodes.ended().len(), nodes.data.len()), (3, 3, 9));
}

#[test]
fn zero_work_computes_nothing() {
    for pattern in [Pattern::PushFarm { work: Span::ZERO }, Pattern::PullFarm { work: Span::ZERO }] {
        let mut nodes = Nodes::started(&config(pattern, 2, 1), 5);
        nodes.settle();
        assert_eq!((nodes.computes(), nodes.ended().len(), nodes.events.len()), (0, 5, 5));
    }
}

#[test]
fn after_a_stop_cycles_end_and_none_begins() {
    for pattern in [Pattern::PingPong, Pattern::TwoWay, Pattern::AllToAll] {
        let mut nodes = Nodes::started(&config(pattern.clone(), 2, 2), 1_000);
        (0..3).for_each(|_| nodes.step());
        nodes.command_all(TrafficCommand::Stop);
        let before = nodes.data.len();
        nodes.settle();
        assert!(nodes.data.len() <= before + 2, "{pattern:?}: what is under way may be answered");
    }
}
