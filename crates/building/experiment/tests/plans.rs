//! Meaning of good files.

use evb_connection::Transport;
use evb_core::{
    Bandwidth, ByteCount, EventCounter, FirstCounter, Frequency, MarkComparison, NodeId, NodeRange, SourceId, Span,
};
use evb_experiment::{
    BackgroundPlan, BackgroundPriority, Bundling, Cores, Experiment, FaultAction, FaultSpec, FieldLayout,
    HistogramPlan, Keep, Load, Needs, NumberType, PayloadLayout, PayloadPart, Placement, Plan, Quantity, Rejoin,
    RunPlan, SlotErrors, StageLink, StoragePlan, TrafficPlan, TriggerPlan, Workload,
};
use evb_fabric::{
    Arbitration, Control, Dma, Flow, HostConfig, HostLinks, Jitter, JitterPer, JitterSpread, LinkConfig, NetworkConfig,
    NetworkFault, NetworkFaultAction, NicConfig, Rails, Routing, Service, SharedMemory, SwitchConfig, Topology,
    Watchdog, WatchdogAction, WhenFull,
};
use evb_filter::{ChainStep, Code, Rule, Selection, StreamId, UnitsPlan, Width};
use evb_patterns::{Pattern, TrafficConfig};
use evb_protocol::{
    Assignment, ClockOffset, ClockSettings, Coincidence, Config, FirstPhase, Protocol, RequestOrder, Shaping,
    ShapingStep, Trigger,
};
use evb_sources::{
    ByteOrder, ClockField, ControlLink, ControlSpec, Encoding, EudaqProducer, Field, FrameChecksum, FrameEnd, Framing,
    FrontEndLink, HitClock, HitLayout, LiveSlicing, LiveSpec, Marker, Setting, Slicing, SourceSpec, Tick, TimeField,
};
use evb_transport_registry::{Settings, TransportChoice, find};
use std::path::{Path, PathBuf};

const SHORT: &str = r#"
trigger.events = 1000
builder.units = 2
[readout]
units = 2
source = { type = "fixed", size = "2 kB" }
"#;

fn parse(text: &str, overrides: &[&str]) -> Experiment {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Experiment::parse(text, "folder/short.toml", &overrides).unwrap_or_else(|error| panic!("{error:?}"))
}

fn plan(text: &str, overrides: &[&str]) -> Plan {
    let experiment = parse(text, overrides);
    assert_eq!(experiment.plans().len(), 1);
    experiment.plans()[0].clone()
}

/// Parses the resolved text and expects the same plans.
fn assert_resolves(experiment: &Experiment) {
    let resolved = experiment.resolved();
    let again = Experiment::parse(&resolved, "again.toml", &[]).unwrap_or_else(|error| panic!("{error:?}\n{resolved}"));
    assert_eq!(again.plans(), experiment.plans(), "{resolved}");
    assert_eq!(again.resolved(), resolved);
}

#[test]
fn a_short_file_gets_every_default() {
    // Who builds a configuration without a file gets the same, in single events.
    let building = Config { events: Some(1000), ..Config::new(2, 2) };
    let found = plan(SHORT, &["trigger.block=1"]);
    let expected = Plan {
        name: "short".into(),
        description: String::new(),
        sweep: vec![],
        building,
        filter: Selection::all(1),
        trigger: TriggerPlan { rate: None, poisson: false, duration: None, accept_loss: 0 },
        sources: vec![SourceSpec::Fixed { size: ByteCount(2000) }; 2],
        bundling: Bundling::default(),
        data_directory: "folder".into(),
        transport: TransportChoice::new(find("in-process").unwrap(), Settings::new()),
        control: None,
        storage: StoragePlan {
            keep: Keep::All,
            directory: "evb-data".into(),
            file_size: ByteCount(2_000_000_000),
            compresses: false,
            apart: ByteCount(64_000_000),
        },
        histograms: vec![],
        run: RunPlan {
            needs: Needs::default(),
            samples: 0,
            rejoin: Rejoin::NextRun,
            seed: 1,
            peer_timeout: Span::from_secs(5),
            drain_timeout: Span::from_secs(10),
            workers: None,
            cores: Cores::None,
            warmup: None,
        },
        faults: vec![],
        // The rest of it is the preset's.
        network: found.network.clone(),
        workload: Workload::EventBuilding,
        background: vec![],
        link: StageLink::None,
        stages: None,
    };
    assert_eq!(found, expected);
    let plan = Plan::new(expected.building, SourceSpec::Fixed { size: ByteCount(2000) });
    assert_eq!(found, Plan { name: "short".into(), data_directory: "folder".into(), ..plan });
    assert_eq!(found.network.config.preset, "ideal");
    assert_eq!(found.network.config.topology, Topology::Crossbar { ports: 5 });
    assert_eq!(found.network.placement, Placement { manager: Some(0), readout: 1, builder: 3 });
    assert_eq!(found.network.faults, []);
    assert_resolves(&parse(SHORT, &[]));
    insta::assert_snapshot!("resolved_short", parse(SHORT, &[]).resolved());
}

