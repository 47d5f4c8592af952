//! Mappers on networks of switches that know nothing: who leads, what the map says, and what happens when parts fail.

use evb_core::{Span, Time};
use evb_mapper::{Address, Far, Map, Mapper, Message, Settings, Turn};
use proptest::prelude::*;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque},
    sync::Arc,
};

/// Ports of each switch.
const PORTS: usize = 8;
/// Time of a message on its way.
const WAY: Span = Span::from_micros(5);

const SETTINGS: Settings = Settings {
    ports: PORTS as u16,
    interval: Span::from_millis(20),
    patience: Span::from_millis(100),
    timeout: Span::from_millis(1),
    tries: 3,
    window: 16,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Host(usize),
    Port(usize, usize),
}

/// A network with a mapper at each host.
struct World {
    /// Both directions of each cable.
    cables: BTreeMap<End, End>,
    mappers: Vec<Mapper>,
    maps: Vec<Option<Arc<Map>>>,
    dead: BTreeSet<usize>,
    /// One message in this many is lost; no message if 0.
    lose_one_in: u64,
    sent: u64,
    under_way: BinaryHeap<Reverse<(Time, u64, usize)>>,
    messages: BTreeMap<u64, Message>,
    now: Time,
}

impl World {
    fn new(hosts: usize, cables: &[(End, End)]) -> Self {
        let cables = cables.iter().flat_map(|&(one, other)| [(one, other), (other, one)]).collect();
        // The leader is not the first host.
        let address = |host: usize| Address(((host as u64 + 3) * 7919) % 1009);
        Self {
            cables,
            mappers: (0..hosts).map(|host| Mapper::new(SETTINGS, address(host))).collect(),
            maps: vec![None; hosts],
            dead: BTreeSet::new(),
            lose_one_in: 0,
            sent: 0,
            under_way: BinaryHeap::new(),
            messages: BTreeMap::new(),
            now: Time::ZERO,
        }
    }

    /// The host at the end of a route, if it leads exactly to one.
    fn walk(&self, host: usize, route: &[Turn]) -> Option<usize> {
        let mut at = *self.cables.get(&End::Host(host))?;
        for &turn in route {
            let End::Port(switch, port) = at else { return None };
            let out = port.checked_add_signed(turn.into()).filter(|&out| out < PORTS)?;
            at = *self.cables.get(&End::Port(switch, out))?;
        }
        match at {
            End::Host(host) => Some(host),
            End::Port(..) => None,
        }
    }

    fn cut(&mut self, end: End) {
        if let Some(other) = self.cables.remove(&end) {
            self.cables.remove(&other);
        }
    }

