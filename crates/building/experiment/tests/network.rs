//! Meaning of the sections for a simulated network.

use evb_connection::{
    Dcqcn, RdmaConfig, RdmaControl, Recovery, TcpConfig, TcpControl, Transport, UltraEthernetConfig,
    UltraEthernetControl,
};
use evb_core::{Bandwidth, ByteCount, Frequency, Span};
use evb_experiment::{
    CacheCost, Computers, CpuFit, CpuPlan, CrossingCost, DiskPlan, EventCost, Experiment, Interruption, LocalMessages,
    ManagerCost, MessageCost, PayloadCost, Placement, Plan, WakeCost,
};
use evb_fabric::{
    Arbitration, ChannelRule, Control, Dma, ExplicitLink, Flow, FlowletChoice, LaneWeight, LaneWeights, Marking,
    NetworkConfig, NetworkFaultAction, PlaneChoice, Planes, Rails, Routing, SharedMemory, Spread, Topology, TreeLevel,
    WhenFull,
};

const SHORT: &str = r#"
trigger.events = 1000
builder.units = 2
[readout]
units = 2
source = { type = "fixed", size = "2 kB" }
"#;

/// The one plan of a good text, which its resolved text has again.
fn plan(network: &str) -> Plan {
    let text = SHORT.to_owned() + network;
    let experiment = Experiment::parse(&text, "short.toml", &[]).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let resolved = experiment.resolved();
    let again = Experiment::parse(&resolved, "short.toml", &[]).unwrap_or_else(|error| panic!("{error:?}\n{resolved}"));
    assert_eq!(again.plans(), experiment.plans(), "{resolved}");
    assert_eq!(again.resolved(), resolved);
    experiment.plans()[0].clone()
}

fn config(network: &str) -> NetworkConfig {
    plan(network).network.config
}

#[test]
fn every_preset_is_a_good_network() {
    for preset in evb_fabric::presets() {
        let hosts_can_be_shared = "placement = { manager = 0, readout = 0, builder = 0 }";
        let separate = "placement = { readout = 0, builder = 0 }";
        let text = |placement: &str| format!("[network]\npreset = {:?}\n{placement}\n", preset.name);
        let shared = SHORT.to_owned() + &text(hosts_can_be_shared);
        let placement = if Experiment::parse(&shared, "a.toml", &[]).is_ok() { hosts_can_be_shared } else { separate };
        assert_eq!(config(&text(placement)).preset, preset.name);
    }
}

#[test]
fn a_preset_lies_below_the_keys_of_the_file() {
    let ideal = config("");
    assert_eq!(config("[network]\n"), ideal);
    assert_eq!(config("[network]\npreset = 'ideal'\n"), ideal);
    let changed = config("[network]\nlink.delay = '7 ns'\nnic.dma = { read = '1 GB/s', write = '2 GB/s' }\n");
    let dma = Some(Dma { read: Bandwidth(8_000_000_000), write: Bandwidth(16_000_000_000) });
    let mut expected = ideal;
    (expected.link.delay, expected.nic.dma) = (Span(7_000), dma);
    assert_eq!(changed, expected);
}

#[test]
fn another_preset_lies_below_the_keys_of_the_file() {
    let text = |keys: &str| format!("[network]\npreset = 'myrinet-oct-sw8'\n{keys}");
    let (preset, changed) = (config(&text("")), config(&text("switch.delay = '7 ns'\n")));
    assert_ne!(preset, config(""));
    let mut expected = preset;
    expected.switch.delay = Span(7_000);
    assert_eq!(changed, expected);
}