#[test]
fn a_plan_without_a_file_is_as_one_with_it() {
    let file = |source: &str, more: &str| {
        let text = format!("name = 'experiment'\nbuilder.units = 3\n{more}\n[readout]\nunits = 4\nsource = {source}");
        Experiment::parse(&text, "a.toml", &[]).map(|experiment| experiment.plans()[0].clone())
    };
    let generated = SourceSpec::Fixed { size: ByteCount(1000) };
    let building = Config { events: Some(10), ..Config::new(4, 3) };
    for preset in evb_fabric::presets() {
        let more = format!("trigger.events = 10\nnetwork.preset = {:?}\nrun.seed = 9", preset.name);
        let plan = Plan::new(building.clone(), generated.clone()).with_seed(9).on_network(preset.name);
        assert_eq!(plan.ok(), file("{ type = 'fixed', size = '1 kB' }", &more).ok(), "{}", preset.name);
    }
    let error = Plan::new(building, generated.clone()).on_network("idael").expect_err("no such preset");
    assert!(error.to_string().contains("cannot be \"idael\""), "{error}");
    let error = Plan::new(Config::new(200, 3), generated).on_network("myrinet-oct-sw8").expect_err("too small");
    assert!(error.problems().all(|problem| problem.message.starts_with("there are no hosts")), "{error:?}");

    let live = SourceSpec::CmsFed { file: "a.raw".into(), source_id: None, refuse_damaged: false };
    let building = Config { trigger: Trigger::Data, ..Config::new(4, 3) };
    assert_eq!(Plan::new(building, live), file("{ type = 'cms-fed', file = 'a.raw' }", "").expect("a good file"));
}

#[test]
fn a_full_file_says_everything() {
    let text = include_str!("full.toml");
    let plan = plan(text, &[]);
    let building = Config {
        readout_units: 14,
        builder_units: 400,
        numbered: [5, 6, 7, 8, 9, 10, 11, 12].map(SourceId).into(),
        tolerant: vec![SourceId(11)],
        marks: MarkComparison { tolerance: 2, bits: 8 },
        protocol: Protocol::Push,
        assignment: Assignment::LeastLoaded,
        shaping: Shaping::Grouping { packet: ByteCount(64 << 10), timeout: Span::from_micros(500) },
        trigger: Trigger::Data,
        events: Some(5000),
        group: 800,
        group_timeout: Span::from_millis(2),
        request_group: None,
        request_order: RequestOrder::Rotated,
        request_window: None,
        builder_slots: 32,
        first_under_way: None,
        patience: Span::from_millis(250),
        deadline: Some(Span::from_secs(2)),
        max_fragment: ByteCount(2 << 20),
        buffer_events: 20_000,
        buffer_bytes: ByteCount(1 << 30),
        busy_percent: 80,
        free_percent: 50,
        coincidence: None,
    };
    assert_eq!(plan.building, building);
    assert_eq!((&*plan.name, &*plan.description), ("full", "every key\nof the \"file\""));
    assert_eq!(plan.data_directory, PathBuf::from("${EVB_DATA}/run 1"));
    let sources = [
        SourceSpec::Fixed { size: ByteCount(1024) },
        SourceSpec::Uniform { min: ByteCount(1), max: ByteCount(2000) },
        SourceSpec::LogNormal { mean: ByteCount(2000), rms: ByteCount(0) },
        SourceSpec::Trace { file: "trace.csv".into(), source: Some(7) },
        SourceSpec::SizeModel { file: "model.csv".into(), fed: Some(841), event_size_mean: 1.5, event_size_rms: 2.0 },
        SourceSpec::CmsFed { file: "a.raw".into(), source_id: None, refuse_damaged: false },
        live(FrontEndLink::Tcp("127.0.0.1:9000".into()), 24, None),
        live(FrontEndLink::Udp("[::1]:9000".into()), 32, None),
        full_board(),
        live(FrontEndLink::Serial { device: "/dev/ttyUSB0".into(), baud: 9600 }, 32, None),
        live(
            FrontEndLink::Capture { file: "board.pcapng".into(), port: Some(6006), paced: true },
            32,
            Some(full_packets()),
        ),
        full_eudaq(),
        live(FrontEndLink::File("board.raw".into()), 64, Some(full_lines())),
        SourceSpec::Trace { file: "${HOME}/all.csv".into(), source: None },
    ];
    assert_eq!(plan.sources, sources);
    assert_eq!(plan.transport.info().name, "tcp");
    assert_eq!(plan.filter, full_selection(plan.run.seed));
    assert_eq!(plan.storage.keep, Keep::OneIn(10));
    assert_eq!((plan.histograms.len(), &plan.histograms[0]), (15, &full_histogram()));
    let of_sizes = &plan.histograms[14];
    assert_eq!((of_sizes.name.as_str(), of_sizes.bins, of_sizes.range), ("size of ru13", 50, [-0.5, 1e6]));
    assert_eq!(plan.run.workers, Some(2));
    assert_eq!(plan.trigger.duration, Some(Span::from_secs(60)));
    assert_eq!(plan.run.warmup, Some(Span::from_millis(10)));
    assert_eq!(plan.network.config, full_network());
    assert_eq!(plan.network.placement, Placement { manager: Some(19), readout: 10, builder: 20 });
    assert_eq!(plan.network.faults, full_network_faults());
    assert_eq!(plan.background, full_background());
    assert_eq!(plan.all_nodes(), 415 + 16 + 800);
    let fault = |node: u16, action| FaultSpec { node: NodeId(node), source: None, action };
    let one_in = 100;
    let faults = [
        fault(0, FaultAction::Kill { at: Span::from_secs(1) }),
        fault(414, FaultAction::Kill { at: Span::ZERO }),
        fault(1, FaultAction::Corrupt { one_in }),
        fault(1, FaultAction::Duplicate { one_in }),
        fault(9, FaultAction::Lose { one_in }),
        fault(2, FaultAction::Oversize { one_in }),
        fault(2, FaultAction::Delay { one_in, by: Span::from_millis(2) }),
        fault(413, FaultAction::SlowDisk { rate: Bandwidth(400_000_000) }),
    ];
    assert_eq!(plan.faults, faults);
    let names = faults.map(|fault| plan.building.node_name(fault.node));
    assert_eq!(names, ["evm", "bu399", "ru0", "ru0", "ru8", "ru1", "ru1", "bu398"]);
    assert_eq!(plan.slow_disk(NodeId(413)), Some(Bandwidth(400_000_000)));
    assert_eq!(plan.slow_disk(NodeId(408)), None);
    assert_resolves(&parse(text, &[]));
    insta::assert_snapshot!("resolved_full", parse(text, &[]).resolved());
}

