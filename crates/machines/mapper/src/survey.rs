//! The exploration of a network, breadth first.
//!
//! Behind every port of a switch the mapper looks for a host, by a scout, and for a switch, by a message that turns
//! round there and comes back. A switch has no name, so one that was found by a new cable may be known already. Its
//! hosts tell: each has an address. A switch without hosts is compared with those known. A message goes to it by the
//! new route, and from there back by the route of the other one. As turns are counted from the port where a message
//! comes in, it comes back only if it is the same switch.

use crate::{
    Address, Far, Map, MappedSwitch, Route, Turn, back,
    probing::{ProbeAnswer, ProbeKind},
};
use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};

/// Most switches of a map. More are found only where answers are lost all the time.
const MOST_SWITCHES: usize = 4096;

/// A port of a known switch.
type SwitchPort = (usize, Turn);

/// An exploration under way.
pub(crate) struct Survey {
    address: Address,
    /// Largest number of ports of a switch.
    ports: Turn,
    switches: Vec<MappedSwitch>,
    hosts: BTreeMap<Address, SwitchPort>,
    /// Switches behind whose ports no switch was looked for.
    unexplored: VecDeque<usize>,
    /// Ports behind which there is a switch that may be known or not.
    found: VecDeque<SwitchPort>,
    task: SurveyTask,
}

/// What the probes under way are for.
enum SurveyTask {
    /// Hosts at a switch: that of the mapper, or the one behind a port.
    Hosts(Option<SwitchPort>, Vec<Turn>),
    /// Switches behind the ports of a switch.
    Switches(usize, Vec<Turn>),
    /// The switch behind a port, compared with those at port 0 of known ones: with each, its port that it would be.
    Compare(SwitchPort, Vec<(usize, Turn)>),
}

impl Survey {
    /// Begins at the switch of the mapper.
    pub(crate) fn new(address: Address, ports: u16) -> Self {
        let ports = Turn::try_from(ports).unwrap_or(Turn::MAX / 2);
        Self {
            address,
            ports,
            switches: Vec::new(),
            hosts: BTreeMap::new(),
            unexplored: VecDeque::new(),
            found: VecDeque::new(),
            task: SurveyTask::Hosts(None, turns(ports, &BTreeMap::new())),
        }
    }

    /// The probes of the present task.
    pub(crate) fn probes(&self) -> Vec<(ProbeKind, Route)> {
        let (purpose, routes): (_, Vec<Route>) = match &self.task {
            SurveyTask::Hosts(place, turns) => {
                let there = self.route(*place);
                (ProbeKind::Scout, turns.iter().map(|&turn| [&there[..], &[turn]].concat()).collect())
            }
            SurveyTask::Switches(switch, turns) => {
                let switch = &self.switches[*switch];
                (ProbeKind::Loop, turns.iter().map(|&turn| switch.there_and_back(turn)).collect())
            }
            SurveyTask::Compare(place, others) => {
                let there = self.route(Some(*place));
                let route = |&(other, turn): &(usize, Turn)| {
                    let home = back(&self.switches[other].path);
                    there.iter().copied().chain([turn]).chain(home).collect()
                };
                (ProbeKind::Loop, others.iter().map(route).collect())
            }
        };
        routes.into_iter().map(|route| (purpose, route)).collect()
    }

    /// True if these answers are enough, though some may come yet: they tell which switch it is.
    pub(crate) fn is_enough(&self, answers: impl Iterator<Item = Option<ProbeAnswer>>) -> bool {
        match &self.task {
            SurveyTask::Hosts(Some(_), _) => self.known_host(answers).is_some(),
            SurveyTask::Compare(..) => answers.into_iter().any(|answer| answer == Some(ProbeAnswer::Done)),
            SurveyTask::Hosts(None, _) | SurveyTask::Switches(..) => false,
        }
    }

    /// Takes the answers to the probes of the task, and begins the next one; the map if there is none.
    pub(crate) fn take(&mut self, answers: &[Option<ProbeAnswer>]) -> Option<Map> {
        match core::mem::replace(&mut self.task, SurveyTask::Switches(0, Vec::new())) {
            SurveyTask::Hosts(place, turns) => self.take_hosts(place, &turns, answers),
            SurveyTask::Switches(switch, turns) => {
                let switches = turns.iter().zip(answers).filter(|&(_, answer)| *answer == Some(ProbeAnswer::Done));
                self.found.extend(switches.map(|(&turn, _)| (switch, turn)));
                self.go_on()
            }
            SurveyTask::Compare(place, others) => {
                match others.iter().zip(answers).find(|&(_, answer)| *answer == Some(ProbeAnswer::Done)) {
                    Some((&(other, turn), _)) => self.join(place, (other, -turn)),
                    None => self.add(Some(place), BTreeMap::new()),
                }
                self.go_on()
            }
        }
    }

