//! The network, the background and the faults of `full.toml`.

use evb_connection::Transport;
use evb_core::{Bandwidth, ByteCount, Frequency, NodeId, NodeRange, Span};
use evb_experiment::{BackgroundPlan, BackgroundPriority, Load, TrafficPlan};
use evb_fabric::{
    Arbitration, Control, Dma, Flow, HostConfig, HostLinks, Jitter, JitterPer, JitterSpread, LinkConfig, NetworkConfig,
    NetworkFault, NetworkFaultAction, NicConfig, Rails, Routing, Service, SharedMemory, SwitchConfig, Topology,
    Watchdog, WatchdogAction, WhenFull,
};
use evb_patterns::{Pattern, TrafficConfig};
use evb_sources::SourceSpec;

pub(super) fn full_network() -> NetworkConfig {
    NetworkConfig {
        preset: "ideal".into(),
        topology: Topology::Clos {
            leaves: 42,
            ports_per_leaf: 20,
            spines: 10,
            links: 2,
            uplink: Some(Bandwidth(200_000_000_000)),
        },
        planes: None,
        link: LinkConfig { rate: Bandwidth(40_000_000_000), delay: Span(25_000) },
        host_links: vec![HostLinks {
            first: 0,
            count: 40,
            rate: Some(Bandwidth(25_000_000_000)),
            delay: Some(Span(50_000)),
        }],
        switch: SwitchConfig {
            delay: Span(300_000),
            arbitration: Arbitration::Oldest,
            marking: None,
            memory: Some(SharedMemory {
                size: ByteCount(4_000_000),
                alpha: 0.5,
                least: ByteCount(3000),
                xon_offset: Some(ByteCount(6000)),
            }),
            trimming: false,
            cut_through: Some(vec!["leaf*".into()]),
            lanes: None,
        },
        flow: Flow::StoreAndForward {
            queue: ByteCount(1_000_000),
            full: WhenFull::PriorityPause,
            reaction: Span(700_000),
            priorities: 4,
            headroom: Some(ByteCount(100_000)),
            watchdog: Some(Watchdog {
                detection: Span::from_millis(400),
                restoration: Span::from_secs(2),
                action: WatchdogAction::Forward,
            }),
        },
        routing: Routing::Dispersive { patience: Span::from_micros(5), after: 1, rails: Rails::Joined, probes: 0 },
        nic: NicConfig {
            ports: 2,
            rate: Some(Bandwidth(30_000_000_000)),
            overhead: Span(150_000),
            packet: ByteCount(1500),
            header: ByteCount(38),
            minimum: ByteCount(84),
            messages: 8,
            queue: 12,
            service: Service::InTurn,
            keeps_step: false,
            dma: Some(Dma { read: Bandwidth(64_000_000_000), write: Bandwidth(72_000_000_000) }),
            jitter: Some(Jitter {
                mean: Span::from_micros(1),
                spread: JitterSpread::LogNormal { rms: Span::from_micros(3) },
                per: JitterPer::Packet,
            }),
        },
        host: HostConfig {
            send: Span::from_micros(1),
            receive: Span::from_micros(2),
            jitter: Some(Jitter {
                mean: Span::from_micros(4),
                spread: JitterSpread::Exponential,
                per: JitterPer::Message,
            }),
        },
        control: Control::Shared,
        transport: Transport::None,
    }
}

pub(super) fn full_background() -> Vec<BackgroundPlan> {
    let nodes = |first, count| NodeRange { first: NodeId(first), count };
    let config = |senders, receivers, pattern, window| TrafficConfig { senders, receivers, pattern, window, seed: 42 };
    let destinations = (0..14).map(|sender| sender % 2).collect();
    let storage = BackgroundPlan {
        name: "storage".into(),
        traffic: TrafficPlan {
            config: config(nodes(415, 14), nodes(429, 2), Pattern::Assigned { destinations }, 4),
            load: Load::Rate { rate: Frequency(100_000), poisson: false },
            messages: Some(1000),
            awaits_acknowledgement: false,
        },
        sender_host: 10,
        receiver_host: 400,
        message: SourceSpec::LogNormal { mean: ByteCount(1_000_000), rms: ByteCount(2_000_000) },
        from: Span::from_millis(2),
        until: Some(Span::from_secs(1)),
        priority: BackgroundPriority::Lower,
    };
    let transfer = BackgroundPlan {
        name: "transfer".into(),
        traffic: TrafficPlan {
            config: config(nodes(431, 400), nodes(831, 400), Pattern::Pairs, 2),
            load: Load::Fraction { load: 0.5, poisson: true },
            messages: None,
            awaits_acknowledgement: false,
        },
        sender_host: 20,
        receiver_host: 20,
        message: SourceSpec::Uniform { min: ByteCount(1000), max: ByteCount(2_000_000) },
        from: Span::ZERO,
        until: None,
        priority: BackgroundPriority::Same,
    };
    vec![storage, transfer]
}

pub(super) fn full_network_faults() -> Vec<NetworkFault> {
    let fault =
        |target: &str, at, action| NetworkFault { target: target.into(), at: Span::from_secs(at), until: None, action };
    vec![
        fault("leaf0", 1, NetworkFaultAction::Fail { reroute: Span::from_millis(2) }),
        fault("leaf0>spine0.1", 0, NetworkFaultAction::Slow { factor: 2.5 }),
        fault("spine9>leaf41.0", 3, NetworkFaultAction::Corrupt { one_in: 1000 }),
        fault("leaf0>h0.0", 2, NetworkFaultAction::Pause),
    ]
}
