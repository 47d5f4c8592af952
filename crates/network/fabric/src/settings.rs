//! Checks of the settings of a network, each by itself and together.

use crate::{
    Arbitration, ChannelRule, Control, Flow, HostLinks, LinkEnd, Marking, Network, NetworkConfig, NetworkError,
    NetworkLink, NicConfig, Routing, Topology, Watchdog, WhenFull, cut_through, lane_weights, planes,
};
use evb_connection::Transport;
use evb_core::{Bandwidth, ByteCount, Span};

/// Most ports of a network interface.
const MOST_PORTS: u64 = 4;
/// Most virtual channels of a link.
const MOST_CHANNELS: u64 = 8;
/// Most priorities of a store-and-forward switch: IEEE 802.1Q has eight.
const MOST_PRIORITIES: u64 = 8;
/// Bound on the error of the rounded time of a byte: one part in this many.
const ROUNDING: u128 = 1000;

/// Checks that need no network.
pub(crate) fn check(config: &NetworkConfig) -> Result<(), NetworkError> {
    above_zero("link.rate", config.link.rate.0)?;
    check_host_links(&config.host_links)?;
    if let Topology::Clos { uplink: Some(rate), .. } | Topology::Tree { uplink: Some(rate), .. } = &config.topology {
        above_zero("topology.uplink", rate.0)?;
    }
    if let Topology::FatTreeLevels { levels } = &config.topology {
        levels.iter().filter_map(|level| level.rate).try_for_each(|rate| above_zero("topology.levels.rate", rate.0))?;
    }
    if let Topology::Dragonfly { global_rate: Some(rate), .. }
    | Topology::DragonflyPlus { global_rate: Some(rate), .. } = &config.topology
    {
        above_zero("topology.global_rate", rate.0)?;
    }
    if let Topology::Explicit { links, .. } = &config.topology {
        links.iter().filter_map(|link| link.rate).try_for_each(|rate| above_zero("the rate of a link", rate.0))?;
    }
    if let Topology::Infiniband { hosts, cables, .. } = &config.topology {
        let mut rates = hosts.iter().map(|cable| cable.rate).chain(cables.iter().map(|cable| cable.rate));
        rates.try_for_each(|rate| above_zero("the rate of a link", rate.0))?;
    }
    if let Control::Separate { rate, .. } = config.control {
        above_zero("control.rate", rate.0)?;
    }
    check_nic(&config.nic)?;
    planes::check(config)?;
    check_flow(config)?;
    check_queues(config)?;
    cut_through::check(config)?;
    lane_weights::check(config)?;
    check_transport(config)?;
    check_routing(config)
}

/// Checks of what the whole network has: the routes that its channels allow, its number of hosts, the rates and delays of
/// single links.
pub(crate) fn check_network(network: &Network) -> Result<(), NetworkError> {
    check_channels(&network.config)?;
    let beyond = network.config.host_links.iter().find(|links| links.hosts().end as usize > network.hosts());
    if let Some(links) = beyond {
        return Err(NetworkError::NoSuchHost { host: links.hosts().end - 1, hosts: network.hosts() });
    }
    let Flow::Wormhole { slack, reaction } = network.config.flow else {
        return Ok(());
    };
    for link in &network.links {
        check_rounding(link)?;
        if let LinkEnd::Switch(_) = link.to {
            check_slack(link, slack, network.config.switch.delay, reaction)?;
        }
    }
    Ok(())
}

/// No host may have two cables.
fn check_host_links(links: &[HostLinks]) -> Result<(), NetworkError> {
    for own in links {
        above_zero("host_link.count", own.count.into())?;
        own.rate.map_or(Ok(()), |rate| above_zero("host_link.rate", rate.0))?;
        if own.rate.is_none() && own.delay.is_none() {
            return Err(NetworkError::UsualHostLink { host: own.first });
        }
    }
    let mut hosts: Vec<_> = links.iter().map(HostLinks::hosts).collect();
    hosts.sort_by_key(|hosts| hosts.start);
    match hosts.windows(2).find(|pair| pair[1].start < pair[0].end) {
        Some(pair) => Err(NetworkError::HostLinkTwice { host: pair[1].start }),
        None => Ok(()),
    }
}

