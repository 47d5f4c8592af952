//! The builder of networks: creates and names switches and links for every topology.

use crate::layers;
use crate::{
    Endpoint, EndpointId, LinkConfig, LinkEnd, LinkId, Marking, Network, NetworkConfig, NetworkError, NetworkLink,
    Switch, SwitchId,
};
use evb_core::{Bandwidth, Span};
use std::collections::HashMap;

/// Most ports of hosts: their ids are 16 bits wide.
const MOST_ENDPOINTS: u64 = u16::MAX as u64;
/// Most switches: their ids are 16 bits wide.
const MOST_SWITCHES: u64 = u16::MAX as u64;
/// Most links; keeps the memory of a network below some hundred megabytes.
const MOST_LINKS: u64 = 1 << 20;
/// Most entries of the routing tables, of two bytes each.
pub(crate) const MOST_PAIRS: u64 = 1 << 28;

/// The size of a topology, known before memory is allocated.
pub(crate) struct TopologySize {
    pub(crate) endpoints: u64,
    pub(crate) switches: u64,
    /// Links between switches, each direction counted.
    pub(crate) links: u64,
}

/// The properties of a link.
#[derive(Clone, Copy)]
pub(crate) struct LinkProperties {
    pub(crate) rate: Bandwidth,
    pub(crate) delay: Span,
    pub(crate) marking: Option<Marking>,
    pub(crate) dimension: u8,
    pub(crate) dateline: bool,
}

impl LinkProperties {
    /// The link of the configuration, with another rate if one is given.
    pub(crate) fn new(config: &NetworkConfig, rate: Option<Bandwidth>) -> Self {
        let (rate, delay, marking) = (rate.unwrap_or(config.link.rate), config.link.delay, config.switch.marking);
        Self { rate, delay, marking, dimension: 0, dateline: false }
    }

    /// The cable of a port of a host.
    pub(crate) fn of_host(config: &NetworkConfig, endpoint: EndpointId) -> Self {
        let LinkConfig { rate, delay } = config.host_link(endpoint.0 / u16::from(config.nic.ports));
        Self { rate, delay, marking: config.switch.marking, dimension: 0, dateline: false }
    }

    /// The same with another rate, if one is given.
    pub(crate) fn rated(self, rate: Option<Bandwidth>) -> Self {
        Self { rate: rate.unwrap_or(self.rate), ..self }
    }

    /// The same with another delay, if one is given.
    pub(crate) fn delayed(self, delay: Option<Span>) -> Self {
        Self { delay: delay.unwrap_or(self.delay), ..self }
    }

    /// The same with other marks, if some are given.
    pub(crate) fn marked(self, marking: Option<Marking>) -> Self {
        Self { marking: marking.or(self.marking), ..self }
    }
}

/// A network under construction. Ports are numbered in the order in which links are added.
pub(crate) struct NetworkBuilder<'a> {
    config: &'a NetworkConfig,
    links: Vec<NetworkLink>,
    switches: Vec<Switch>,
    endpoints: Vec<Option<[LinkId; 2]>>,
}

impl<'a> NetworkBuilder<'a> {
    /// An empty network with room for `size`, or an error if the size is above the limits.
    pub(crate) fn new(config: &'a NetworkConfig, size: &TopologySize) -> Result<Self, NetworkError> {
        size.check()?;
        Ok(Self {
            config,
            links: Vec::with_capacity((size.links + 2 * size.endpoints) as usize),
            switches: Vec::with_capacity(size.switches as usize),
            endpoints: vec![None; size.endpoints as usize],
        })
    }

    /// Adds a switch.
    pub(crate) fn switch(&mut self, name: String) -> SwitchId {
        let id = SwitchId(self.switches.len() as u16);
        self.switches.push(Switch { name, inputs: Vec::new(), outputs: Vec::new(), cuts_through: false });
        id
    }

    /// Adds `count` switches, named `prefix0`, `prefix1`, ...
    pub(crate) fn switches(&mut self, prefix: &str, count: u64) -> Vec<SwitchId> {
        (0..count).map(|n| self.switch(format!("{prefix}{n}"))).collect()
    }

