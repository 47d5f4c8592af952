//! Second-level trigger: who gathers what from whom.

mod support;

use evb_core::{Machine, NodeId, Time};
use evb_patterns::{Pattern, Traffic, TrafficCommand, TrafficConfig, TrafficEvent, TrafficMessage};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use support::{config, saturate};

/// All nodes, and messages between them that arrive at once.
struct Nodes {
    machines: Vec<Traffic>,
    messages: VecDeque<(NodeId, NodeId, TrafficMessage)>,
    /// Everything that was sent: from, to, what.
    sent: Vec<(NodeId, NodeId, TrafficMessage)>,
    events: Vec<(NodeId, TrafficEvent)>,
}

impl Nodes {
    fn new(config: &TrafficConfig) -> Self {
        let nodes = (1..=config.senders.count + config.receivers.count).map(NodeId);
        let machine = |node| {
            let mut machine = Traffic::new(config, node, None);
            machine.handle_command(Time(0), saturate(None));
            machine
        };
        let machines = nodes.map(machine).collect();
        Self { machines, messages: VecDeque::new(), sent: Vec::new(), events: Vec::new() }
    }

    fn command(&mut self, now: u64, command: TrafficCommand) {
        self.machines.iter_mut().for_each(|machine| machine.handle_command(Time(now), command));
        self.drain();
    }

    fn drain(&mut self) {
        for (node, machine) in (1..).map(NodeId).zip(&mut self.machines) {
            while let Some(transmit) = machine.poll_transmit() {
                let message = (node, transmit.to.first, transmit.message);
                self.messages.push_back(message);
                self.sent.push(message);
            }
            self.events.extend(std::iter::from_fn(|| machine.poll_event()).map(|event| (node, event)));
        }
    }

    /// Delivers the oldest message; false when there is none.
    fn step(&mut self, now: u64) -> bool {
        let Some((from, to, message)) = self.messages.pop_front() else { return false };
        self.machines[to.index() - 1].handle_message(Time(now), from, message);
        self.drain();
        true
    }

    fn settle(&mut self, now: u64) {
        while self.step(now) {}
    }

    /// For each event the processors that have got data, and from which buffers.
    fn data(&self) -> BTreeMap<u64, BTreeMap<NodeId, Vec<NodeId>>> {
        let mut found = BTreeMap::<u64, BTreeMap<NodeId, Vec<NodeId>>>::new();
        for &(from, to, message) in &self.sent {
            if let TrafficMessage::Data { number, .. } = message {
                found.entry(number).or_default().entry(to).or_default().push(from);
            }
        }
        found
    }
}

fn gathering(least: u16, most: u16, processors: u16, ask: bool) -> TrafficConfig {
    config(Pattern::Gather { least, most, processors, ask }, 12, 5)
}

#[test]
fn asking_and_not_asking_move_the_same_data() {
    let (mut asking, mut pushing) = (Nodes::new(&gathering(2, 6, 3, true)), Nodes::new(&gathering(2, 6, 3, false)));
    for nodes in [&mut asking, &mut pushing] {
        (1..=50).for_each(|number| nodes.command(number, TrafficCommand::Offer { number }));
        nodes.settle(1000);
    }
    let sorted = |nodes: &Nodes| {
        let mut data = nodes.data();
        data.values_mut().flat_map(BTreeMap::values_mut).for_each(|buffers| buffers.sort_unstable());
        data
    };
    assert_eq!(sorted(&asking), sorted(&pushing));
    assert_eq!(sorted(&asking).len(), 50);
    assert_eq!(asking.sent.len(), 2 * pushing.sent.len(), "one question for each answer");
}

#[test]
fn a_gathered_event_is_as_old_as_its_offer() {
    let mut nodes = Nodes::new(&gathering(3, 3, 1, true));
    nodes.command(40, TrafficCommand::Offer { number: 1 });
    for step in 0..6 {
        assert_eq!(nodes.events, [], "after {step} of six messages");
        assert!(nodes.step(50 + step));
    }
    assert!(matches!(nodes.events[..], [(_, TrafficEvent::Ended { number: 1, born: Time(40) })]), "{:?}", nodes.events);
}

/// In a real run nodes hear of an event one after the other, and data of buffers that are ahead come early.
#[test]
fn data_that_come_before_their_event_count() {
    let mut nodes = Nodes::new(&gathering(3, 3, 1, false));
    let (buffers, processors) = nodes.machines.split_at_mut(12);
    for number in 1..=2 {
        buffers.iter_mut().for_each(|buffer| buffer.handle_command(Time(1), TrafficCommand::Offer { number }));
    }
    assert!(processors.iter().all(|processor| !processor.is_done()));
    nodes.drain();
    nodes.settle(5);
    assert_eq!(nodes.events, [], "no event is announced");
    for number in 1..=2 {
        for processor in &mut nodes.machines[12..] {
            processor.handle_command(Time(7), TrafficCommand::Offer { number });
        }
    }
    nodes.drain();
    let born: Vec<_> = nodes.events.iter().map(|(_, event)| *event).collect();
    let ended = |number| TrafficEvent::Ended { number, born: Time(7) };
    assert!(born.contains(&ended(1)) && born.contains(&ended(2)) && born.len() == 2, "{born:?}");
}

