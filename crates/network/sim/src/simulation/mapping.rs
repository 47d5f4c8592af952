//! Mappers of the hosts: their messages go through the network, and their maps determine the routes.

use super::{Simulation, size};
use crate::{event::Event, message::MessageId, packet::Packet};
use evb_core::{NodeId, Stream, Time, stream};
use evb_fabric::{EndpointId, LinkId, MapperConfig, Network, Routes, SwitchId};
use evb_mapper::{Address, Far, Map, Mapper, Message, Settings};
use evb_record::{KnownMap, Mapping as Record};
use rand::RngExt;
use std::{collections::BTreeMap, sync::Arc};

/// The purpose of the random stream of the addresses.
const ADDRESSES: u64 = 103;

/// The mappers of all ports of hosts.
pub(crate) struct Mapping {
    config: MapperConfig,
    mappers: Vec<Mapper>,
    ports: BTreeMap<Address, EndpointId>,
    /// Time until which each host is busy with messages of its mapper.
    busy_until: Vec<Time>,
    /// Time at which each mapper is to be called, or the end of time.
    timeout_at: Vec<Time>,
    /// Mappers that are to be called.
    timeouts: usize,
    messages: u64,
    /// All maps that hosts have had, in the order of their making.
    maps: Vec<(Arc<Map>, MapDistribution)>,
    /// The links of each set of routes, in the order of the views of the network.
    views: Vec<Vec<bool>>,
}

/// The distribution of a map to the hosts.
#[derive(Clone, Copy)]
struct MapDistribution {
    made: Time,
    last: Time,
    hosts: u64,
    view: u16,
}

impl Mapping {
    /// The mappers of a network in which routes over all links are known at the start.
    pub(super) fn new(config: MapperConfig, network: &Network, seed: u64) -> Self {
        let ports = network.switches.iter().map(|switch| switch.outputs.len()).max().unwrap_or(0);
        let settings = Settings {
            ports: ports as u16,
            interval: config.interval,
            patience: config.patience,
            timeout: config.timeout,
            tries: config.tries,
            window: config.window as usize,
        };
        let addresses = addresses(&mut stream(seed, NodeId(0), ADDRESSES), network.endpoints.len());
        let ends = (0..addresses.len()).map(|end| EndpointId(end as u16));
        Self {
            config,
            mappers: addresses.iter().map(|&address| Mapper::new(settings, address)).collect(),
            ports: addresses.iter().copied().zip(ends).collect(),
            busy_until: vec![Time::ZERO; addresses.len()],
            timeout_at: vec![Time::MAX; addresses.len()],
            timeouts: 0,
            messages: 0,
            maps: Vec::new(),
            views: vec![vec![true; network.links.len()]],
        }
    }

    /// The record of the mappers at the end.
    pub(crate) fn record(&self, network: &Network) -> Record {
        let map = |(map, distribution): &(Arc<Map>, MapDistribution)| {
            let all: usize = map.switches.iter().map(|switch| switch.ports.len()).sum();
            let hosts = map.hosts().count() + 1;
            KnownMap {
                leader: network.config.endpoint_name(self.ports[&map.leader]),
                made_s: distribution.made.0 as f64 * 1e-12,
                known_s: distribution.last.0 as f64 * 1e-12,
                known_to: distribution.hosts,
                switches: map.switches.len() as u64,
                hosts: hosts as u64,
                cables: (all - hosts) as u64 / 2,
            }
        };
        Record {
            messages: self.messages,
            elections: self.mappers.iter().map(Mapper::elections).sum(),
            surveys: self.mappers.iter().map(Mapper::surveys).sum(),
            maps: self.maps.iter().map(map).collect(),
        }
    }

    /// Time at which the last host knew the first map that was made after `time`; `None` if there is none.
    pub(crate) fn known_after(&self, time: Time) -> Option<Time> {
        self.maps.iter().find(|(_, distribution)| distribution.made > time).map(|(_, distribution)| distribution.last)
    }

    /// Makes the host busy with a message; returns the time at which it is done.
    fn work(&mut self, now: Time, end: EndpointId) -> Time {
        let until = &mut self.busy_until[usize::from(end.0)];
        *until = now.max(*until) + self.config.overhead;
        *until
    }

    /// Bytes of a message on the wire.
    fn bytes(&self, message: &Message) -> u32 {
        size(match message {
            Message::Map { map, .. } => self.config.probe.0 + map.bytes(),
            _ => self.config.probe.0,
        })
    }

