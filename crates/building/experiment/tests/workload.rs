//! Meaning of `[workload]`.

use evb_core::{Frequency, NodeId, NodeRange, Span};
use evb_experiment::{Experiment, Load, TrafficPlan, Workload};
use evb_patterns::{Pattern, Start, TrafficConfig};

fn experiment(workload: &str) -> Experiment {
    let text = format!(
        "builder.units = 4\nrun.seed = 7\n[readout]\nunits = 3\nsource = {{ type = 'fixed', size = '2 kB' }}\n{workload}"
    );
    Experiment::parse(&text, "traffic.toml", &[]).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

/// The traffic of a good text, which its resolved text has again.
fn traffic(keys: &str) -> TrafficPlan {
    let first = experiment(&format!("[workload]\nmessages = 5\n{keys}\n"));
    let resolved = first.resolved();
    let again = Experiment::parse(&resolved, "a.toml", &[]).unwrap_or_else(|error| panic!("{error:?}\n{resolved}"));
    assert_eq!(again.plans(), first.plans(), "{resolved}");
    match &first.plans()[0].workload {
        Workload::Traffic(traffic) => traffic.clone(),
        Workload::EventBuilding => panic!("{resolved}"),
    }
}

#[test]
fn traffic_gets_every_default() {
    let expected = TrafficPlan {
        config: TrafficConfig {
            senders: NodeRange { first: NodeId(1), count: 3 },
            receivers: NodeRange { first: NodeId(4), count: 4 },
            pattern: Pattern::Random,
            window: 2,
            seed: 7,
        },
        load: Load::Saturating,
        messages: Some(5),
        awaits_acknowledgement: false,
    };
    assert_eq!(traffic("type = 'random'"), expected);
}

#[test]
fn every_pattern_can_be_written() {
    let pattern = |keys: &str| traffic(keys).config.pattern;
    let assigned = Pattern::Assigned { destinations: vec![0, 3, 2] };
    assert_eq!(pattern("type = 'assigned'\ndestinations = [0, 3, 2]"), assigned);
    assert_eq!(pattern("type = 'pairs'"), Pattern::Pairs);
    assert_eq!(pattern("type = 'stream'"), Pattern::Stream);
    assert_eq!(pattern("type = 'rotation'"), Pattern::Rotation { start: Start::Simultaneous });
    assert_eq!(pattern("type = 'rotation'\nstart = 'retarded'"), Pattern::Rotation { start: Start::Retarded });
    let gather = |least, most, processors, ask| Pattern::Gather { least, most, processors, ask };
    assert_eq!(pattern("type = 'gather'\nleast = 1\nmost = 3"), gather(1, 3, 1, true));
    let keys = "type = 'gather'\nleast = 2\nmost = 2\nprocessors = 4\nask = false";
    assert_eq!(pattern(keys), gather(2, 2, 4, false));
    assert_eq!(pattern("type = 'all-to-all'"), Pattern::AllToAll);
}

#[test]
fn patterns_of_few_nodes_can_be_written() {
    let pattern = |keys: &str, senders: u16, receivers: u16| {
        let units = format!("builder.units = {receivers}\n[readout]\nunits = {senders}");
        let text = format!("{units}\nsource = {{ type = 'fixed', size = '2 kB' }}\n[workload]\nmessages = 5\n{keys}\n");
        let experiment = Experiment::parse(&text, "a.toml", &[]).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        match &experiment.plans()[0].workload {
            Workload::Traffic(traffic) => (traffic.config.pattern.clone(), traffic.load, traffic.config.window),
            Workload::EventBuilding => panic!("{text}"),
        }
    };
    let work = |us: u64| Span::from_micros(us);
    assert_eq!(pattern("type = 'ping-pong'", 3, 3), (Pattern::PingPong, Load::Saturating, 1));
    assert_eq!(pattern("type = 'two-way'", 2, 2).0, Pattern::TwoWay);
    assert_eq!(pattern("type = 'outfarming'", 1, 5).0, Pattern::Outfarming);
    assert_eq!(pattern("type = 'broadcast'", 1, 5).0, Pattern::Broadcast);
    assert_eq!(pattern("type = 'funnel'", 4, 1), (Pattern::Funnel, Load::Saturating, 2));
    let push = pattern("type = 'push-farm'\ncompute = '100 us'\noverhead = '30 us'\nrate = '1 kHz'", 4, 1);
    let rate = Load::Rate { rate: Frequency(1_000_000), poisson: true };
    assert_eq!(push, (Pattern::PushFarm { work: work(130) }, rate, 2));
    assert_eq!(pattern("type = 'pull-farm'", 4, 1), (Pattern::PullFarm { work: work(0) }, Load::Saturating, 1));
}

#[test]
fn load_and_rate_say_how_much_is_sent() {
    let load = |keys: &str| traffic(&format!("type = 'random'\nwindow = 9\n{keys}")).load;
    assert_eq!(load("load = 0.5"), Load::Fraction { load: 0.5, poisson: true });
    assert_eq!(load("load = 1\narrivals = 'regular'"), Load::Fraction { load: 1.0, poisson: false });
    assert_eq!(load("rate = '2 kHz'"), Load::Rate { rate: Frequency(2_000_000), poisson: true });
    assert_eq!(load("load = 0.25\narrivals = 'slotted'"), Load::Slots { load: 0.25 });
    assert_eq!(load("arrivals = 'regular'"), Load::Saturating);
}

#[test]
fn senders_of_connections_may_await_acknowledgements() {
    let transport = "[network.transport]\ntype = 'rdma'";
    assert!(!traffic("type = 'pairs'\nawaits = 'departure'").awaits_acknowledgement);
    for pattern in ["type = 'random'", "type = 'rotation'", "type = 'assigned'\ndestinations = [0, 0, 1]"] {
        let keys = format!("{pattern}\nawaits = 'acknowledgement'\n{transport}");
        assert!(traffic(&keys).awaits_acknowledgement, "{keys}");
    }
}

#[test]
fn traffic_ends_with_messages_or_time_and_needs_no_trigger() {
    let timed = experiment("[workload]\ntype = 'random'\n[trigger]\nduration = '1 ms'\n");
    assert!(matches!(&timed.plans()[0].workload, Workload::Traffic(TrafficPlan { messages: None, .. })));
    // What would be too much for event building does not matter.
    experiment(
        "[workload]\ntype = 'random'\nmessages = 1\n[sweep]\n'readout.units' = [10_000]\n'builder.units' = [9_000]\n",
    );
    let recorded = "readout.unit = [{ source = { type = 'cms-fed', file = 'a' } }]";
    let text = format!("{recorded}\nbuilder.units = 1\n[workload]\ntype = 'stream'\nmessages = 1\n");
    Experiment::parse(&text, "a.toml", &[]).expect("recorded sizes are good");
}