    fn drain(&mut self, host: usize) {
        while let Some(out) = self.mappers[host].poll_transmit() {
            self.sent += 1;
            let is_lost = self.lose_one_in > 0 && self.sent.is_multiple_of(self.lose_one_in);
            if let Some(to) = self.walk(host, &out.route).filter(|to| !is_lost && !self.dead.contains(to)) {
                self.messages.insert(self.sent, out.message);
                self.under_way.push(Reverse((self.now + WAY, self.sent, to)));
            }
        }
        if let Some(map) = self.mappers[host].poll_map() {
            self.maps[host] = Some(map);
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        let live =
            |world: &Self| (0..world.mappers.len()).filter(|host| !world.dead.contains(host)).collect::<Vec<_>>();
        loop {
            let arrival = self.under_way.peek().map_or(Time::MAX, |Reverse((at, ..))| *at);
            let timer = live(self).into_iter().map(|host| (self.mappers[host].poll_timeout(), host)).min();
            let (at, host) = timer.expect("a host is left");
            if arrival.min(at) > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(arrival.min(at));
            if arrival <= at {
                let Some(Reverse((_, number, to))) = self.under_way.pop() else { return };
                let message = self.messages.remove(&number).expect("it is under way");
                if !self.dead.contains(&to) {
                    self.mappers[to].handle_message(self.now, message);
                    self.drain(to);
                }
            } else {
                self.mappers[host].handle_timeout(self.now);
                self.drain(host);
            }
        }
    }

    /// All ends that a host reaches, itself included.
    fn reached(&self, host: usize) -> BTreeSet<End> {
        let mut reached = BTreeSet::from([End::Host(host)]);
        let mut open = VecDeque::from([End::Host(host)]);
        while let Some(end) = open.pop_front() {
            let beside: Vec<_> = match end {
                End::Host(_) => vec![end],
                End::Port(switch, _) => (0..PORTS).map(|port| End::Port(switch, port)).collect(),
            };
            for end in beside.into_iter().filter_map(|end| self.cables.get(&end).map(|far| [end, *far])).flatten() {
                if reached.insert(end) {
                    open.push_back(end);
                }
            }
        }
        reached
    }

    /// Holds the map of a host against the network that it reaches.
    fn check(&self, host: usize) {
        let map = self.maps[host].as_ref().expect("it has a map");
        let address = |host: usize| self.address(host);
        let leader = (0..self.mappers.len()).find(|&host| address(host) == map.leader).expect("it is a host");
        let reached = self.reached(host);
        let lowest = reached.iter().filter_map(|end| match end {
            End::Host(host) => Some(address(*host)),
            End::Port(..) => None,
        });
        assert_eq!(Some(map.leader), lowest.min(), "the lowest address leads");
        let mut places = vec![None; map.switches.len()];
        let Some(&End::Port(switch, port)) = self.cables.get(&End::Host(leader)) else {
            return assert!(map.switches.iter().all(|switch| switch.ports.len() == 1), "an island: {map:?}");
        };
        places[0] = Some((switch, port));
        let mut seen = BTreeSet::new();
        for (index, mapped) in map.switches.iter().enumerate() {
            let (switch, first) = places[index].expect("switches are found from known ones");
            let port_at = |turn: Turn| first.checked_add_signed(turn.into()).expect("a port");
            for (&turn, far) in &mapped.ports {
                let end = End::Port(switch, port_at(turn));
                let truth = self.cables.get(&end).unwrap_or_else(|| panic!("nothing is at {end:?}"));
                seen.extend([end, *truth]);
                match (*far, *truth) {
                    (Far::Host(far), End::Host(host)) => assert_eq!(far, address(host)),
                    (Far::Switch(other, turn), End::Port(switch, port)) => {
                        let first = port.checked_add_signed((-turn).into()).expect("a port");
                        assert_eq!(*places[other].get_or_insert((switch, first)), (switch, first), "{map:?}");
                    }
                    (far, truth) => panic!("{far:?} is {truth:?}"),
                }
            }
        }
        let places: BTreeSet<_> = places.into_iter().flatten().map(|(switch, _)| switch).collect();
        assert_eq!(places.len(), map.switches.len(), "no switch is there twice");
        assert_eq!(seen, reached);
    }

    fn address(&self, host: usize) -> Address {
        Address(((host as u64 + 3) * 7919) % 1009)
    }

    fn check_all(&self) {
        (0..self.mappers.len()).filter(|host| !self.dead.contains(host)).for_each(|host| self.check(host));
    }
}

/// Leaves with hosts at their lower ports, each with a cable to every spine.
fn clos(leaves: usize, hosts: usize, spines: usize) -> (usize, Vec<(End, End)>) {
    let of_leaf = |leaf: usize| {
        let down = (0..hosts).map(move |host| (End::Host(leaf * hosts + host), End::Port(leaf, host)));
        let up = (0..spines).map(move |spine| (End::Port(leaf, hosts + spine), End::Port(leaves + spine, leaf)));
        down.chain(up).collect::<Vec<_>>()
    };
    (leaves * hosts, (0..leaves).flat_map(of_leaf).collect())
}

#[test]
fn all_hosts_get_the_map_of_the_leader() {
    let (hosts, cables) = clos(4, 3, 3);
    let mut world = World::new(hosts, &cables);
    world.run(Span::from_millis(100));
    world.check_all();
}

#[test]
fn a_cable_that_fails_is_left_out_of_the_next_map() {
    let (hosts, cables) = clos(4, 3, 3);
    let mut world = World::new(hosts, &cables);
    world.run(Span::from_millis(200));
    for end in [End::Port(1, 4), End::Port(2, 0)] {
        world.cut(end);
        world.run(Span::from_millis(200));
        world.check_all();
    }
}

#[test]
fn another_host_leads_when_the_leader_dies() {
    let (hosts, cables) = clos(4, 3, 3);
    let mut world = World::new(hosts, &cables);
    world.run(Span::from_millis(200));
    let leader = (0..hosts).min_by_key(|&host| world.address(host)).unwrap();
    world.dead.insert(leader);
    world.cut(End::Host(leader));
    world.run(Span::from_millis(600));
    world.check_all();
}

#[test]
fn a_quiet_network_is_explored_once() {
    let (hosts, cables) = clos(4, 3, 3);
    let mut world = World::new(hosts, &cables);
    world.run(Span::from_millis(1000));
    let leads: Vec<_> =
        world.mappers.iter().filter(|mapper| world.maps[0].as_ref().unwrap().leader == mapper.leader()).collect();
    assert_eq!(leads.len(), hosts, "all follow one");
    let surveys: u64 = world.mappers.iter().map(Mapper::surveys).sum();
    assert_eq!(surveys, hosts as u64, "each began once, at the start");
}

#[test]
fn lost_messages_are_sent_again() {
    let (hosts, cables) = clos(3, 2, 2);
    let mut world = World::new(hosts, &cables);
    world.lose_one_in = 13;
    world.run(Span::from_millis(300));
    world.check_all();
}

prop_compose! {
    /// Any network: cables between ports drawn at random, and hosts at others.
    fn networks()(
        switches in 1_usize..7,
        seed in proptest::collection::vec((0_usize..1000, 0_usize..1000), 0..25),
        hosts in 1_usize..12,
        cut in 0_usize..1000,
    ) -> (usize, Vec<(End, End)>, usize) {
        let mut free: Vec<_> = (0..switches * PORTS).map(|port| End::Port(port / PORTS, port % PORTS)).collect();
        let mut cables = Vec::new();
        let hosts = hosts.min(free.len());
        for host in 0..hosts {
            let place = seed.get(host).map_or(host * 31, |&(place, _)| place) % free.len();
            cables.push((End::Host(host), free.swap_remove(place)));
        }
        for &(one, other) in &seed {
            if free.len() < 2 {
                break;
            }
            let one = free.swap_remove(one % free.len());
            let other = free.swap_remove(other % free.len());
            // A cable from a switch to itself says nothing.
            if !matches!((one, other), (End::Port(one, _), End::Port(other, _)) if one == other) {
                cables.push((one, other));
            }
        }
        (hosts, cables, cut)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_network_is_mapped_and_mapped_again((hosts, cables, cut) in networks()) {
        let mut world = World::new(hosts, &cables);
        world.run(Span::from_millis(300));
        world.check_all();
        world.cut(cables[cut % cables.len()].0);
        world.run(Span::from_millis(800));
        world.check_all();
    }
}
