//! Random cases: small networks, odd times, and bursts to hot places.

use crate::case::Case;
use evb_connection::Transport;
use evb_core::{Bandwidth, ByteCount, Span};
use evb_fabric::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The case with this number; always the same.
pub(crate) fn case(number: u64) -> Case {
    Generator::new(number).case()
}

/// Draws the parts of a case. Lengths of time are drawn in units of a byte.
struct Generator {
    random: Xoshiro256PlusPlus,
    /// True when everything is done to make things happen at the same time.
    coincident: bool,
    /// Picoseconds per byte on most links.
    byte: u64,
    /// Largest packet.
    most: u64,
    /// True when rings are to be blocked: much traffic at once on a torus.
    rings: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum FlowKind {
    Worm,
    Cut,
    Store,
}

impl Generator {
    fn new(number: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
        let coincident = random.random_bool(0.25);
        let byte = if coincident { 1000 } else { [80, 777, 1013, 6250, 50_000][random.random_range(0..5)] };
        let most = match random.random_range(0..20) {
            0 => random.random_range(300..=3000),
            1..=9 => random.random_range(1..=40),
            _ => random.random_range(41..=300),
        };
        let rings = random.random_bool(0.1);
        Self { random, coincident, byte, most, rings }
    }

    fn case(&mut self) -> Case {
        let kind = [FlowKind::Worm, FlowKind::Worm, FlowKind::Cut, FlowKind::Store][self.below(4) as usize];
        let topology = self.topology(kind);
        let mut network = NetworkConfig {
            preset: String::new(),
            link: LinkConfig { rate: self.rate(kind), delay: Span(self.time(8)) },
            host_links: Vec::new(),
            switch: SwitchConfig {
                delay: Span(self.time(10)),
                arbitration: self.arbitration(kind),
                marking: None,
                memory: None,
                trimming: false,
                cut_through: None,
                lanes: None,
            },
            flow: Flow::Wormhole { slack: ByteCount(1), reaction: Span::ZERO },
            routing: self.routing(&topology),
            nic: self.nic(kind),
            host: HostConfig { send: Span::ZERO, receive: Span::ZERO, jitter: None },
            control: Control::Shared,
            transport: Transport::None,
            topology,
            planes: None,
        };
        network.flow = self.flow(kind, &network);
        network.switch.memory = self.memory(&network.flow);
        network.switch.cut_through = self.cut_through(&network);
        let endpoints = Network::build(&network).expect("a good network").endpoints.len() as u64;
        if self.one_in(3) {
            network.host_links = vec![self.host_links(kind, &network, endpoints as u16)];
        }
        Case { seed: self.below(1 << 30) as u32, probes: self.probes(endpoints as u16), network }
    }

    /// Memory that the queues or the inputs of a switch share, in half of the networks that store packets.
    fn memory(&mut self, flow: &Flow) -> Option<SharedMemory> {
        let Flow::StoreAndForward { .. } = flow else { return None };
        let (size, least) = (ByteCount(self.most + self.below(8 * self.most)), ByteCount(self.below(self.most)));
        let alpha = [0.5, 1.0, 2.0, 8.0][self.below(4) as usize];
        let xon_offset = (flow.pauses() && self.one_in(2)).then(|| ByteCount(self.below(2 * self.most)));
        self.one_in(2).then_some(SharedMemory { size, alpha, least, xon_offset })
    }

    /// Switches that cut through, in a third of the networks with packets that are whole in a switch: any of them, or those whose
    /// names begin as that of the first.
    fn cut_through(&mut self, network: &NetworkConfig) -> Option<Vec<String>> {
        if matches!(network.flow, Flow::Wormhole { .. }) || !self.one_in(3) {
            return None;
        }
        let switches = Network::build(network).expect("a good network").switches;
        if self.one_in(3) {
            return Some(vec![switches[0].name.trim_end_matches(char::is_numeric).to_owned() + "*"]);
        }
        Some(switches.into_iter().filter(|_| self.one_in(2)).map(|switch| switch.name).collect())
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.random_range(0..end)
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }

