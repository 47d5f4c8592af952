//! The typed configuration that the machines take; the experiment file resolves to it.

use crate::FirstPhase;
use alloc::{format, string::String, vec::Vec};
use core::num::NonZeroU32;
use evb_coincidence::Coincidence;
use evb_core::{ByteCount, MarkComparison, NodeId, NodeRange, SourceId, Span};
use serde::{Deserialize, Serialize};

/// One event builder: sizes, protocol and limits. Every machine of it holds a copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Number of readout units, at least 1.
    pub readout_units: u16,
    /// Number of builder units, at least 1.
    pub builder_units: u16,
    /// Recorded and live sources, which number their fragments themselves. The event manager finds out which of their
    /// numbers belong together.
    pub numbered: Vec<SourceId>,
    /// Sources whose marks may differ from the others'. Such a mismatch is counted and does not spoil the event.
    pub tolerant: Vec<SourceId>,
    /// When the marks of an event agree.
    #[serde(default = "exact", skip_serializing_if = "is_exact")]
    pub marks: MarkComparison,
    /// The protocol: who starts the transfer of fragments.
    pub protocol: Protocol,
    /// The assignment of events to builders.
    pub assignment: Assignment,
    /// The order and packing of fragments at a readout unit.
    pub shaping: Shaping,
    /// The source of triggers.
    pub trigger: Trigger,
    /// Events after which the trigger stops. Without it the run ends by time or when the sources are exhausted.
    pub events: Option<u64>,
    /// Most assignments in one message, at least the number of builders.
    pub group: u32,
    /// Longest time that an incomplete group of assignments waits for more.
    pub group_timeout: Span,
    /// Events that a builder requests at once (pull and phased): it gathers this many free slots, and asks each readout
    /// unit for this many fragments in one message. Without it, a builder requests as many as are free.
    pub request_group: Option<NonZeroU32>,
    /// The order in which a builder requests fragments from readout units (pull and phased).
    #[serde(default)]
    pub request_order: RequestOrder,
    /// Most requests to readout units, over all events of a builder, that have no answer (pull and phased). The others
    /// wait in the builder. Without it all are sent at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_window: Option<NonZeroU32>,
    /// Events that one builder may have under construction.
    pub builder_slots: u32,
    /// Events that all builders together may have under construction at first, at least 1. The event manager looks for
    /// the number that is enough, which may be less than one for each builder. Without it, all slots may always be in
    /// use.
    pub first_under_way: Option<u32>,
    /// Time that a builder waits for the fragments of an event before it asks for the missing ones.
    pub patience: Span,
    /// Time after which a builder ends an event, or its first phase, with the fragments that arrived. Without it an
    /// event waits as long as its fragments can still arrive.
    pub deadline: Option<Span>,
    /// Largest fragment that is accepted.
    pub max_fragment: ByteCount,
    /// Events that a readout unit can hold: the hard bound of its buffer.
    pub buffer_events: u32,
    /// Bytes held at which a readout unit reports busy.
    pub buffer_bytes: ByteCount,
    /// Part of `buffer_events` or `buffer_bytes`, in percent, at and above which a readout unit is busy.
    pub busy_percent: u8,
    /// Part in percent at and below which a busy readout unit is free again; below `busy_percent`.
    pub free_percent: u8,
    /// Live fragments are matched by the times of their clocks, with one clock for each readout unit; not by counters.
    /// The trigger is [`Trigger::Data`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coincidence: Option<Coincidence>,
}

const fn exact() -> MarkComparison {
    MarkComparison::EXACT
}

fn is_exact(marks: &MarkComparison) -> bool {
    *marks == MarkComparison::EXACT
}

impl Config {
    /// An event builder of this many units with the defaults of an experiment file: push, round robin, free running.
    ///
    /// # Panics
    /// If there is no readout unit or no builder unit.
    pub fn new(readout_units: u16, builder_units: u16) -> Self {
        assert!(readout_units > 0 && builder_units > 0, "an event builder has units of both kinds");
        let builder_slots = 64;
        Self {
            readout_units,
            builder_units,
            numbered: Vec::new(),
            tolerant: Vec::new(),
            marks: MarkComparison::EXACT,
            protocol: Protocol::Push,
            assignment: Assignment::RoundRobin,
            shaping: Shaping::None,
            trigger: Trigger::FreeRunning,
            events: None,
            group: 352.max(u32::from(builder_units)),
            group_timeout: Span::from_millis(1),
            request_group: None,
            request_order: RequestOrder::Rotated,
            request_window: None,
            builder_slots,
            first_under_way: Some(Self::usual_under_way(Protocol::Push, builder_units, 1)),
            patience: Span::from_millis(250),
            deadline: None,
            max_fragment: ByteCount(1 << 20),
            buffer_events: 4096.max(2 * builder_slots * u32::from(builder_units)),
            buffer_bytes: ByteCount(64 << 20),
            busy_percent: 90,
            free_percent: 70,
            coincidence: None,
        }
    }

