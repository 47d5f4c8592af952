//! Refused descriptions, and the error messages.

use crate::support::*;
use NetworkError as E;
use evb_connection::{RdmaConfig, RdmaControl, Recovery, Transport, UltraEthernetConfig, UltraEthernetControl};
use evb_core::{Bandwidth, ByteCount, Span};
use evb_fabric::*;

type Change = fn(&mut NetworkConfig);

fn refused(config: &NetworkConfig) -> NetworkError {
    let error = Network::build(config).map(drop).expect_err("it is not a network");
    let (message, hint) = (error.to_string(), error.hint());
    assert!(!hint.is_empty() && !message.ends_with('.'), "{message}: {hint}");
    error
}

fn refused_topology(topology: Topology) -> NetworkError {
    refused(&config(topology))
}

fn refused_with(change: impl FnOnce(&mut NetworkConfig)) -> NetworkError {
    let mut config = config(clos(2, 2, 2, 1));
    change(&mut config);
    refused(&config)
}

/// Wormhole flow: a byte takes 6250 ps, a link 15 ns, a switch 100 ns.
fn wormhole(slack: u64, reaction: u64) -> Flow {
    Flow::Wormhole { slack: ByteCount(slack), reaction: Span(reaction) }
}

fn store(queue: u64, priorities: u8) -> Flow {
    Flow::StoreAndForward {
        queue: ByteCount(queue),
        full: WhenFull::Drop,
        reaction: Span::ZERO,
        priorities,
        headroom: None,
        watchdog: None,
    }
}

#[test]
fn zeros_in_topologies_are_rejected() {
    let tree = |leaves, ports_per_leaf, trunk| Topology::Tree { leaves, ports_per_leaf, trunk, uplink: None };
    let grid = |width, height, terminals, links| Topology::Grid { width, height, depth: 1, terminals, links };
    for (topology, what) in [
        (Topology::Crossbar { ports: 0 }, "topology.ports"),
        (clos(0, 1, 1, 1), "topology.leaves"),
        (clos(1, 0, 1, 1), "topology.ports_per_leaf"),
        (clos(1, 1, 0, 1), "topology.spines"),
        (clos(1, 1, 1, 0), "topology.links"),
        (tree(0, 1, 1), "topology.leaves"),
        (tree(1, 0, 1), "topology.ports_per_leaf"),
        (tree(1, 1, 0), "topology.trunk"),
        (Topology::FatTree { radix: 0 }, "topology.radix"),
        (fat_tree(&[[0, 1, 1], [1, 0, 1]]), "topology.levels.down"),
        (fat_tree(&[[1, 1, 1], [0, 0, 1]]), "topology.levels.down"),
        (fat_tree(&[[1, 0, 1], [1, 0, 1]]), "topology.levels.up"),
        (fat_tree(&[[1, 1, 0], [1, 0, 1]]), "topology.levels.links"),
        (Topology::Butterfly { radix: 0, stages: 1 }, "topology.radix"),
        (Topology::Butterfly { radix: 1, stages: 0 }, "topology.stages"),
        (grid(0, 1, 1, 1), "topology.width"),
        (grid(1, 0, 1, 1), "topology.height"),
        (grid(1, 1, 0, 1), "topology.terminals"),
        (grid(1, 1, 1, 0), "topology.links"),
        (Topology::Torus { width: 0, height: 1, depth: 1, terminals: 1, links: 1 }, "topology.width"),
        (Topology::Torus { width: 1, height: 1, depth: 0, terminals: 1, links: 1 }, "topology.depth"),
        (dragonfly_plus(0, 1, 1, 1, 1), "topology.groups"),
        (dragonfly_plus(1, 0, 1, 1, 1), "topology.leaves"),
        (dragonfly_plus(1, 1, 0, 1, 1), "topology.spines"),
        (dragonfly_plus(1, 1, 1, 0, 1), "topology.terminals"),
        (dragonfly_plus(1, 1, 1, 1, 0), "topology.global"),
        (hyperx(&[2, 0], 1), "topology.sizes"),
        (hyperx(&[2, 2], 0), "topology.terminals"),
        (Topology::HyperX { sizes: vec![2], terminals: 1, links: vec![0] }, "topology.links"),
        (explicit(&[], &[["h0", "a"]]), "the number of topology.switches"),
        (explicit(&["a"], &[]), "the number of host ports in topology.links"),
    ] {
        assert_eq!(refused_topology(topology), E::Zero { what });
    }
}