#[test]
fn a_table_with_another_type_has_nothing_of_the_preset() {
    let flow = |flow: &str| config(&format!("[network]\nflow = {flow}\n")).flow;
    let Flow::CutThrough { buffer, .. } = flow("{}") else { panic!("the ideal network is cut-through") };
    // Same type: the preset's buffer stays.
    let mine = flow("{ type = 'cut-through', reaction = '9 ns', virtual_channels = 3, channel = 'destination' }");
    assert_eq!(
        mine,
        Flow::CutThrough { buffer, reaction: Span(9_000), virtual_channels: 3, channel: ChannelRule::Destination }
    );
    // Another type: even a key of the same name must be given, here `reaction`.
    let text = SHORT.to_owned() + "[network]\nflow = { type = 'wormhole', slack = '1 kB' }\n";
    let error = Experiment::parse(&text, "short.toml", &[]).expect_err("`reaction` is missing");
    assert_eq!(error.to_string(), "`network.flow.reaction` is missing");
    let mine = flow("{ type = 'store-and-forward', queue = '1 MB', full = 'drop', reaction = '9 ns' }");
    let expected = Flow::StoreAndForward {
        queue: ByteCount(1_000_000),
        full: WhenFull::Drop,
        reaction: Span(9_000),
        priorities: 1,
        headroom: None,
        watchdog: None,
    };
    assert_eq!(mine, expected);
}

#[test]
fn every_transport_can_be_written() {
    let transport = |keys: &str| config(&format!("[network]\ntransport = {{ {keys} }}\n")).transport;
    assert_eq!(config("").transport, Transport::None);
    assert_eq!(transport(""), Transport::None);
    let tcp = TcpConfig {
        control: TcpControl::Cubic,
        initial_window: 10,
        window: ByteCount(4 << 20),
        least_timeout: Span::from_millis(200),
        ack_every: 2,
        ack_delay: Span::from_millis(40),
        tail_probes: true,
        interface_queue: ByteCount(0),
    };
    assert_eq!(transport("type = 'tcp'"), Transport::Tcp(tcp));
    let control = TcpControl::Dctcp;
    assert_eq!(transport("type = 'tcp', control = 'dctcp'"), Transport::Tcp(TcpConfig { control, ..tcp }));
    let rdma = RdmaConfig {
        recovery: Recovery::GoBackN,
        window: ByteCount(4 << 20),
        timeout: Span::from_millis(1),
        ack_every: 1,
        control: RdmaControl::None,
    };
    assert_eq!(transport("type = 'rdma'"), Transport::Rdma(rdma));
    let control = RdmaControl::Dcqcn(Dcqcn::default());
    let expected = RdmaConfig { recovery: Recovery::Selective, control, ..rdma };
    let written = "type = 'rdma', recovery = 'selective', control = { type = 'dcqcn' }";
    assert_eq!(transport(written), Transport::Rdma(expected));
}

/// The paths and the target of a connection of Ultra Ethernet follow from the rest of the network.
#[test]
fn ultra_ethernet_can_be_written() {
    let transport = |keys: &str, network: &str| {
        let written =
            format!("[network]\n{network}\ntransport = {{ type = 'ultra-ethernet', round_trip = '12 us', {keys} }}\n");
        config(&written).transport
    };
    let nscc = |us| UltraEthernetControl::Nscc { target: Span::from_micros(us) };
    let expected = UltraEthernetConfig {
        control: nscc(12),
        round_trip: Span::from_micros(12),
        window: None,
        paths: 1,
        steering: true,
        timeout: Span::from_millis(1),
        ack_every: 1,
    };
    assert_eq!(transport("", ""), Transport::UltraEthernet(expected));
    let control = nscc(5);
    let written = "control = { type = 'nscc', target = '5 us' }";
    assert_eq!(transport(written, ""), Transport::UltraEthernet(UltraEthernetConfig { control, ..expected }));
    let trimming = "flow = { type = 'store-and-forward', queue = '100 kB', full = 'drop', reaction = '0 s', priorities = 2 }\n\
                    switch = { trimming = true }\nrouting = { type = 'ecmp' }";
    let with_trimming = UltraEthernetConfig { control: nscc(9), paths: 128, ..expected };
    assert_eq!(transport("", trimming), Transport::UltraEthernet(with_trimming));
    let rccc = UltraEthernetConfig {
        control: UltraEthernetControl::Rccc,
        window: Some(ByteCount(100_000)),
        paths: 4,
        steering: false,
        ..expected
    };
    let written = "control = { type = 'rccc' }, window = '100 kB', paths = 4, steering = false";
    assert_eq!(transport(written, trimming), Transport::UltraEthernet(rccc));
}

