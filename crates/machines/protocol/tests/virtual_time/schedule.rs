//! Schedules of faults: the faults of a run and their times, drawn from a seed.

use evb_control::Command;
use evb_core::{NodeId, NodeRange, Span, Stream, Time, stream};
use evb_protocol::{Config, FirstPhase, Protocol, RequestOrder, Trigger};
use rand_xoshiro::rand_core::Rng;
use std::num::NonZeroU32;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The node dies; it comes back as a new process after this time, if at all.
    Crash { node: NodeId, back_after: Option<Span> },
    /// The node does nothing for so long. Its peers give it up after [`PEER_TIMEOUT`].
    Stop { node: NodeId, span: Span },
    /// Nothing passes between two nodes for this time; messages are kept for them. They lose each other after
    /// [`PEER_TIMEOUT`].
    Partition { pair: [NodeId; 2], span: Span },
    /// The data link of a node is cut for this time, while run control still hears it: as a partition between it and
    /// each other node.
    Isolation { node: NodeId, span: Span },
    /// Messages between two nodes take so much longer, for so long.
    Delay { pair: [NodeId; 2], span: Span, by: Span },
    /// One data message in this many, or one question, is lost for this time.
    Lose { span: Span, one_in: u64 },
    /// One fragment in this many comes twice.
    Duplicate { span: Span, one_in: u64 },
    /// One fragment in this many is damaged on its way.
    Damage { span: Span, one_in: u64 },
    /// The disk of a builder takes nothing for so long.
    Disk { builder: NodeId, span: Span },
    /// The source of a readout unit, or its front end, delivers nothing for this time.
    Source { unit: NodeId, span: Span },
}

/// Silence after which a node is given up.
pub(crate) const PEER_TIMEOUT: Span = Span::from_millis(5);
/// Time within which nodes that lose each other notice it, and for which run control collects their reports.
pub(crate) const REPORT_WINDOW: Span = Span(PEER_TIMEOUT.0 / 4);
/// Faults begin within this time.
const BEGIN: Span = Span::from_millis(3);

/// Draws faults from a stream of random numbers.
pub(crate) struct Draw<'a>(pub(crate) &'a mut Stream);