    /// Adds `count` parallel cables between two switches, each a link there and a link back.
    pub(crate) fn cables(&mut self, from: SwitchId, to: SwitchId, count: u16, properties: LinkProperties) {
        for _ in 0..count {
            self.cable(LinkEnd::Switch(from), LinkEnd::Switch(to), properties);
        }
    }

    /// Adds a link in one direction only.
    pub(crate) fn one_way(&mut self, from: SwitchId, to: SwitchId, properties: LinkProperties) {
        self.link(LinkEnd::Switch(from), LinkEnd::Switch(to), properties, None);
    }

    /// Joins a port of a host to a switch.
    pub(crate) fn host(
        &mut self,
        endpoint: EndpointId,
        switch: SwitchId,
        properties: LinkProperties,
    ) -> Result<(), NetworkError> {
        let (up, down) = self.cable(LinkEnd::Endpoint(endpoint), LinkEnd::Switch(switch), properties);
        self.endpoint(endpoint, [up, down])
    }

    /// Joins a port of a host to the switch that it sends to and the one that it receives from.
    pub(crate) fn one_way_host(
        &mut self,
        endpoint: EndpointId,
        to: SwitchId,
        from: SwitchId,
        properties: LinkProperties,
    ) -> Result<(), NetworkError> {
        let up = self.link(LinkEnd::Endpoint(endpoint), LinkEnd::Switch(to), properties, None);
        let down = self.link(LinkEnd::Switch(from), LinkEnd::Endpoint(endpoint), properties, None);
        self.endpoint(endpoint, [up, down])
    }

    /// Gives the hosts their ports: `per_switch` on each of `switches`, which they send to, and as many on the switch
    /// at the same position of `last`, which they receive from. The switches are used in blocks of one per port of a
    /// host.
    pub(crate) fn hosts(
        &mut self,
        switches: &[SwitchId],
        last: Option<&[SwitchId]>,
        per_switch: u16,
    ) -> Result<(), NetworkError> {
        let (ports, number) = (usize::from(self.config.nic.ports), switches.len());
        if !number.is_multiple_of(ports) {
            return Err(NetworkError::NotDivisible {
                what: "switches with hosts",
                number: number as u64,
                ports: self.config.nic.ports,
            });
        }
        for (place, &switch) in switches.iter().enumerate() {
            let (block, port) = (place / ports, place % ports);
            for n in 0..usize::from(per_switch) {
                let host = block * usize::from(per_switch) + n;
                let endpoint = EndpointId((host * ports + port) as u16);
                let properties = LinkProperties::of_host(self.config, endpoint);
                match last {
                    None => self.host(endpoint, switch, properties)?,
                    Some(last) => self.one_way_host(endpoint, switch, last[place], properties)?,
                }
            }
        }
        Ok(())
    }

    /// Orders the ports of every switch by number. `cables` has, for each cable in the order in which they were added, the
    /// numbers of the port where it begins and of the one where it ends.
    pub(crate) fn order_ports(&mut self, cables: &[[u8; 2]]) {
        let port = |link: LinkId, end: usize| {
            let (cable, direction) = (link.0 as usize / 2, link.0 as usize % 2);
            cables[cable][end ^ direction]
        };
        for switch in &mut self.switches {
            switch.outputs.sort_by_key(|&link| port(link, 0));
            switch.inputs.sort_by_key(|&link| port(link, 1));
        }
    }

    /// The network, if every port of a host is joined and all switches are connected.
    pub(crate) fn finish(self) -> Result<Network, NetworkError> {
        let mut endpoints = Vec::with_capacity(self.endpoints.len());
        for (n, endpoint) in self.endpoints.iter().enumerate() {
            let missing = || NetworkError::HostPortMissing { name: self.config.endpoint_name(EndpointId(n as u16)) };
            let [up, down] = endpoint.ok_or_else(missing)?;
            endpoints.push(Endpoint { up, down, up_place: 0, down_place: 0 });
        }
        let mut network =
            Network { config: self.config.clone(), links: self.links, switches: self.switches, endpoints };
        name_links(&mut network);
        connected(&network)?;
        layers::number(&mut network);
        Ok(network)
    }