/// The `control` of TCP is a word, that of RDMA a table.
#[test]
fn keys_of_one_name_are_set_in_each_kind_of_transport() {
    let set = ["network.transport.control.type=dcqcn".to_owned()];
    let text = SHORT.to_owned() + "[network]\ntransport = { type = 'rdma' }\n";
    let experiment = Experiment::parse(&text, "short.toml", &set).unwrap_or_else(|error| panic!("{error:?}"));
    let Transport::Rdma(rdma) = experiment.plans()[0].network.config.transport else { panic!("RDMA") };
    assert!(matches!(rdma.control, RdmaControl::Dcqcn(_)));
}

#[test]
fn queues_can_have_marks_and_share_memory() {
    let text = "[network]
flow = { type = 'store-and-forward', queue = '1 MB', full = 'drop', reaction = '9 ns' }
switch.marking = { low = '30 kB', high = '60 kB', most = 0.1 }
switch.memory = { size = '12 MB', alpha = 2.0 }
";
    let switch = config(text).switch;
    let marking = Marking { low: ByteCount(30_000), high: ByteCount(60_000), most: 0.1 };
    let memory = SharedMemory { size: ByteCount(12_000_000), alpha: 2.0, least: ByteCount(0), xon_offset: None };
    assert_eq!((switch.marking, switch.memory), (Some(marking), Some(memory)));
}

#[test]
fn each_plane_has_a_port_of_each_host() {
    let found = config("[network]\nplanes = { count = 3, choice = 'pair' }\n");
    assert_eq!(found.planes, Some(Planes { count: 3, choice: PlaneChoice::Pair }));
    assert_eq!((found.nic.ports, &found.topology), (3, &Topology::Crossbar { ports: 5 }));
    let by_packet = config("[network]\npreset = 'infiniband-hdr-fat-tree'\nplanes.count = 2\n");
    assert_eq!(by_packet.planes, Some(Planes { count: 2, choice: PlaneChoice::Packet }));
    assert_eq!(by_packet.nic.ports, 2);
}

#[test]
fn a_file_takes_the_marks_and_the_memory_of_a_preset_away() {
    let switch = |more: &str| config(&format!("[network]\npreset = 'ethernet-25g-rack'\n{more}")).switch;
    assert!(switch("").marking.is_some() && switch("").memory.is_some());
    let without = switch("switch = { marking = 'none', memory = 'none' }\n");
    assert_eq!((without.marking, without.memory), (None, None));
}

#[test]
fn inputs_that_pause_share_memory_and_have_headroom() {
    let text = "[network]
flow = { type = 'store-and-forward', queue = '1 MB', full = 'priority-pause', reaction = '1 us', headroom = '20 kB' }
switch.memory = { size = '12 MB', least = '4 kB', xon_offset = '2 kB' }
";
    let config = config(text);
    let (size, least, xon_offset) = (ByteCount(12_000_000), ByteCount(4000), Some(ByteCount(2000)));
    assert_eq!(config.switch.memory, Some(SharedMemory { size, alpha: 1.0, least, xon_offset }));
    let Flow::StoreAndForward { headroom, .. } = config.flow else { panic!("{:?}", config.flow) };
    assert_eq!(headroom, Some(ByteCount(20_000)));
}

