//! Runs that follow each other without a stop, and lost nodes that take part again in the next run.

use crate::support::{
    Group, Lab, PROCESSES, Service, THREADS, check_accounts, free_tcp_port, is_good_or_busy, node_pid, read_all,
    wait_until,
};
use evb_events::Reader;
use evb_record::Record;
use rustix::process::Signal;
use serde_json::json;
use std::net::TcpStream;

/// Events that come whether they are taken or not.
const RATE: &str = r#"
[trigger]
type = "rate"
rate = "4 kHz"
duration = "10 min"
[readout]
units = 2
source = { type = "uniform", min = "10 B", max = "300 B" }
[builder]
units = 2
[run]
seed = 7
"#;

/// Each run has its own account and its own files, which are good, and every event is in one run only.
fn check_runs(lab: &Lab, records: &[Record], first: u64) -> u64 {
    let mut before = first - 1;
    for (run, record) in (1..).zip(records) {
        check_accounts(record);
        let events = &record.events;
        assert_eq!((events.incomplete, events.lost), (0, 0), "{record:#?}");
        assert!(events.built > 0 && is_good_or_busy(record), "{record:#?}");
        assert_eq!(record.switch_seconds.is_some(), run > 1, "{record:#?}");
        assert!(record.trigger.switched <= record.trigger.inhibited, "{record:#?}");
        assert_eq!(record.trigger.offered, events.triggered + record.trigger.inhibited, "{record:#?}");
        let files = lab.files_of(run);
        assert_eq!(lab.verify(&files).code(), Some(0));
        assert!(files.iter().all(|file| Reader::open(file).unwrap().metadata().unwrap().run == run), "{files:?}");
        let stored = read_all(&files).copies();
        assert!(stored.into_iter().eq((before + 1..=before + events.built).map(|event| (event, 1))), "run {run}");
        let of_builders: u64 = record.builders.iter().map(|builder| builder.stored).sum();
        assert_eq!(of_builders, events.built, "{record:#?}");
        before += events.built;
    }
    before
}

/// Events go on in front of three runs, in threads and in processes.
#[test]
fn a_run_is_split_twice_under_load() {
    for (mode, trigger) in
        [(THREADS, "trigger.type=rate"), (PROCESSES, "trigger.type=rate"), (PROCESSES, "protocol.type=push")]
    {
        let lab = Lab::with(RATE);
        let mut run = lab.run(mode).args(&["--operator"]).set(trigger).start_listening();
        run.say("start");
        run.wait_for_new("running");
        for number in 1..3 {
            lab.wait_for_event(number);
            run.say("split");
            run.wait_for_new("splitting");
            run.wait_for_new("running");
        }
        lab.wait_for_event(3);
        run.say("quit");
        let outcome = run.wait();
        let records = outcome.records();
        // The runs may be too short to tell whether the rate was kept.
        assert!(matches!(outcome.code(), Some(0 | 1 | 3)) && records.len() == 3, "{outcome}");
        check_runs(&lab, &records, 1);
        read_all(&lab.stored_files()).check_generated(7, 2);
        assert!(records[1].trigger.switched + records[2].trigger.switched > 0, "{outcome}");
    }
}

/// Front ends keep their connections, and number their fragments on.
#[test]
fn live_front_ends_go_on_through_a_split() {
    let ports = [free_tcp_port(), free_tcp_port()];
    let unit = |port| {
        format!("[[readout.unit]]\nsource = {{ type = \"tcp\", listen = \"127.0.0.1:{port}\", first_counter = 1 }}\n")
    };
    let lab = Lab::with(&format!("{}{}[builder]\nunits = 2\n", unit(ports[0]), unit(ports[1])));
    lab.write("fed.toml", RATE);
    let mut run = lab.run(PROCESSES).args(&["--operator"]).start_listening();
    run.say("start");
    let feeds = [0, 1].map(|unit| {
        wait_until("the source listens", || TcpStream::connect(("127.0.0.1", ports[unit])).ok());
        let (to, unit) = (format!("127.0.0.1:{}", ports[unit]), unit.to_string());
        let feed = lab.evb(&["feed", "fed.toml", "--to", &to, "--protocol", "tcp", "--unit", &unit]);
        feed.args(&["--rate", "400 Hz", "--events", "800"]).start()
    });
    lab.wait_for_event(1);
    run.say("split");
    run.wait_for_new("splitting");
    feeds.into_iter().for_each(|feed| assert_eq!(feed.wait().code(), Some(0)));
    // The end of the data is the end of the second run.
    run.wait_for_new("run control: stopped");
    run.say("quit");
    let outcome = run.wait();
    let records = outcome.records();
    assert_eq!((outcome.code(), records.len()), (Some(0), 2), "{outcome}");
    assert_eq!(check_runs(&lab, &records, 1), 800);
    read_all(&lab.stored_files()).check_generated(7, 2);
    let came = |unit: usize| records.iter().map(|record| record.readouts[unit].came).sum::<u64>();
    assert_eq!((came(0), came(1)), (800, 800), "{outcome}");
}