    fn number(&mut self, least: u16, most: u16) -> u16 {
        self.random.random_range(least..=most)
    }

    /// A length of time up to that of `bytes` bytes; often zero where things shall coincide.
    fn time(&mut self, bytes: u64) -> u64 {
        if self.coincident {
            return self.below(bytes) * self.byte * self.below(2);
        }
        match self.below(4) {
            0 => 0,
            _ => self.below(bytes * self.byte + 1),
        }
    }

    /// A rate near the usual one; for worms it is the usual one, as whole picoseconds per byte.
    fn rate(&mut self, kind: FlowKind) -> Bandwidth {
        let usual = 8_000_000_000_000 / self.byte;
        match kind {
            FlowKind::Cut | FlowKind::Store if !self.coincident => Bandwidth(usual / 8 + self.below(usual * 2)),
            FlowKind::Cut if self.one_in(4) => Bandwidth(usual * 2),
            _ => Bandwidth(usual),
        }
    }

    fn other_rate(&mut self, kind: FlowKind) -> Option<Bandwidth> {
        (kind != FlowKind::Worm && self.one_in(2)).then(|| self.rate(kind))
    }

    fn arbitration(&mut self, kind: FlowKind) -> Arbitration {
        match () {
            () if kind == FlowKind::Cut && self.one_in(3) => Arbitration::Islip,
            () if self.coincident || self.one_in(2) => Arbitration::RoundRobin,
            () if self.one_in(2) => Arbitration::Oldest,
            () => Arbitration::LeastRecent,
        }
    }

    fn topology(&mut self, kind: FlowKind) -> Topology {
        if self.rings {
            let (width, terminals) = (self.number(4, 6), self.number(1, 2));
            return Topology::Torus { width, height: self.number(1, 2), depth: 1, terminals, links: 1 };
        }
        match self.below(9) {
            0 if kind == FlowKind::Cut && self.one_in(2) => self.dragonfly(),
            0 if kind == FlowKind::Cut => self.hyperx(),
            0 if self.one_in(2) => self.dragonfly_plus(kind),
            0 => Topology::Crossbar { ports: self.number(2, 8) },
            1 => Topology::Clos {
                leaves: self.number(2, 4),
                ports_per_leaf: self.number(1, 4),
                spines: self.number(1, 3),
                links: self.number(1, 2),
                uplink: self.other_rate(kind),
            },
            2 if self.one_in(2) => Topology::FatTree { radix: 4 },
            2 => self.fat_tree(kind),
            3 => {
                let radix = self.number(2, 3);
                Topology::Butterfly { radix, stages: self.number(1, 6 - radix) }
            }
            4 => self.plane(|width, height, terminals, links| Topology::Grid {
                width,
                height,
                depth: 1,
                terminals,
                links,
            }),
            5 | 6 => self.plane(|width, height, terminals, links| Topology::Torus {
                width,
                height,
                depth: 1,
                terminals,
                links,
            }),
            7 => Topology::Tree {
                leaves: self.number(1, 4),
                ports_per_leaf: self.number(1, 4),
                trunk: self.number(1, 2),
                uplink: self.other_rate(kind),
            },
            _ => self.explicit(kind),
        }
    }

    /// Some hosts with other cables; those of worms are as fast and not longer than the others, to suit the slack.
    fn host_links(&mut self, kind: FlowKind, network: &NetworkConfig, hosts: u16) -> HostLinks {
        let first = self.number(0, hosts - 1);
        let delay = if kind == FlowKind::Worm { self.below(network.link.delay.0 + 1) } else { self.time(20) };
        HostLinks { first, count: self.number(1, hosts - first), rate: self.other_rate(kind), delay: Some(Span(delay)) }
    }

