//! Runs whose messages are encrypted between nodes.

use crate::support::{Lab, good};

const FILE: &str = r#"
[trigger]
type = "free-running"
events = 2000
[readout]
units = 2
source = { type = "log-normal", mean = "2 kB", rms = "2 kB" }
[builder]
units = 2
[transport]
type = "tcp"
encrypt = "on"
"#;

#[test]
fn an_encrypted_run_builds_all_events_with_every_protocol() {
    for protocol in ["push", "pull"] {
        let lab = Lab::with(FILE);
        let outcome = lab.run(&[]).set(&format!("protocol.type={protocol}")).run();
        let record = good(&outcome);
        assert_eq!(record.events.built, 2000, "{outcome}");
    }
}

#[test]
fn what_cannot_be_encrypted_is_an_error() {
    let lab = Lab::with(FILE);
    let outcome = lab.run(&[]).set("transport.multicast=127.0.0.1").run();
    assert!(
        outcome.code() != Some(0) && outcome.stderr.contains("datagrams of multicast are not encrypted"),
        "{outcome}"
    );
    let outcome = lab.run(&[]).set("transport.encrypt=yes").run();
    assert!(outcome.code() != Some(0) && outcome.stderr.contains("encrypt = \"on\""), "{outcome}");
    let outcome = lab.run(&[]).set("transport.type=shm").run();
    assert!(outcome.code() != Some(0) && outcome.stderr.contains("encrypt"), "{outcome}");
}