#[test]
fn zeros_in_settings_are_rejected() {
    let uplink = Some(Bandwidth(0));
    let changes: [(Change, &str); 14] = [
        (|c| c.link.rate = Bandwidth(0), "link.rate"),
        (|c| c.nic.ports = 0, "nic.ports"),
        (|c| c.nic.packet = ByteCount(0), "nic.packet"),
        (|c| c.nic.messages = 0, "nic.messages"),
        (
            |c| c.routing = Routing::Dispersive { patience: Span(1), after: 0, rails: Rails::Separate, probes: 0 },
            "routing.after",
        ),
        (|c| c.nic.rate = Some(Bandwidth(0)), "nic.rate"),
        (|c| c.nic.dma = Some(Dma { read: Bandwidth(0), write: Bandwidth(1) }), "nic.dma.read"),
        (|c| c.nic.dma = Some(Dma { read: Bandwidth(1), write: Bandwidth(0) }), "nic.dma.write"),
        (|c| c.flow = wormhole(0, 0), "flow.slack"),
        (|c| c.flow = cut_through(0), "flow.virtual_channels"),
        (|c| c.flow = store(0, 1), "flow.queue"),
        (|c| c.flow = store(5000, 0), "flow.priorities"),
        (|c| c.control = Control::Separate { delay: Span(1), rate: Bandwidth(0) }, "control.rate"),
        (
            |c| {
                c.flow = Flow::CutThrough {
                    buffer: ByteCount(0),
                    reaction: Span(0),
                    virtual_channels: 1,
                    channel: ChannelRule::Topology,
                }
            },
            "flow.buffer",
        ),
    ];
    for (change, what) in changes {
        assert_eq!(refused_with(change), E::Zero { what });
    }
    let clos = Topology::Clos { leaves: 1, ports_per_leaf: 1, spines: 1, links: 1, uplink };
    assert_eq!(refused_topology(clos), E::Zero { what: "topology.uplink" });
    let one =
        ExplicitLink { ends: ["h0".to_owned(), "a".to_owned()], count: 1, rate: uplink, delay: None, marking: None };
    let with = |link| Topology::Explicit { switches: vec!["a".to_owned()], links: vec![link] };
    assert_eq!(refused_topology(with(one.clone())), E::Zero { what: "the rate of a link" });
    let none = ExplicitLink { count: 0, rate: None, ..one };
    assert_eq!(refused_topology(with(none)), E::Zero { what: "the count of a link" });
}

#[test]
fn numbers_above_their_limits_are_rejected() {
    let most = u16::MAX;
    let torus = |terminals, links| Topology::Torus { width: most, height: most, depth: 1, terminals, links };
    for (topology, name) in [
        (Topology::FatTree { radix: most - 1 }, "host ports"),
        (fat_tree(&[[most, most, most], [most, most, most], [most, most, most], [most, 0, 1]]), "host ports"),
        (fat_tree(&[[2, most, 1], [2, 0, 1]]), "switches"),
        (fat_tree(&[[2, 5, most], [2, 0, 1]]), "links"),
        (Topology::Butterfly { radix: most, stages: most }, "host ports"),
        (Topology::Butterfly { radix: 2, stages: 20 }, "host ports"),
        (clos(most, most, most, most), "host ports"),
        (clos(2, 1, most, 1), "switches"),
        (clos(2, 1, 5, most), "links"),
        (clos(30_000, 1, 1, 1), "pairs of a switch and a host port"),
        (torus(most, most), "host ports"),
        (dragonfly_plus(most, most, most, most, most), "host ports"),
        (hyperx(&[most, most, most], most), "host ports"),
        (hyperx(&[30_000], 1), "links"),
        (explicit(&["a"], &[["h99999999999999999999", "a"]]), "host ports"),
    ] {
        let error = refused_topology(topology);
        assert!(matches!(error, E::TooMany { what, .. } if what == name), "{name}: {error:?}");
    }
    let changes: [(Change, &str, u64); 3] = [
        (|c| c.nic.ports = 5, "ports per network interface", 4),
        (|c| c.flow = cut_through(9), "virtual channels", 8),
        (|c| c.flow = store(5000, 9), "priorities", 8),
    ];
    for (change, what, most) in changes {
        assert_eq!(refused_with(change), E::TooMany { what, number: most + 1, most });
    }
}

#[test]
fn a_hyperx_has_as_many_links_as_sizes() {
    for sizes in [&[][..], &[2; 4]] {
        assert_eq!(refused_topology(hyperx(sizes, 1)), E::Dimensions { number: sizes.len(), most: 3 });
    }
    let topology = Topology::HyperX { sizes: vec![3, 1], terminals: 1, links: vec![1] };
    assert_eq!(refused_topology(topology), E::LinksOfDimensions { links: 1, dimensions: 2 });
}

