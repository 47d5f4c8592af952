//! The file that sets every key.

mod network;
mod sources;

use crate::{assert_resolves, live, parse, plan};
use evb_core::{Bandwidth, ByteCount, MarkComparison, NodeId, SourceId, Span};
use evb_experiment::{
    FaultAction, FaultSpec, FieldLayout, HistogramPlan, Keep, NumberType, PayloadLayout, PayloadPart, Placement,
    Quantity,
};
use evb_filter::{ChainStep, Code, Rule, Selection, StreamId, UnitsPlan, Width};
use evb_protocol::{Assignment, Config, Protocol, RequestOrder, Shaping, Trigger};
use evb_sources::{FrontEndLink, SourceSpec};
use network::{full_background, full_network, full_network_faults};
use sources::{full_board, full_eudaq, full_lines, full_packets};
use std::path::PathBuf;

#[test]
fn a_full_file_says_everything() {
    let text = include_str!("../../full.toml");
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
