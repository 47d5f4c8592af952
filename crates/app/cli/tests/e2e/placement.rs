//! `run.placement`: nodes that are bound to cores, as the record and the system tell it.

use crate::support::{Lab, PROCESSES, Running, Service, THREADS, cores_of_threads, good, is_there, node_pid};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    thread::available_parallelism,
};

const SMALL: &str = r#"
[trigger]
type = "free-running"
events = 2000
[readout]
units = 2
source = { type = "log-normal", mean = "2 kB", rms = "1 kB" }
[builder]
units = 2
"#;

const NODES: [&str; 5] = ["evm", "ru0", "ru1", "bu0", "bu1"];

/// The core of each node that is bound.
type Placement = BTreeMap<String, u16>;

/// The cores that an unbound thread may use.
fn all_cores() -> String {
    let own = std::process::id();
    cores_of_threads(own).remove(&own).expect("this process is there")
}

/// Starts an endless run for an operator, and waits until it goes on.
fn operated(lab: &Lab, mode: &[&str]) -> Running {
    let run = lab.run(mode).args(&["--operator"]).set("trigger.events=1000000000").set("run.placement=auto");
    let mut run = run.set("storage.keep=none").start_listening();
    command(&mut run, "start", "running");
    run
}

fn command(run: &mut Running, word: &str, state: &str) {
    run.say(word);
    run.wait_for_new(state);
}

/// Ends a session, and returns the placement of each of its runs.
fn placements(mut run: Running) -> Vec<Placement> {
    run.say("quit");
    let outcome = run.wait();
    let records = outcome.records();
    assert!(outcome.code() == Some(0) && records.iter().all(|record| record.good), "{outcome}");
    records.into_iter().map(|record| record.placement).collect()
}

/// Checks that units have their own cores, or that each of two cores has its share of both kinds.
fn check(placement: &Placement) {
    let core = |name: &str| placement[name];
    match NODES[1..].iter().map(|name| core(name)).collect::<BTreeSet<_>>().len() {
        1 => assert_eq!(available_parallelism().unwrap().get(), 1, "{placement:?}"),
        2 => assert!(core("ru0") == core("bu0") && core("ru1") == core("bu1"), "{placement:?}"),
        cores => assert_eq!(cores, 4, "{placement:?}"),
    }
}

#[test]
fn the_record_and_the_summary_tell_the_cores() {
    let lab = Lab::with(SMALL);
    for mode in [THREADS, PROCESSES] {
        let record = good(&lab.run(mode).set("run.placement=auto").run());
        assert_eq!(record.events.built, 2000);
        check(&record.placement);
        assert!(good(&lab.run(mode).run()).placement.is_empty(), "not without being asked");
    }
    let workers = good(&lab.run(THREADS).set("run.placement=auto").set("run.workers=4").run()).placement;
    let shared = available_parallelism().unwrap().get() == 1;
    assert!(shared || workers["ru0"] != workers["bu0"], "a worker for each unit: {workers:?}");
    let outcome = lab.evb(&["run", "experiment.toml", "--set", "run.placement=auto"]).run();
    assert!(outcome.stdout.contains("placement") && outcome.stdout.contains("core "), "{outcome}");
}

/// Nodes in processes stay bound from run to run, and the threads beside them are free.
#[test]
fn processes_are_where_the_record_says() {
    let lab = Lab::with(SMALL);
    let mut run = operated(&lab, PROCESSES);
    let pids = NODES.map(|name| node_pid(run.pid(), name));
    let seen = || pids.map(cores_of_threads);
    let first = seen();
    command(&mut run, "stop", "stopped");
    command(&mut run, "start", "running");
    let second = seen();
    let placements = placements(run);
    for (threads, placement) in [first, second].iter().zip(&placements) {
        check(placement);
        for ((name, pid), threads) in NODES.iter().zip(pids).zip(threads) {
            let expected = placement.get(*name).map_or_else(all_cores, u16::to_string);
            assert_eq!(threads[&pid], expected, "{name}: {placement:?}");
            let others = threads.iter().filter(|(thread, _)| **thread != pid);
            others.for_each(|(thread, cores)| assert_eq!(*cores, all_cores(), "thread {thread} of {name}"));
        }
    }
    assert_eq!(placements.len(), 2);
}