    fn take_hosts(
        &mut self,
        place: Option<SwitchPort>,
        turns: &[Turn],
        answers: &[Option<ProbeAnswer>],
    ) -> Option<Map> {
        if let (Some(place), Some((index, (switch, port)))) = (place, self.known_host(answers.iter().copied())) {
            self.join(place, (switch, port - turns[index]));
            return self.go_on();
        }
        let host = |(&turn, answer): (&Turn, &Option<ProbeAnswer>)| match answer {
            &Some(ProbeAnswer::Host(address)) => Some((turn, address)),
            _ => None,
        };
        let hosts: BTreeMap<_, _> = turns.iter().zip(answers).filter_map(host).collect();
        match place {
            Some(place) if hosts.is_empty() && self.begin_to_compare(place) => None,
            _ => {
                self.add(place, hosts);
                self.go_on()
            }
        }
    }

    /// The first answer of a host whose place is known: its index, and that place.
    fn known_host(&self, answers: impl Iterator<Item = Option<ProbeAnswer>>) -> Option<(usize, SwitchPort)> {
        let place = |(index, answer)| match answer {
            Some(ProbeAnswer::Host(address)) => self.hosts.get(&address).map(|&place| (index, place)),
            _ => None,
        };
        answers.enumerate().find_map(place)
    }

    /// Compares the switch behind a port with all known ones without hosts; returns false if there is none.
    fn begin_to_compare(&mut self, place: SwitchPort) -> bool {
        let turns = turns(self.ports, &BTreeMap::from([(0, Far::Switch(place.0, place.1))]));
        let has_hosts = |switch: &MappedSwitch| switch.ports.values().any(|far| matches!(far, Far::Host(_)));
        let others = (0..self.switches.len()).filter(|&index| !has_hosts(&self.switches[index]));
        let others: Vec<_> = others.flat_map(|index| turns.iter().map(move |&turn| (index, turn))).collect();
        let any = !others.is_empty();
        if any {
            self.task = SurveyTask::Compare(place, others);
        }
        any
    }

    /// The next task; the map if nothing is left to do.
    fn go_on(&mut self) -> Option<Map> {
        while let Some((switch, port)) = self.found.pop_front() {
            if !self.switches[switch].ports.contains_key(&port) && self.switches.len() < MOST_SWITCHES {
                let turns = turns(self.ports, &BTreeMap::from([(0, Far::Switch(switch, port))]));
                self.task = SurveyTask::Hosts(Some((switch, port)), turns);
                return None;
            }
        }
        if let Some(switch) = self.unexplored.pop_front() {
            self.task = SurveyTask::Switches(switch, turns(self.ports, &self.switches[switch].ports));
            return None;
        }
        Some(Map { leader: self.address, switches: core::mem::take(&mut self.switches) })
    }

    /// The route to the switch behind a port, or to the first one.
    fn route(&self, place: Option<SwitchPort>) -> Route {
        place.map(|(switch, port)| self.switches[switch].to(port)).unwrap_or_default()
    }

    /// A cable leads from a port of a known switch to a port of another one.
    fn join(&mut self, one: SwitchPort, other: SwitchPort) {
        self.switches[one.0].ports.insert(one.1, Far::Switch(other.0, other.1));
        self.switches[other.0].ports.insert(other.1, Far::Switch(one.0, one.1));
    }

    /// Adds a new switch with its hosts. Its port 0 leads to a port of a known one, or to the mapper.
    fn add(&mut self, place: Option<SwitchPort>, hosts: BTreeMap<Turn, Address>) {
        let (index, path) = (self.switches.len(), self.route(place));
        let own = [(0, self.address)].into_iter().filter(|_| place.is_none());
        let hosts: Vec<_> = hosts.into_iter().chain(own).collect();
        self.hosts.extend(hosts.iter().map(|&(port, address)| (address, (index, port))));
        let ports = hosts.into_iter().map(|(port, address)| (port, Far::Host(address))).collect();
        self.switches.push(MappedSwitch { path, ports });
        if let Some(place) = place {
            self.join(place, (index, 0));
        }
        self.unexplored.push_back(index);
    }
}

/// The ports of a switch behind which something unknown may be, nearest to port 0 first.
fn turns(ports: Turn, known: &BTreeMap<Turn, Far>) -> Vec<Turn> {
    let (lowest, highest) = (known.keys().next().copied().unwrap_or(0), known.keys().next_back().copied().unwrap_or(0));
    let mut turns: Vec<_> =
        (highest - (ports - 1)..lowest + ports).filter(|turn| *turn != 0 && !known.contains_key(turn)).collect();
    turns.sort_by_key(|turn| (turn.abs(), *turn));
    turns
}
