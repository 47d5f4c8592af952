//! Two stages: super-fragments of groups of sources, down to the bytes of the event files, and deaths in either stage.

use crate::support::{Group, Lab, PROCESSES, THREADS, good, read_all, roles_of_sessions, wait_until};
use evb_events::Status;
use evb_record::Record;
use rustix::process::Signal;
use std::collections::BTreeSet;

const TWO_STAGES: &str = r#"
[trigger]
events = 600
[readout]
units = 4
sources = 10
source = { type = "uniform", min = "1 B", max = "900 B" }
max_fragment = "1 kB"
[first_stage]
slices = 2
[builder]
units = 4
"#;

/// Each source's fragment of each event is stored once, under its source, with the bytes that a single stage stores too.
#[test]
fn two_stages_store_what_one_stage_stores() {
    let pull_in_blocks = [
        "trigger.block=8",
        "protocol.type=pull",
        "first_stage.protocol.type=pull",
        "first_stage.shaping={type=\"barrel-shifter\",bucket=\"4 KiB\"}",
        "first_stage.transport.type=tcp",
    ];
    // Far more than any group can take.
    let overload = [
        "trigger.type=rate",
        "trigger.rate=\"10 MHz\"",
        "trigger.accept_loss=100",
        "builder.slots=2",
        "readout.buffer_events=16",
    ];
    let ways =
        [(THREADS, &[][..]), (THREADS, &overload), (THREADS, &pull_in_blocks[..4]), (PROCESSES, &pull_in_blocks)];
    for (mode, changes) in ways {
        let lab = Lab::with(TWO_STAGES);
        let run = changes.iter().fold(lab.run(mode), |run, change| run.set(change)).run();
        let record = good(&run);
        let stages = record.stages.as_ref().expect("two stages");
        assert_eq!((stages.first.len(), stages.second.len()), (4, 2));
        assert!(stages.first.iter().all(|group| group.events.built == 600), "{run}");
        let stored = read_all(&lab.stored_files());
        stored.check_generated(record.seed, 10);
        assert!(stored.copies().into_iter().eq((1..=600).map(|event| (event, 1))), "{run}");
        assert_eq!(lab.verify(&lab.stored_files()).code(), Some(0));
        let simulated = good(&changes.iter().fold(lab.simulate(&[]), |run, change| run.set(change)).run());
        assert_eq!((simulated.events, &simulated.bundles), (record.events, &record.bundles));
        let received = |record: &Record| record.builders.iter().map(|builder| builder.bytes).sum::<u64>();
        assert_eq!(received(&simulated), received(&record));
    }
}

/// Groups that are stopped have triggered some events more or less than others. Those that all have are the events.
#[test]
fn a_stop_ends_all_groups_with_the_same_event() {
    let lab = Lab::with(TWO_STAGES);
    let record = good(&lab.run(THREADS).set("trigger={type=\"free-running\",duration=\"500 ms\"}").run());
    assert_eq!(read_all(&lab.stored_files()).events.len() as u64, record.events.built);
}

/// The death of a builder of a group, of a readout unit of a slice, and of the event manager of a group: the fragments of one
/// group are missing, from one slice or from all, and nothing else is.
#[test]
fn kill_9_in_either_stage_costs_only_what_died() {
    std::thread::scope(|scope| {
        for (is_first, role, slices) in [(true, "bu0", 1), (false, "ru1", 1), (true, "evm", 2)] {
            scope.spawn(move || check_killed(is_first, role, slices));
        }
    });
}

/// Kills a node of any group, or of any slice. Events of that number of slices then miss the sources of one group.
fn check_killed(is_first: bool, role: &str, slices: usize) {
    let lab = Lab::with(TWO_STAGES);
    let mut run = lab.run(PROCESSES).set("trigger.events=100_000_000").start();
    let pid = wait_until("all nodes", || {
        let sessions = roles_of_sessions(run.pid());
        let complete = sessions.len() == 6 && sessions.iter().all(|roles| roles.contains_key("bu1"));
        // A slice has a readout unit for each of the four groups, and a group no more than three.
        let of_stage = sessions.iter().find(|roles| roles.contains_key("ru3") != is_first);
        complete.then(|| of_stage.and_then(|roles| roles.get(role)).copied()).flatten()
    });
    let stored_bytes =
        || lab.stored_files().iter().filter_map(|file| file.metadata().ok()).map(|data| data.len()).sum::<u64>();
    let wait_for = |bytes| wait_until("events are stored", || (stored_bytes() >= bytes).then_some(()));
    wait_for(200_000);
    Group::signal_one(pid, Signal::KILL);
    run.wait_for(&format!("{role} is gone"));
    // More than a group can be ahead of the others: 128 events in the group, as many in the slices, and 4096 in the buffers of the
    // readout units of each of the two slices, with 4.8 kB each.
    wait_for(stored_bytes() + 45_000_000);
    run.signal(Signal::INT);
    let outcome = run.wait();
    let record = outcome.record();
    assert_eq!((record.lost_nodes.len(), record.events.lost), (1, 0), "{outcome}");
    let stored = read_all(&lab.stored_files());
    stored.check_generated(record.seed, 10);
    let (mut of_slices, mut groups) = (BTreeSet::new(), BTreeSet::new());
    for event in stored.events.iter().filter(|event| !event.complete) {
        of_slices.insert((event.id.0 - 1) % 2);
        let missing = event.fragments.iter().filter(|one| one.status != Status::Good);
        // The first two groups have three sources each, the others two.
        groups.extend(missing.map(|one| [0, 0, 0, 1, 1, 1, 2, 2, 3, 3][one.source.index()]));
    }
    assert_eq!((of_slices.len(), groups.len()), (slices, 1), "{role}: {outcome}");
}
