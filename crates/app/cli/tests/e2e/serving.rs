//! `evb serve`: run control as a service, and its registry of runs.

use crate::support::{Group, Lab, Service, free_tcp_port, is_there, node_pid, roles_of_sessions, shipped, wait_until};
use rustix::process::Signal;
use serde_json::json;
use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
};

const ENDLESS: &str = r#"
[trigger]
type = "free-running"
events = 1000000000
[readout]
units = 2
source = { type = "uniform", min = "10 B", max = "3 kB" }
[builder]
units = 2
[storage]
keep = { one_in = 1000 }
"#;

#[test]
fn runs_are_started_watched_and_stopped_and_the_registry_knows_them() {
    let lab = Lab::with(ENDLESS);
    let service = Service::start(&lab, &[]);
    assert_eq!(service.get("/api/status")["state"], "initial");
    assert_eq!(service.command("start").status, 200);
    let running = service.wait("a rate", |status| status["now_rates"]["built_hz"].as_f64() > Some(100.0));
    assert_eq!(
        (&running["state"], &running["run"]["number"], &running["run"]["type"]),
        (&json!("running"), &json!(1), &json!("test"))
    );
    assert_eq!(running["nodes"].as_array().unwrap().len(), 5);
    assert!(running["disk"]["free_bytes"].as_u64() > Some(0));
    let refused = service.command("start");
    assert_eq!((refused.status, refused.json()["error"].as_str().unwrap().contains("means nothing now")), (409, true));
    assert_eq!(service.command("pause").status, 200);
    service.wait_for_state("paused");
    assert_eq!(service.command("resume").status, 200);
    service.wait("events", |status| status["record"]["builders"][0]["stored"].as_u64() > Some(3));
    let event = service.get("/api/event?live=1");
    assert_eq!((event["fragments"].as_array().unwrap().len(), &event["complete"]), (2, &json!(true)), "{event}");
    assert!(service.listen(3).iter().any(|name| name == "status"));
    let stop = json!({ "command": "stop", "comment": "enough" });
    assert_eq!(service.ask("POST", "/api/command", Some(&stop)).status, 200);
    let stopped = service.wait_for_state("stopped");
    let built = stopped["record"]["events"]["built"].as_u64().unwrap();
    assert_eq!((&stopped["record"]["good"], stopped["now_rates"].is_null()), (&json!(true), true), "{stopped}");
    let run = service.get("/api/runs/1");
    assert_eq!(
        (run["events"].as_u64(), &run["stop_comment"], &run["good"]),
        (Some(built), &json!("enough"), &json!(true))
    );
    let file = run["record"]["builders"][0]["files"][0].as_str().unwrap().to_owned();
    let name = file.rsplit('/').next().unwrap();
    let event = service.get(&format!("/api/event?run=1&file={name}&index=2"));
    let (size, source) = (event["fragments"][1]["size"].as_u64().unwrap(), &event["fragments"][1]["source"]);
    assert_eq!(source, &json!("ru1"));
    let fragment = service.get(&format!("/api/fragment?run=1&file={name}&index=2&source=ru1&offset=4"));
    assert_eq!((fragment["size"].as_u64(), fragment["offset"].as_u64()), (Some(size), Some(4)));
    assert_eq!(fragment["bytes"].as_str().unwrap().len() as u64, 2 * (size - 4).min(1024));
    for wrong in ["file=../../etc/passwd&index=0", "file=run-number&index=0", &format!("file={name}&index=99999999")] {
        assert_eq!(service.ask("GET", &format!("/api/event?run=1&{wrong}"), None).status, 404, "{wrong}");
    }
    let metrics = service.ask("GET", "/metrics", None).body;
    assert!(metrics.contains(&format!("evb_events_total{{outcome=\"built\"}} {built}")), "{metrics}");

    service.evb.signal(Signal::TERM);
    let outcome = service.evb.wait();
    assert_eq!(outcome.code(), Some(0), "{outcome}");
    let listed = lab.evb(&["runs", "list", "--json"]).run();
    assert_eq!(listed.code(), Some(0), "{listed}");
    assert!(listed.stdout.contains("\"comment\":\"\"") && listed.stdout.lines().count() == 1, "{listed}");
    assert_eq!(lab.evb(&["runs", "show", "1"]).run().code(), Some(0));
    assert!(lab.evb(&["runs", "show", "1", "--experiment"]).run().stdout.contains("one_in"));
    assert!(lab.evb(&["runs", "list", "--csv"]).run().stdout.lines().nth(1).unwrap().starts_with("1,test,experiment"));
    let missing = lab.evb(&["runs", "show", "2"]).run();
    assert_eq!((missing.code(), missing.stderr.contains("run 2 does not exist")), (Some(2), true));
}