impl Draw<'_> {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0.next_u64() % most.max(1)
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    pub(crate) fn span(&mut self, most: Span) -> Span {
        Span(self.below(most.0 + 1))
    }

    pub(crate) fn time(&mut self, most: Span) -> Time {
        Time(self.below(most.0 + 1))
    }

    pub(crate) fn node(&mut self, nodes: NodeRange) -> NodeId {
        NodeId(nodes.first.0 + self.below(nodes.count.into()) as u16)
    }

    /// Shorter than what a peer is given up for, or longer.
    fn silence(&mut self, longer: bool) -> Span {
        let (timeout, span) = (PEER_TIMEOUT.0, self.span(Span(PEER_TIMEOUT.0 / 2)).0);
        Span(if longer { timeout * 3 / 2 + span } else { span + timeout / 4 })
    }

    fn pair(&mut self, config: &Config) -> [NodeId; 2] {
        let (readout, builder) = (self.node(config.readout_nodes()), self.node(config.builder_nodes()));
        self.pick(&[[readout, builder], [Config::EVENT_MANAGER, readout], [Config::EVENT_MANAGER, builder]])
    }

    /// A fault that kills no node.
    fn mild(&mut self, config: &Config) -> Fault {
        let any = NodeRange { first: NodeId(0), count: config.nodes() };
        let span = Span(self.span(PEER_TIMEOUT).0 + PEER_TIMEOUT.0 / 8);
        match self.below(8) {
            0 => Fault::Stop { node: self.node(any), span: self.silence(false) },
            1 if self.below(2) == 0 => Fault::Isolation { node: self.node(any), span: self.silence(false) },
            1 => Fault::Partition { pair: self.pair(config), span: self.silence(false) },
            2 => Fault::Delay { pair: self.pair(config), span, by: self.span(Span::from_millis(2)) },
            3 => Fault::Lose { span, one_in: self.pick(&[2, 5, 30]) },
            4 => Fault::Duplicate { span, one_in: self.pick(&[2, 10]) },
            5 => Fault::Damage { span, one_in: self.pick(&[2, 10]) },
            6 => Fault::Disk { builder: self.node(config.builder_nodes()), span },
            _ => Fault::Source { unit: self.node(config.readout_nodes()), span },
        }
    }

    /// A fault after which a node is given up.
    fn grave(&mut self, config: &Config, victim: NodeId) -> Fault {
        let back_after = self.pick(&[None, Some(Span::from_micros(200)), Some(Span::from_millis(3))]);
        let other = self.node(if config.builder_nodes().contains(victim) {
            config.readout_nodes()
        } else {
            config.builder_nodes()
        });
        let span = self.silence(true);
        match self.below(4) {
            0 => Fault::Stop { node: victim, span },
            1 if self.below(2) == 0 => Fault::Isolation { node: victim, span },
            1 => Fault::Partition { pair: [victim, other], span },
            _ => Fault::Crash { node: victim, back_after },
        }
    }

    /// A schedule: several mild faults, and at most one grave one for each kind of unit that has another. Either unit of
    /// a partition may be given up, so it is the only grave fault.
    pub(crate) fn schedule(&mut self, config: &Config) -> Vec<(Time, Fault)> {
        let mut faults: Vec<_> = (0..self.below(6)).map(|_| (self.time(BEGIN), self.mild(config))).collect();
        let mut grave = Vec::new();
        for units in [config.readout_nodes(), config.builder_nodes()] {
            if units.count > 1 && self.below(3) == 0 {
                let victim = self.node(units);
                grave.push((self.time(BEGIN), self.grave(config, victim)));
            }
        }
        let partition = grave.iter().find(|(_, fault)| matches!(fault, Fault::Partition { .. })).copied();
        faults.extend(partition.map_or(grave, |only| vec![only]));
        faults.sort_by_key(|(at, _)| *at);
        faults
    }

    /// Commands of an operator in one run, with their times after its start: at any moment, also during configuration.
    fn commands(&mut self) -> Vec<(Span, Command)> {
        let within = self.pick(&[Span::from_micros(400), BEGIN]);
        let mut commands = Vec::new();
        if self.below(2) == 0 {
            let pause = self.span(within);
            let resume = Span(pause.0 + self.span(Span::from_millis(1)).0);
            commands.extend([(pause, Command::Pause), (resume, Command::Resume)]);
        }
        let last: &[_] = match self.below(6) {
            0 => &[Command::Stop],
            1 => &[Command::Stop, Command::Stop],
            2 => &[Command::Stop, Command::Stop, Command::Stop],
            3 | 4 => &[Command::Abort],
            _ => &[],
        };
        let mut at = self.span(within);
        for &command in last {
            commands.push((at, command));
            at.0 += self.span(Span::from_micros(100)).0;
        }
        commands
    }

    /// The runs of an operator: nearly half of all have one only, and let it go on to its end.
    pub(crate) fn runs(&mut self) -> Vec<Vec<(Span, Command)>> {
        let count = self.pick(&[0, 0, 0, 1, 2, 3, 4]);
        if count == 0 { vec![vec![]] } else { (0..count).map(|_| self.commands()).collect() }
    }

    /// Phased building in which the first units are asked first, or a region of interest.
    fn phased(&mut self, units: u16, is_region: bool) -> Protocol {
        let rest = units > 1 && self.below(3) > 0;
        let mut up_to = |most: u16| 1 + self.below(most.into()) as u16;
        let most = up_to(units - u16::from(rest));
        let first = if is_region {
            FirstPhase::Region { least: up_to(most), most, seed: up_to(u16::MAX).into() }
        } else {
            FirstPhase::Units(most)
        };
        Protocol::Phased { first, rest }
    }

    /// A random event builder.
    pub(crate) fn config(&mut self, base: Config) -> Config {
        use evb_protocol::{Assignment, Shaping};
        let builder_units = self.pick(&[1, 2, 3, 5, 8]);
        let readout_units = self.pick(&[1, 2, 4, 7]);
        let [phased, region] = [false, true].map(|is_region| self.phased(readout_units, is_region));
        let grouping = Shaping::Grouping { packet: evb_core::ByteCount(450), timeout: Span::from_micros(30) };
        let builder_slots = self.pick(&[1, 2, 8, 32]);
        Config {
            readout_units,
            builder_units,
            protocol: self.pick(&[Protocol::Push, Protocol::Pull, phased, region]),
            assignment: self.pick(&[Assignment::RoundRobin, Assignment::LeastLoaded, Assignment::ByNumber]),
            shaping: self.pick(&[Shaping::None, grouping]),
            trigger: self.pick(&[Trigger::FreeRunning, Trigger::Driven, Trigger::Deferred]),
            events: Some(self.pick(&[1, 7, 100, 151])),
            group: u32::from(builder_units) * self.pick(&[1, 2, 40]),
            request_group: self.pick(&[None, None, NonZeroU32::new(1), NonZeroU32::new(4)]),
            request_order: self.pick(&[RequestOrder::Rotated, RequestOrder::Same]),
            request_window: self.pick(&[None, NonZeroU32::new(1), NonZeroU32::new(2), NonZeroU32::new(9)]),
            builder_slots,
            first_under_way: self.pick(&[None, Some(1), Some(builder_units.into())]),
            buffer_events: self.pick(&[4, 64, 512]),
            ..base
        }
    }
}

/// The stream of a seed for one purpose.
pub(crate) fn random(seed: u64, purpose: u64) -> Stream {
    stream(seed, NodeId(0), purpose)
}