#[test]
fn levels_of_a_fat_tree_end_at_the_top() {
    for levels in [&[][..], &[[2, 0, 1]], &[[2, 1, 1]; 5]] {
        assert_eq!(refused_topology(fat_tree(levels)), E::TreeLevels { levels: levels.len() });
    }
    assert_eq!(refused_topology(fat_tree(&[[2, 1, 1], [2, 1, 1]])), E::AboveTheTop { key: "up" });
    assert_eq!(refused_topology(fat_tree(&[[2, 1, 1], [2, 0, 2]])), E::AboveTheTop { key: "links" });
    let Topology::FatTreeLevels { mut levels } = fat_tree(&[[2, 1, 1], [2, 0, 1]]) else { unreachable!() };
    levels[1].delay = Some(Span(7));
    assert_eq!(refused_topology(Topology::FatTreeLevels { levels: levels.clone() }), E::AboveTheTop { key: "delay" });
    (levels[1].delay, levels[0].rate) = (None, Some(Bandwidth(0)));
    assert_eq!(refused_topology(Topology::FatTreeLevels { levels }), E::Zero { what: "topology.levels.rate" });
}

#[test]
fn links_of_hosts_are_of_hosts_that_there_are() {
    let own = |first, count| HostLinks { first, count, rate: Some(Bandwidth(1_000)), delay: None };
    let refused_links = |links: &[HostLinks]| refused_with(|config| config.host_links = links.to_vec());
    assert_eq!(refused_links(&[own(2, 3)]), E::NoSuchHost { host: 4, hosts: 4 });
    assert_eq!(refused_links(&[own(u16::MAX, u16::MAX)]), E::NoSuchHost { host: 131_069, hosts: 4 });
    assert_eq!(refused_links(&[own(2, 2), own(0, 1), own(1, 2)]), E::HostLinkTwice { host: 2 });
    assert_eq!(refused_links(&[own(2, 0)]), E::Zero { what: "host_link.count" });
    assert_eq!(
        refused_links(&[HostLinks { rate: Some(Bandwidth(0)), ..own(2, 1) }]),
        E::Zero { what: "host_link.rate" }
    );
    assert_eq!(refused_links(&[HostLinks { rate: None, ..own(2, 1) }]), E::UsualHostLink { host: 2 });
}

#[test]
fn indivisible_numbers_are_rejected() {
    assert_eq!(refused_topology(Topology::FatTree { radix: 5 }), E::OddRadix { radix: 5 });
    let with_two = |topology| {
        let mut config = config(topology);
        config.nic.ports = 2;
        refused(&config)
    };
    let uneven = |what, number| E::NotDivisible { what, number, ports: 2 };
    assert_eq!(with_two(clos(3, 2, 2, 1)), uneven("switches with hosts", 3));
    assert_eq!(with_two(Topology::Crossbar { ports: 5 }), uneven("ports", 5));
    assert_eq!(with_two(explicit(&["a"], &[["h0", "a"]])), uneven("host ports", 1));
    assert_eq!(
        with_two(clos(3, 2, 2, 1)).to_string(),
        "3 switches with hosts cannot be shared by hosts with 2 ports each"
    );
}

#[test]
fn invalid_lists_of_switches_and_links_are_rejected() {
    let name = |name: &str| name.to_owned();
    for bad in ["", "h7", "a>b", "a.1"] {
        assert_eq!(refused_topology(explicit(&[bad], &[["h0", "a"]])), E::SwitchName { name: name(bad) });
    }
    for (switches, links, error) in [
        (&["a", "a"][..], &[["h0", "a"]][..], E::SwitchTwice { name: name("a") }),
        (&["a"], &[["h0", "a"], ["a", "b"]], E::UnknownEnd { name: name("b") }),
        (&["a"], &[["h0", "a"], ["h01", "a"]], E::UnknownEnd { name: name("h01") }),
        (&["a"], &[["h0", "a"], ["h0", "a"]], E::HostPortTwice { name: name("h0") }),
        (&["a"], &[["h0", "a"], ["a", "h2"]], E::HostPortMissing { name: name("h1") }),
        (&["a"], &[["h0", "a"], ["a", "a"]], E::BadLink { from: name("a"), to: name("a") }),
        (&["a"], &[["h0", "h1"]], E::BadLink { from: name("h0"), to: name("h1") }),
        (&["a", "b"], &[["h0", "a"], ["h1", "b"]], E::NotConnected { from: name("a"), to: name("b") }),
    ] {
        assert_eq!(refused_topology(explicit(switches, links)), error);
    }
}