#[test]
fn a_dead_node_degrades_the_run_and_takes_part_in_the_next() {
    let lab = Lab::with(ENDLESS);
    let service = Service::start(&lab, &["--processes"]);
    service.command("start");
    service.wait("a rate", |status| status["now_rates"]["built_hz"].as_f64() > Some(10.0));
    Group::signal_one(node_pid(service.evb.pid(), "ru1"), Signal::KILL);
    let degraded = service.wait_for_state("degraded");
    let node = &degraded["nodes"][2];
    assert_eq!((&node["name"], &node["state"]), (&json!("ru1"), &json!("lost")), "{degraded}");
    service.wait("a reason", |status| status["nodes"][2]["reason"].as_str().is_some_and(|why| why.contains("ru1")));
    service.command("stop");
    service.wait_for_state("stopped");
    service.command("start");
    service.wait("all nodes", |status| {
        status["state"] == "running" && status["nodes"].as_array().unwrap().iter().all(|node| node["state"] == "up")
    });
    // A service that dies leaves a run without a recorded end.
    service.evb.signal(Signal::KILL);
    service.evb.wait();
    let service = Service::start(&lab, &[]);
    let runs = service.get("/api/runs");
    let states = [0, 1].map(|index| runs["runs"][index]["state"].clone());
    assert_eq!(states, ["interrupted", "stopped"], "{runs}");
    service.command("start");
    service.wait("run 3", |status| status["run"]["number"] == 3);
    assert_eq!(service.command("quit").status, 200);
    assert_eq!(service.evb.wait().code(), Some(0));
}