    fn fat_tree(&mut self, kind: FlowKind) -> Topology {
        let levels = self.number(2, 3);
        let level = |n| match n + 1 == levels {
            true => TreeLevel { down: self.number(1, 3), up: 0, links: 1, rate: None, delay: None },
            false => TreeLevel {
                down: self.number(1, 3),
                up: self.number(1, 2),
                links: self.number(1, 2),
                rate: self.other_rate(kind),
                delay: self.one_in(3).then(|| Span(self.time(20))),
            },
        };
        Topology::FatTreeLevels { levels: (0..levels).map(level).collect() }
    }

    /// At least as many links to other groups as there are of these.
    fn dragonfly(&mut self) -> Topology {
        let (routers, global) = (self.number(1, 3), self.number(1, 2));
        Topology::Dragonfly {
            groups: self.number(1, routers * global + 1),
            routers,
            terminals: self.number(1, 2),
            global,
            global_rate: self.other_rate(FlowKind::Cut),
            global_delay: self.one_in(2).then(|| Span(self.time(20))),
        }
    }

    /// Exactly as many links to other groups as there are of these.
    fn dragonfly_plus(&mut self, kind: FlowKind) -> Topology {
        let (spines, global) = (self.number(1, 2), self.number(1, 2));
        Topology::DragonflyPlus {
            groups: spines * global + 1,
            leaves: self.number(1, 2),
            spines,
            terminals: self.number(1, 2),
            global,
            global_rate: self.other_rate(kind),
            global_delay: None,
        }
    }

    fn hyperx(&mut self) -> Topology {
        let (sizes, links) = ([self.number(1, 3), self.number(1, 3)], [self.number(1, 2), self.number(1, 2)]);
        Topology::HyperX { sizes: sizes.to_vec(), terminals: self.number(1, 2), links: links.to_vec() }
    }

    fn plane(&mut self, make: impl Fn(u16, u16, u16, u16) -> Topology) -> Topology {
        let (width, height) = (self.number(2, 6), self.number(1, 3));
        make(width, height, self.number(1, 2), self.number(1, 2))
    }

    /// A random tree of switches with some more links, and hosts anywhere.
    fn explicit(&mut self, kind: FlowKind) -> Topology {
        let switches = self.number(1, 6);
        let mut ends: Vec<[String; 2]> = Vec::new();
        for switch in 1..switches {
            ends.push([format!("s{switch}"), format!("s{}", self.number(0, switch - 1))]);
        }
        for _ in 0..self.below(4) {
            let (one, other) = (self.number(0, switches - 1), self.number(0, switches - 1));
            if one != other {
                ends.push([format!("s{one}"), format!("s{other}")]);
            }
        }
        for host in 0..self.number(2, 8) {
            ends.push([format!("h{host}"), format!("s{}", self.number(0, switches - 1))]);
        }
        let links = ends.into_iter().map(|ends| self.cable(kind, ends)).collect();
        Topology::Explicit { switches: (0..switches).map(|switch| format!("s{switch}")).collect(), links }
    }

    fn cable(&mut self, kind: FlowKind, ends: [String; 2]) -> ExplicitLink {
        let delay = self.one_in(3).then(|| Span(self.time(20)));
        let hosts = ends[0].starts_with('h');
        let count = if hosts { 1 } else { self.number(1, 2) };
        ExplicitLink { ends, count, rate: self.other_rate(kind), delay, marking: None }
    }

    fn spread(&mut self) -> Spread {
        [Spread::Source, Spread::Destination, Spread::Switch, Spread::Pair][self.below(4) as usize]
    }

    fn routing(&mut self, topology: &Topology) -> Routing {
        let spread = self.spread();
        match topology {
            Topology::Grid { .. } | Topology::Torus { .. } | Topology::HyperX { .. } if self.one_in(2) => {
                Routing::DimensionOrder { spread, ties: Ties::Alternate }
            }
            _ => Routing::Fixed { spread },
        }
    }