#[test]
fn the_ideal_crossbar_has_the_ports_that_are_needed() {
    let ports = |network: &str| match config(network).topology {
        Topology::Crossbar { ports } => ports,
        other => panic!("{other:?}"),
    };
    assert_eq!(ports(""), 5);
    assert_eq!(ports("[network]\nnic.ports = 2\n"), 10);
    assert_eq!(ports("[network]\ntopology.type = 'crossbar'\n"), 5);
    assert_eq!(ports("[network]\ntopology.ports = 9\n"), 9);
    assert_eq!(ports("[network.placement]\nbuilder = 1\n"), 3);
    assert_eq!(ports("[network.placement]\nmanager = 30\n"), 31);
    assert_eq!(ports("[network]\ncontrol = { type = 'separate', delay = '1 us', rate = '1 Gbit/s' }\n"), 4);
    // A crossbar instead of the switches of a preset, too. This one has separate control.
    assert_eq!(ports("[network]\npreset = 'myrinet-oct-sw8'\ntopology = { type = 'crossbar' }\n"), 4);
}

#[test]
fn nodes_have_hosts_of_their_own_unless_the_file_says_otherwise() {
    let separate = "control = { type = 'separate', delay = '1 us', rate = '1 Gbit/s' }\n";
    let traffic = "[workload]\ntype = 'random'\nmessages = 1\n";
    let placement = |network: &str| plan(network).network.placement;
    let expected = |manager, readout, builder| Placement { manager, readout, builder };
    assert_eq!(placement(""), expected(Some(0), 1, 3));
    assert_eq!(placement(&format!("[network]\n{separate}")), expected(None, 0, 2));
    assert_eq!(placement(traffic), expected(None, 0, 2));
    assert_eq!(placement("[network.placement]\nbuilder = 1\n"), expected(Some(0), 1, 1));
    assert_eq!(placement("[network.placement]\nreadout = 7\n"), expected(Some(0), 7, 9));
    assert_eq!(placement(&format!("[network]\nplacement.builder = 0\n{traffic}")), expected(None, 0, 0));
}

#[test]
fn every_topology_can_be_written() {
    let topology = |keys: &str| {
        let placement = "placement = { manager = 0, readout = 0, builder = 0 }";
        config(&format!("[network]\n{placement}\nrouting = {{ type = 'adaptive' }}\ntopology = {{ {keys} }}\n"))
            .topology
    };
    let clos = |uplink| Topology::Clos { leaves: 3, ports_per_leaf: 4, spines: 5, links: 2, uplink };
    let rate = Some(Bandwidth(8_000_000_000));
    let keys = "type = 'clos', leaves = 3, ports_per_leaf = 4, spines = 5, links = 2, uplink = '1 GB/s'";
    assert_eq!(topology(keys), clos(rate));
    assert_eq!(topology("type = 'composite', edges = 3, ports_per_edge = 4, middles = 5, links = 2"), clos(None));
    assert_eq!(topology("type = 'fat-tree', radix = 4"), Topology::FatTree { radix: 4 });
    let level = |down, up, links| TreeLevel { down, up, links, rate: None, delay: None };
    let leaf = TreeLevel { rate, delay: Some(Span(5_000)), ..level(4, 2, 3) };
    let levels = "{ down = 4, up = 2, links = 3, rate = '1 GB/s', delay = '5 ns' }, { down = 2 }";
    let tree = Topology::FatTreeLevels { levels: vec![leaf, level(2, 0, 1)] };
    assert_eq!(topology(&format!("type = 'fat-tree', levels = [{levels}]")), tree);
    let dragonfly = "type = 'dragonfly', groups = 9, routers = 4, terminals = 2, global = 2, global_delay = '100 ns'";
    let expected = Topology::Dragonfly {
        groups: 9,
        routers: 4,
        terminals: 2,
        global: 2,
        global_rate: None,
        global_delay: Some(Span(100_000)),
    };
    assert_eq!(topology(&format!("{dragonfly} }}\nflow = {{ virtual_channels = 3")), expected);
    assert_eq!(topology("type = 'butterfly', radix = 2, stages = 3"), Topology::Butterfly { radix: 2, stages: 3 });
    let grid = "type = 'grid', width = 3, height = 4, terminals = 2, links = 5";
    assert_eq!(topology(grid), Topology::Grid { width: 3, height: 4, depth: 1, terminals: 2, links: 5 });
    let plus = "type = 'dragonfly-plus', groups = 5, leaves = 3, spines = 2, terminals = 4, global = 2, global_rate = '1 GB/s'";
    let expected = Topology::DragonflyPlus {
        groups: 5,
        leaves: 3,
        spines: 2,
        terminals: 4,
        global: 2,
        global_rate: rate,
        global_delay: None,
    };
    assert_eq!(topology(plus), expected);
    let hyperx = Topology::HyperX { sizes: vec![3, 4], terminals: 2, links: vec![1, 2] };
    let channels = "}\nflow = { virtual_channels = 2";
    assert_eq!(topology(&format!("type = 'hyperx', sizes = [3, 4], terminals = 2, links = [1, 2] {channels}")), hyperx);
    let line = Topology::HyperX { sizes: vec![3], terminals: 1, links: vec![1] };
    assert_eq!(topology("type = 'hyperx', sizes = [3]"), line);
    let torus = "type = 'torus', width = 3, height = 4, depth = 5";
    assert_eq!(topology(torus), Topology::Torus { width: 3, height: 4, depth: 5, terminals: 1, links: 1 });
    let tree = "type = 'tree', leaves = 3, ports_per_leaf = 4, trunk = 2, uplink = '1 GB/s'";
    assert_eq!(topology(tree), Topology::Tree { leaves: 3, ports_per_leaf: 4, trunk: 2, uplink: rate });
}