#[test]
fn strangers_other_sites_and_operators_without_the_role_are_refused() {
    let lab = Lab::with(ENDLESS);
    lab.write("tokens", "anna admin anna-0123456789abcdef\nben watch ben-0123456789abcdef\n");
    let refused = lab.evb(&["serve", "experiment.toml", "--http", "127.0.0.1:0", "--tokens", "tokens"]).run();
    assert_eq!((refused.code(), refused.stderr.contains("can be read by others")), (Some(2), true), "{refused}");
    fs::set_permissions(lab.path("tokens"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut service = Service::start(&lab, &["--tokens", "tokens"]);
    assert!(!service.evb.stderr().contains("0123456789abcdef"));
    let page = service.send("GET", "/", &[], None);
    assert!(page.status == 200 && page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    for path in ["/api/status", "/api/events", "/api/runs", "/api/experiment", "/metrics", "/api/event?live=1"] {
        assert_eq!(service.send("GET", path, &[], None).status, 401, "{path}");
        assert_eq!(service.send("GET", path, &["Authorization: Bearer wrong"], None).status, 401, "{path}");
    }
    let start = json!({ "command": "start" });
    let (anna, ben) = ("Authorization: Bearer anna-0123456789abcdef", "Authorization: Bearer ben-0123456789abcdef");
    for (headers, status) in [
        (&[ben, "X-Evb: 1"][..], 403),
        (&[anna], 403),
        (&[anna, "X-Evb: 1", "Origin: http://evil.example"], 403),
        (&[anna, "X-Evb: 1", "Sec-Fetch-Site: cross-site"], 403),
        (&[anna, "X-Evb: 1"], 200),
    ] {
        assert_eq!(service.send("POST", "/api/command", headers, Some(&start)).status, status, "{headers:?}");
    }
    service.token = "ben-0123456789abcdef".into();
    assert_eq!(service.wait_for_state("running")["role"], "watch");
    assert!(service.get("/api/log").as_array().unwrap().iter().any(|entry| entry["text"] == "anna: start"));
    let remote = lab.evb(&["serve", "experiment.toml", "--http", "0.0.0.0:0"]).run();
    assert_eq!((remote.code(), remote.stderr.contains("in clear")), (Some(2), true), "{remote}");
}

#[test]
fn silent_connections_take_no_place_from_operators() {
    let lab = Lab::with(ENDLESS);
    let service = Service::start(&lab, &[]);
    let silent: Vec<_> = (0..300).map(|_| service.open()).collect();
    assert_eq!(service.get("/api/status")["state"], "initial");
    assert_eq!(service.command("start").status, 200);
    service.wait_for_state("running");
    drop(silent);
}

#[test]
fn another_experiment_is_checked_before_anything_changes() {
    let lab = Lab::with(ENDLESS);
    let service = Service::start(&lab, &[]);
    let load = |text: &str| service.ask("PUT", "/api/experiment", Some(&json!({ "text": text })));
    let wrong = load("[readout]\nunitz = 3\n");
    let error = wrong.json()["error"].as_str().unwrap().to_owned();
    assert!(wrong.status == 422 && error.contains("unitz"), "{error}");
    let traffic = load(
        "[workload]\ntype = \"pairs\"\nmessages = 10\n[readout]\nunits = 2\nsource = { type = \"fixed\", size = \"2 kB\" }\n[builder]\nunits = 2\n",
    );
    assert_eq!(traffic.status, 422, "{}", traffic.body);
    let processes = load(&format!("{ENDLESS}[transport]\ntype = \"tcp\"\n"));
    assert!(processes.status == 422 && processes.body.contains("cannot carry"), "{}", processes.body);
    assert_eq!(service.get("/api/status")["nodes"].as_array().unwrap().len(), 5);
    service.command("start");
    service.wait_for_state("running");
    let three = ENDLESS.replace("units = 2", "units = 3");
    assert_eq!(load(&three).status, 409, "not in a run");
    service.command("stop");
    service.wait_for_state("stopped");
    assert_eq!(load(&three).status, 200);
    assert_eq!(service.get("/api/experiment")["text"], json!(three));
    service.command("start");
    let running = service.wait_for_state("running");
    assert_eq!(running["nodes"].as_array().unwrap().len(), 7);
}

/// One node that could not take an experiment keeps all of them from it, and they go on with what they had.
#[test]
fn nodes_are_asked_before_any_of_them_changes() {
    let lab = Lab::with(ENDLESS);
    let service = Service::start(&lab, &["--processes"]);
    let load = |text: &str| service.ask("PUT", "/api/experiment", Some(&json!({ "text": text })));
    service.command("configure");
    service.wait_for_state("configured");
    let before = roles_of_sessions(service.evb.pid());
    // The folder of the event files cannot be made on the machine of a builder.
    lab.write("taken", "a file");
    let impossible = load(&ENDLESS.replace("[storage]", "[storage]\ndirectory = \"taken/away\""));
    let error = impossible.json()["error"].as_str().unwrap().to_owned();
    assert!(impossible.status == 409 && error.contains("bu") && error.contains("taken"), "{error}");
    assert_eq!(service.get("/api/status")["state"], "configured", "they have what they had");
    assert_eq!(service.get("/api/experiment")["text"], json!(ENDLESS));
    fs::remove_file(lab.path("taken")).unwrap();
    let three = load(&ENDLESS.replace("units = 2", "units = 3"));
    assert_eq!(three.status, 200, "{}", three.body);
    service.command("start");
    service.wait_for_state("running");
    let after = roles_of_sessions(service.evb.pid());
    assert!(before[0].iter().all(|(role, pid)| after[0].get(role) == Some(pid)), "no process was started again");
}

#[test]
fn hooks_run_before_and_after_and_a_scan_has_a_run_for_each_point() {
    let lab = Lab::with(&format!("{}[sweep]\n\"builder.units\" = [1, 2, 3]\n", ENDLESS.replace("1000000000", "500")));
    for (name, text) in [
        ("before", "test ! -e closed && echo before $EVB_RUN $EVB_TYPE >> hooks"),
        ("after", "echo after $EVB_RUN $EVB_STATE $EVB_GOOD $EVB_VERDICT >> hooks"),
    ] {
        lab.write(name, format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(lab.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let service = Service::start(&lab, &["--before-start", "./before", "--after-stop", "./after"]);
    lab.write("closed", "");
    service.command("start");
    let refused = service.wait("an error", |status| !status["error"].is_null());
    assert!(refused["error"]["error"].as_str().unwrap().contains("./before failed"), "{refused}");
    assert_eq!((&refused["state"], service.get("/api/runs")["runs"].as_array().unwrap().len()), (&json!("initial"), 0));
    fs::remove_file(lab.path("closed")).unwrap();
    service.command("start");
    let hooks = wait_until("three runs", || {
        let hooks = fs::read_to_string(lab.path("hooks")).unwrap_or_default();
        (hooks.matches("after").count() == 3).then_some(hooks)
    });
    let mut lines: Vec<_> = hooks.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "after 1 stopped true good",
            "after 2 stopped true good",
            "after 3 stopped true good",
            "before 1 test",
            "before 2 test",
            "before 3 test"
        ]
    );
    let units = [3, 2, 1].map(|run| service.get(&format!("/api/runs/{run}"))["record"]["builder_units"].as_u64());
    assert_eq!(units, [Some(3), Some(2), Some(1)]);
}

/// The metrics on the page about them: those of live sources, and all others.
pub(crate) fn explained_metrics() -> (BTreeSet<String>, BTreeSet<String>) {
    let page = fs::read_to_string(shipped("../docs/reference/metrics.md")).unwrap();
    named(&page).into_iter().partition(|name| name.starts_with("evb_source_"))
}

/// The names of the metrics of a service in Prometheus' form.
pub(crate) fn names(metrics: &str) -> BTreeSet<String> {
    let lines = metrics.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split(['{', ' ']).next().unwrap_or_default().to_owned()).collect()
}

/// The names of metrics in a text that people or programs read.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let is_metric = |word: &&str| word.starts_with("evb_") && *word != "evb_monitor";
    words.filter(is_metric).map(str::to_owned).collect()
}

#[test]
fn every_metric_is_explained_and_rules_and_dashboard_use_no_other() {
    let monitor =
        "[[monitor]]\nfield = \"byte\"\ndecoder = { items = [{ name = \"byte\", type = \"u1\" }] }\nchannels = 256\n";
    let lab = Lab::with(&format!("{ENDLESS}{monitor}"));
    let service = Service::start(&lab, &[]);
    service.command("start");
    service.wait("a rate", |status| status["now_rates"]["built_hz"].as_f64() > Some(10.0));
    let mut known = names(&service.ask("GET", "/metrics", None).body);
    known.insert("evb_faults_total".into());
    let (of_sources, explained) = explained_metrics();
    assert_eq!(explained, known);
    known.extend(of_sources);
    for file in ["alerts.yml", "grafana.json"] {
        let used = named(&fs::read_to_string(shipped(&format!("../docs/guides/monitoring/{file}"))).unwrap());
        assert!(!used.is_empty() && used.is_subset(&known), "{file}: {:?}", used.difference(&known));
    }
    let top = lab.evb(&["top", &service.place]).env("EVB_HTTP_TOKEN", &service.token).run();
    assert!(
        top.code() == Some(0) && top.stdout.starts_with("running  run 1 test") && top.stdout.contains("bu1"),
        "{top}"
    );
    let refused = lab.evb(&["top", &service.place]).env("EVB_HTTP_TOKEN", "wrong").run();
    assert!(refused.code() == Some(2) && refused.stderr.contains("no operator has this token"), "{refused}");
    let influx = service.ask("GET", "/metrics/influx", None).body;
    assert!(influx.lines().any(|line| line.starts_with("evb_state,state=running value=1 ")), "{influx}");
}

/// A real Prometheus loads the configuration and the rules, reads a run, and raises the alert of a lost node.
#[test]
fn prometheus_reads_a_run_and_alerts() {
    if !is_there("prometheus") {
        return;
    }
    let lab = Lab::with(ENDLESS);
    let service = Service::start(&lab, &["--processes"]);
    lab.write("token", &service.token);
    let port = free_tcp_port();
    let text = fs::read_to_string(shipped("../docs/guides/monitoring/prometheus.yml")).unwrap();
    lab.write("prometheus.yml", text.replace("127.0.0.1:8080", &service.place).replace("5s", "1s"));
    fs::copy(shipped("../docs/guides/monitoring/alerts.yml"), lab.path("alerts.yml")).unwrap();
    let mut command = Command::new("prometheus");
    command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=series"]).current_dir(lab.path(""));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut prometheus = command.spawn().unwrap();
    let ask = |path: &str| -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    service.command("start");
    let seen = |what: &str, path: &str, text: &str| {
        wait_until(what, || ask(path).filter(|answer| answer.contains(text)).map(drop));
    };
    seen("the run in Prometheus", "/api/v1/query?query=evb_state%7Bstate%3D%22running%22%7D%3D%3D1", "\"running\"");
    Group::signal_one(node_pid(service.evb.pid(), "ru0"), Signal::KILL);
    seen("the alert", "/api/v1/alerts", "\"alertname\":\"NodeLost\"");
    prometheus.kill().unwrap();
    prometheus.wait().unwrap();
}

#[test]
fn a_run_that_loses_a_required_node_is_stopped() {
    let lab = Lab::with(&format!("{ENDLESS}[run]\nrequired = [\"ru1\"]\n"));
    let service = Service::start(&lab, &["--processes"]);
    service.command("start");
    service.wait("a rate", |status| status["now_rates"]["built_hz"].as_f64() > Some(10.0));
    Group::signal_one(node_pid(service.evb.pid(), "ru1"), Signal::KILL);
    let stopped = service.wait_for_state("stopped");
    let findings = stopped["record"]["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["kind"] == "too_few_nodes"), "{stopped}");
}

/// Nothing is stored, and a program in Python sees events all the same.
#[test]
fn monitoring_clients_see_events_of_the_run() {
    if !is_there("python3") {
        return;
    }
    let lab = Lab::with(&ENDLESS.replace("{ one_in = 1000 }", "\"none\""));
    let service = Service::start(&lab, &["--processes", "--samples", "samples"]);
    service.command("start");
    let client = shipped("../clients/python/evb_monitor.py");
    let monitor = |place: &str, token: &str| {
        let mut command = Command::new("python3");
        command.arg(&client).args([place, "--events", "5"]);
        command.env("EVB_HTTP_TOKEN", token).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap()
    };
    let (address, shared) = (format!("http://{}", service.place), lab.path("samples"));
    for (place, token) in [(address.as_str(), service.token.as_str()), (shared.to_str().unwrap(), "")] {
        let seen = monitor(place, token);
        let text = String::from_utf8(seen.stdout).unwrap();
        assert!(seen.status.success() && text.lines().count() == 5, "{text}{}", String::from_utf8_lossy(&seen.stderr));
        for line in text.lines() {
            assert!(
                line.starts_with("run 1 event ") && line.contains(" complete ") && line.contains(" ru1:"),
                "{line}"
            );
        }
    }
    assert_eq!(service.get("/api/event?live=1")["fragments"].as_array().unwrap().len(), 2);
    let refused = monitor(&address, "wrong");
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && why.contains("no operator has this token"), "{why}");
}

/// With certificate and key the page may be read from other machines, and not in clear.
#[test]
fn the_page_is_served_by_tls() {
    if !is_there("openssl") {
        return;
    }
    let lab = Lab::with(ENDLESS);
    let make = |key: &str, certificate: &str| {
        let mut command = Command::new("openssl");
        command.args(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost".split(' '),
        );
        command.args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]);
        let made = command.args(["-keyout", key, "-out", certificate]).current_dir(lab.path("")).output().unwrap();
        assert!(made.status.success(), "{made:?}");
    };
    make("key", "cert");
    make("other-key", "other");
    let files = ["--tls-cert", "cert", "--tls-key", "key"];
    let mut service = lab.evb(&["serve", "experiment.toml", "--http", "0.0.0.0:0"]).args(&files).start();
    service.wait_for("run control is at https://127.0.0.1:");
    let said = service.stderr();
    let (place, token) = said.split("https://").nth(1).unwrap().split_once("/#token=").unwrap();
    let token = token.split_whitespace().next().unwrap();
    let port = place.rsplit_once(':').unwrap().1;
    let top = |address: &str, authorities: &str| {
        let command = lab.evb(&["top", "--once", "--ca", authorities, &format!("{address}:{port}")]);
        command.env("EVB_HTTP_TOKEN", token).run()
    };
    let seen = top("https://localhost", "cert");
    assert!(seen.code() == Some(0) && seen.stdout.contains("initial"), "{seen}");
    let cases = [
        ("https://localhost", "other", "invalid peer certificate"),
        ("https://127.0.0.1", "cert", "invalid peer certificate"),
        // The service may close the connection before it has the whole request.
        ("http://localhost", "cert", "is it http or https?"),
    ];
    for (address, authorities, why) in cases {
        let refused = top(address, authorities);
        assert!(refused.code() == Some(2) && refused.stderr.contains(why), "{refused}");
    }
    let shown = lab.evb(&["top", "--once", &format!("http://{place}/#token=secret")]).run();
    assert!(shown.code() == Some(2) && shown.stderr.contains("EVB_HTTP_TOKEN"), "{shown}");
    let mut clear = TcpStream::connect(place).unwrap();
    clear.write_all(b"GET /api/status HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _reset = clear.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    let wrong = lab.evb(&["serve", "experiment.toml", "--tls-cert", "key", "--tls-key", "key"]).run();
    assert!(wrong.code() == Some(2) && wrong.stderr.contains("no certificate"), "{wrong}");
}