fn full_selection(seed: u64) -> Selection {
    let step =
        |rule, stream: Option<u16>, accept| ChainStep { rule, stream: stream.map(StreamId), copy: false, accept };
    let (at_least, at_most) = (Some(ByteCount(1000)), Some(ByteCount(1_000_000)));
    let (mask, value) = (0xf000_0000_0000_0000, 0x5000_0000_0000_0000);
    let word = Rule::Word { source: SourceId(0), width: Width::Bits64, mask, value, at: Some(0) };
    Selection {
        seed,
        phased: false,
        drawn: None,
        steps: vec![
            step(Rule::Prescale { one_in: 1000 }, Some(1), None),
            step(Rule::Size { source: Some(SourceId(1)), at_least, at_most }, None, None),
            step(word, None, Some(0.9)),
            step(Rule::Complete, None, None),
            step(Rule::Random { accept: 0.5 }, None, None),
            ChainStep { copy: true, ..step(Rule::Prescale { one_in: 100 }, Some(4), None) },
        ],
        units: Some(UnitsPlan {
            units: 2,
            code: Some(Code::Program(vec!["./my-filter".into(), "--fast".into()])),
            listen: Some("0.0.0.0:9000".into()),
            timeout: Span::from_secs(3),
            patience: Span::from_secs(1),
            events: 8,
            accept: Some(0.1),
            time: Span::from_millis(1),
        }),
        streams: ["physics", "calibration", "monitor", "quarantine", "display"].map(str::to_owned).into(),
    }
}

fn full_histogram() -> HistogramPlan {
    let layout = PayloadLayout { header: 8, item: 14, trailer: 1 };
    let field = FieldLayout {
        part: PayloadPart::Items,
        at: 8,
        count: 3,
        number: NumberType::U2,
        big_endian: true,
        bits: Some((4, 11)),
    };
    HistogramPlan {
        name: "strips of ru1".into(),
        source: SourceId(1),
        source_name: "ru1".into(),
        field: "items.word".into(),
        quantity: Quantity::Field(layout, field),
        bins: 200,
        range: [0.0, 200.0],
        channels: true,
        one_in: 5,
    }
}

#[test]
fn each_source_has_a_histogram_and_a_name() {
    let names = |text: &str| plan(text, &[]).histograms.into_iter().map(|plan| plan.name).collect::<Vec<_>>();
    let monitor = "[[monitor]]\nfield = 'size'\nrange = [0, 100]\n";
    assert_eq!(names(&format!("{SHORT}{monitor}")), ["size of ru0", "size of ru1"]);
    assert_eq!(names(&format!("{SHORT}{monitor}name = 'n'\n")), ["n of ru0", "n of ru1"]);
    assert_eq!(names(&format!("{SHORT}{monitor}name = 'n'\nsources = ['ru1']\n")), ["n"]);
    let several = format!("{SHORT}sources = 4\nmasked = [1]\n{monitor}");
    assert_eq!(names(&several), ["size of source 0", "size of source 2", "size of source 3"]);
    assert_eq!(names(&format!("{several}sources = ['ru1', 'source 0', 'source 2']\n")).len(), 3, "each one once");
    // In two stages the builders of the second one see all fragments.
    let text = format!("{SHORT}sources = 4\n[first_stage]\nslices = 2\n{monitor}");
    let stages = plan(&text, &[]).stages.expect("two stages");
    assert!(stages.slices.iter().all(|slice| slice.histograms.len() == 4));
    assert!(stages.groups.iter().all(|group| group.histograms.is_empty()));
}