#[test]
fn levels_take_the_place_of_the_radix_of_a_preset() {
    let levels = "topology = { type = 'fat-tree', levels = [{ down = 4, up = 2 }, { down = 4 }] }\n";
    let config = config(&format!("[network]\npreset = 'infiniband-hdr-fat-tree'\n{levels}"));
    assert!(matches!(config.topology, Topology::FatTreeLevels { .. }), "{:?}", config.topology);
}

#[test]
fn switches_and_links_can_be_listed() {
    let text = "[network.placement]\nmanager = 0\nreadout = 0\nbuilder = 0\n\
                [network.topology]\ntype = 'explicit'\nswitches = ['a', 'b']\n\
                [[network.topology.link]]\nends = ['a', 'b']\ncount = 2\nrate = '1 Gbit/s'\ndelay = '5 ns'\n\
                [[network.topology.link]]\nends = ['a', 'h0']\n[[network.topology.link]]\nends = ['h1', 'b']\n\
                [[network.fault]]\ntarget = 'a>b.1'\nat = '1 s'\naction = 'fail'\n";
    let link = |from: &str, to: &str| {
        let ends = [from.into(), to.into()];
        ExplicitLink { ends, count: 1, rate: None, delay: None, marking: None }
    };
    let trunk =
        ExplicitLink { count: 2, rate: Some(Bandwidth(1_000_000_000)), delay: Some(Span(5_000)), ..link("a", "b") };
    let links = vec![trunk, link("a", "h0"), link("h1", "b")];
    let found = plan(text).network;
    assert_eq!(found.config.topology, Topology::Explicit { switches: vec!["a".into(), "b".into()], links });
    assert_eq!(found.faults[0].until, None);
    let text = text.replace("'a>b.1'", "'a<>b.1'").replace("at = '1 s'", "at = '1 s'\nuntil = '2 s'");
    assert_eq!(plan(&text).network.faults[0].until, Some(Span::from_secs(2)));
    assert_eq!(found.faults[0].action, NetworkFaultAction::Fail { reroute: Span::from_millis(1) });
}

