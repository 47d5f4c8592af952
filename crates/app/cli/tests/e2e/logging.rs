//! The log on standard error.

use crate::{
    inputs::TINY,
    support::{Lab, both_modes, good},
};

#[test]
fn states_are_logged_when_asked_for() {
    both_modes(|mode| {
        let lab = Lab::with(TINY);
        let outcome = lab.run(mode).env("EVB_LOG", "debug").run();
        good(&outcome);
        for text in ["experiment loaded", "state=Configuring", "state=Running", "state=Stopped", "order=Start"] {
            assert!(outcome.stderr.contains(text), "{text}: {outcome}");
        }
        let outcome = lab.run(mode).args(&["--quiet"]).run();
        good(&outcome);
        assert_eq!(outcome.stderr, "", "{outcome}");
    });
}

#[test]
fn programs_get_an_object_on_each_line() {
    let lab = Lab::with(TINY);
    let outcome = lab.run(&["--processes", "--quiet"]).env("EVB_LOG", "info").env("EVB_LOG_FORMAT", "json").run();
    good(&outcome);
    let lines: Vec<serde_json::Value> =
        outcome.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(lines.iter().any(|line| line["message"] == "run control" && line["run"] == 1), "{outcome}");
    assert!(lines.iter().any(|line| line["message"] == "joined" && line["role"] == "bu0"), "{outcome}");
    assert!(lines.iter().all(|line| line["timestamp"].is_string() && line["level"].is_string()), "{outcome}");
}

#[test]
fn a_filter_that_is_none_is_refused() {
    let outcome = Lab::with(TINY).run(&["--log", "evb=loud"]).run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("the log filter \"evb=loud\""), "{outcome}");
}