#[test]
fn processors_differ_by_event_and_seed() {
    let choice = |seed| {
        let mut nodes = Nodes::new(&TrafficConfig { seed, ..gathering(1, 12, 2, false) });
        (1..=30).for_each(|number| nodes.command(1, TrafficCommand::Offer { number }));
        nodes.data().into_values().collect::<Vec<_>>()
    };
    assert_eq!(choice(1), choice(1));
    assert_ne!(choice(1), choice(2));
    let different: BTreeSet<_> = choice(1).into_iter().collect();
    assert!(different.len() > 28, "{}", different.len());
}

/// 4000 events, two of five processors and 1 to 12 of 12 buffers: chi-square at 99.9 % is 18.5, 31.3 and 31.3.
#[test]
fn processors_buffers_and_numbers_of_buffers_are_all_alike() {
    let mut nodes = Nodes::new(&gathering(1, 12, 2, false));
    (1..=4000).for_each(|number| nodes.command(1, TrafficCommand::Offer { number }));
    let (mut processors, mut buffers, mut many) = ([0_u32; 5], [0_u32; 12], [0_u32; 12]);
    for (to, from) in nodes.data().into_values().flatten() {
        processors[to.index() - 13] += 1;
        many[from.len() - 1] += 1;
        from.iter().for_each(|buffer| buffers[buffer.index() - 1] += 1);
    }
    for (counts, most) in [(&processors[..], 18.5), (&buffers, 31.3), (&many, 31.3)] {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi_square < most, "{counts:?}: {chi_square}");
    }
}

#[test]
fn overload_is_refused_and_reported() {
    const MOST_WAITING: u64 = 65_536;
    let config = config(Pattern::Gather { least: 1, most: 1, processors: 1, ask: true }, 1, 1);
    let mut processor = Traffic::new(&config, NodeId(2), None);
    processor.handle_command(Time(0), saturate(None));
    let mut offer = |number| processor.handle_command(Time(1), TrafficCommand::Offer { number });
    (1..=MOST_WAITING + 1).for_each(&mut offer);
    assert_eq!(std::iter::from_fn(|| processor.poll_event()).collect::<Vec<_>>(), [TrafficEvent::Refused]);
    // The unrequested data of the refused event are ignored.
    let data = |number| TrafficMessage::Data { number, born: Time(1) };
    processor.handle_message(Time(2), NodeId(1), data(MOST_WAITING + 1));
    assert_eq!(processor.poll_event(), None);
    processor.handle_message(Time(3), NodeId(1), data(1));
    assert_eq!(processor.poll_event(), Some(TrafficEvent::Ended { number: 1, born: Time(1) }));
    processor.handle_command(Time(4), TrafficCommand::Offer { number: MOST_WAITING + 2 });
    assert_eq!(processor.poll_event(), None, "there is room again");
}

#[test]
fn a_buffer_refuses_when_too_much_waits_to_leave_its_host() {
    let config = config(Pattern::Gather { least: 1, most: 1, processors: 1, ask: false }, 1, 1);
    let mut buffer = Traffic::new(&config, NodeId(1), None);
    buffer.handle_command(Time(0), saturate(None));
    (1..=65_536).for_each(|number| buffer.handle_command(Time(1), TrafficCommand::Offer { number }));
    assert_eq!(buffer.poll_event(), None);
    buffer.handle_command(Time(1), TrafficCommand::Offer { number: 65_537 });
    assert_eq!(buffer.poll_event(), Some(TrafficEvent::Refused));
    buffer.handle_command(Time(2), TrafficCommand::Sent);
    buffer.handle_command(Time(3), TrafficCommand::Offer { number: 65_538 });
    assert_eq!(buffer.poll_event(), None);
}

#[test]
fn after_a_stop_only_requested_data_are_sent() {
    let mut nodes = Nodes::new(&gathering(2, 2, 1, true));
    nodes.command(1, TrafficCommand::Offer { number: 1 });
    nodes.command(2, TrafficCommand::Stop);
    nodes.command(3, TrafficCommand::Offer { number: 2 });
    nodes.settle(4);
    assert!(matches!(nodes.events[..], [(_, TrafficEvent::Ended { number: 1, .. })]), "{:?}", nodes.events);
}

proptest! {
    #[test]
    fn each_event_concerns_the_right_numbers_of_different_nodes(
        seed in any::<u64>(),
        least in 1_u16..=12,
        more in 0_u16..12,
        processors in 1_u16..=5,
        ask in any::<bool>(),
        number in 1..u64::MAX,
    ) {
        let most = (least + more).min(12);
        let mut nodes = Nodes::new(&TrafficConfig { seed, ..gathering(least, most, processors, ask) });
        nodes.command(1, TrafficCommand::Offer { number });
        nodes.settle(2);
        let data = nodes.data().remove(&number).unwrap_or_default();
        prop_assert_eq!(data.len(), usize::from(processors));
        for (processor, buffers) in &data {
            let different: BTreeSet<_> = buffers.iter().collect();
            prop_assert_eq!(different.len(), buffers.len(), "{} gets data twice", processor);
            prop_assert!((usize::from(least)..=usize::from(most)).contains(&buffers.len()));
            prop_assert!((13..18).contains(&processor.0) && buffers.iter().all(|buffer| (1..13).contains(&buffer.0)));
        }
        // All have gathered: processors and buffers agree on who sends to whom.
        let gathered: BTreeSet<_> = nodes.events.iter().map(|(node, _)| *node).collect();
        prop_assert_eq!(gathered, data.keys().copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(nodes.events.len(), usize::from(processors));
    }
}