#[test]
fn a_fabric_comes_from_its_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../experiments/fabric");
    let text = |topology: &str, routing: &str| {
        format!(
            "[data]\ndirectory = '{folder}'\n[network]\nplacement = {{ manager = 0, readout = 0, builder = 0 }}\n\
             topology = {{ type = 'infiniband', file = 'fabric.topo'{topology} }}\nrouting = {{ {routing} }}\n"
        )
    };
    let parts = |text: &str| match plan(text).network.config.topology {
        Topology::Infiniband { switches, hosts, cables } => (switches, hosts, cables),
        other => panic!("{other:?}"),
    };
    let (switches, hosts, cables) = parts(&text("", "type = 'fixed'"));
    assert_eq!((switches.len(), hosts.len(), cables.len()), (6, 16, 16));
    assert_eq!((&*switches[4].name, hosts[15].switch, cables[0].ports), ("spine0", 3, [5, 1]));
    assert!(hosts.iter().all(|cable| cable.rate == Bandwidth(200_000_000_000)));
    assert!(switches.iter().all(|switch| switch.table.is_empty()));
    let listed =
        parts(&text(", hosts = ['daq04 mlx5_0', 'H-0002c90300b00000']", "type = 'table', file = 'ftree.lfts'"));
    assert_eq!(listed.1.iter().map(|cable| (cable.switch, cable.port)).collect::<Vec<_>>(), [(1, 1), (0, 1)]);
    // The first leaf has a cable of one host and those to the spines; host 4 has the first of them.
    assert_eq!(listed.0[0].table, [1, 0]);
    assert_eq!(config(&text("", "type = 'table', file = 'ftree.lfts'")).routing, Routing::Table);
}

#[test]
fn points_of_a_sweep_have_the_tables_of_their_own_files() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../experiments/fabric.toml");
    let experiment = Experiment::load(file, &[]).unwrap_or_else(|error| panic!("{error:?}"));
    let [minhop, ftree] = experiment.plans() else { panic!("two points") };
    assert_ne!(minhop.network.config, ftree.network.config);
}

#[test]
fn every_routing_and_arbitration_can_be_written() {
    let routing = |keys: &str| config(&format!("[network]\nrouting = {{ {keys} }}\n")).routing;
    for (name, spread) in [
        ("source", Spread::Source),
        ("destination", Spread::Destination),
        ("switch", Spread::Switch),
        ("pair", Spread::Pair),
    ] {
        assert_eq!(routing(&format!("type = 'fixed', spread = '{name}'")), Routing::Fixed { spread });
    }
    assert_eq!(routing("type = 'random'"), Routing::Random);
    assert_eq!(
        routing("type = 'dispersive', patience = '3 us'"),
        Routing::Dispersive { patience: Span(3_000_000), after: 1, rails: Rails::Separate, probes: 0 }
    );
    assert_eq!(routing("type = 'adaptive'"), Routing::Adaptive);
    assert_eq!(routing("type = 'spanning-tree'"), Routing::SpanningTree);
    assert_eq!(routing("type = 'ecmp'"), Routing::Ecmp);
    let flowlets = |gap, choice| Routing::Flowlets { gap, choice };
    let usual = flowlets(FlowletChoice::USUAL_GAP, FlowletChoice::ShortestQueue);
    assert_eq!(routing("type = 'flowlets'"), usual);
    let letflow = "type = 'flowlets', gap = '2 us', choice = 'random'";
    assert_eq!(routing(letflow), flowlets(Span::from_micros(2), FlowletChoice::Random));
    let torus = "[network]\ntopology = { type = 'torus', width = 3, height = 3 }\nflow = { virtual_channels = 2 }\n\
                 routing = { type = 'dimension-order', spread = 'pair' }\n";
    assert_eq!(
        config(torus).routing,
        Routing::DimensionOrder { spread: Spread::Pair, ties: evb_fabric::Ties::Alternate }
    );
    assert_eq!(config("[network]\npreset = 'ds-link-torus'\n").routing, Routing::AdaptiveDimensionOrder);
    let arbitration = |name: &str| config(&format!("[network]\nswitch.arbitration = '{name}'\n")).switch.arbitration;
    let all = [
        ("round-robin", Arbitration::RoundRobin),
        ("random", Arbitration::Random),
        ("oldest", Arbitration::Oldest),
        ("least-recent", Arbitration::LeastRecent),
    ];
    all.into_iter().for_each(|(name, expected)| assert_eq!(arbitration(name), expected));
    let separate = config("[network]\ncontrol = { type = 'separate', delay = '1 us', rate = '1 Gbit/s' }\n").control;
    assert_eq!(separate, Control::Separate { delay: Span::from_micros(1), rate: Bandwidth(1_000_000_000) });
}

