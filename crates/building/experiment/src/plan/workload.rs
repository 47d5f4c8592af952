//! The work of the nodes.

use evb_core::Frequency;
use evb_patterns::TrafficConfig;
use serde::{Deserialize, Serialize};

/// Work of the nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Workload {
    /// They build events: as [`Plan::building`](crate::Plan::building) defines.
    EventBuilding,
    /// Readout units send to builder units after a pattern, without an event manager.
    Traffic(TrafficPlan),
}

/// Traffic that is not event building. It ends after `messages`, or with the trigger's `duration`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficPlan {
    /// The machines' configuration.
    pub config: TrafficConfig,
    /// Load of the senders.
    pub load: Load,
    /// Messages of each sender (of [`Gather`](evb_patterns::Pattern::Gather): events in all; of what
    /// [has cycles](evb_patterns::Pattern::has_cycles): cycles) after which it stops.
    pub messages: Option<u64>,
    /// A message that goes over a connection is under way until all of it is acknowledged, and not only until it has left
    /// its host.
    #[serde(default)]
    pub awaits_acknowledgement: bool,
}

/// Load that the senders of a traffic pattern offer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Load {
    /// As much as goes.
    Saturating,
    /// Messages at a rate.
    Rate {
        /// Mean rate of each sender (of [`Gather`](evb_patterns::Pattern::Gather): of events in all).
        rate: Frequency,
        /// True for exponential intervals (a Poisson process), false for equal ones.
        poisson: bool,
    },
    /// Bytes at a part of the rate of a sender's link.
    Fraction {
        /// Payload of each sender over the rate of its link; above 1 is more than the link can take.
        load: f64,
        /// True for exponential intervals (a Poisson process), false for equal ones.
        poisson: bool,
    },
    /// Messages at the beginnings of time slots. A slot is as long as the mean payload of a message takes on the link of
    /// its sender, and the slots of all senders begin together.
    Slots {
        /// Probability of a message in a slot, at most 1: the payload of each sender over the rate of its link.
        load: f64,
    },
}