/// The next experiment of a service may bind its nodes or free them; the processes stay.
#[test]
fn another_experiment_binds_nodes_or_frees_them() {
    let endless = SMALL.replace("2000", "1000000000");
    let bound = format!("{endless}[run]\nplacement = \"auto\"\n");
    let lab = Lab::with(&bound);
    let service = Service::start(&lab, &["--processes"]);
    for (index, text) in [&bound, &endless, &bound].into_iter().enumerate() {
        let load = json!({ "text": text });
        assert_eq!(service.ask("PUT", "/api/experiment", Some(&load)).status, 200);
        assert_eq!(service.command("start").status, 200);
        service.wait_for_state("running");
        let node = node_pid(service.evb.pid(), "bu1");
        // Nodes report one after another.
        let core_of = |status: &Value| status["record"]["placement"]["bu1"].as_u64();
        let status = service.wait("a record", |status| core_of(status).is_some() == (text == &bound));
        let core = core_of(&status);
        let expected = core.map_or_else(all_cores, |core| core.to_string());
        assert_eq!(cores_of_threads(node)[&node], expected, "run {index}: {status}");
        assert_eq!(service.command("stop").status, 200);
        service.wait_for_state("stopped");
    }
    assert_eq!(service.command("quit").status, 200);
    assert_eq!(service.evb.wait().code(), Some(0));
}

/// Workers are bound, run control is not.
#[test]
fn workers_are_where_the_record_says() {
    let lab = Lab::with(SMALL);
    let run = operated(&lab, THREADS);
    let pid = run.pid();
    let threads = cores_of_threads(pid);
    assert_eq!(threads[&pid], all_cores(), "run control");
    let placement = placements(run).remove(0);
    check(&placement);
    assert_eq!(placement.len(), NODES.len(), "workers carry all nodes");
    for core in placement.values() {
        assert!(threads.values().any(|cores| *cores == core.to_string()), "core {core}: {threads:?}");
    }
}

/// Nodes of one machine share its cores, however they were started.
#[test]
fn nodes_that_joined_by_hosts_are_bound() {
    let lab = Lab::with(SMALL);
    lab.write("shell", "shift; exec \"$@\"\n");
    let there = ["--hosts", "a,b", "--shell", "sh shell", "--listen", "127.0.0.1:0"];
    check(&good(&lab.run(&there).set("run.placement=auto").run()).placement);
}

/// Ranks that the launcher does not bind share the cores of their machine.
#[test]
fn ranks_are_bound() {
    let launcher = ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", "5"];
    if is_there(launcher[0]) {
        let lab = Lab::with(SMALL);
        check(&good(&lab.run(&[]).set("run.placement=auto").under(&launcher).run()).placement);
    }
}

/// Traffic is not event building, and the simulator has no cores.
#[test]
fn others_refuse_it_or_do_not_need_it() {
    let lab = Lab::with(&format!("{SMALL}\n[run]\nplacement = \"auto\"\n"));
    assert!(good(&lab.simulate(&[]).run()).placement.is_empty());
    let text = SMALL.split("[readout]").last().unwrap();
    let lab = Lab::with(&format!("[workload]\ntype = \"pairs\"\nmessages = 10\n[readout]{text}"));
    let outcome = lab.run(&[]).set("run.placement=auto").run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("not bound to cores by `run.placement`"), "{outcome}");
}

/// A run that may use one core only builds all events there.
#[test]
fn one_core_is_enough() {
    if !is_there("taskset") {
        return;
    }
    let lab = Lab::with(SMALL);
    let cores = all_cores();
    let core = cores.split(['-', ',']).next().expect("the first one");
    for mode in [THREADS, PROCESSES] {
        let record = good(&lab.run(mode).set("run.placement=auto").under(&["taskset", "-c", core]).run());
        assert!(record.placement.values().all(|found| found.to_string() == core), "{:?}", record.placement);
        assert!(NODES[1..].iter().all(|name| record.placement.contains_key(*name)), "{:?}", record.placement);
    }
}