    /// Fewest blocks of events that all builders together have under construction at first.
    const FEWEST_BLOCKS: u32 = 16;
    /// Fragments that stay in the caches of one processor, and the fewest events that keep its cores busy.
    const CACHED_FRAGMENTS: u32 = 512;
    const FEWEST_CACHED: u32 = 16;

    /// Events that all builders together should have under construction at first, or blocks of this many events: enough
    /// to keep the cores of one machine busy, and one for each builder at least, since each may be on a separate
    /// machine. In push there are more of them, because the event manager waits for each builder in turn.
    pub fn usual_under_way(protocol: Protocol, builder_units: u16, block: u32) -> u32 {
        let events = if matches!(protocol, Protocol::Push) { 128 } else { 32 };
        let (in_all, builders) = ((events / block).max(Self::FEWEST_BLOCKS), u32::from(builder_units));
        builders * (in_all / builders).max(1)
    }

    /// Lets the builders begin with so few events that their fragments stay in the caches of one processor, which all
    /// nodes share. There may be fewer of them than builders.
    pub fn share_caches(&mut self) {
        if let Some(first) = &mut self.first_under_way {
            let (builders, units) = (u32::from(self.builder_units), u32::from(self.readout_units));
            let in_caches = (Self::CACHED_FRAGMENTS / units).max(Self::FEWEST_CACHED);
            let in_all = if in_caches > builders { in_caches.next_multiple_of(builders) } else { in_caches };
            *first = (*first).min(in_all);
        }
    }

    /// Events that a builder may have under construction at first.
    pub fn first_slots(&self) -> u32 {
        let of_each = |in_all: u32| in_all.div_ceil(self.builder_units.into());
        self.first_under_way.map_or(self.builder_slots, of_each).min(self.builder_slots)
    }

    /// Bound on the distance of the oldest open event and the newest: less than this factor times `buffer_events`.
    pub const SPAN_FACTOR: usize = 16;

    /// The event manager.
    pub const EVENT_MANAGER: NodeId = NodeId(0);

    /// Most bytes of fragments in the buffer of a readout unit. The limit is exceeded by less than two fragments.
    pub const fn most_buffered(&self) -> ByteCount {
        ByteCount(self.buffer_bytes.0.saturating_add(2 * self.max_fragment.0))
    }

    /// All readout units.
    pub const fn readout_nodes(&self) -> NodeRange {
        NodeRange { first: NodeId(1), count: self.readout_units }
    }

    /// All builder units.
    pub const fn builder_nodes(&self) -> NodeRange {
        NodeRange { first: NodeId(1 + self.readout_units), count: self.builder_units }
    }

    /// Number of nodes: the event manager, the readout units and the builder units.
    pub const fn nodes(&self) -> u16 {
        1 + self.readout_units + self.builder_units
    }

    /// The name of a node: `evm`, or `ru` or `bu` and the index of the unit, from 0.
    pub fn node_name(&self, node: NodeId) -> String {
        let builders = self.builder_nodes();
        match node {
            Self::EVENT_MANAGER => "evm".into(),
            node if builders.contains(node) => format!("bu{}", node.0 - builders.first.0),
            node => format!("ru{}", node.0 - self.readout_nodes().first.0),
        }
    }

    /// True for the names that nodes have in event builders of any size.
    pub fn is_node_name(name: &str) -> bool {
        let index = name.strip_prefix("ru").or_else(|| name.strip_prefix("bu"));
        name == "evm" || index.is_some_and(|index| index.parse::<u16>().is_ok())
    }

    /// The node with this name, the reverse of [`node_name`](Self::node_name).
    pub fn node_by_name(&self, name: &str) -> Option<NodeId> {
        (0..self.nodes()).map(NodeId).find(|&node| self.node_name(node) == name)
    }
}

/// The party that starts the transfer of fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// The event manager broadcasts assignments; readout units send at once.
    Push,
    /// The builder asks the event manager for events, then each readout unit for its fragment.
    Pull,
    /// The builder pulls from some readout units first, and from the others when the event is accepted.
    Phased {
        /// Readout units of the first phase: at least 1, and at least one less than there are if there is a second one.
        first: FirstPhase,
        /// The others are asked for accepted events. If false, an event is built of its first phase alone, and ends
        /// with it.
        rest: bool,
    },
}

impl Protocol {
    /// The same protocol with this seed of its draws.
    #[must_use]
    pub const fn with_seed(self, seed: u64) -> Self {
        match self {
            Self::Phased { first: FirstPhase::Region { least, most, .. }, rest } => {
                Self::Phased { first: FirstPhase::Region { least, most, seed }, rest }
            }
            Self::Push | Self::Pull | Self::Phased { .. } => self,
        }
    }

    /// The name in experiment files and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
            Self::Phased { .. } => "phased",
        }
    }
}