fn check_nic(nic: &NicConfig) -> Result<(), NetworkError> {
    within("nic.ports", "ports per network interface", u64::from(nic.ports), MOST_PORTS)?;
    above_zero("nic.packet", nic.packet.0)?;
    above_zero("nic.messages", u64::from(nic.messages))?;
    nic.rate.map_or(Ok(()), |rate| above_zero("nic.rate", rate.0))?;
    let Some(dma) = nic.dma else {
        return Ok(());
    };
    above_zero("nic.dma.read", dma.read.0)?;
    above_zero("nic.dma.write", dma.write.0)
}

fn check_flow(config: &NetworkConfig) -> Result<(), NetworkError> {
    if config.switch.arbitration == Arbitration::Islip && !matches!(config.flow, Flow::CutThrough { .. }) {
        return Err(NetworkError::IslipNeedsInputBuffers);
    }
    match config.flow {
        Flow::Wormhole { slack, .. } => above_zero("flow.slack", slack.0),
        Flow::CutThrough { buffer, virtual_channels, .. } => {
            above_zero("flow.buffer", buffer.0)?;
            within("flow.virtual_channels", "virtual channels", u64::from(virtual_channels), MOST_CHANNELS)?;
            takes_a_packet("flow.buffer", buffer, &config.nic)
        }
        Flow::StoreAndForward { queue, priorities, headroom, watchdog, .. } => {
            above_zero("flow.queue", queue.0)?;
            check_pauses(config, headroom, watchdog)?;
            within("flow.priorities", "priorities", u64::from(priorities), MOST_PRIORITIES)?;
            takes_a_packet("flow.queue", queue, &config.nic)
        }
    }
}

/// Checks that settings of pauses are for switches that ask for them.
fn check_pauses(
    config: &NetworkConfig,
    headroom: Option<ByteCount>,
    watchdog: Option<Watchdog>,
) -> Result<(), NetworkError> {
    let xon_offset = config.switch.memory.and_then(|memory| memory.xon_offset);
    let settings = [
        ("flow.headroom", headroom.is_some()),
        ("flow.watchdog", watchdog.is_some()),
        ("switch.memory.xon_offset", xon_offset.is_some()),
    ];
    match settings.into_iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) if !config.flow.pauses() => Err(NetworkError::NeedsPauses { key }),
        _ => watchdog.map_or(Ok(()), check_watchdog),
    }
}

fn check_watchdog(watchdog: Watchdog) -> Result<(), NetworkError> {
    above_zero("flow.watchdog.detection", watchdog.detection.0)?;
    above_zero("flow.watchdog.restoration", watchdog.restoration.0)
}

/// Checks the queues of switches.
fn check_queues(config: &NetworkConfig) -> Result<(), NetworkError> {
    let of_links = match &config.topology {
        Topology::Explicit { links, .. } => links.iter().filter_map(|link| link.marking).collect(),
        _ => Vec::new(),
    };
    let marking = config.switch.marking.into_iter().chain(of_links);
    let mut keys = marking.clone().map(|_| "switch.marking").chain(config.switch.memory.map(|_| "switch.memory"));
    if let (Some(key), false) = (keys.next(), matches!(config.flow, Flow::StoreAndForward { .. })) {
        return Err(NetworkError::NeedsQueues { key });
    }
    if let (Some(_), Routing::Dispersive { .. }) = (marking.clone().next(), config.routing) {
        return Err(NetworkError::MarksOfTwoKinds);
    }
    for Marking { low, high, most } in marking {
        if low > high || !(0.0..=1.0).contains(&most) {
            return Err(NetworkError::BadMarking);
        }
    }
    if config.switch.trimming {
        check_trimming(config)?;
    }
    let Some(memory) = config.switch.memory else { return Ok(()) };
    takes_a_packet("switch.memory.size", memory.size, &config.nic)?;
    if memory.alpha > 0.0 { Ok(()) } else { Err(NetworkError::Zero { what: "switch.memory.alpha" }) }
}