#[test]
fn lanes_can_have_weights() {
    let flow = "[network]\nflow = { virtual_channels = 3, channel = 'priority' }\n";
    assert_eq!(config(flow).switch.lanes, None);
    let lanes = |keys: &str| config(&format!("{flow}switch.lanes = {{ {keys} }}\n")).switch.lanes.expect("it is set");
    let entry = |lane, weight| LaneWeight { lane, weight };
    let low = lanes("low = [{ lane = 0, weight = 1 }, { lane = 1, weight = 2 }, { lane = 2, weight = 3 }]");
    let weights = vec![entry(0, 1), entry(1, 2), entry(2, 3)];
    assert_eq!(low, LaneWeights { high: Vec::new(), low: weights, limit: 0, service_levels: Vec::new() });
    assert_eq!([0, 1, 2].map(|level| low.lane(level)), [0, 1, 2]);
    let high = lanes("high = [{ lane = 1, weight = 255 }], limit = 255, service_levels = [1]");
    assert_eq!(high, LaneWeights { high: vec![entry(1, 255)], low: Vec::new(), limit: 255, service_levels: vec![1] });
    assert_eq!([0, 2].map(|level| high.lane(level)), [1, 1]);
}

#[test]
fn another_network_leaves_hosts_and_faults_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    };
    let network = "[network]\npreset = \"ideal\"\nplacement = { readout = 3 }\n\
                   fault = [{ target = \"h0>switch0\", at = \"1 s\", action = \"slow\", factor = 2 }]\n";
    let own = file("own.toml", &(SHORT.to_owned() + network));
    let other = file(
        "other.toml",
        "[network]\nlink = { rate = \"1 Gbit/s\" }\ntopology = { type = \"crossbar\", ports = 9 }\n",
    );
    let experiment = Experiment::load_on(&own, &other, &[]).unwrap_or_else(|error| panic!("{error:?}"));
    let found = &experiment.plans()[0].network;
    assert_eq!((found.placement.readout, found.faults.len()), (3, 1));
    assert_eq!(found.config.link.rate.as_bytes_per_second(), 125e6);
}

#[test]
fn a_sweep_of_networks_resolves() {
    let sweep = "[network]\nnic.packet = '2 KiB'\nplacement = { builder = 0 }\n[sweep]\n\
                 'network.preset' = ['ideal', 'myrinet-oct-sw8']\nreadout.units = [2, 4]\n\
                 'network.switch' = [{}, { delay = '9 ns', arbitration = 'random' }]\n";
    let text = SHORT.to_owned() + sweep;
    let experiment = Experiment::parse(&text, "a.toml", &[]).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(experiment.plans().len(), 8);
    assert_eq!(experiment.plans()[2].network.config.topology, Topology::Crossbar { ports: 5 });
    let resolved = experiment.resolved();
    let again = Experiment::parse(&resolved, "a.toml", &[]).unwrap_or_else(|error| panic!("{error:?}\n{resolved}"));
    assert_eq!(again.plans(), experiment.plans(), "{resolved}");
    for (index, plan) in experiment.plans().iter().enumerate() {
        let text = experiment.resolved_at(index).expect("a point of the sweep");
        let single = Experiment::parse(&text, "again.toml", &[]).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        assert_eq!(single.plans(), [Plan { sweep: vec![], ..plan.clone() }], "{text}");
    }
}