/// The order in which a builder requests fragments from readout units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOrder {
    /// Builder n begins at readout unit n, and goes round, with a message to each. So builders in step with each other
    /// ask different units.
    #[default]
    Rotated,
    /// All builders begin at the first readout unit. One message goes to all units.
    Same,
}

/// The rule by which the event manager picks the builder of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// Builders in turn, except those without a free slot.
    RoundRobin,
    /// The builder with the fewest events under construction.
    LeastLoaded,
    /// The builder with the index `(number - 1) % builders`. Event builders with as many builders thus agree on the
    /// builder of an event without a message. The events of a builder that is gone are not built.
    ByNumber,
}

/// The order and packing of fragments at a readout unit.
///
/// The machines implement `None` and `Grouping`. They treat the other two as `None`: each fragment is a message of its
/// own. The unit layer chooses the slots, and the driver cuts the fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Shaping {
    /// Each fragment goes at once as a separate packet.
    None,
    /// Fragments for one builder wait until they fill a packet.
    Grouping {
        /// Bytes of fragments that fill a packet.
        packet: ByteCount,
        /// Longest time that an unfilled packet waits.
        timeout: Span,
    },
    /// Each readout unit has a queue per builder and sends one bucket per time slot, all builders in turn. Empty
    /// buckets keep the slots aligned.
    BarrelShifter {
        /// Bytes of a bucket.
        bucket: ByteCount,
        /// The rule by which readout units keep in step.
        step: ShapingStep,
        /// Bytes that are still on their way when the next bucket is asked for, by [`ShapingStep::Credit`] and
        /// [`ShapingStep::Barrier`].
        lead: ByteCount,
        /// Longest time for which a unit waits for a slow one in its turn.
        slip: Span,
    },
    /// Fragments are cut into small packets, which go to the builders in turn. So each builder gets its share of the
    /// rate from every readout unit.
    RateDivision {
        /// Bytes of a packet.
        packet: ByteCount,
    },
}

impl Shaping {
    /// The name in experiment files and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Grouping { .. } => "grouping",
            Self::BarrelShifter { .. } => "barrel-shifter",
            Self::RateDivision { .. } => "rate-division",
        }
    }
}

/// The rule by which the readout units of a barrel shifter keep in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShapingStep {
    /// A bucket goes when the one before it has left the network interface. The back-pressure of the network, if it has
    /// any, holds up the interface.
    Link,
    /// A bucket goes when its builder has given a credit for it.
    Credit,
    /// A bucket goes when all those of the round before have come.
    Barrier,
    /// A bucket goes in a slot of the time, by clocks that are set by the event manager's.
    Clock {
        /// Length of a slot.
        slot: Span,
        /// The end of a slot, in which nothing is sent: clocks may differ by so much.
        guard: Span,
    },
}

impl ShapingStep {
    /// The name in experiment files and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Credit => "credit",
            Self::Barrier => "barrier",
            Self::Clock { .. } => "clock",
        }
    }
}

impl Trigger {
    /// Returns true if triggers come from the driver.
    pub const fn is_driven(self) -> bool {
        matches!(self, Self::Driven | Self::Deferred)
    }
}

/// The source of triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// As fast as builders ask for events.
    FreeRunning,
    /// Triggers come from the driver, for example at a rate or from an accelerator.
    Driven,
    /// Triggers come from the driver, and wait while triggers are inhibited. So event managers with the same triggers
    /// number them alike, however busy each of them is.
    Deferred,
    /// Triggers follow the data: recordings up to their end, or live front ends.
    Data,
    /// Triggers follow the data of all sources: an event begins when each has its fragment. The source that ends first
    /// ends the run, but one that ends without a word is gone: events go on without it.
    AllData,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events that all builders have at first, with separate and with shared caches.
    fn first(readout_units: u16, builder_units: u16, slots: Option<u32>) -> [Option<u32>; 2] {
        let own = Config { first_under_way: slots, ..Config::new(readout_units, builder_units) };
        let mut same = own.clone();
        same.share_caches();
        [own.first_under_way, same.first_under_way]
    }

    #[test]
    fn many_units_in_the_same_caches_begin_with_fewer_events() {
        let usual = |builders| Some(Config::usual_under_way(Protocol::Push, builders, 1));
        assert_eq!(first(2, 2, usual(2)), [Some(128), Some(128)]);
        assert_eq!(first(8, 8, usual(8)), [Some(128), Some(64)]);
        assert_eq!(first(128, 128, usual(128)), [Some(128), Some(16)], "fewer than builders");
        assert_eq!(first(64, 3, usual(3)), [Some(126), Some(18)], "as many for each builder");
        assert_eq!(first(128, 128, None), [None, None], "a number that is set stays");
    }

    #[test]
    fn first_slots_are_within_the_slots() {
        let slots = |first_under_way| Config { first_under_way, ..Config::new(1, 8) }.first_slots();
        assert_eq!([Some(1), Some(8), Some(9), Some(10_000), None].map(slots), [1, 1, 2, 64, 64]);
    }
}