#[test]
fn islip_without_input_buffers_is_rejected() {
    let refused = refused_with(|config| {
        config.switch.arbitration = Arbitration::Islip;
        config.flow = store(100_000, 1);
    });
    assert_eq!(refused, NetworkError::IslipNeedsInputBuffers);
}

#[test]
fn marks_and_shared_memory_need_queues() {
    let marking = Marking { low: ByteCount(1000), high: ByteCount(1000), most: 1.0 };
    let memory = SharedMemory { size: ByteCount(10_000), alpha: 1.0, least: ByteCount(0), xon_offset: None };
    let refused = |switch: SwitchConfig, flow| refused_with(|config| (config.switch, config.flow) = (switch, flow));
    let plain = config(clos(2, 2, 2, 1)).switch;
    let marks = SwitchConfig { marking: Some(marking), ..plain.clone() };
    let shares = SwitchConfig { memory: Some(memory), ..plain.clone() };
    assert_eq!(refused(marks, wormhole(5000, 0)), E::NeedsQueues { key: "switch.marking" });
    assert_eq!(refused(shares.clone(), wormhole(5000, 0)), E::NeedsQueues { key: "switch.memory" });
    let resumes = SharedMemory { xon_offset: Some(ByteCount(1000)), ..memory };
    let resumes = SwitchConfig { memory: Some(resumes), ..plain.clone() };
    assert_eq!(refused(resumes, store(5000, 1)), E::NeedsPauses { key: "switch.memory.xon_offset" });
    let Flow::StoreAndForward { queue, full, reaction, priorities, .. } = store(5000, 1) else { unreachable!() };
    let headroom =
        Flow::StoreAndForward { queue, full, reaction, priorities, headroom: Some(ByteCount(0)), watchdog: None };
    assert_eq!(refused(plain.clone(), headroom), E::NeedsPauses { key: "flow.headroom" });
    for bad in [Marking { high: ByteCount(999), ..marking }, Marking { most: 1.5, ..marking }] {
        assert_eq!(refused(SwitchConfig { marking: Some(bad), ..plain.clone() }, store(5000, 1)), E::BadMarking);
    }
    let small = SharedMemory { size: ByteCount(10), ..memory };
    let error = refused(SwitchConfig { memory: Some(small), ..plain }, store(5000, 1));
    assert!(matches!(error, E::BufferTooSmall { what: "switch.memory.size", .. }), "{error:?}");
}

#[test]
fn switches_that_cut_through_are_named() {
    let refused = |change: &dyn Fn(&mut NetworkConfig)| {
        refused_with(|config| {
            config.switch.cut_through = Some(vec!["leaf*".to_owned(), "spine1".to_owned()]);
            config.flow = store(5000, 2);
            change(config);
        })
    };
    let excludes = |key| E::CutThroughExcludes { key };
    assert_eq!(refused(&|config| config.flow = wormhole(5000, 0)), excludes("flow.type = \"wormhole\""));
    let bridges = Routing::Learning { age: Span::from_secs(1) };
    assert_eq!(refused(&|config| config.routing = bridges), excludes("routing.type = \"learning\""));
    let unknown = refused(&|config| config.switch.cut_through = Some(vec!["spine2".to_owned()]));
    assert_eq!(unknown, E::NoSuchSwitch { name: "spine2".to_owned(), first: "leaf0".to_owned() });
}

#[test]
fn connections_need_a_window_for_a_packet() {
    let rdma = RdmaConfig {
        recovery: Recovery::GoBackN,
        window: ByteCount(10),
        timeout: Span::from_millis(1),
        ack_every: 1,
        control: RdmaControl::None,
    };
    let refused = |rdma| refused_with(|config| config.transport = Transport::Rdma(rdma));
    assert!(matches!(refused(rdma), E::BufferTooSmall { what: "transport.window", .. }));
    assert_eq!(refused(RdmaConfig { ack_every: 0, ..rdma }), E::Zero { what: "transport.ack_every" });
}

