//! The work of the nodes of a launch: the traffic of a plan.

use crate::{
    idle_policy::Wait,
    wire::{LONGEST_BYTES, SMALLEST_BYTES, SMALLEST_STAMPED},
};
use evb_core::{EventId, NodeId, NodeRange, SourceId, Span};
use evb_experiment::{Load, Plan, TrafficPlan, Workload};
use evb_patterns::{Pattern, TrafficConfig};
use evb_protocol::Config;
use evb_sources::{SizeModel, SourceError, SourceSpec};
use evb_unit::open_options;
use serde::{Deserialize, Serialize};

/// Most sizes of a sender that are drawn to find the longest one.
const MOST_DRAWN: u64 = 1_000_000;
/// Sizes of a sender from which the typical one is taken.
const TYPICAL: u64 = 1000;

/// The work of the nodes of a launch, the same for all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The traffic, and the sizes of its messages.
    pub(crate) plan: Plan,
    /// The traffic of the plan.
    pub(crate) traffic: TrafficPlan,
    /// Behaviour of nodes without work.
    pub(crate) wait: Wait,
    /// True if every data message carries the time at which it was due, by a clock that all nodes share.
    pub(crate) is_timed: bool,
    /// The nodes of the launch that take part: number `i` is node `i` of the traffic. Empty if they are the first ones.
    pub(crate) members: Vec<NodeId>,
}

/// Lengths of the data messages of one node in bytes.
pub(crate) enum Sizes {
    /// All have this length, which may be longer than the plan says.
    Fixed { size: usize, is_longer: bool },
    /// Each has its own, by its number. Some were to be shorter.
    Drawn { sizes: Box<SizeModel>, lengthened: u64 },
}

impl Work {
    /// The work of a plan; `None` if the plan builds events.
    #[must_use]
    pub fn new(plan: Plan, wait: Wait) -> Option<Self> {
        let Workload::Traffic(traffic) = &plan.workload else { return None };
        Some(Self { traffic: traffic.clone(), plan, wait, is_timed: true, members: Vec::new() })
    }

    /// The same work, whose messages carry no time: nodes on several machines have no common clock.
    #[must_use]
    pub fn untimed(self) -> Self {
        Self { is_timed: false, ..self }
    }

    /// The same work for these nodes of a launch, in this order.
    pub(crate) fn of(self, members: Vec<NodeId>) -> Self {
        Self { members, ..self }
    }

    /// The nodes of the launch that take part.
    pub(crate) fn members(&self) -> Vec<NodeId> {
        match &self.members[..] {
            [] => (0..self.nodes()).map(NodeId).collect(),
            members => members.to_vec(),
        }
    }

