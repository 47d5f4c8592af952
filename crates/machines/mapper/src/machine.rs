//! The mapper of one port of a host.

use crate::{
    Address, Map, Message, Route, Transmit, back,
    probing::{ProbeAnswer, ProbeKind, ProbeTransmit, Probing},
    survey::Survey,
};
use alloc::{boxed::Box, collections::VecDeque, sync::Arc, vec::Vec};
use evb_core::{Span, Time};

/// Settings of all mappers of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Largest number of ports of a switch.
    pub ports: u16,
    /// Time from the end of one check of the network to the next one.
    pub interval: Span,
    /// Time without a word of its leader after which a host takes it for gone; longer than it takes to explore the
    /// network.
    pub patience: Span,
    /// Time after which a probe is sent again, or has failed.
    pub timeout: Span,
    /// How often a probe is sent, at most; at least 1.
    pub tries: u32,
    /// Probes under way at once; at least 1.
    pub window: usize,
}

/// The mapper of one port of a host: a machine without I/O. A driver calls a `handle_` function, then sends all of
/// [`poll_transmit`](Self::poll_transmit), takes [`poll_map`](Self::poll_map), and calls
/// [`handle_timeout`](Self::handle_timeout) at the time of [`poll_timeout`](Self::poll_timeout), the first time at the
/// start.
pub struct Mapper {
    settings: Settings,
    address: Address,
    role: MapperRole,
    /// The number of the next probe.
    number: u32,
    now: Time,
    answers: VecDeque<Transmit>,
    map: Option<Arc<Map>>,
    elections: u64,
    surveys: u64,
}

enum MapperRole {
    /// It has just been made.
    Starts,
    /// It leads, as far as it knows.
    Leads(LeaderTask, Probing),
    /// Another mapper leads. It was heard at that time.
    Follows(Address, Time),
}

/// The work of a leader.
enum LeaderTask {
    /// It explores the network.
    Survey(Box<Survey>),
    /// It sends the map to all hosts.
    Publish(Arc<Map>),
    /// It waits until the next check of the map.
    Wait(Arc<Map>, Time),
    /// It checks the map against the network.
    Check(Arc<Map>),
}

impl Mapper {
    /// A mapper that knows nothing. It leads until it hears of a lower address.
    #[must_use]
    pub fn new(settings: Settings, address: Address) -> Self {
        Self {
            settings,
            address,
            role: MapperRole::Starts,
            number: 0,
            now: Time::ZERO,
            answers: VecDeque::new(),
            map: None,
            elections: 0,
            surveys: 0,
        }
    }

    /// The leader that it knows, which may be itself.
    #[must_use]
    pub fn leader(&self) -> Address {
        match self.role {
            MapperRole::Starts | MapperRole::Leads(..) => self.address,
            MapperRole::Follows(leader, _) => leader,
        }
    }

    /// How often it began to lead.
    #[must_use]
    pub fn elections(&self) -> u64 {
        self.elections
    }

    /// How often it began to explore the network.
    #[must_use]
    pub fn surveys(&self) -> u64 {
        self.surveys
    }

    /// Takes a message that has come to the end of its route.
    pub fn handle_message(&mut self, now: Time, message: Message) {
        self.now = now;
        match message {
            Message::Scout { number, mapper, route } => {
                self.hear_of(mapper, now);
                let silent_for = match self.role {
                    MapperRole::Follows(_, heard) => now.since(heard),
                    MapperRole::Starts | MapperRole::Leads(..) => Span::ZERO,
                };
                let message = Message::Reply { number, host: self.address, leader: self.leader(), silent_for };
                self.answers.push_back(Transmit { route: back(&route).collect(), message });
            }
            Message::Loop { number, mapper } if mapper == self.address => self.answer(number, ProbeAnswer::Done),
            Message::Loop { .. } => {}
            Message::Reply { number, host, leader, silent_for } => {
                self.hear_of(leader, Time(now.0.saturating_sub(silent_for.0)));
                self.answer(number, ProbeAnswer::Host(host));
            }
            Message::Map { number, map, route } => {
                self.hear_of(map.leader, now);
                if self.leader() == map.leader {
                    self.map = Some(map);
                    self.answers
                        .push_back(Transmit { route: back(&route).collect(), message: Message::Taken { number } });
                }
            }
            Message::Taken { number } => self.answer(number, ProbeAnswer::Done),
        }
        self.go_on();
    }