/// Checks that headers of trimmed packets arrive early, and that something comes of them.
fn check_trimming(config: &NetworkConfig) -> Result<(), NetworkError> {
    let needed = match config.flow {
        Flow::StoreAndForward { full: WhenFull::Drop, priorities: 2.., .. } => match config.transport {
            Transport::UltraEthernet(_) => return Ok(()),
            _ => "a transport that asks for trimmed packets again",
        },
        Flow::StoreAndForward { full: WhenFull::Drop, .. } => "two priorities, that of the headers first",
        _ => "queues that drop packets",
    };
    Err(NetworkError::TrimmingNeeds { needed })
}

/// Checks the connections.
fn check_transport(config: &NetworkConfig) -> Result<(), NetworkError> {
    let (window, ack_every) = match config.transport {
        Transport::None => return Ok(()),
        Transport::Tcp(tcp) => (tcp.window, tcp.ack_every),
        Transport::Rdma(rdma) => (rdma.window, rdma.ack_every),
        Transport::UltraEthernet(config) => {
            above_zero("transport.round_trip", config.round_trip.0)?;
            above_zero("transport.paths", config.paths.into())?;
            (config.window.unwrap_or(ByteCount(u64::MAX)), config.ack_every)
        }
    };
    above_zero("transport.ack_every", ack_every.into())?;
    takes_a_packet("transport.window", window, &config.nic)?;
    if config.nic.dma.is_some() {
        return Err(NetworkError::TransportWithoutMemory);
    }
    match (config.transport, config.routing) {
        (Transport::UltraEthernet(transport), routing) if transport.paths > 1 && routing != Routing::Ecmp => {
            Err(NetworkError::PathsWithoutEcmp)
        }
        _ => Ok(()),
    }
}

fn check_routing(config: &NetworkConfig) -> Result<(), NetworkError> {
    let topology = &config.topology;
    if let Routing::Dispersive { after, .. } = config.routing {
        above_zero("routing.after", after.into())?;
    }
    if let Routing::Flowlets { gap, .. } = config.routing {
        above_zero("routing.gap", gap.0)?;
    }
    let unsuitable = match (config.routing, topology) {
        (
            Routing::DimensionOrder { .. } | Routing::AdaptiveDimensionOrder,
            Topology::Grid { .. } | Topology::Torus { .. } | Topology::HyperX { .. },
        ) => None,
        (
            Routing::Valiant | Routing::Ugal,
            Topology::Dragonfly { .. } | Topology::DragonflyPlus { .. } | Topology::HyperX { .. },
        ) => None,
        (Routing::Table, Topology::Infiniband { switches, .. })
            if switches.iter().all(|switch| !switch.table.is_empty()) =>
        {
            None
        }
        (Routing::Table, _) => Some("table"),
        (Routing::Valiant, _) => Some("valiant"),
        (Routing::Ugal, _) => Some("ugal"),
        (Routing::DimensionOrder { .. }, _) => Some("dimension-order"),
        (Routing::AdaptiveDimensionOrder, _) => Some("adaptive-dimension-order"),
        (Routing::SpanningTree, Topology::Butterfly { .. }) => Some("spanning-tree"),
        (Routing::Learning { .. }, Topology::Butterfly { .. }) => Some("learning"),
        (Routing::Learning { .. }, _) if !matches!(config.flow, Flow::StoreAndForward { .. }) => {
            return Err(NetworkError::BridgesStorePackets);
        }
        _ => None,
    };
    if let Some(routing) = unsuitable {
        return Err(NetworkError::UnsuitableRouting { routing, topology: topology.kind() });
    }
    Ok(())
}

