//! Broadcasts of a run: copies, by reference, through shared memory, and by multicast.

use crate::support::{Lab, Outcome, good};
use evb_record::{Broadcast, FindingKind, Record};

const EVENTS: u64 = 3000;
const READOUTS: u64 = 8;

const SMALL: &str = r#"
[trigger]
type = "free-running"
events = 3000
[readout]
units = 8
source = { type = "uniform", min = "1 B", max = "2 kB" }
[builder]
units = 2
[storage]
keep = "none"
"#;

fn run(set: &[&str]) -> (Record, Broadcast, Outcome) {
    let lab = Lab::with(SMALL);
    let outcome = set.iter().fold(lab.run(&[]), |run, set| run.set(set)).run();
    let record = good(&outcome);
    assert_eq!(record.events.built, EVENTS, "{outcome}");
    assert!(record.faults.is_empty(), "{outcome}");
    let broadcast = record.broadcast.clone().unwrap_or_else(|| panic!("no broadcasts: {outcome}"));
    assert!(broadcast.messages > 0 && broadcast.receivers == READOUTS * broadcast.messages, "{outcome}");
    (record, broadcast, outcome)
}

/// With 8 receivers, what was sent falls from 8 copies of a broadcast to one.
#[test]
fn multicast_sends_a_broadcast_once() {
    for protocol in ["protocol.type=push", "protocol={type=\"pull\",order=\"same\"}"] {
        let (_, copies, outcome) = run(&[protocol, "transport.type=tcp"]);
        assert_eq!((copies.how.as_str(), copies.copies), ("copies", copies.receivers), "{outcome}");
        assert!(!copies.asked && copies.fell_back.is_none(), "{outcome}");
        let multicast = ["transport.type=tcp", "transport.multicast=127.0.0.1"];
        let (_, once, outcome) = run(&[&[protocol], &multicast[..]].concat());
        assert_eq!((once.how.as_str(), once.fell_back.as_deref()), ("multicast", None), "{outcome}");
        assert!(once.asked, "{outcome}");
        // A busy machine may lose some, and a receiver that lags gets copies.
        assert!(once.copies < 2 * once.messages + once.receivers / 8, "{outcome}");
    }
}

#[test]
fn threads_and_shared_memory_say_how_they_broadcast() {
    let (_, broadcast, outcome) = run(&["transport.type=in-process"]);
    assert_eq!((broadcast.how.as_str(), broadcast.copies), ("by reference", 0), "{outcome}");
    let (_, broadcast, outcome) = run(&["transport.type=shm"]);
    assert_eq!(broadcast.how, "shared memory", "{outcome}");
    assert!(broadcast.copies <= broadcast.receivers, "{outcome}");
}

/// A readout unit is killed under way: the others get every broadcast, and each event ends.
#[test]
fn the_death_of_a_receiver_holds_up_no_broadcast() {
    let lab = Lab::with(&format!("{SMALL}[[fault]]\nnode = \"ru3\"\naction = \"kill\"\nat = \"50 ms\"\n"));
    let set = ["transport.type=tcp", "transport.multicast=127.0.0.1", "trigger.events=20000"];
    let outcome = set.iter().fold(lab.run(&[]), |run, set| run.set(set)).run();
    let record = outcome.record();
    assert_eq!((&record.lost_nodes[..], record.events.lost), (&["ru3".to_owned()][..], 0), "{outcome}");
    assert_eq!(record.events.built + record.events.incomplete, record.events.triggered, "{outcome}");
    assert!(record.events.incomplete > 0, "{outcome}");
}

/// No machine has this address (RFC 5737).
#[test]
fn nodes_without_multicast_send_copies_and_say_so() {
    let (record, broadcast, outcome) = run(&["transport.type=tcp", "transport.multicast=192.0.2.77"]);
    assert_eq!((broadcast.how.as_str(), broadcast.copies), ("copies", broadcast.receivers), "{outcome}");
    let reason = broadcast.fell_back.unwrap_or_default();
    assert!(reason.starts_with("evm: there is no multicast at 192.0.2.77"), "{outcome}");
    let finding = record.findings.iter().find(|one| one.kind == FindingKind::NoMulticast);
    assert!(finding.is_some_and(|one| one.message.contains(&reason) && one.hint.is_some()), "{outcome}");
}

#[test]
fn an_invalid_interface_is_an_error_with_a_hint() {
    let lab = Lab::with(SMALL);
    let outcome = lab.run(&[]).set("transport.type=tcp").set("transport.multicast=pigeon").run();
    assert!(!outcome.status.success() && outcome.stderr.contains("cannot be \"pigeon\""), "{outcome}");
    assert!(outcome.stderr.contains("hint: `off`, `listen`"), "{outcome}");
}