fn full_network() -> NetworkConfig {
    NetworkConfig {
        preset: "ideal".into(),
        topology: Topology::Clos {
            leaves: 42,
            ports_per_leaf: 20,
            spines: 10,
            links: 2,
            uplink: Some(Bandwidth(200_000_000_000)),
        },
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

fn full_background() -> Vec<BackgroundPlan> {
    let nodes = |first, count| NodeRange { first: NodeId(first), count };
    let config = |senders, receivers, pattern, window| TrafficConfig { senders, receivers, pattern, window, seed: 42 };
    let destinations = (0..14).map(|sender| sender % 2).collect();
    let storage = BackgroundPlan {
        name: "storage".into(),
        traffic: TrafficPlan {
            config: config(nodes(415, 14), nodes(429, 2), Pattern::Assigned { destinations }, 4),
            load: Load::Rate { rate: Frequency(100_000), poisson: false },
            messages: Some(1000),
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

/// Hosts of the background come after those of the units, and a crossbar has ports for them.
#[test]
fn background_traffic_has_hosts_of_its_own() {
    let text = r#"
[[background]]
name = "storage"
senders = { on = "builders" }
receivers = { on = "hosts", count = 3 }
message = { type = "fixed", size = "1 MB" }
[[background]]
name = "transfer"
pattern = "assigned"
senders = { on = "hosts", count = 3 }
receivers = { on = "hosts", first = 9, count = 2 }
message = { type = "fixed", size = "1 MB" }
"#;
    let text = format!("{SHORT}{text}");
    let plan = plan(&text, &[]);
    let [storage, transfer] = &*plan.background else { panic!("two tables") };
    assert_eq!(plan.network.config.topology, Topology::Crossbar { ports: 11 });
    assert_eq!((storage.sender_host, storage.receiver_host), (3, 5));
    assert_eq!((transfer.sender_host, transfer.receiver_host), (5, 9));
    assert_eq!(transfer.traffic.config.pattern, Pattern::Assigned { destinations: vec![0, 1, 0] });
    let names: Vec<_> =
        (5..plan.all_nodes()).map(|node| (plan.node_name(NodeId(node)), plan.host(NodeId(node)))).collect();
    assert_eq!(names[1], ("sender 1 of storage".into(), Some(4)));
    assert_eq!(names[4], ("receiver 2 of storage".into(), Some(7)));
    assert_eq!(names.last(), Some(&("receiver 1 of transfer".into(), Some(10))));
    assert_resolves(&parse(&text, &[]));
}

fn full_network_faults() -> Vec<NetworkFault> {
    let fault =
        |target: &str, at, action| NetworkFault { target: target.into(), at: Span::from_secs(at), until: None, action };
    vec![
        fault("leaf0", 1, NetworkFaultAction::Fail { reroute: Span::from_millis(2) }),
        fault("leaf0>spine0.1", 0, NetworkFaultAction::Slow { factor: 2.5 }),
        fault("spine9>leaf41.0", 3, NetworkFaultAction::Corrupt { one_in: 1000 }),
        fault("leaf0>h0.0", 2, NetworkFaultAction::Pause),
    ]
}

#[test]
fn a_rate_is_driven_from_outside() {
    let overrides = ["trigger.type=rate", "trigger.rate=50 kHz", "trigger.spacing=poisson"];
    let plan = plan(SHORT, &overrides);
    assert_eq!(plan.building.trigger, Trigger::Driven);
    let expected = TriggerPlan { rate: Some(Frequency(50_000_000)), poisson: true, duration: None, accept_loss: 0 };
    assert_eq!(plan.trigger, expected);
}

#[test]
fn recorded_and_live_sources_trigger_by_themselves() {
    for source in ["{ type = 'cms-fed', file = 'a' }", "{ type = 'trace', file = 'a' }"] {
        let text = format!("builder.units = 1\n[readout]\nunits = 1\nsource = {source}\n");
        assert_eq!(plan(&text, &[]).building.trigger, Trigger::Data, "{source}");
    }
    // The shared source is not used by any unit here, so it does not count.
    let unused = "trigger.events = 1\nbuilder.units = 1\nreadout.source = { type = 'cms-fed', file = 'a' }\n\
                  [[readout.unit]]\nsource = { type = 'fixed', size = '1 B' }\n";
    assert_eq!(plan(unused, &[]).building.trigger, Trigger::FreeRunning);
}

#[test]
fn first_units_can_have_sources_of_their_own() {
    let text = SHORT.to_owned() + "[[readout.unit]]\nsource = { type = 'fixed', size = '1 B' }\n";
    let sizes = [1, 2000].map(|size| SourceSpec::Fixed { size: ByteCount(size) });
    assert_eq!(plan(&text, &[]).sources, sizes);
    assert_resolves(&parse(&text, &[]));
}

#[test]
fn shapings_in_slots() {
    let shaping = |overrides: &[&str]| plan(SHORT, overrides).building.shaping;
    let slip = Span::from_millis(100);
    let barrel = |bucket, step| Shaping::BarrelShifter { bucket: ByteCount(bucket), step, lead: ByteCount(8192), slip };
    assert_eq!(shaping(&["shaping.type=barrel-shifter"]), barrel(8192, ShapingStep::Credit));
    assert_eq!(shaping(&["shaping.type=rate-division"]), Shaping::RateDivision { packet: ByteCount(512) });
    let small = shaping(&["shaping.type=barrel-shifter", "shaping.bucket=2 kB", "shaping.step=link"]);
    assert_eq!(small, barrel(2000, ShapingStep::Link));
}

#[test]
fn the_times_of_slots_have_errors_in_a_simulation() {
    let errors = |keys: &str| plan(SHORT, &[&format!("shaping={{type=\"barrel-shifter\"{keys}}}")]).network.slot_errors;
    let jitter = |spread| Some(Jitter { mean: Span::from_micros(1), spread, per: JitterPer::Message });
    assert_eq!(errors(""), SlotErrors::default());
    assert_eq!(errors(",skew=\"0 s\",jitter={mean=\"0 s\"}"), SlotErrors::default());
    let exponential = errors(",skew=\"3 us\",jitter={mean=\"1 us\"}");
    assert_eq!(exponential, SlotErrors { skew: Span::from_micros(3), jitter: jitter(JitterSpread::Exponential) });
    let rms = Span::from_micros(5);
    assert_eq!(errors(",jitter={mean=\"1 us\",rms=\"5 us\"}").jitter, jitter(JitterSpread::LogNormal { rms }));
    assert_eq!(plan(SHORT, &["shaping={type=\"grouping\"}"]).network.slot_errors, SlotErrors::default());
}

#[test]
fn requests_have_an_order_and_a_window_where_builders_send_them() {
    let requests = |protocol: &str| {
        let config = plan(SHORT, &[&format!("protocol={{{protocol}}}")]).building;
        (config.request_order, config.request_window.map(std::num::NonZeroU32::get))
    };
    assert_eq!(requests("type=\"push\""), (RequestOrder::Rotated, None));
    assert_eq!(requests("type=\"pull\""), (RequestOrder::Rotated, None));
    assert_eq!(requests("type=\"pull\",order=\"same\",window=4"), (RequestOrder::Same, Some(4)));
    assert_eq!(requests("type=\"phased\",first=1,accept=0.5,window=2"), (RequestOrder::Rotated, Some(2)));
}

#[test]
fn defaults_follow_the_number_of_builders() {
    let config = plan(SHORT, &["builder.units=1000"]).building;
    assert_eq!((config.group, config.buffer_events), (1000, 128_000));
    // Equal is enough.
    let config = plan(SHORT, &["builder.units=10", "protocol.group=10", "readout.buffer_events=640"]).building;
    assert_eq!((config.group, config.buffer_events), (10, 640));
    let config = plan(SHORT, &["builder.units=1000", "protocol.type=pull"]).building;
    assert_eq!((config.protocol, config.group), (Protocol::Pull, 1000));
    let config = plan(SHORT, &["builder.units=1000", "builder.slots=1"]).building;
    assert_eq!(config.buffer_events, 4096);
}

#[test]
fn phased_sets_the_first_units_and_the_accepted_part() {
    let found = plan(SHORT, &["protocol={type='phased',first=1,accept=0.2}", "run.seed=7"]);
    assert_eq!(found.building.protocol, Protocol::Phased { first: FirstPhase::Units(1), rest: true });
    let region = plan(SHORT, &["protocol={type='phased',least=1,most=2,rest=false}", "run.seed=7"]);
    let first = FirstPhase::Region { least: 1, most: 2, seed: 7 };
    assert_eq!(region.building.protocol, Protocol::Phased { first, rest: false });
    assert_eq!(region.filter, Selection::all(7));
    assert_eq!(region.with_seed(8).building.protocol, Protocol::Phased { first, rest: false }.with_seed(8));
    assert_eq!(found.filter, Selection { phased: true, drawn: Some(0.2), ..Selection::all(7) });
    assert_eq!(plan(SHORT, &["protocol={type='phased',first=1,accept=1}"]).filter.drawn, Some(1.0));
    assert_resolves(&parse(SHORT, &["protocol={type='phased',first=1,accept=0}"]));
}

#[test]
fn set_changes_and_adds_keys() {
    let keep = |text: &str| plan(SHORT, &[text]).storage.keep;
    assert_eq!(keep("storage.keep=none"), Keep::None);
    assert_eq!(keep("storage.keep=\"none\""), Keep::None);
    assert_eq!(keep(" storage . keep = { one_in = 5 } "), Keep::OneIn(5));
    assert_eq!(keep("storage.keep.one_in=5"), Keep::OneIn(5));
    let log_normal = "readout.source={ type = 'log-normal', mean = '1 kB', rms = '2 kB' }";
    let expected = SourceSpec::LogNormal { mean: ByteCount(1000), rms: ByteCount(2000) };
    assert_eq!(plan(SHORT, &[log_normal]).sources[0], expected);
    let fault = "[[fault]]\nnode = 'ru0'\naction = 'lose'\none_in = 9\n";
    let changed = plan(&(SHORT.to_owned() + fault), &["fault.0.one_in=3"]);
    assert_eq!(changed.faults[0].action, FaultAction::Lose { one_in: 3 });
    // The last one counts.
    assert_eq!(plan(SHORT, &["run.seed=3", "run.seed=4"]).run.seed, 4);
}

#[test]
fn data_folders_start_at_the_file_or_where_the_user_is() {
    let directory = |directory: &str, overrides: &[&str]| {
        let text = format!("data.directory = {directory:?}\n{SHORT}");
        assert_resolves(&parse(&text, overrides));
        plan(&text, overrides).data_directory
    };
    assert_eq!(directory(".", &[]), Path::new("folder"));
    assert_eq!(directory("../data", &[]), Path::new("folder/../data"));
    assert_eq!(directory("/data", &[]), Path::new("/data"));
    assert_eq!(directory("${EVB_DATA}", &[]), Path::new("${EVB_DATA}"));
    assert_eq!(directory("x", &["data.directory=../data"]), Path::new("../data"));
    let here = Experiment::parse(SHORT, "short.toml", &[]).expect("a good file");
    assert_eq!(here.plans()[0].data_directory, Path::new("."));
}

#[test]
fn keys_that_are_swept_together_get_the_same_value() {
    let text = SHORT.to_owned() + "[sweep]\n'readout.units, builder.units' = [2, 5]\n'run.seed' = [1, 2]\n";
    let experiment = parse(&text, &[]);
    let units = |plan: &Plan| (plan.building.readout_units, plan.building.builder_units, plan.run.seed);
    assert_eq!(experiment.plans().iter().map(units).collect::<Vec<_>>(), [(2, 2, 1), (2, 2, 2), (5, 5, 1), (5, 5, 2)]);
    assert_eq!(experiment.plans()[3].sweep[0], ("readout.units, builder.units".to_owned(), "5".to_owned()));
    let single = parse(&experiment.resolved(), &[]);
    assert_eq!(single.plans().len(), 4);
    // What is set on the command line is not swept, nor what was to be the same.
    assert_eq!(parse(&text, &["builder.units=3"]).plans().len(), 2);
    let error = Experiment::parse(&(text + "'builder.units' = [7]\n"), "twice.toml", &[]).unwrap_err().to_string();
    assert!(error.contains("set the same key"), "{error}");
}

#[test]
fn a_sweep_gives_one_plan_for_each_combination() {
    let text = SHORT.to_owned()
        // Keys with and without quotes mean the same.
        + "[sweep]\n\"readout.source.size\" = [\"1 kB\", \"2 kB\"]\nbuilder.units = [100, 500, 1000]\n\
           shaping = [{ type = \"none\" }, { type = \"grouping\" }]\n";
    let experiment = parse(&text, &[]);
    assert_eq!(experiment.plans().len(), 12);
    let second_last = &experiment.plans()[10];
    let expected = [("readout.source.size", "2 kB"), ("builder.units", "1000"), ("shaping", "{ type = \"none\" }")];
    assert_eq!(second_last.sweep, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!((second_last.building.builder_units, second_last.building.group), (1000, 1000));
    assert_eq!(experiment.plans()[0].building.group, 352);
    assert_resolves(&experiment);
    insta::assert_snapshot!("resolved_sweep", experiment.resolved());

    for (index, plan) in experiment.plans().iter().enumerate() {
        let text = experiment.resolved_at(index).expect("a point of the sweep");
        let single = Experiment::parse(&text, "again.toml", &[]).expect("a good file");
        assert_eq!(single.plans(), [Plan { sweep: vec![], ..plan.clone() }], "{text}");
    }
    assert_eq!(experiment.resolved_at(12), None);
}

#[test]
fn a_key_that_is_set_is_not_swept() {
    let text = SHORT.to_owned() + "[sweep]\n\"run.seed\" = [1, 2]\n\"builder.units\" = [3, 4]\n";
    assert_eq!(parse(&text, &["builder.units=5"]).plans().len(), 2);
    assert_eq!(parse(&text, &["run={ seed = 9 }"]).plans()[1].run.seed, 9);
    assert_eq!(parse(&text, &["sweep.\"run.seed\"=[7, 8, 9]"]).plans().len(), 6);
    assert_eq!(parse(SHORT, &["sweep.run.seed=[7, 8, 9]"]).plans()[2].run.seed, 9);
}

#[test]
fn swept_tables_in_lists_and_data_folders_resolve() {
    let text = "builder.units = 1\n[[readout.unit]]\nsource = { type = 'cms-fed', file = 'a' }\n[[readout.unit]]\n\
                source = { type = 'cms-fed', file = 'b' }\n[sweep]\n'readout.unit.0.source.file' = ['c', 'd']\n\
                'data.directory' = ['x', '/y', '.']\n";
    let experiment = parse(text, &[]);
    let folders: Vec<_> = experiment.plans().iter().map(|plan| plan.data_directory.clone()).collect();
    assert_eq!(folders[..3], ["folder/x", "/y", "folder"].map(PathBuf::from));
    assert_resolves(&experiment);
    let whole = parse(&(SHORT.to_owned() + "[sweep]\ndata = [{}, { directory = 'z' }]\n"), &[]);
    assert_eq!(whole.plans()[0].data_directory, Path::new("folder"));
    assert_resolves(&whole);
}

/// What `block = "auto"` makes of a file: events in a block at first, and most of them where their number follows the load.
#[test]
fn blocks_fit_sources_and_triggers() {
    let blocks = |trigger: &str, source: &str, more: &str| {
        let text = format!(
            "[trigger]\nblock = 'auto'\n{trigger}\n[readout]\nunits = 8\nsource = {{ {source} }}\n[builder]\nunits = 8\n{more}"
        );
        let plan = plan(&text, &[]);
        (plan.bundling.block, plan.bundling.largest, plan.events())
    };
    let (free, rate) = ("events = 30_000", "type = 'rate'\nrate = '1 kHz'\nevents = 1201");
    let (small, large) = ("type = 'fixed', size = '2 kB'", "type = 'log-normal', mean = '60 kB', rms = '1 kB'");
    assert_eq!(blocks(free, small, ""), (64, None, Some(30_000)), "the last one is smaller");
    assert_eq!(blocks("events = 1200", small, ""), (18, None, Some(1200)), "eight for each builder");
    assert_eq!(blocks("duration = '1 s'", small, ""), (64, None, None));
    assert_eq!(blocks(rate, small, ""), (1, Some(64), Some(1201)));
    assert_eq!(blocks(rate, large, ""), (1, Some(2), Some(1201)), "128 KiB in a bundle");
    assert_eq!(blocks(rate, "type = 'fixed', size = '200 kB'", ""), (1, None, Some(1201)));
    assert_eq!(blocks(rate, small, "[first_stage]\nslices = 1"), (1, None, Some(1201)));
    assert_eq!(blocks(free, small, "[protocol]\ntype = 'phased'\nfirst = 2\naccept = 0.1"), (1, None, Some(30_000)));
    assert_eq!(blocks("events = 10", "type = 'cms-fed', file = 'a.raw'", ""), (1, None, Some(10)));
    // Blocks never make an event builder too large that is possible in single events.
    let text = "[trigger]\nevents = 1_000_000\n[readout]\nunits = 1000\nsource = { type = 'fixed', size = '64 B' }\n[builder]\nunits = 600";
    assert_eq!(plan(text, &[]).bundling.block, 6, "6 events in 64 slots, 600,000 fragments each, are below 2^28");
    assert_eq!(plan(text, &["builder.slots=400"]).bundling.block, 1);
    // The file decides on the largest fragment, and bundles of such fragments are not too large.
    let largest = "[readout]\nmax_fragment = '4 MiB'\nunits = 8\nsource = { type = 'fixed', size = '2 kB' }\n";
    let text = format!("[trigger]\nblock = 'auto'\nduration = '1 s'\n{largest}[builder]\nunits = 1");
    assert_eq!(plan(&text, &[]).bundling.block, 7);
}

/// Units that name one link and have different source ids share it; others do not.
#[test]
fn sources_with_source_ids_share_a_link() {
    let unit = |link: &str, id: u8| {
        let source = format!("source = {{ at = 0, bits = 8, value = {id} }}");
        format!("[[readout.unit]]\nsource = {{ {link}, framing = {{ size = \"8 B\", {source} }} }}\n")
    };
    let tcp = |address: &str| format!("type = \"tcp-client\", connect = \"{address}\"");
    let units =
        [unit(&tcp("a:1"), 2), unit(&tcp("b:1"), 3), unit(&tcp("a:1"), 1), unit("type = \"file\", file = \"a\"", 1)];
    let text = format!("[trigger]\ntype = \"data\"\n{}[builder]\nunits = 1\n", units.concat());
    let plan = plan(&text, &[]);
    let shared: Vec<_> =
        plan.sources.iter().map(|source| source.live().expect("a live source").shared.clone()).collect();
    assert_eq!(shared, [vec![1, 2], vec![], vec![1, 2], vec![]]);
}

fn live(link: FrontEndLink, bits: u8, framing: Option<Framing>) -> SourceSpec {
    SourceSpec::Live(Box::new(LiveSpec {
        link,
        counter: EventCounter::new(bits),
        framing,
        slices: None,
        control: None,
        shared: Vec::new(),
    }))
}

/// The file of EUDAQ of `full.toml`.
fn full_eudaq() -> SourceSpec {
    let producer = EudaqProducer { name: "TluRawDataEvent".into(), device: Some(9) };
    let link = FrontEndLink::Eudaq { file: "run.raw".into(), producer: producer.into() };
    let counter = EventCounter { bits: 32, first: FirstCounter::Known(0) };
    SourceSpec::Live(Box::new(LiveSpec {
        link,
        counter,
        framing: None,
        slices: None,
        control: None,
        shared: Vec::new(),
    }))
}

/// The board of `full.toml` that listens.
fn full_board() -> SourceSpec {
    let little = |at, bits| Field::new(at, bits, ByteOrder::Little);
    let framing = Framing {
        magic: vec![0xef, 0xbe, 0xad, 0xde],
        magic_at: 0,
        end: FrameEnd::Length { field: little(4, 16), unit: 4, adds: -8 },
        counter: Some(Field { at: 8, bits: 12, shift: 4, order: ByteOrder::Big }),
        clock: Some(ClockField { field: little(12, 48), frequency: Frequency(125_000_000_000) }),
        mark: Some(little(18, 8)),
        source: Some((little(6, 16), 7)),
        damaged: Some(little(19, 1)),
        checksum: Some(FrameChecksum {
            kind: "crc-16/ccitt-false".parse().expect("a kind"),
            at: -2,
            from: 0,
            to: -2,
            order: ByteOrder::Little,
        }),
        stream_header: 0,
        across_datagrams: false,
        hits: None,
    };
    let counter = EventCounter { bits: 12, first: FirstCounter::Any };
    let link = FrontEndLink::TcpClient("board:9000".into());
    let settings = [
        ("threshold", Setting::Integer(12)),
        ("gain", Setting::Text("high".into())),
        ("tau", Setting::Number(0.5)),
        ("veto", Setting::Flag(true)),
    ];
    let control = ControlSpec {
        link: ControlLink::Listen("0.0.0.0:9400".into()),
        timeout: Span::from_secs(1),
        settings: settings.map(|(name, value)| (name.to_owned(), value)).into(),
    };
    SourceSpec::Live(Box::new(LiveSpec {
        link,
        counter,
        framing: Some(framing),
        slices: None,
        control: Some(control),
        shared: Vec::new(),
    }))
}

/// The framing of the file of `full.toml`.
fn full_lines() -> Framing {
    let kind = "xor-8".parse().expect("a kind");
    Framing {
        magic: Vec::new(),
        magic_at: 0,
        end: FrameEnd::Marker(b"\r\n".to_vec()),
        counter: None,
        clock: None,
        mark: None,
        source: None,
        damaged: None,
        checksum: Some(FrameChecksum { kind, at: -3, from: 1, to: -3, order: ByteOrder::Big }),
        stream_header: 56,
        across_datagrams: false,
        hits: None,
    }
}

/// The framing of the capture of `full.toml`.
fn full_packets() -> Framing {
    let kind = "crc-32".parse().expect("a kind");
    Framing {
        magic: b"VM3".to_vec(),
        magic_at: 4,
        end: FrameEnd::Size(1400),
        counter: Some(Field::new(0, 32, ByteOrder::Big)),
        checksum: Some(FrameChecksum { kind, at: -4, from: 0, to: -4, order: ByteOrder::Big }),
        stream_header: 0,
        across_datagrams: true,
        ..full_lines()
    }
}

/// The readout of VMM3a chips, as the guide to boards describes it.
const CHIPS: &str = r#"
[readout]
slice = "1 ms"
[readout.framing]
order = "big"
[readout.framing.hits]
at = 16
size = "6 B"
until = 2
time = [
  { at = 0, bits = 5, shift = 11, encoding = "signed", tick = "102.4 us" },
  { at = 2, bits = 12, encoding = "gray", frequency = "40 MHz" },
]
[readout.framing.hits.marker]
at = 4
bits = 1
shift = 7
value = 0
time = [{ at = 0, bits = 32, tick = "25.6 us" }, { at = -2, bits = 10, order = "little", frequency = "40 MHz" }]
chip = { at = 4, bits = 5, shift = 2 }
hit_chip = { at = 0, bits = 5, shift = 6 }
[[readout.unit]]
source = { type = "pcap", file = "vmm.pcapng" }
[builder]
units = 1
"#;

#[test]
fn hits_count_from_the_markers_of_their_chips() {
    let big = |at, bits, shift| Field { at, bits, shift, order: ByteOrder::Big };
    let part = |field, encoding, tick| TimeField { field, encoding, tick };
    let (clock, long) = (Tick::Frequency(Frequency(40_000_000_000)), Tick::Length(Span(102_400_000)));
    let expected = HitLayout {
        at: 16,
        size: 6,
        until: 2,
        time: vec![part(big(0, 5, 11), Encoding::Signed, long), part(big(2, 12, 0), Encoding::Gray, clock)],
        clock: HitClock::Marker(Marker {
            is: (big(4, 1, 7), 0),
            time: vec![
                part(big(0, 32, 0), Encoding::Plain, Tick::Length(Span(25_600_000))),
                part(Field { order: ByteOrder::Little, ..big(-2, 10, 0) }, Encoding::Plain, clock),
            ],
            chip: Some(big(4, 5, 2)),
            hit_chip: Some(big(0, 5, 6)),
        }),
    };
    let plan = plan(CHIPS, &[]);
    let framing = plan.sources[0].live().and_then(|live| live.framing.clone()).expect("a framing");
    assert_eq!(framing.hits, Some(Box::new(expected)));
}

#[test]
fn live_hits_go_into_slices() {
    let text = |slices: &str| {
        format!(
            "[readout]\n{slices}\n[readout.framing]\nsize = \"64 B\"\nclock = {{ at = 0, bits = 48, frequency = \"1 GHz\" }}\n\
             hits = {{ at = 8, size = \"8 B\", from = \"own\", time = [{{ at = 0, bits = 40, tick = \"8 ns\" }}] }}\n\
             [[readout.unit]]\nsource = {{ type = \"tcp\", listen = \"127.0.0.1:9000\", clock_offset = \"2 s\", sort_depth = \"5 ms\" }}\n\
             [[readout.unit]]\nsource = {{ type = \"file\", file = \"a.raw\", latency = \"30 ms\" }}\n[builder]\nunits = 1\n"
        )
    };
    let live = |text: &str| -> Vec<LiveSpec> {
        plan(text, &[]).sources.iter().map(|source| source.live().expect("a live source").clone()).collect()
    };
    let sliced = live(&text("slice = \"1 ms\"\noverlap = \"10 us\""));
    let slicing = Slicing { length: Span::from_millis(1), overlap: Span::from_micros(10), from_ns: None };
    let slices = |offset, sort_depth, latency| Some(LiveSlicing { slicing, offset, sort_depth, latency });
    let (ms, s) = (Span::from_millis, Span::from_secs);
    assert_eq!(sliced[0].slices, slices(s(2), ms(5), ms(200)));
    assert_eq!(sliced[1].slices, slices(Span::ZERO, ms(1), ms(30)));
    assert_eq!(sliced[1].counter, EventCounter { bits: 64, first: FirstCounter::Known(1) });
    let hits = sliced[0].framing.as_ref().and_then(|framing| framing.hits.clone()).expect("hits");
    assert_eq!((hits.clock, hits.time[0].tick), (HitClock::Own, Tick::Length(Span(8000))));
    let known = live(&text("slice = \"1 ms\"\nslices_from = 0"));
    assert_eq!(known[1].slices.map(|slices| slices.slicing.from_ns), Some(Some(0)));
}

#[test]
fn clocks_of_boards_are_matched_by_time() {
    let text = "[trigger]\ntype = \"time\"\nwindow = \"1 us\"\nsource = 1\nduration = \"1 s\"\n[readout.framing]\nsize = \"16 B\"\n\
                clock = { at = 0, bits = 40, frequency = \"125 MHz\" }\n[[readout.unit]]\n\
                source = { type = \"tcp\", listen = \"127.0.0.1:9000\", sort_depth = \"5 ms\", optional = true }\n\
                [[readout.unit]]\nsource = { type = \"udp\", listen = \"127.0.0.1:9000\", clock_offset = \"2 ms\", latency = \"30 ms\" }\n\
                [builder]\nunits = 1\n";
    let plan = parse(text, &[]).plans()[0].clone();
    let clock = |offset, sort_depth, latency, needed| ClockSettings {
        tick_fs: 8_000_000,
        bits: 40,
        offset,
        sort_depth,
        latency,
        needed,
    };
    let known = ClockOffset::Known { seconds: 0, picoseconds: 2_000_000_000 };
    let sources = vec![
        clock(ClockOffset::Find, Span::from_millis(5), Span::from_millis(200), false),
        clock(known, Span::from_millis(1), Span::from_millis(30), true),
    ];
    let rule = evb_protocol::Rule::Trigger { source: 1, window: Span::from_micros(1) };
    let expected = Coincidence { rule, sources, patience: Span::from_secs(5) };
    assert_eq!(plan.building.coincidence, Some(expected));
    let building = (plan.building.trigger, plan.bundling.block, plan.building.buffer_events);
    assert_eq!(building, (Trigger::Data, 1, 65_536));
}