/// Costs that are not in the file are none.
#[test]
fn processors_can_be_written() {
    assert_eq!(plan("").network.cpu, None);
    let cpu = |keys: &str| plan(&format!("[network.cpu]\n{keys}\n")).network.cpu.expect("there are processors");
    let plain = cpu("");
    assert_eq!((plain.cores, plain.computers, plain.messages), (1, Computers::EachHost, LocalMessages::Network));
    assert_eq!((plain.processes, plain.poll, plain.cache, plain.fit), (false, Span::ZERO, None, None));
    assert_eq!((plain.storage, plain.disk, plain.storing_takes_time()), (EventCost::default(), None, false));
    assert_eq!((plain.readout, plain.send), (PayloadCost::default(), MessageCost::default()));
    let full = cpu(
        "cores = 4\ncomputers = 'one'\nmessages = 'memory'\nnodes = 'processes'\npoll = '1 ns'\npoll_peer = '24 ns'\nslice = '4 ms'\n\
         send = { call = '2 ns', message = '3 ns', byte = '4 ps' }\nreceive = { call = '5 ns', message = '6 ns', byte = '7 ps' }\n\
         crossing = { delay = '8 ns', message = '9 ns', byte = '10 ps' }\nmanager = { block = '11 ns', event = '12 ns' }\n\
         readout = { block = '13 ns', fragment = '14 ns', byte = '15 ps', draw = '16 ns' }\n\
         builder = { block = '17 ns', fragment = '18 ns', byte = '19 ps' }\nstorage = { event = '26 ns', byte = '27 ps' }\n\
         disk = { rate = '1 MB/s', latency = '28 ns', cache = '3 MB' }\nfilter = { event = '29 ns', byte = '30 ps' }\ncache = { size = '2 MiB', byte = '20 ps' }\n\
         wake = { delay = '21 ns', call = '22 ns' }\ncontext_switch = '23 ns'\nrefill = '25 ns'\n\
         interruptions = [{ every = '3 ms', length = '26 us' }]\nfit = { error = 12.5, reference = '645 kHz' }",
    );
    let ns = |ns: u64| Span(ns * 1000);
    let expected = CpuPlan {
        computers: Computers::One,
        cores: 4,
        messages: LocalMessages::Memory,
        processes: true,
        poll: ns(1),
        poll_peer: ns(24),
        send: MessageCost { call: ns(2), message: ns(3), byte: Span(4) },
        receive: MessageCost { call: ns(5), message: ns(6), byte: Span(7) },
        crossing: CrossingCost { delay: ns(8), message: ns(9), byte: Span(10) },
        manager: ManagerCost { block: ns(11), event: ns(12) },
        readout: PayloadCost { block: ns(13), fragment: ns(14), byte: Span(15) },
        draw: ns(16),
        builder: PayloadCost { block: ns(17), fragment: ns(18), byte: Span(19) },
        storage: EventCost { event: ns(26), byte: Span(27) },
        disk: Some(DiskPlan { rate: Bandwidth(8_000_000), latency: ns(28), cache: ByteCount(3_000_000) }),
        filter: EventCost { event: ns(29), byte: Span(30) },
        cache: Some(CacheCost { size: ByteCount(2 << 20), byte: Span(20) }),
        wake: WakeCost { delay: ns(21), call: ns(22) },
        context_switch: ns(23),
        refill: ns(25),
        slice: Span::from_millis(4),
        interruptions: vec![Interruption { every: Span::from_millis(3), length: ns(26_000) }],
        fit: Some(CpuFit { error_percent: 12.5, reference: Frequency(645_000_000) }),
    };
    assert_eq!(full, expected);
}
