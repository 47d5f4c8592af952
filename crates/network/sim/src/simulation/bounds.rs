//! The bounds of the queues of a simulation. What is offered may be more than the network carries: then a queue grows for as
//! long as the simulation goes, and would take the memory of the whole machine. Each bound is far above what a simulation
//! needs whose queues do not grow without end.

use super::{Simulation, receiving::LOST};
use crate::message::{Body, Message};
use evb_core::NodeId;
use evb_experiment::{Plan, Workload};
use evb_record::{Finding, FindingKind};
use std::collections::BTreeMap;

/// Messages under way or waiting at their hosts: 1 GiB.
const MESSAGES: usize = 1 << 24;
/// Packets under way: 1 GiB.
const PACKETS: usize = 1 << 24;
/// Planned events: 0.5 GiB.
const PLANNED_EVENTS: usize = 1 << 25;
/// Received packets that wait for the memory of one host: 64 MiB.
const RECEIVED_PACKETS: usize = 1 << 22;
/// Times the fragments of all events that builders may have under construction that messages may be, if that is more.
const OPEN_FRAGMENTS: usize = 4;

/// The most that queues may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueBounds {
    pub(crate) messages: usize,
    pub(crate) packets: usize,
    pub(crate) planned_events: usize,
    pub(crate) received_packets: usize,
}

impl QueueBounds {
    /// The bounds for one of this number of partitions. A partition that reaches its part gives up, and the simulation in one
    /// partition finds out whether the whole reaches its bound.
    pub(crate) fn of(plan: &Plan, partitions: usize) -> Self {
        let config = &plan.building;
        let slots = u64::from(config.builder_slots) * u64::from(config.builder_units);
        let open = match plan.workload {
            Workload::EventBuilding => (slots * u64::from(config.readout_units)) as usize,
            Workload::Traffic(_) => 0,
        };
        Self {
            messages: MESSAGES.max(OPEN_FRAGMENTS * open) / partitions,
            packets: PACKETS / partitions,
            planned_events: PLANNED_EVENTS.max(OPEN_FRAGMENTS * open) / partitions,
            received_packets: RECEIVED_PACKETS,
        }
    }
}

impl Simulation<'_> {
    /// Looks at the queues that grow by one packet or event at a time. Messages are looked at after each event, since one
    /// event may send many.
    pub(super) fn look_at_queues(&mut self) {
        let received = self.nics.iter().filter_map(|nic| Some(nic.memory.as_ref()?.waiting())).enumerate();
        let fullest = received.max_by_key(|(_, packets)| *packets).unwrap_or_default();
        let bounds = self.bounds;
        let links = "more links, or a lower rate: `trigger.rate`, `workload.rate` or `workload.load`";
        if self.net.packets.len() > bounds.packets {
            let (link, waiting) = self.net.most_waiting();
            let queue = format!("packets under way, of which {waiting} wait for {link}");
            self.end_for_queue(&link, &queue, bounds.packets, links);
        } else if self.net.queue.len() > bounds.planned_events {
            self.end_for_queue("simulation", "planned events", bounds.planned_events, links);
        } else if fullest.1 > bounds.received_packets {
            let host = format!("h{}", fullest.0);
            let queue = format!("received packets at {host}, which wait for its memory");
            self.end_for_queue(
                &host,
                &queue,
                bounds.received_packets,
                "a higher `network.nic.dma.write`, or a lower rate",
            );
        }
    }

    /// Ends the simulation because there are too many messages, and names the queue with most of them.
    #[cold]
    pub(super) fn end_for_messages(&mut self) {
        let mut queues = BTreeMap::<MessageQueue, BTreeMap<NodeId, usize>>::new();
        for (_, message) in self.messages.iter() {
            let (queue, node) = MessageQueue::of(message);
            *queues.entry(queue).or_default().entry(node).or_default() += 1;
        }
        let all = |nodes: &BTreeMap<NodeId, usize>| nodes.values().sum::<usize>();
        let Some((queue, nodes)) = queues.into_iter().max_by_key(|(_, nodes)| all(nodes)) else { return };
        let Some((&node, &most)) = nodes.iter().max_by_key(|(_, count)| **count) else { return };
        let name = self.plan.node_name(node);
        let (what, of_node, advice) = queue.words();
        let queue = format!("messages, of which {} {what}, {most} of them {of_node} {name}", all(&nodes));
        let most = self.bounds.messages;
        self.messages.set_bound(usize::MAX);
        self.end_for_queue(&name, &queue, most, advice);
    }

    fn end_for_queue(&mut self, subject: &str, queue: &str, most: usize, advice: &str) {
        if self.net.border.is_there() {
            self.net.gives_up = true;
            return;
        }
        if !self.ended {
            let at = self.net.queue.now().0 as f64 * 1e-9;
            let message = format!("more than {most} {queue}: the simulation ended at {at:.3} ms");
            self.statistics.account_for(Finding::new(FindingKind::QueueFull, subject, message).hint(advice));
            self.ended = true;
        }
    }
}

/// Where a message is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MessageQueue {
    /// Not all of it was cut into packets: it waits at its sender.
    Sending,
    /// All of it is on its way to its receiver.
    UnderWay,
    /// A packet of it was lost.
    Lost,
}

