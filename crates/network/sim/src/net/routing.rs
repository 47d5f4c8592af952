//! The choice of the link that a packet requests.

use crate::packet::{LaneId, Packet};
use evb_core::{Stream, Time};
use evb_fabric::{EndpointId, FlowletChoice, LinkId, Network, NetworkError, Rails, Routes, Routing, Spread, SwitchId};
use rand::RngExt;

/// Chooses the route of each packet.
pub(super) struct Router {
    routing: Routing,
    pub(super) routes: Routes,
    /// Routes that mappers found, number 1 first.
    views: Vec<Routes>,
    /// The routes that each endpoint knows, by number.
    view_of: Vec<u16>,
    /// Hosts determine the routes of their packets.
    pub(super) is_of_hosts: bool,
    seed: u64,
    endpoints: usize,
    /// Ports of a host to which the routes of one pair lead: 1, or all.
    ports_of_pair: u16,
    /// The route that each pair of endpoints takes now (dispersive routing).
    pair_routes: Vec<PairRoute>,
    /// Number of times that a pair of endpoints took another route because packets waited too long.
    pub(super) changes: u64,
}

/// The route that a pair of endpoints takes (dispersive routing).
#[derive(Clone, Copy, Debug, Default)]
struct PairRoute {
    /// The number of the route among equal ones.
    variant: u32,
    /// Number of packets blocked on it, counted since the last one that was not blocked.
    blocked: u16,
}

impl Router {
    /// Finds the routes of a network.
    ///
    /// # Errors
    /// If some endpoint cannot reach another one.
    pub(super) fn new(network: &Network, seed: u64) -> Result<Self, NetworkError> {
        let (routing, endpoints) = (network.config.routing, network.endpoints.len());
        let routes = Routes::find(network, &|_| true);
        routes.check(network)?;
        let joined = matches!(routing, Routing::Dispersive { rails: Rails::Joined, .. });
        let pairs = if matches!(routing, Routing::Dispersive { .. }) { endpoints * endpoints } else { 0 };
        Ok(Self {
            routing,
            routes,
            views: Vec::new(),
            view_of: vec![0; endpoints],
            is_of_hosts: false,
            seed,
            endpoints,
            ports_of_pair: if joined { network.config.nic.ports.into() } else { 1 },
            pair_routes: vec![PairRoute::default(); pairs],
            changes: 0,
        })
    }

    /// True if packets take any link that is free.
    #[inline]
    pub(super) fn is_adaptive(&self) -> bool {
        self.routing.is_adaptive()
    }

    /// True if the route of each packet depends on its ends and its variant alone, and packets never wait for each
    /// other in a ring.
    pub(super) fn is_steady(&self, network: &Network) -> bool {
        let is_fixed = !self.routing.splits_pairs() && !matches!(self.routing, Routing::Learning { .. });
        is_fixed && network.cyclic_dependency(&self.routes).is_none()
    }

    /// True if packets may go over another group, or another switch of a HyperX.
    #[inline]
    pub(super) fn takes_detours(&self) -> bool {
        matches!(self.routing, Routing::Valiant | Routing::Ugal)
    }

    /// True if switches compare the bytes that wait for links.
    #[inline]
    pub(super) fn compares_loads(&self) -> bool {
        self.takes_detours() || matches!(self.routing, Routing::Flowlets { choice: FlowletChoice::ShortestQueue, .. })
    }

    /// True if packets between two groups go over another one in any case.
    pub(super) fn always_takes_detours(&self) -> bool {
        self.routing == Routing::Valiant
    }

    /// The links that a packet may take from a switch.
    #[inline]
    pub(super) fn outputs(&self, switch: SwitchId, to: EndpointId) -> &[LinkId] {
        self.routes.candidates(switch, to)
    }

    /// The links that a packet may take from a switch by the routes of a view.
    #[inline]
    pub(super) fn outputs_of(&self, view: u16, switch: SwitchId, to: EndpointId) -> &[LinkId] {
        match view {
            0 => self.outputs(switch, to),
            _ => self.views[usize::from(view) - 1].candidates(switch, to),
        }
    }

    /// The number of the routes that an endpoint knows.
    #[inline]
    pub(super) fn view(&self, endpoint: EndpointId) -> u16 {
        self.view_of[usize::from(endpoint.0)]
    }

    pub(super) fn add_view(&mut self, routes: Routes) {
        self.views.push(routes);
    }

    pub(super) fn set_view(&mut self, endpoint: EndpointId, view: u16) {
        self.view_of[usize::from(endpoint.0)] = view;
    }

    /// Takes other routes from now on.
    pub(super) fn set_routes(&mut self, routes: Routes) {
        self.routes = routes;
    }

