//! Bundles: several sources in a readout unit and events in blocks, down to the bytes of the event files.

use crate::support::{Lab, PROCESSES, THREADS, check_accounts, good, not_good, read_all};
use evb_core::SourceId;
use evb_events::Status;
use std::collections::BTreeMap;

const MANY: &str = r#"
[trigger]
events = 512
[readout]
units = 32
sources = 512
source = { type = "uniform", min = "1 B", max = "400 B" }
[builder]
units = 4
"#;

/// Uneven numbers of sources, and events in blocks: each fragment is stored under its source with the bytes that the source
/// has made for the event.
#[test]
fn fragments_of_many_sources_are_stored_by_source() {
    let few = ["readout.sources=75", "readout.units=8"];
    let at_rate = "trigger={type=\"rate\",rate=\"2 kHz\",events=512,block=\"auto\"}";
    for (changes, sources) in
        [(vec![], 512), ([&few[..], &["trigger.block=60"]].concat(), 75), ([&few[..], &[at_rate]].concat(), 75)]
    {
        let lab = Lab::with(MANY);
        let run = changes.iter().fold(lab.run(THREADS), |run, change| run.set(change)).run();
        let record = good(&run);
        assert_eq!(record.bundles.as_ref().map(|bundles| bundles.sources), Some(u64::from(sources)));
        let stored = read_all(&lab.stored_files());
        stored.check_generated(record.seed, sources);
        assert!(stored.copies().into_iter().eq((1..=512).map(|event| (event, 1))), "{run}");
        assert_eq!(lab.verify(&lab.stored_files()).code(), Some(0));
        let simulated = changes.iter().fold(lab.simulate(&[]), |run, change| run.set(change)).run();
        assert_eq!(good(&simulated).events, record.events);
    }
}

const FEW: &str = r#"
[trigger]
events = 1200
[readout]
max_fragment = "1 kB"
[[readout.unit]]
sources = [{ type = "fixed", size = "100 B" }, { type = "fixed", size = "100 B", suppressed = 0.5 }]
[[readout.unit]]
sources = [{ type = "fixed", size = "100 B", masked = true }, { type = "fixed", size = "100 B" }, { type = "fixed", size = "50 B" }]
[builder]
units = 2
"#;

/// An absent fragment of a zero-suppressed source is not a fault, and a masked source is not expected. Nodes that are processes
/// report the same.
#[test]
fn suppressed_and_masked_sources_leave_events_complete() {
    for mode in [THREADS, PROCESSES] {
        let lab = Lab::with(FEW);
        let record = good(&lab.run(mode).set("trigger.block=3").run());
        assert_eq!(record.bundles.map(|bundles| bundles.masked), Some(vec![2]));
        let stored = read_all(&lab.stored_files());
        let mut fragments = [0_u64; 5];
        stored.events.iter().flat_map(|event| &event.fragments).for_each(|one| fragments[one.source.index()] += 1);
        assert_eq!((fragments[0], fragments[2..].to_vec()), (1200, vec![0, 1200, 1200]));
        // Five standard deviations of a binomial distribution.
        assert!(fragments[1].abs_diff(600) < 90, "{fragments:?}");
    }
}

/// One bad fragment spoils no other fragment of its bundle, in the record and in the file.
#[test]
fn a_fault_of_one_source_spoils_no_other() {
    for (action, status, kind) in [
        ("corrupt", Status::Corrupted, "corrupted"),
        ("oversize", Status::Oversized, "oversized"),
        ("lose", Status::Missing, "missing"),
    ] {
        for block in ["trigger.block=1", "trigger.block=4"] {
            let lab = Lab::with(FEW);
            let fault = format!("fault=[{{node=\"ru1\",action=\"{action}\",source=3,one_in=100}}]");
            let record = not_good(&lab.run(THREADS).set(block).set(&fault).run());
            assert_eq!((record.events.built, record.events.incomplete), (1188, 12), "{action} {block}");
            let faults = BTreeMap::from([(kind.to_owned(), 12)]);
            assert_eq!(record.bundles.map(|bundles| bundles.faults), Some(BTreeMap::from([(3, faults)])));
            for event in &read_all(&lab.stored_files()).events {
                let bad: Vec<_> = event.fragments.iter().filter(|one| one.status != Status::Good).collect();
                let found = bad.iter().map(|one| (one.source, one.status)).collect::<Vec<_>>();
                let expected = if event.id.0.is_multiple_of(100) { vec![(SourceId(3), status)] } else { vec![] };
                assert_eq!((found, event.complete), (expected.clone(), expected.is_empty()), "event {}", event.id);
            }
        }
    }
}

/// A bundle that is lost on its way is asked for again as a whole.
#[test]
fn a_lost_bundle_is_sent_again() {
    let lab = Lab::with(FEW);
    let fault = "fault=[{node=\"ru1\",action=\"lose\",one_in=50}]";
    let record = good(&lab.run(THREADS).set("trigger.block=4").set("builder.patience=\"20 ms\"").set(fault).run());
    assert!(record.readouts[1].repeated >= 6, "{record:#?}");
}