    fn nic(&mut self, kind: FlowKind) -> NicConfig {
        let usual = 8_000_000_000_000 / self.byte;
        let slower = match kind {
            FlowKind::Worm => 8_000_000_000_000 / (self.byte + self.time(2)),
            _ => usual / 4 + self.below(usual),
        };
        NicConfig {
            ports: 1,
            rate: self.one_in(3).then_some(Bandwidth(slower)),
            overhead: Span(if self.one_in(2) { 0 } else { self.time(2 * self.most) }),
            packet: ByteCount(self.most),
            header: ByteCount(0),
            minimum: ByteCount(0),
            messages: 1,
            queue: NicConfig::QUEUE,
            service: Service::InTurn,
            keeps_step: false,
            jitter: None,
            dma: None,
        }
    }

    fn flow(&mut self, kind: FlowKind, network: &NetworkConfig) -> Flow {
        let reaction = Span(self.time(10));
        let room = match self.below(if self.rings { 1 } else { 3 }) {
            0 => 0,
            1 => self.below(self.most + 2),
            _ => self.below(4 * self.most + 2),
        };
        match kind {
            FlowKind::Worm => Flow::Wormhole { slack: ByteCount(self.least_slack(network, reaction) + room), reaction },
            FlowKind::Cut if matches!(network.topology, Topology::Dragonfly { .. } | Topology::HyperX { .. }) => {
                Flow::CutThrough {
                    buffer: ByteCount(self.most + room),
                    reaction,
                    virtual_channels: self.number(3, 4) as u8,
                    channel: ChannelRule::Hop,
                }
            }
            FlowKind::Cut => Flow::CutThrough {
                buffer: ByteCount(self.most + room),
                reaction,
                virtual_channels: self.number(1, 3) as u8,
                channel: [ChannelRule::Topology, ChannelRule::Hop, ChannelRule::Destination][self.below(3) as usize],
            },
            FlowKind::Store => {
                let full = [WhenFull::Drop, WhenFull::Pause, WhenFull::PriorityPause][self.below(3) as usize];
                let has_own = full != WhenFull::Drop && self.one_in(2);
                Flow::StoreAndForward {
                    queue: ByteCount(self.most + room),
                    full,
                    reaction,
                    priorities: self.number(1, 2) as u8,
                    headroom: has_own.then(|| ByteCount(self.below(3 * self.most))),
                    watchdog: None,
                }
            }
        }
    }

    /// The round trip over the longest link, in bytes.
    fn least_slack(&self, network: &NetworkConfig, reaction: Span) -> u64 {
        let mut delay = network.link.delay.0;
        if let Topology::Explicit { links, .. } = &network.topology {
            delay = links.iter().filter_map(|link| link.delay).map(|delay| delay.0).fold(delay, u64::max);
        }
        if let Topology::FatTreeLevels { levels } = &network.topology {
            delay = levels.iter().filter_map(|level| level.delay).map(|delay| delay.0).fold(delay, u64::max);
        }
        (2 * self.byte + delay + network.switch.delay.0 + reaction.0).div_ceil(self.byte)
    }

    fn probes(&mut self, endpoints: u16) -> Vec<(u64, u16, u16, u32)> {
        let number = match (self.most > 300, self.rings) {
            (true, _) => 1 + self.below(15),
            (false, true) => 60,
            (false, false) => 1 + self.below(60),
        };
        let window = if self.coincident {
            0
        } else if self.rings {
            self.below(4 * self.byte)
        } else {
            self.below(self.most * self.byte * number)
        };
        let hot = self.number(0, endpoints - 1);
        // All send two switches further along a row (or four), so that all block each other.
        let round = self.rings && self.one_in(2);
        let (hot_share, alike) = (if self.rings { 0 } else { self.below(4) }, self.coincident || self.one_in(4));
        let mut probes: Vec<_> = (0..number)
            .map(|_| {
                let (at, from) = (self.below(window + 1), self.number(0, endpoints - 1));
                let to = if round {
                    (from + 4) % endpoints
                } else if self.below(4) < hot_share {
                    hot
                } else {
                    self.number(0, endpoints - 1)
                };
                let wire = if alike { self.most } else { 1 + self.below(self.most) };
                (at, from, to, wire as u32)
            })
            .collect();
        probes.sort_by_key(|&(at, ..)| at);
        probes
    }
}