    /// A host has a map: the number of its routes, and the links of these if they are new.
    fn know(&mut self, now: Time, map: Arc<Map>, network: &Network) -> (u16, Option<&[bool]>) {
        if let Some((_, distribution)) = self.maps.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &map)) {
            distribution.last = now;
            distribution.hosts += 1;
            return (distribution.view, None);
        }
        let usable = usable(network, &map, self.ports[&map.leader]);
        let known = self.views.iter().position(|view| *view == usable);
        let view = known.unwrap_or(self.views.len());
        self.maps.push((map, MapDistribution { made: now, last: now, hosts: 1, view: view as u16 }));
        if known.is_some() {
            return (view as u16, None);
        }
        self.views.push(usable);
        (view as u16, self.views.last().map(Vec::as_slice))
    }
}

impl Simulation<'_> {
    /// Starts the mappers.
    pub(super) fn start_mapping(&mut self) {
        for end in 0..self.mapping.as_ref().map_or(0, |mapping| mapping.mappers.len()) {
            self.drain_mapper(EndpointId(end as u16));
        }
    }

    /// The deadline of a mapper has come.
    pub(super) fn mapper_timeout(&mut self, end: u16) {
        let now = self.net.queue.now();
        let Some(mapping) = &mut self.mapping else { return };
        mapping.timeouts -= 1;
        let at = &mut mapping.timeout_at[usize::from(end)];
        if *at != now {
            return;
        }
        *at = Time::MAX;
        // When nothing else is going to happen, the mappers keep no simulation alive.
        if self.net.queue.len() > mapping.timeouts {
            mapping.mappers[usize::from(end)].handle_timeout(now);
            self.drain_mapper(EndpointId(end));
        }
    }

    /// A mapper's message has arrived at a host, whose mapper handles it when it has time.
    pub(super) fn deliver_to_mapper(&mut self, now: u64, packet: Packet) {
        let (id, end) = (packet.message, self.net.mapper_message_at(packet.message));
        if packet.corrupted {
            self.net.take_mapper_message(id);
        } else if let Some(mapping) = &mut self.mapping {
            let at = mapping.work(Time(now), end);
            self.net.queue.push(at, Event::MapperMessage { message: id });
        }
    }

    /// A mapper handles a message.
    pub(super) fn handle_mapper_message(&mut self, id: MessageId) {
        let (now, end) = (self.net.queue.now(), self.net.mapper_message_at(id));
        if let (Some(message), Some(mapping)) = (self.net.take_mapper_message(id), &mut self.mapping) {
            mapping.mappers[usize::from(end.0)].handle_message(now, message);
            self.drain_mapper(end);
        }
    }

    fn drain_mapper(&mut self, end: EndpointId) {
        let (now, place) = (self.net.queue.now(), usize::from(end.0));
        let Some(mapping) = &mut self.mapping else { return };
        while let Some(transmit) = mapping.mappers[place].poll_transmit() {
            mapping.messages += 1;
            let (at, wire) = (mapping.work(now, end), mapping.bytes(&transmit.message));
            self.net.send_by_source_route(at, end, wire, transmit);
        }
        if let Some(map) = mapping.mappers[place].poll_map() {
            let (view, new) = mapping.know(now, map, &self.net.network);
            if let Some(usable) = new {
                self.net.add_view(Routes::find(&self.net.network, &|link| usable[link.0 as usize]));
            }
            self.net.set_view(end, view);
        }
        let (at, planned) = (mapping.mappers[place].poll_timeout().max(now), &mut mapping.timeout_at[place]);
        if at < *planned {
            *planned = at;
            mapping.timeouts += 1;
            self.net.queue.push(at, Event::MapperTimeout { endpoint: end.0 });
        }
    }
}

/// Addresses of 48 bits, all different.
fn addresses(random: &mut Stream, count: usize) -> Vec<Address> {
    let mut addresses: Vec<Address> = Vec::with_capacity(count);
    while addresses.len() < count {
        let address = Address(random.random_range(0..1 << 48));
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// The links that are on a map. Its first switch is that of its leader; the others follow from cable to cable. Ports
/// that do not exist are left out: the mapper was wrong.
fn usable(network: &Network, map: &Map, leader: EndpointId) -> Vec<bool> {
    let mut usable = vec![false; network.links.len()];
    let mut places: Vec<Option<(SwitchId, usize)>> = vec![None; map.switches.len()];
    let entrance = |link: LinkId| Some((network.link(link).to.switch()?, network.port_in(link)?));
    places[0] = entrance(network.endpoint(leader).up);
    for (index, mapped) in map.switches.iter().enumerate() {
        let Some((switch, first)) = places[index] else { continue };
        for (&turn, far) in &mapped.ports {
            let out = first.checked_add_signed(turn.into()).and_then(|out| network.switch(switch).outputs.get(out));
            let Some(&link) = out else { continue };
            let both = [Some(link), network.link(link).reverse];
            both.into_iter().flatten().for_each(|link| usable[link.0 as usize] = true);
            if let (&Far::Switch(other, turn), Some((far, port))) = (far, entrance(link))
                && let Some(first) = port.checked_add_signed((-turn).into())
            {
                places[other].get_or_insert((far, first));
            }
        }
    }
    usable
}