#[test]
fn trimming_needs_priorities_and_a_transport_that_asks_again() {
    let ultra_ethernet = Transport::UltraEthernet(UltraEthernetConfig {
        control: UltraEthernetControl::Rccc,
        round_trip: Span::from_micros(10),
        window: None,
        paths: 1,
        steering: true,
        timeout: Span::from_millis(1),
        ack_every: 1,
    });
    let needed = |full, priorities, transport| {
        let error = refused_with(|config| {
            let (queue, reaction) = (ByteCount(5000), Span(0));
            config.flow = Flow::StoreAndForward { queue, full, reaction, priorities, headroom: None, watchdog: None };
            config.switch.trimming = true;
            config.transport = transport;
        });
        let E::TrimmingNeeds { needed } = error else { panic!("{error:?}") };
        needed
    };
    assert_eq!(needed(WhenFull::Pause, 2, ultra_ethernet), "queues that drop packets");
    assert_eq!(needed(WhenFull::Drop, 1, ultra_ethernet), "two priorities, that of the headers first");
    assert_eq!(needed(WhenFull::Drop, 2, Transport::None), "a transport that asks for trimmed packets again");
    let Transport::UltraEthernet(config) = ultra_ethernet else { unreachable!() };
    let many = Transport::UltraEthernet(UltraEthernetConfig { paths: 8, ..config });
    assert_eq!(refused_with(|config| config.transport = many), E::PathsWithoutEcmp);
}

#[test]
fn unsuitable_routing_is_rejected() {
    let routing = Routing::DimensionOrder { spread: Spread::Pair, ties: Ties::Alternate };
    let error = refused_with(|config| config.routing = routing);
    assert_eq!(error, E::UnsuitableRouting { routing: "dimension-order", topology: "clos" });
    assert_eq!(error.hint(), "use a grid, a torus or a hyperx, or another routing");
    let butterfly = config(Topology::Butterfly { radix: 2, stages: 2 });
    let error = refused(&NetworkConfig { routing: Routing::SpanningTree, ..butterfly });
    assert_eq!(error, E::UnsuitableRouting { routing: "spanning-tree", topology: "butterfly" });
}

#[test]
fn slack_below_the_round_trip_is_rejected() {
    // 2 x 6.25 + 15 + 100 + 91.25 ns are 35 bytes.
    let error = refused_with(|config| config.flow = wormhole(34, 91_250));
    let link = "h0>leaf0".to_owned();
    assert_eq!(error, E::SlackTooSmall { link, slack: ByteCount(34), smallest: ByteCount(35) });
    assert_eq!(error.to_string(), "a slack of 34 B is below the round trip of link h0>leaf0");
    assert!(error.hint().contains("35 B or more"));
    let good = |slack, reaction| {
        let topology = clos(2, 2, 2, 1);
        Network::build(&NetworkConfig { flow: wormhole(slack, reaction), ..config(topology) }).is_ok()
    };
    assert!(good(35, 91_250) && !good(35, 91_251) && !good(u64::MAX >> 14, u64::MAX));
}

#[test]
fn rates_without_whole_picoseconds_per_byte_are_rejected() {
    let at = |rate| {
        move |config: &mut NetworkConfig| {
            config.flow = wormhole(1_000_000, 0);
            config.link.rate = Bandwidth(rate);
        }
    };
    // 26.67 ps per byte; 33 ps would be 1 % off.
    let error = refused_with(at(300_000_000_000));
    let (link, rate) = ("h0>leaf0".to_owned(), Bandwidth(300_000_000_000));
    assert_eq!(error, E::UnevenRate { link, rate, nearest: Bandwidth(296_296_296_296) });
    assert!(matches!(refused_with(at(u64::MAX)), E::UnevenRate { .. }));
    for rate in [1, 80_000_000, 1_056_000_000, 200_000_000_000, 296_296_296_296] {
        let mut config = config(clos(2, 2, 2, 1));
        at(rate)(&mut config);
        assert!(Network::build(&config).is_ok(), "{rate}");
    }
}

#[test]
fn buffers_below_a_packet_are_rejected() {
    let buffer = |size| Flow::CutThrough {
        buffer: ByteCount(size),
        reaction: Span::ZERO,
        virtual_channels: 1,
        channel: ChannelRule::Topology,
    };
    let small = |what| E::BufferTooSmall { what, size: ByteCount(1007), packet: ByteCount(1008) };
    assert_eq!(refused_with(|config| config.flow = buffer(1007)), small("flow.buffer"));
    assert_eq!(refused_with(|config| config.flow = store(1007, 1)), small("flow.queue"));
    assert!(Network::build(&NetworkConfig { flow: buffer(1008), ..config(clos(2, 2, 2, 1)) }).is_ok());
    let padded = refused_with(|config| {
        config.flow = buffer(1008);
        config.nic.minimum = ByteCount(1009);
    });
    assert!(matches!(padded, E::BufferTooSmall { packet: ByteCount(1009), .. }));
}