/// At a rate, the last trigger of a block starts it: each trigger is one event.
#[test]
fn triggers_fill_blocks() {
    let lab = Lab::with(FEW);
    let rate = "trigger={type=\"rate\",rate=\"20 kHz\",events=1200,block=100}";
    // On a busy machine the run may be too short to tell whether the rate was kept.
    let record = lab.run(THREADS).set(rate).run().record();
    check_accounts(&record);
    assert_eq!((record.events.built, record.trigger.offered), (1200, 1200));
    let duration = "trigger={type=\"rate\",rate=\"2 kHz\",duration=\"0.31 s\",block=100}";
    let outcome = lab.run(THREADS).set(duration).run();
    let record = outcome.record();
    check_accounts(&record);
    assert!(record.events.triggered.is_multiple_of(100) && record.events.triggered > 0, "{outcome}");
    assert_eq!((record.events.built, record.events.lost), (record.events.triggered, 0), "{outcome}");
}

/// Blocks have the triggers that are there, down to one. While builders have too much to do, blocks grow, so no trigger is
/// turned away for want of builders: a builder that gets a message at a time takes as long for a block as for an event.
#[test]
fn blocks_follow_the_load() {
    let rated = |rate: &str, block: &str| {
        let trigger = format!("trigger={{type=\"rate\",rate=\"{rate}\",events=40007,block={block}}}");
        Lab::with(FEW).simulate(&[]).set(&trigger).set("network.nic={overhead=\"1 us\"}").run().record()
    };
    let singly = rated("400 kHz", "1");
    assert!(singly.trigger.inhibited > 0, "too much for single events: {:?}", singly.trigger);
    for (rate, mean) in [("1 kHz", 1.0..1.01), ("400 kHz", 2.0..64.0)] {
        let record = rated(rate, "\"auto\"");
        check_accounts(&record);
        assert_eq!((record.events.built, record.trigger.inhibited), (40007, 0), "{rate}: {:?}", record.trigger);
        assert!(mean.contains(&record.trigger.block), "{rate}: {:?}", record.trigger);
        assert_eq!(record.bundles.map(|bundles| bundles.block), Some(64));
    }
}

/// The readout units hear of another size of blocks from the event manager and from builders, whose requests may come first.
/// Each event is built once, with the fragments of its number.
#[test]
fn blocks_of_changing_sizes_have_their_events() {
    for (mode, protocol) in [(THREADS, "push"), (THREADS, "pull"), (PROCESSES, "pull")] {
        let lab = Lab::with(MANY);
        let changes = [
            "readout.units=3",
            "readout.sources=5",
            "trigger={type=\"rate\",rate=\"500 kHz\",spacing=\"poisson\",duration=\"0.1 s\",block=\"auto\"}",
            &format!("protocol.type={protocol}"),
        ];
        let outcome = changes.iter().fold(lab.run(mode), |run, change| run.set(change)).run();
        let record = outcome.record();
        check_accounts(&record);
        assert_eq!((record.events.built, &record.faults), (record.events.triggered, &BTreeMap::new()), "{outcome}");
        let stored = read_all(&lab.stored_files());
        stored.check_generated(record.seed, 5);
        assert!(stored.copies().into_iter().eq((1..=record.events.built).map(|event| (event, 1))), "{outcome}");
    }
}

/// Combinations that cannot work are errors of the file, with a hint.
#[test]
fn impossible_bundles_are_errors_of_the_file() {
    let live = "readout.unit=[{sources=[{type=\"tcp\",listen=\"127.0.0.1:0\"},{type=\"fixed\",size=\"1 B\"}]}]";
    for (changes, message) in [
        (&["trigger.block=7", "first_stage.slices=1"][..], "is not a multiple of `trigger.block`"),
        (&["trigger.block=4", "trigger.type=\"data\""], "cannot be built in blocks"),
        (&["readout.sources=31"], "is below the 32 readout units"),
        (&["readout.masked=[512]"], "names source 512"),
        (&["readout.max_fragment=\"4 MiB\"", "readout.buffer_bytes=\"1 GiB\""], "more than 32 MiB"),
        (&[live, "trigger.type=\"data\""], "beside others"),
        (&["fault=[{node=\"ru1\",action=\"corrupt\",one_in=3}]"], "must say which source"),
        (&["fault=[{node=\"ru1\",action=\"corrupt\",source=15,one_in=3}]"], "has no source 15"),
        (&["readout.unit=[{}]"], "nothing feeds readout unit 0"),
        (&["workload.type=\"pairs\""], "traffic has no bundles"),
    ] {
        let lab = Lab::with(MANY);
        let check = changes.iter().fold(lab.evb(&["check", "experiment.toml"]), |check, change| check.set(change));
        let outcome = check.run();
        let text = outcome.to_string().split_whitespace().collect::<Vec<_>>().join(" ").replace(" │ ", " ");
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        assert!(text.contains(message) && text.contains("help:"), "{message}: {outcome}");
    }
}
