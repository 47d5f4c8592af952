//! Event building with a manager.

use crate::support::{assert_between, assert_near, network, run_with};
use evb_record::FindingKind;

const BUILDER: &str = r#"
[network]
preset = "myrinet-oct-sw8"
[trigger]
events = 4000
block = 1
[run]
warmup = "10 ms"
[readout]
units = 8
source = { type = "log-normal", mean = "2 kB", rms = "2 kB" }
[builder]
units = 8
"#;

/// Bytes of the message of a fragment beside its payload.
const FRAGMENT_HEADER: f64 = 32.0;

const PUSH: &str = "protocol={type=\"push\"}";
const PULL: &str = "protocol={type=\"pull\"}";
const MYRINET: &str = "network.preset=myrinet-oct-sw8";
const CLOS: &str = "network={preset=\"roce-100g-clos\",placement={readout=1,builder=17}}";

#[test]
fn all_is_built_under_each_protocol_shaping_and_network() {
    let shapings = [
        "{type=\"none\"}",
        "{type=\"grouping\",packet=\"16 KiB\"}",
        "{type=\"barrel-shifter\",step=\"link\",bucket=\"4 KiB\"}",
        "{type=\"barrel-shifter\",step=\"credit\",bucket=\"4 KiB\"}",
        "{type=\"barrel-shifter\",step=\"barrier\",bucket=\"4 KiB\",lead=\"2 KiB\"}",
        "{type=\"rate-division\",packet=\"512 B\"}",
    ];
    for protocol in [PUSH, PULL] {
        for shaping in shapings {
            for network in [MYRINET, CLOS] {
                let shaping = format!("shaping={shaping}");
                let set = [protocol, &shaping, network, "trigger.events=400", "run.warmup=0 s"];
                let record = run_with(BUILDER, &set);
                assert_eq!(record.events.built, 400, "{set:?}");
                assert!(
                    record.good && record.findings.iter().all(|one| one.kind == FindingKind::NoSteadyState),
                    "{set:?}: {:?}",
                    record.findings
                );
                let (sent, received): (u64, u64) = (
                    record.readouts.iter().map(|one| one.sent_bytes).sum(),
                    record.builders.iter().map(|one| one.bytes).sum(),
                );
                assert_eq!(sent, received, "{set:?}");
            }
        }
    }
}

/// Megabytes per second of each destination at the trigger rate of section IV.D of the paper, with enough slots that
/// builders never stop the trigger.
fn each(source: &str) -> f64 {
    let trigger = "trigger={type=\"rate\",rate=\"50 kHz\",duration=\"200 ms\",block=1}";
    run_with(BUILDER, &[PUSH, "builder.slots=512", trigger, source]).throughput_bytes_per_s / 8e6
}

/// Section IV.D: 109 MB/s for fragments of 2 kB at 50 kHz, which offer 100 MB/s: all of it gets through.
#[test]
fn fixed_fragments_get_through_at_the_rate_of_the_paper() {
    assert_between("MB/s of each", each("readout.source={type=\"fixed\",size=\"2 kB\"}"), 99.0, 100.5);
}

/// Head-of-line blocking: 54 MB/s in section IV.D.
#[test]
fn log_normal_fragments_are_as_slow_as_published() {
    let log_normal = "readout.source={type=\"log-normal\",mean=\"2 kB\",rms=\"2 kB\"}";
    assert_near("MB/s of each", each(log_normal), 54.0, 0.05);
}

/// Messages of one sender arrive in order on a control network too: else slots are lost, and with them the run.
#[test]
fn one_slot_is_enough() {
    for protocol in [PUSH, PULL] {
        let record = run_with(BUILDER, &[protocol, "builder.slots=1", "trigger.events=200", "run.warmup=0 s"]);
        assert_eq!((record.events.built, record.good), (200, true), "{protocol}");
    }
}

/// Over 95 % of the wire, up to 32 x 32 (CMS 2007, section IV).
#[test]
fn a_barrel_shifter_keeps_the_wire_busy_despite_log_normal_sizes() {
    for protocol in [PUSH, PULL] {
        let busy = |shaping: &str| {
            // No overhead, and a separate control network: only contention is left.
            let set = [
                protocol,
                shaping,
                "network.nic={rate=\"160 MB/s\",overhead=\"0 s\"}",
                "network.control={type=\"separate\",delay=\"10 us\",rate=\"1 Gbit/s\"}",
                "builder.slots=256",
                "trigger.events=20_000",
            ];
            let record = run_with(BUILDER, &set);
            (record.throughput_bytes_per_s + record.fragment_rate_hz * FRAGMENT_HEADER) / 8.0 / 160e6
        };
        let shifted = busy("shaping={type=\"barrel-shifter\",step=\"link\",bucket=\"4 KiB\"}");
        let plain = busy("shaping={type=\"none\"}");
        assert_between(&format!("{protocol}, barrel shifter"), shifted, 0.95, 1.0);
        assert_between(&format!("{protocol}, none"), plain, 0.1, 0.8);
    }
}

/// Two buckets that would wait longer than an idle unit rests: the interface looks for a slot when it has room for one.
#[test]
fn buckets_that_take_long_delay_no_other() {
    let set = ["shaping={type=\"barrel-shifter\",bucket=\"256 KiB\",lead=\"16 KiB\"}", MYRINET, "trigger.events=400"];
    let record = run_with(BUILDER, &[&set[..], &["run.warmup=0 s"]].concat());
    assert_eq!(record.events.built, 400);
    let shaping = record.shaping.expect("it is shaped");
    assert_eq!((shaping.step.as_deref(), shaping.bytes, shaping.lead_bytes), (Some("credit"), 256 << 10, 16 << 10));
    assert!(shaping.slots.used > shaping.slots.empty, "{shaping:?}");
}

#[test]
fn a_trigger_below_the_limit_is_followed() {
    for protocol in [PUSH, PULL] {
        let set = [protocol, "trigger={type=\"rate\",rate=\"10 kHz\",duration=\"200 ms\"}", "run.warmup=20 ms"];
        let record = run_with(BUILDER, &set);
        assert_near(protocol, record.event_rate_hz, 10e3, 0.02);
        assert_eq!((record.good, network(&record).packets_left), (true, 0));
    }
}