/// Checks that virtual channels have a meaning, and that the routes of a dragonfly, a dragonfly+ or a HyperX cannot wait for each
/// other in a ring. Minimal routes of a dragonfly have three links between switches at most, those over another group five, or six
/// in a dragonfly+; those of a HyperX have one in each dimension, and those over another switch two. In a fixed order of dimensions,
/// or on a tree, nothing can wait in a ring.
fn check_channels(config: &NetworkConfig) -> Result<(), NetworkError> {
    let has_rings = matches!(config.topology, Topology::Torus { .. });
    if config.channel_rule() == ChannelRule::Dateline && !has_rings {
        return Err(NetworkError::NoDatelines { topology: config.topology.kind() });
    }
    let (routes, least) = match (&config.topology, config.routing) {
        (_, Routing::SpanningTree | Routing::Learning { .. }) => return Ok(()),
        (_, Routing::DimensionOrder { .. } | Routing::AdaptiveDimensionOrder) => return Ok(()),
        (Topology::Dragonfly { .. }, Routing::Valiant | Routing::Ugal) => ("routes over another group", 5),
        (Topology::DragonflyPlus { .. }, Routing::Valiant | Routing::Ugal) => ("routes over another group", 6),
        (Topology::Dragonfly { .. }, _) => ("minimal routes of a dragonfly", 3),
        (Topology::HyperX { sizes, .. }, Routing::Valiant | Routing::Ugal) => {
            ("routes over another switch", 2 * dimensions(sizes))
        }
        (Topology::HyperX { sizes, .. }, _) => ("routes of a hyperx in any order of dimensions", dimensions(sizes)),
        _ => return Ok(()),
    };
    let is_safe = match config.flow {
        _ if least < 2 => true,
        Flow::CutThrough { virtual_channels, .. } => {
            virtual_channels >= least && config.channel_rule() == ChannelRule::Hop
        }
        Flow::StoreAndForward { full, .. } => full == WhenFull::Drop,
        Flow::Wormhole { .. } => false,
    };
    if is_safe { Ok(()) } else { Err(NetworkError::RoutesCanWait { routes, least }) }
}

/// Number of dimensions in which a HyperX has links.
fn dimensions(sizes: &[u16]) -> u8 {
    sizes.iter().filter(|&&size| size > 1).count() as u8
}

fn above_zero(what: &'static str, number: u64) -> Result<(), NetworkError> {
    if number == 0 { Err(NetworkError::Zero { what }) } else { Ok(()) }
}

fn within(key: &'static str, what: &'static str, number: u64, most: u64) -> Result<(), NetworkError> {
    above_zero(key, number)?;
    if number > most { Err(NetworkError::TooMany { what, number, most }) } else { Ok(()) }
}

fn takes_a_packet(what: &'static str, size: ByteCount, nic: &NicConfig) -> Result<(), NetworkError> {
    let packet = nic.wire_size(nic.packet);
    if size < packet { Err(NetworkError::BufferTooSmall { what, size, packet }) } else { Ok(()) }
}

/// Picoseconds in which one byte passes at one bit per second.
const PS_PER_BYTE_AT_1_BIT_PER_S: u128 = Bandwidth(1).byte_time().0 as u128;

/// `|t * rate / 8 - 1| <= 0.1 %` for the rounded time `t` of a byte.
fn check_rounding(link: &NetworkLink) -> Result<(), NetworkError> {
    let time = link.rate.byte_time().0;
    let off = (u128::from(time) * u128::from(link.rate.0)).abs_diff(PS_PER_BYTE_AT_1_BIT_PER_S);
    if off * ROUNDING <= PS_PER_BYTE_AT_1_BIT_PER_S {
        return Ok(());
    }
    let nearest = Bandwidth((PS_PER_BYTE_AT_1_BIT_PER_S / u128::from(time.max(1))) as u64);
    Err(NetworkError::UnevenRate { link: link.name.clone(), rate: link.rate, nearest })
}

/// Checks that the slack buffer is large enough. Between an input's decision to stop and the last byte that still
/// arrives lie a byte that is being sent, one that is being received, the way to the sender and the switch: `slack * t
/// >= 2 t + link + switch + reaction`.
fn check_slack(link: &NetworkLink, slack: ByteCount, switch: Span, reaction: Span) -> Result<(), NetworkError> {
    let byte = u128::from(link.rate.byte_time().0);
    let trip = 2 * byte + [link.delay, switch, reaction].iter().map(|span| u128::from(span.0)).sum::<u128>();
    if u128::from(slack.0) * byte >= trip {
        return Ok(());
    }
    let smallest = ByteCount(u64::try_from(trip.div_ceil(byte)).unwrap_or(u64::MAX));
    Err(NetworkError::SlackTooSmall { link: link.name.clone(), slack, smallest })
}