#[test]
fn the_registry_has_each_of_the_runs() {
    let lab = Lab::with(RATE);
    let service = Service::start(&lab, &["--processes"]);
    service.command("start");
    for (number, next) in [
        (1, json!({ "command": "split" })),
        (2, json!({ "command": "split", "type": "cosmics", "comment": "new shift" })),
    ] {
        service.wait("events of the run", |status| {
            status["run"]["number"] == number && status["record"]["events"]["built"].as_u64() > Some(100)
        });
        assert_eq!(service.ask("POST", "/api/command", Some(&next)).status, 200);
    }
    service.wait("run 3", |status| {
        status["run"]["number"] == 3
            && status["state"] == "running"
            && status["record"]["events"]["built"].as_u64() > Some(100)
    });
    service.command("stop");
    service.wait_for_state("stopped");
    let runs = [1, 2, 3].map(|number| service.get(&format!("/api/runs/{number}")));
    let kinds = runs.each_ref().map(|run| (run["type"].clone(), run["comment"].clone(), run["state"].clone()));
    let of = |kind: &str, comment: &str| (json!(kind), json!(comment), json!("stopped"));
    assert_eq!(kinds, [of("test", ""), of("test", ""), of("cosmics", "new shift")]);
    let records: Vec<Record> = runs.iter().map(|run| serde_json::from_value(run["record"].clone()).unwrap()).collect();
    check_runs(&lab, &records, 1);
    for (run, kind, comment) in [(1, "test", ""), (2, "test", ""), (3, "cosmics", "new shift")] {
        for file in lab.files_of(run) {
            let reader = Reader::open(&file).expect("an event file");
            let metadata = reader.metadata().expect("metadata");
            assert_eq!((metadata.run_type.as_str(), metadata.comment.as_str()), (kind, comment), "{}", file.display());
        }
    }
    assert_eq!(service.command("split").status, 409);
}

/// Dead nodes of both kinds come back by themselves: the run goes on with all sources under the next number.
#[test]
fn a_lost_node_takes_part_again_in_a_run_that_begins_by_itself() {
    for dead in ["ru1", "bu0"] {
        let lab = Lab::with(RATE);
        let service = Service::start(&lab, &["--processes", "--set", "run.rejoin=split"]);
        service.command("start");
        service.wait("events", |status| status["record"]["events"]["built"].as_u64() > Some(100));
        Group::signal_one(node_pid(service.evb.pid(), dead), Signal::KILL);
        service.wait("run 2 with all nodes", |status| {
            let all_up = status["nodes"].as_array().unwrap().iter().all(|node| node["state"] == "up");
            let built = status["record"]["events"]["built"].as_u64();
            all_up && status["run"]["number"] == 2 && status["state"] == "running" && built > Some(100)
        });
        service.command("stop");
        service.wait_for_state("stopped");
        let [first, second] = [1, 2].map(|number| service.get(&format!("/api/runs/{number}")));
        let record = |run: &serde_json::Value| -> Record { serde_json::from_value(run["record"].clone()).unwrap() };
        let (first, second) = (record(&first), record(&second));
        assert_eq!((first.lost_nodes.as_slice(), first.good), (&[dead.to_owned()][..], false), "{first:#?}");
        let reason = first.findings.iter().find(|finding| finding.subject == dead).unwrap();
        // Run control sees the end of the process, or a peer that of the connection, whichever is first.
        let is_gone = reason.message.contains("gone") && reason.message.contains("signal");
        let is_lost_to_peers = reason.message.starts_with(&format!("{dead} is lost to its peers: its process ended;"));
        assert!(is_gone || is_lost_to_peers, "{reason:?}");
        assert!(
            is_good_or_busy(&second) && second.lost_nodes.is_empty() && second.events.incomplete == 0,
            "{second:#?}"
        );
        [&first, &second].into_iter().for_each(check_accounts);
        let stored = read_all(&lab.files_of(2));
        assert!(stored.events.len() > 100 && stored.events.iter().all(|event| event.complete));
        stored.check_generated(7, 2);
    }
}