    /// Takes note that the time of [`poll_timeout`](Self::poll_timeout) has come. An early call is harmless.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        match &mut self.role {
            MapperRole::Starts => self.begin_to_lead(),
            MapperRole::Follows(_, heard) if now.since(*heard) >= self.settings.patience => self.begin_to_lead(),
            MapperRole::Follows(..) => {}
            MapperRole::Leads(work, probing) => {
                probing.pass(now);
                if let LeaderTask::Wait(map, at) = work
                    && *at <= now
                {
                    let map = map.clone();
                    let hosts = map.hosts().map(|(_, route)| (ProbeKind::Scout, route));
                    let probes: Vec<_> = hosts.chain(map.loops().map(|route| (ProbeKind::Loop, route))).collect();
                    self.lead(LeaderTask::Check(map), probes);
                }
            }
        }
        self.go_on();
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        let MapperRole::Leads(work, probing) = &mut self.role else { return None };
        let ProbeTransmit { number, purpose, route } = probing.send(self.settings, self.now)?;
        let mapper = self.address;
        let message = match (purpose, work) {
            (ProbeKind::Map, LeaderTask::Publish(map)) => {
                Message::Map { number, map: map.clone(), route: route.clone() }
            }
            (ProbeKind::Loop, _) => Message::Loop { number, mapper },
            (ProbeKind::Scout | ProbeKind::Map, _) => Message::Scout { number, mapper, route: route.clone() },
        };
        Some(Transmit { route, message })
    }

    /// The newest map, once.
    pub fn poll_map(&mut self) -> Option<Arc<Map>> {
        self.map.take()
    }

    /// Time of the next [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        match &self.role {
            MapperRole::Starts => Time::ZERO,
            MapperRole::Follows(_, heard) => *heard + self.settings.patience,
            MapperRole::Leads(LeaderTask::Wait(_, at), _) => *at,
            MapperRole::Leads(_, probing) => probing.deadline().unwrap_or(Time::MAX),
        }
    }

    /// Another mapper leads, or did at some time.
    fn hear_of(&mut self, leader: Address, at: Time) {
        let is_gone = self.now.since(at) >= self.settings.patience;
        let is_better = leader < self.leader() && !is_gone;
        match &mut self.role {
            MapperRole::Follows(known, heard) if *known == leader => *heard = at.max(*heard),
            role if is_better => *role = MapperRole::Follows(leader, at),
            _ => {}
        }
    }

    fn answer(&mut self, number: u32, answer: ProbeAnswer) {
        if let MapperRole::Leads(_, probing) = &mut self.role {
            probing.answer(number, answer);
        }
    }

    /// Does what follows from the answers that are there.
    fn go_on(&mut self) {
        loop {
            let MapperRole::Leads(work, probing) = &mut self.role else { return };
            match work {
                LeaderTask::Survey(survey) if probing.is_done() || survey.is_enough(probing.answers()) => {
                    let answers: Vec<_> = probing.answers().collect();
                    match survey.take(&answers) {
                        Some(map) => self.tell(Arc::new(map)),
                        None => self.probe(),
                    }
                }
                LeaderTask::Publish(map) if probing.is_done() => {
                    let work = LeaderTask::Wait(map.clone(), self.now + self.settings.interval);
                    self.lead(work, []);
                    return;
                }
                LeaderTask::Check(map) if !is_like(map, probing.answers()) => self.survey(),
                LeaderTask::Check(map) if probing.is_done() => {
                    let work = LeaderTask::Wait(map.clone(), self.now + self.settings.interval);
                    self.lead(work, []);
                    return;
                }
                _ => return,
            }
        }
    }

    fn begin_to_lead(&mut self) {
        self.elections += 1;
        self.survey();
    }

    /// Begins to explore the network.
    fn survey(&mut self) {
        self.surveys += 1;
        let survey = Survey::new(self.address, self.settings.ports);
        let probes = survey.probes();
        self.lead(LeaderTask::Survey(Box::new(survey)), probes);
    }

    /// Sends the probes of the present task of the survey.
    fn probe(&mut self) {
        if let MapperRole::Leads(LeaderTask::Survey(survey), probing) = &mut self.role {
            *probing = Probing::new(self.settings, self.number, survey.probes());
            self.number = probing.next_number();
        }
    }

    /// Sends a new map to all hosts, itself first.
    fn tell(&mut self, map: Arc<Map>) {
        self.map = Some(map.clone());
        let probes: Vec<_> = map.hosts().map(|(_, route)| (ProbeKind::Map, route)).collect();
        self.lead(LeaderTask::Publish(map), probes);
    }

    fn lead(&mut self, work: LeaderTask, probes: impl IntoIterator<Item = (ProbeKind, Route)>) {
        let probing = Probing::new(self.settings, self.number, probes);
        self.number = probing.next_number();
        self.role = MapperRole::Leads(work, probing);
    }
}

/// True if the answers of a look, as far as they are there, are those of the map: each host at its place, and then
/// each cable.
fn is_like(map: &Map, answers: impl Iterator<Item = Option<ProbeAnswer>>) -> bool {
    let hosts = map.hosts().map(|(address, _)| ProbeAnswer::Host(address));
    let expected = hosts.chain(core::iter::repeat(ProbeAnswer::Done));
    answers.zip(expected).all(|(answer, expected)| answer.is_none_or(|answer| answer == expected))
}
