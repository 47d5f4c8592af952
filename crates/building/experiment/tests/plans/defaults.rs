//! What a file does not say, and where its paths begin.

use crate::{SHORT, assert_resolves, parse, plan};
use evb_core::{ByteCount, Span};
use evb_experiment::{
    Bundling, Cores, Experiment, FaultAction, Keep, Needs, Placement, Plan, Rejoin, RunPlan, StageLink, StoragePlan,
    TriggerPlan, Workload,
};
use evb_fabric::Topology;
use evb_filter::Selection;
use evb_protocol::{Config, Protocol, Trigger};
use evb_sources::SourceSpec;
use evb_transport_registry::{Settings, TransportChoice, find};
use std::path::Path;

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