    /// The link that a packet takes among equal ones, when that does not depend on which of them is free.
    pub(super) fn pick(&self, network: &Network, random: &mut Stream, packet: &Packet, outputs: &[LinkId]) -> LinkId {
        match self.routing {
            Routing::Random => outputs[random.random_range(0..outputs.len() as u32) as usize],
            _ => self.pick_fixed(network, (packet.from, packet.to), packet.variant, outputs),
        }
    }

    /// The link among equal ones on a route of a pair.
    pub(super) fn pick_fixed(
        &self,
        network: &Network,
        (from, to): (EndpointId, EndpointId),
        variant: u32,
        outputs: &[LinkId],
    ) -> LinkId {
        let spread = match self.routing {
            Routing::Fixed { spread } | Routing::DimensionOrder { spread, .. } => spread,
            Routing::Random
            | Routing::Dispersive { .. }
            | Routing::SpanningTree
            | Routing::Learning { .. }
            | Routing::Ecmp
            | Routing::Table
            | Routing::Adaptive
            | Routing::Valiant
            | Routing::Ugal
            | Routing::AdaptiveDimensionOrder
            | Routing::Flowlets { .. } => Spread::Pair,
        };
        let index = spread.index(network, self.seed, from, to, variant, outputs[0]);
        outputs[index as usize % outputs.len()]
    }

    /// The port of a host at which a new packet arrives. `same` is the port with the number of the sending one.
    pub(super) fn port(&self, network: &Network, from: EndpointId, same: EndpointId) -> EndpointId {
        self.port_of(network, from, same, self.variant(from, same, 0))
    }

    /// The port of a host at which the route with this number arrives.
    pub(super) fn port_of(&self, network: &Network, from: EndpointId, same: EndpointId, variant: u32) -> EndpointId {
        match self.routing {
            Routing::Dispersive { rails, .. } => rails.port(network, self.seed, from, same, variant),
            _ => same,
        }
    }

    /// The variant of the route that a new packet takes.
    pub(super) fn variant(&self, from: EndpointId, to: EndpointId, stream: u32) -> u32 {
        match self.routing {
            Routing::Dispersive { .. } => self.pair_routes[self.pair(from, to)].variant,
            Routing::Ecmp => stream,
            _ => 0,
        }
    }

    fn pair(&self, from: EndpointId, to: EndpointId) -> usize {
        usize::from(from.0) * self.endpoints + usize::from(to.0 - to.0 % self.ports_of_pair)
    }

    /// Notes a packet that waits too long (dispersive routing). After several such packets of a pair in a row, the next
    /// ones take another route; returns the number of routes to probe for it, if any.
    #[inline]
    pub(super) fn note_patience(&mut self, now: Time, packet: &mut Packet) -> u16 {
        let Routing::Dispersive { patience, after, probes, .. } = self.routing else { return 0 };
        if packet.congested || packet.lane == LaneId::NONE || now.since(packet.since) <= patience {
            return 0;
        }
        packet.congested = true;
        let pair = self.pair(packet.from, packet.to);
        let route = &mut self.pair_routes[pair];
        if route.variant != packet.variant {
            return 0;
        }
        route.blocked += 1;
        if route.blocked < after {
            return 0;
        }
        route.blocked = 0;
        if probes == 0 {
            self.change_route(packet.from, packet.to, packet.variant.wrapping_add(1));
        }
        probes
    }

    /// The next packets of a pair take another route.
    pub(super) fn change_route(&mut self, from: EndpointId, to: EndpointId, variant: u32) {
        let pair = self.pair(from, to);
        self.pair_routes[pair] = PairRoute { variant, blocked: 0 };
        self.changes += 1;
    }

    /// Dispersive routing: a packet has arrived. One that was not blocked shows that its route is good.
    #[inline]
    pub(super) fn note_arrival(&mut self, packet: &Packet) {
        if self.pair_routes.is_empty() || packet.congested {
            return;
        }
        let pair = self.pair(packet.from, packet.to);
        let route = &mut self.pair_routes[pair];
        if route.variant == packet.variant {
            route.blocked = 0;
        }
    }
}

/// Links in turn, starting at a random one.
pub(super) fn from_any(links: &[LinkId], random: &mut Stream) -> impl Iterator<Item = LinkId> {
    let (before, from) = links.split_at(draw_first(links.len(), random));
    from.iter().chain(before).copied()
}

/// The number of the link with which a search starts. A counter would be simpler, but then switches that know nothing of
/// each other take turns, and a packet's second choice follows from its first.
pub(super) fn draw_first(links: usize, random: &mut Stream) -> usize {
    random.random_range(0..links)
}
