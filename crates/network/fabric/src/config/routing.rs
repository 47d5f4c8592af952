//! The routes of packets.

use super::is_default;
use evb_core::Span;
use serde::{Deserialize, Serialize};

/// The routing of packets. All routings but dimension order, `SpanningTree` and
/// `Learning` use every route with the fewest hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Routing {
    /// One route for each pair of ports, always the same.
    Fixed {
        /// The distribution of pairs over equal routes.
        spread: Spread,
    },
    /// A route drawn at random from the equal ones for each packet.
    Random,
    /// One route for each pair, which changes at random when its packets were blocked.
    Dispersive {
        /// Waiting time at a switch from which a packet counts as blocked.
        patience: Span,
        /// Consecutive blocked packets of a pair after which the pair takes another route, at least 1.
        after: u16,
        /// The ports of a host to which the routes from one port lead.
        #[serde(default, skip_serializing_if = "is_default")]
        rails: Rails,
        /// Routes that the pair probes then: it takes the first one that is free, and keeps its route if none is. With 0
        /// it takes any other route.
        #[serde(default, skip_serializing_if = "is_default")]
        probes: u16,
    },
    /// Any free link of the equal routes, at every switch.
    Adaptive,
    /// Over another group, drawn for each packet between two groups of a dragonfly or a dragonfly+; in a HyperX over another
    /// switch (Valiant, A Scheme for Fast Parallel Communication, SIAM Journal on Computing 11, 1982).
    Valiant,
    /// The minimal route, or that over another group, or switch, if the queue of its first link times its hops is shorter
    /// (UGAL-L: Singh, Load-Balanced Routing in Interconnection Networks, Stanford 2005).
    Ugal,
    /// Along the rows first, then along the columns, then through the layers; for grid, torus and HyperX, where each of
    /// these ways is one hop.
    DimensionOrder {
        /// The distribution of pairs over parallel links.
        spread: Spread,
        /// The direction where both ways round a ring are equal.
        #[serde(default, skip_serializing_if = "is_default")]
        ties: Ties,
    },
    /// Dimension order over any free one of parallel links; for grid, torus and HyperX.
    AdaptiveDimensionOrder,
    /// Along a tree of links only, as with learning bridges; parallel links count as one trunk.
    SpanningTree,
    /// Learning bridges (IEEE 802.1D): along a tree of links; to a host that a switch has not heard, over all branches.
    Learning {
        /// Time after which a switch forgets a host that sends nothing.
        age: Span,
    },
    /// Equal routes chosen by a hash over source, destination and message stream.
    Ecmp,
    /// Every switch keeps the packets of a flow, from one port of a host to another, on one of the equal links until none has come
    /// for a gap, and then chooses again (flowlets: Sinha, Kandula and Katabi, Harnessing TCP's Burstiness with Flowlet Switching,
    /// HotNets 2004).
    Flowlets {
        /// Silence of a flow at a switch after which its next packet may take another link, above 0.
        gap: Span,
        /// The link that a flow takes after the gap.
        choice: FlowletChoice,
    },
    /// By the forwarding tables of the switches; for a fabric that is known with them.
    Table,
}

/// The choice of a switch between equal links for a flow that was silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowletChoice {
    /// The link with the fewest bytes before it, and in the buffers behind it as far as its sender knows.
    ShortestQueue,
    /// Any link, drawn at random (LetFlow: Vanini, Pan, Alizadeh, Taheri and Edsall, Let It Flow: Resilient Asymmetric Load Balancing
    /// with Flowlet Switching, NSDI 2017).
    Random,
}

/// The direction of dimension order where both ways round a ring are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// Upwards from switches in even places and downwards from the others, so that both directions carry the same.
    #[default]
    Alternate,
    /// Upwards.
    Upward,
}

/// The distribution of pairs of ports over equal routes.
///
/// In a tree all rules but `Pair` choose anew at each layer: the lowest switch by the number modulo its routes, each
/// layer above by the rest that the routes below have left (`number / stride % ways`, see
/// [`NetworkLink::stride`](crate::NetworkLink::stride)). So `Source` is S-mod-k and `Destination` is D-mod-k (Rodriguez
/// et al., Oblivious Routing Schemes in Extended Generalized Fat Tree Networks, CLUSTER 2009), under which a shift
/// permutation puts one pair at most on each link of a full fat tree (Zahavi, Fat-tree routing and node ordering
/// providing contention free traffic for MPI global collectives, JPDC 72, 2012).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// By the position of the source among all ports of hosts, in the order of the switches that they send to.
    Source,
    /// By the position of the destination among all ports of hosts, in the order of the switches that they receive
    /// from, as in the forwarding tables of a subnet manager.
    Destination,
    /// One route for each pair of switches; a switch uses its routes in turn for the other switches. A table of
    /// intervals of destinations does this if the ports of a switch are one interval (STC104 data sheet, interval
    /// labelling).
    Switch,
    /// Drawn at random for each pair, once for the whole run.
    Pair,
}

impl FlowletChoice {
    /// The usual [`gap`](Routing::Flowlets::gap): that of CONGA (Alizadeh et al., SIGCOMM 2014, section 3.6), for the queues of TCP.
    pub const USUAL_GAP: Span = Span::from_micros(500);
}

impl Routing {
    /// Returns true if a packet takes any free link of several.
    #[inline]
    pub fn is_adaptive(self) -> bool {
        matches!(self, Self::Adaptive | Self::AdaptiveDimensionOrder)
    }

    /// Returns true if packets from one port to another may take several routes, on which they overtake each other.
    pub fn splits_pairs(self) -> bool {
        match self {
            Self::Random
            | Self::Dispersive { .. }
            | Self::Flowlets { .. }
            | Self::Adaptive
            | Self::AdaptiveDimensionOrder
            | Self::Valiant
            | Self::Ugal => true,
            Self::Fixed { .. }
            | Self::DimensionOrder { .. }
            | Self::SpanningTree
            | Self::Learning { .. }
            | Self::Ecmp
            | Self::Table => false,
        }
    }
}

/// The connection of the ports of hosts with several ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rails {
    /// A packet arrives at the port with the number of the port that sent it.
    #[default]
    Separate,
    /// A packet arrives at any port of the host: the port is a part of the route.
    Joined,
}