    /// The plan, which describes the traffic and the sizes of its messages.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.plan.building.nodes() - 1
    }

    /// The configuration of the machines. The nodes count from 0: a real run of traffic has no event manager.
    pub(crate) fn config(&self) -> TrafficConfig {
        let from_zero = |range: NodeRange| NodeRange { first: NodeId(range.first.0 - 1), ..range };
        let config = self.traffic.config.clone();
        TrafficConfig { senders: from_zero(config.senders), receivers: from_zero(config.receivers), ..config }
    }

    /// The node in the plan. Node 0 of a plan is for an event manager.
    pub(crate) const fn in_plan(local: NodeId) -> NodeId {
        NodeId(local.0 + Config::EVENT_MANAGER.0 + 1)
    }

    /// The load that senders offer.
    #[must_use]
    pub const fn load(&self) -> Load {
        self.traffic.load
    }

    /// The pattern of the traffic.
    #[must_use]
    pub const fn pattern(&self) -> &Pattern {
        &self.traffic.config.pattern
    }

    /// True if each message is timed by itself, and not a cycle or an event.
    pub(crate) const fn times_messages(&self) -> bool {
        self.is_timed && !self.pattern().has_cycles() && !matches!(self.pattern(), Pattern::Gather { .. })
    }

    /// Time of the longest single pause that belongs to the pattern: what a farm computes.
    pub(crate) const fn compute(&self) -> Span {
        match self.pattern() {
            Pattern::PushFarm { work } | Pattern::PullFarm { work } => *work,
            _ => Span::ZERO,
        }
    }

    /// The lengths of the messages of a node. A node that sends no data has any.
    ///
    /// # Errors
    /// The source of the node cannot be opened.
    pub(crate) fn sizes(&self, local: NodeId) -> Result<Sizes, SourceError> {
        match self.plan.data_source(Self::in_plan(local)) {
            Some(source) => self.sizes_of(source),
            None => Ok(Sizes::Fixed { size: SMALLEST_BYTES, is_longer: false }),
        }
    }

    fn sizes_of(&self, source: SourceId) -> Result<Sizes, SourceError> {
        match (self.fixed(source), self.plan.source(source)) {
            (Some(size), SourceSpec::Fixed { size: wanted }) => {
                Ok(Sizes::Fixed { size, is_longer: wanted.0 < size as u64 })
            }
            (_, spec) => {
                let sizes = SizeModel::open(spec, &open_options(&self.plan, source))?;
                Ok(Sizes::Drawn { sizes: Box::new(sizes), lengthened: 0 })
            }
        }
    }

    /// The length of all messages of a sender, if they have one.
    fn fixed(&self, source: SourceId) -> Option<usize> {
        match self.plan.source(source) {
            SourceSpec::Fixed { size } => Some((size.0 as usize).max(SMALLEST_BYTES)),
            _ => None,
        }
    }

    /// The sources of all senders.
    fn sources(&self) -> impl Iterator<Item = SourceId> {
        (0..self.traffic.config.senders.count).map(SourceId)
    }

    /// The length of all data messages, if they have one.
    pub(crate) fn common_size(&self) -> Option<usize> {
        let first = self.fixed(SourceId(0));
        first.filter(|_| self.sources().all(|source| self.fixed(source) == first))
    }

    /// True if the shortest message has room for the time at which it was due.
    pub(crate) fn has_room_for_stamp(&self) -> bool {
        self.sources().all(|source| self.fixed(source).is_none_or(|size| size >= SMALLEST_STAMPED))
    }

    /// Length of the longest message in bytes; the largest fragment of the plan if there are too many to try.
    ///
    /// # Errors
    /// A source cannot be opened.
    pub fn longest(&self) -> Result<usize, SourceError> {
        let largest = usize::try_from(self.plan.max_fragment().0).unwrap_or(usize::MAX).min(LONGEST_BYTES);
        let of_source = |source| {
            Ok(match (self.sizes_of(source)?, self.traffic.messages) {
                (Sizes::Fixed { size, .. }, _) => size,
                (mut sizes, Some(messages)) if messages <= MOST_DRAWN => {
                    (1..=messages).map(|number| sizes.length(number)).max().unwrap_or(0)
                }
                _ => largest,
            })
        };
        self.sources().try_fold(SMALLEST_BYTES, |longest, source| Ok(longest.max(of_source(source)?)))
    }

    /// Length of a usual message in bytes.
    ///
    /// # Errors
    /// A source cannot be opened.
    pub(crate) fn typical(&self) -> Result<usize, SourceError> {
        let mut sizes = self.sizes_of(SourceId(0))?;
        Ok((1..=TYPICAL).map(|number| sizes.length(number)).sum::<usize>() / TYPICAL as usize)
    }
}

impl Sizes {
    /// Length of the message with this number. One that is drawn has room for the time at which it was due.
    #[inline]
    pub(crate) fn length(&mut self, number: u64) -> usize {
        match self {
            Self::Fixed { size, .. } => *size,
            Self::Drawn { sizes, lengthened } => {
                let size = sizes.size(EventId(number)).map_or(0, |size| size as usize);
                *lengthened += u64::from(size < SMALLEST_STAMPED);
                size.max(SMALLEST_STAMPED)
            }
        }
    }

    /// Number of the messages that were to be shorter than they can be, of all that were sent.
    pub(crate) const fn lengthened(&self, sent: u64) -> u64 {
        match self {
            Self::Fixed { is_longer, .. } => {
                if *is_longer {
                    sent
                } else {
                    0
                }
            }
            Self::Drawn { lengthened, .. } => *lengthened,
        }
    }
}
