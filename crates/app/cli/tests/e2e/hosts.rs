//! `evb run --hosts`: nodes that a shell starts on other machines. Here the shell leaves out the name of the machine.

use crate::support::{Lab, Outcome, good};

const BUILDING: &str = "
[trigger]
type = \"free-running\"
events = 300
[readout]
units = 2
source = { type = \"log-normal\", mean = \"2 kB\", rms = \"1 kB\" }
[builder]
units = 2
";

const TRAFFIC: &str = "
[workload]
type = \"pairs\"
messages = 200
[readout]
units = 2
source = { type = \"fixed\", size = \"2 kB\" }
[builder]
units = 2
";

fn run_on(text: &str, hosts: &str, more: &[&str]) -> Outcome {
    let lab = Lab::with(text);
    lab.write(
        "shell",
        "host=$1; shift; echo $host >> started; test \"$host\" != broken || exit 7; \
         test \"$host\" != asleep || exec sleep 100; exec \"$@\"\n",
    );
    let there = ["--hosts", hosts, "--shell", "sh shell", "--listen", "127.0.0.1:0", "--json"];
    let mut outcome = lab.evb(&["run", "experiment.toml"]).args(&there).args(more).run();
    let started = std::fs::read_to_string(lab.path("started")).unwrap_or_default();
    let mut started: Vec<_> = started.lines().collect();
    started.sort_unstable();
    outcome.stderr.push_str(&started.join(","));
    outcome
}

#[test]
fn event_builders_and_traffic_run_on_hosts() {
    let building = run_on(BUILDING, "a,b", &[]);
    let record = good(&building);
    assert_eq!((record.transport.as_str(), record.events.built), ("tcp", 300), "{building}");
    assert!(building.stderr.ends_with("a,a,a,b,b"), "{building}");

    let traffic = run_on(TRAFFIC, "a,b,c", &[]);
    let record = good(&traffic);
    assert_eq!((record.transport.as_str(), record.events.built), ("tcp", 400), "{traffic}");
    assert!(record.latency_us.max <= 0.0 && traffic.stderr.ends_with("a,a,b,c"), "{traffic}");
}

#[test]
fn hosts_that_cannot_work_are_told() {
    for (text, hosts, more, what) in [
        (BUILDING, "a,broken", &[][..], "ended before the run began: exit status: 7"),
        (TRAFFIC, "a,broken", &[], "the process of node 1 of the launch ended: exit status: 7"),
        (BUILDING, "a,b", &["--set", "transport.type=shm"], "shm has no --hosts"),
        (TRAFFIC, "a,b", &["--set", "transport.type=shm"], "shm has no --hosts"),
        (BUILDING, "a,,b", &[], "\"\" is not a host"),
    ] {
        let outcome = run_on(text, hosts, more);
        assert!(outcome.code() == Some(2) && outcome.stderr.contains(what), "{what}: {outcome}");
    }
}

/// `--patience` holds for machines, too.
#[test]
fn the_wait_for_hosts_has_a_limit_that_can_be_set() {
    let building = run_on(BUILDING, "a,asleep", &["--patience", "1", "--set", "run.peer_timeout=\"100 s\""]);
    assert!(building.code() == Some(2) && building.stderr.contains("not all nodes have joined"), "{building}");
    assert!(building.seconds < 60.0, "{building}");
    let traffic = run_on(TRAFFIC, "a,asleep", &["--patience", "1"]);
    assert!(traffic.code() == Some(2) && traffic.stderr.contains("nothing comes from node 1, node 3"), "{traffic}");
    assert!(traffic.stderr.contains("`--patience SECONDS` waits longer"), "{traffic}");
    // Without the option the wait is 30 s.
    assert!(traffic.seconds < 25.0, "{traffic}");
}