impl MessageQueue {
    /// The queue of a message, and the node whose queue it is.
    fn of(message: &Message) -> (Self, NodeId) {
        match message {
            Message { missing: LOST, from, .. } => (Self::Lost, *from),
            Message { unsent: 0, body: Body::Protocol(_) | Body::Traffic(_) | Body::Background(_), to, .. } => {
                (Self::UnderWay, to.first)
            }
            Message { from, .. } => (Self::Sending, *from),
        }
    }

    /// What the messages do, where they are at a node, and what to change.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Sending => (
                "wait in send queues",
                "in that of",
                "less is offered with a lower `trigger.rate`, `workload.rate` or `workload.load`, fewer `builder.slots`, or a \
                 smaller `workload.window`; faster links carry more",
            ),
            Self::UnderWay => (
                "are on their way",
                "to",
                "fewer `builder.slots`, a smaller `workload.window`, or a lower rate; a shorter `network.host.receive`",
            ),
            Self::Lost => (
                "have lost packets",
                "from",
                "flow control instead of drops (`network.flow.full = \"pause\"`), a lower rate, or a shorter simulation",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Packets, statistics, trace::Trace};
    use evb_experiment::Experiment;
    use evb_record::Record;

    /// Ten times more than a link carries, by 16 senders.
    const OVERLOAD: &str = r#"
[network]
preset = "ideal"
link = { rate = "1 GB/s", delay = "100 ns" }
placement = { readout = 0, builder = 16 }
[workload]
type = "random"
rate = "60 kHz"
[trigger]
duration = "20 ms"
[readout]
units = 16
source = { type = "fixed", size = "10 kB" }
[builder]
units = 1
"#;

    fn with_plan<R>(text: &str, test: impl FnOnce(&Plan) -> R) -> R {
        let experiment = Experiment::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error:#?}"));
        let [plan] = experiment.plans() else { panic!("a sweep") };
        test(plan)
    }

    fn run_within(text: &str, change: impl Fn(&mut QueueBounds)) -> Record {
        with_plan(text, |plan| {
            let simulation = Simulation::new(plan, Trace::new(None), Packets::InTrains);
            let mut simulation = simulation.unwrap_or_else(|error| panic!("{error}"));
            let mut bounds = simulation.bounds;
            change(&mut bounds);
            simulation.set_bounds(bounds);
            simulation.run(&mut |_| true);
            statistics::record(&simulation, 0.0)
        })
    }

    fn finding(record: &Record) -> &Finding {
        let found = record.findings.iter().find(|finding| finding.kind == FindingKind::QueueFull);
        found.unwrap_or_else(|| panic!("{:?}", record.findings))
    }

    #[test]
    fn a_send_queue_that_grows_ends_the_simulation_and_is_named() {
        let record = run_within(OVERLOAD, |bounds| bounds.messages = 1000);
        let Finding { subject, message, hint, .. } = finding(&record);
        assert!(subject.starts_with("ru"), "{subject}");
        assert!(message.starts_with("more than 1000 messages, of which "), "{message}");
        assert!(message.contains("wait in send queues, "), "{message}");
        assert!(hint.as_ref().is_some_and(|hint| hint.contains("workload.rate")), "{hint:?}");
        assert!(!record.good && record.seconds < 10e-3 && record.events.built > 0, "{} s", record.seconds);
        let whole = run_within(OVERLOAD, |_| {});
        assert!(whole.findings.iter().all(|finding| finding.kind != FindingKind::QueueFull), "{:?}", whole.findings);
    }

    #[test]
    fn lost_messages_are_a_queue_too() {
        let flow = r#"flow = { type = "store-and-forward", queue = "64 kB", full = "drop", reaction = "100 ns" }"#;
        let text = OVERLOAD.replace("placement", &format!("{flow}\nplacement"));
        let record = run_within(&text, |bounds| bounds.messages = 1000);
        assert!(finding(&record).message.contains("have lost packets, "), "{:?}", finding(&record));
    }

    #[test]
    fn packets_and_planned_events_have_bounds() {
        // More events than between two looks at the queues.
        let long = OVERLOAD.replace("20 ms", "100 ms");
        let record = run_within(&long, |bounds| bounds.packets = 10);
        assert!(finding(&record).message.contains("packets under way, of which"), "{:?}", finding(&record));
        let record = run_within(&long, |bounds| bounds.planned_events = 10);
        assert!(finding(&record).message.starts_with("more than 10 planned events"), "{:?}", finding(&record));
    }

    #[test]
    fn packets_that_wait_for_the_memory_of_a_host_have_a_bound() {
        let dma = r#"nic = { dma = { read = "10 GB/s", write = "10 MB/s" } }"#;
        let text = OVERLOAD.replace("placement", &format!("{dma}\nplacement")).replace("20 ms", "1 s");
        let record = run_within(&text, |bounds| bounds.received_packets = 100);
        assert!(
            finding(&record).message.contains("received packets at h16, which wait for its memory"),
            "{:?}",
            finding(&record)
        );
    }

    #[test]
    fn the_bounds_leave_room_for_the_fragments_of_all_open_events() {
        with_plan(OVERLOAD, |plan| {
            let mut plan = plan.clone();
            let whole = QueueBounds::of(&plan, 1).messages;
            assert_eq!((whole, QueueBounds::of(&plan, 4).messages), (MESSAGES, MESSAGES / 4));
            plan.workload = Workload::EventBuilding;
            plan.building.readout_units = 1000;
            plan.building.builder_units = 1000;
            assert_eq!(QueueBounds::of(&plan, 1).messages, 4 * 64 * 1000 * 1000);
        });
    }
}