    fn cable(&mut self, from: LinkEnd, to: LinkEnd, properties: LinkProperties) -> (LinkId, LinkId) {
        let (there, back) = (LinkId(self.links.len() as u32), LinkId(self.links.len() as u32 + 1));
        (self.link(from, to, properties, Some(back)), self.link(to, from, properties, Some(there)))
    }

    fn link(&mut self, from: LinkEnd, to: LinkEnd, properties: LinkProperties, reverse: Option<LinkId>) -> LinkId {
        let id = LinkId(self.links.len() as u32);
        if let LinkEnd::Switch(switch) = from {
            self.switches[usize::from(switch.0)].outputs.push(id);
        }
        if let LinkEnd::Switch(switch) = to {
            self.switches[usize::from(switch.0)].inputs.push(id);
        }
        let LinkProperties { rate, delay, marking, dimension, dateline } = properties;
        self.links.push(NetworkLink {
            name: String::new(),
            from,
            to,
            rate,
            delay,
            marking,
            reverse,
            dimension,
            dateline,
            stride: 1,
        });
        id
    }

    fn endpoint(&mut self, id: EndpointId, links: [LinkId; 2]) -> Result<(), NetworkError> {
        match self.endpoints[usize::from(id.0)].replace(links) {
            Some(_) => Err(NetworkError::HostPortTwice { name: self.config.endpoint_name(id) }),
            None => Ok(()),
        }
    }
}

impl TopologySize {
    pub(crate) fn check(&self) -> Result<(), NetworkError> {
        let links = self.links.saturating_add(self.endpoints.saturating_mul(2));
        let pairs = self.switches.saturating_mul(self.endpoints);
        let limits = [
            ("host ports", self.endpoints, MOST_ENDPOINTS),
            ("switches", self.switches, MOST_SWITCHES),
            ("links", links, MOST_LINKS),
            ("pairs of a switch and a host port", pairs, MOST_PAIRS),
        ];
        match limits.into_iter().find(|&(_, number, most)| number > most) {
            Some((what, number, most)) => Err(NetworkError::TooMany { what, number, most }),
            None => Ok(()),
        }
    }
}

/// Names each link after its ends, with a number where several are parallel.
pub(crate) fn name_links(network: &mut Network) {
    let mut parallel: HashMap<(LinkEnd, LinkEnd), [u32; 2]> = HashMap::new();
    for link in &network.links {
        parallel.entry((link.from, link.to)).or_default()[0] += 1;
    }
    for place in 0..network.links.len() {
        let (from, to) = (network.links[place].from, network.links[place].to);
        let mut name = format!("{}>{}", network.end_name(from), network.end_name(to));
        let [count, used] = parallel.get_mut(&(from, to)).expect("every link was counted");
        if *count > 1 {
            name.push_str(&format!(".{used}"));
            *used += 1;
        }
        network.links[place].name = name;
    }
}

/// Returns true if links, in whichever direction, join all switches.
fn connected(network: &Network) -> Result<(), NetworkError> {
    let mut reached = vec![false; network.switches.len()];
    let mut open = vec![0];
    reached[0] = true;
    while let Some(place) = open.pop() {
        let switch = &network.switches[place];
        for link in switch.inputs.iter().chain(&switch.outputs).map(|&link| network.link(link)) {
            for end in [link.from, link.to] {
                if let LinkEnd::Switch(next) = end
                    && !reached[usize::from(next.0)]
                {
                    reached[usize::from(next.0)] = true;
                    open.push(usize::from(next.0));
                }
            }
        }
    }
    match reached.iter().position(|reached| !reached) {
        None => Ok(()),
        Some(lost) => Err(NetworkError::NotConnected {
            from: network.switches[0].name.clone(),
            to: network.switches[lost].name.clone(),
        }),
    }
}
