//! Nodes that are started by hand, and strangers at every port: nodes with the token and a free place join, and
//! all others are rejected and disturb nothing.

use crate::support::{Evb, Lab, Running, free_tcp_port, good, wait_until};
use rustix::process::Signal;
use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    time::Duration,
};

const EXPERIMENT: &str = r#"
[trigger]
type = "free-running"
events = 2000
[readout]
units = 2
source = { type = "uniform", min = "10 B", max = "1 kB" }
[builder]
units = 2
[run]
peer_timeout = "20 s"
[storage]
keep = "none"
"#;

const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const WRONG: &str = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const NODES: [&str; 5] = ["evm", "ru0", "ru1", "bu0", "bu1"];

/// Starts run control; gives it and its address.
fn control(lab: &Lab, set: &[&str]) -> (Running, String) {
    let run = lab.run(&["--listen", "127.0.0.1:0", "--patience", "50"]).env("EVB_TOKEN", TOKEN).env("EVB_LOG", "info");
    let mut run = set.iter().fold(run, |run, set| run.set(set)).start();
    run.wait_for(" nodes\n");
    let said = run.stderr();
    let address = said.split_once("waiting at ").and_then(|(_, rest)| rest.split_once(' '));
    let address = address.unwrap_or_else(|| panic!("no address in {said}")).0.to_owned();
    (run, address)
}

fn node(lab: &Lab, role: &str, address: &str) -> Evb {
    lab.evb(&["node", "--role", role, "--join", address, "--patience", "50"]).env("EVB_TOKEN", TOKEN)
}

fn check_good(run: Running, nodes: Vec<Running>) {
    let record = good(&run.wait());
    assert_eq!((record.events.built, record.transport.as_str()), (2000, "tcp"));
    for node in nodes {
        let outcome = node.wait();
        assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(0), ""), "{outcome}");
    }
}

/// Who listens where run control should be learns nothing from a node, and is not obeyed.
#[test]
fn an_impostor_of_run_control_gets_no_token_and_no_obedience() {
    let lab = Lab::with(EXPERIMENT);
    let impostor = TcpListener::bind("127.0.0.1:0").unwrap();
    let node = node(&lab, "ru0", &impostor.local_addr().unwrap().to_string()).start();
    let (mut stream, _) = impostor.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut heard = vec![0; 4096];
    let length = stream.read(&mut heard).unwrap();
    heard.truncate(length);
    // What it heard comes back, and an order in clear behind it.
    stream.write_all(&heard).unwrap();
    stream.write_all(b"\"welcome\"\n{\"order\":\"exit\",\"detail\":\"none\"}\n").unwrap();
    let _closed = stream.read_to_end(&mut heard);
    let outcome = node.wait();
    assert!(outcome.code() == Some(2) && outcome.stderr.contains("is not run control"), "{outcome}");
    let bytes: Vec<u8> =
        (0..TOKEN.len()).step_by(2).map(|at| u8::from_str_radix(&TOKEN[at..at + 2], 16).unwrap()).collect();
    for secret in [TOKEN.as_bytes(), &bytes[..8]] {
        assert!(!heard.windows(secret.len()).any(|part| part == secret), "the token went over the network");
    }
}

#[test]
fn nodes_started_by_hand_build_events() {
    let lab = Lab::with(EXPERIMENT);
    let (run, address) = control(&lab, &[]);
    let address = address.replace("127.0.0.1", "localhost");
    let nodes = NODES.map(|role| node(&lab, role, &address).start()).into();
    check_good(run, nodes);
}

/// The order does not matter: nodes wait for run control.
#[test]
fn nodes_may_be_started_before_run_control() {
    let lab = Lab::with(EXPERIMENT);
    let address = format!("127.0.0.1:{}", free_tcp_port());
    let nodes = NODES.map(|role| node(&lab, role, &address).start()).into();
    let run = lab.run(&["--listen", &address]).env("EVB_TOKEN", TOKEN).start();
    check_good(run, nodes);
}

/// A wrong token, a place that is taken or that there is not: refused, with a reason on both sides, and the run goes on.
#[test]
fn strangers_are_rejected_and_the_run_continues() {
    let lab = Lab::with(EXPERIMENT);
    let (mut run, address) = control(&lab, &[]);
    let mut nodes = vec![node(&lab, "ru0", &address).start()];
    let wrong_token = node(&lab, "bu1", &address).env("EVB_TOKEN", WRONG).run();
    let no_such_place = node(&lab, "ru2", &address).run();
    run.wait_for("the token of this run");
    // Which of the two is refused is open; the other one builds.
    let twins = [node(&lab, "ru1", &address).start(), node(&lab, "ru1", &address).start()];
    run.wait_for("ru1: this node has joined already");
    for (outcome, reason) in [
        (wrong_token, "run control refuses bu1: it does not have the token of this run"),
        (no_such_place, "run control refuses ru2: the nodes of this run are evm, ru0 to ru1 and bu0 to bu1"),
    ] {
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        assert!(outcome.stderr.contains(reason), "{outcome}");
        assert!(!outcome.stderr.contains(TOKEN) && !outcome.stderr.contains(WRONG), "{outcome}");
    }
    nodes.extend(["evm", "bu0", "bu1"].map(|role| node(&lab, role, &address).start()));
    let record = good(&run.wait());
    assert_eq!(record.events.built, 2000);
    let mut codes = twins.map(|twin| twin.wait().code());
    codes.sort();
    assert_eq!(codes, [Some(0), Some(2)]);
    nodes.into_iter().for_each(|node| assert_eq!(node.wait().code(), Some(0)));
}

/// Garbage, half a hello and silence at the port of run control and at the port of a node, before and during the run.
#[test]
fn strangers_at_the_ports_do_not_disturb() {
    let lab = Lab::with(EXPERIMENT);
    let port = format!("127.0.0.1:{}", free_tcp_port());
    let (mut run, address) = control(&lab, &["trigger.duration=\"3 s\"", "trigger.events=1000000000"]);
    let mut silent = Vec::new();
    let mut disturb = |at: &String| {
        // A port that has closed meanwhile refuses the rest.
        let connections = || std::iter::from_fn(|| TcpStream::connect(at).ok());
        for (garbage, mut stream) in garbage().into_iter().zip(connections()) {
            // It may be cut off at any time.
            let _cut_off = stream.write_all(&garbage);
            silent.push(stream);
        }
        silent.extend(connections().take(1));
        connections().take(1).for_each(|stream| _ = stream.shutdown(Shutdown::Both));
    };
    disturb(&address);
    let mut nodes: Vec<_> =
        NODES.iter().filter(|role| **role != "ru0").map(|role| node(&lab, role, &address).start()).collect();
    run.wait_for("joined role=\"bu1\"");
    // A node listens until all its peers are there: a stopped one keeps the port open.
    let bu1 = nodes.pop().expect("the last one is bu1");
    bu1.signal(Signal::STOP);
    nodes.push(node(&lab, "ru0", &address).args(&["--listen", &port]).start());
    wait_until("ru0 listens", || TcpStream::connect(&port).ok());
    disturb(&port);
    disturb(&address);
    bu1.signal(Signal::CONT);
    nodes.push(bu1);
    good(&run.wait());
    nodes.into_iter().for_each(|node| assert_eq!(node.wait().code(), Some(0)));
    assert!(silent.len() > 2 * garbage().len(), "run control took strangers twice: {}", silent.len());
    // No stranger got an answer.
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut said = Vec::new();
        let _reset = stream.read_to_end(&mut said);
        assert!(!String::from_utf8_lossy(&said).contains(TOKEN));
        assert!(said.len() < 300, "{}", String::from_utf8_lossy(&said));
    }
}

/// Strangers that send one byte now and then delay no node for long, in any number.
#[test]
fn strangers_that_never_finish_do_not_hold_up_the_run() {
    let lab = Lab::with(EXPERIMENT);
    let (mut run, address) = control(&lab, &[]);
    let mut strangers: Vec<_> = (0..64).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let mut nodes = NODES.map(|role| node(&lab, role, &address).start());
    while run.is_running() && nodes.iter_mut().all(Running::is_running) {
        strangers.retain_mut(|stranger| stranger.write_all(b" ").is_ok());
        std::thread::sleep(Duration::from_millis(300));
    }
    check_good(run, nodes.into());
}

fn garbage() -> Vec<Vec<u8>> {
    let hello = |token: &str| format!("{{\"token\":\"{token}\",\"role\":\"ru1\",\"version\":\"0\"}}\n");
    vec![
        b"GET / HTTP/1.1\r\nHost: evb\r\n\r\n".to_vec(),
        vec![0xff; 1 << 17],
        vec![b'['; 1 << 17],
        b"{\"token\":\"0011".to_vec(),
        b"{}\n".to_vec(),
        hello("").into_bytes(),
        hello("é").into_bytes(),
        hello(&"0".repeat(64)).replace("ru1", "ru65536").into_bytes(),
        vec![0; 48],
        b"evb-tcp\0\x01\0".to_vec(),
    ]
}

/// Ctrl-C while run control waits for nodes ends it, and is not taken for a failure of the nodes.
#[test]
fn an_interrupt_ends_the_waiting() {
    let lab = Lab::with(EXPERIMENT);
    let (run, _) = control(&lab, &[]);
    run.signal(Signal::INT);
    let outcome = run.wait();
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(2), ""), "{outcome}");
    assert!(outcome.stderr.contains("stopped before the run began") && !outcome.stderr.contains("hint"), "{outcome}");
}

/// When not all nodes come, run control says which are missing.
#[test]
fn nodes_that_do_not_come_are_named() {
    let lab = Lab::with(EXPERIMENT);
    let run = lab.run(&["--listen", "127.0.0.1:0", "--patience", "0"]).env("EVB_TOKEN", TOKEN).run();
    assert_eq!(run.code(), Some(2), "{run}");
    assert!(run.stderr.contains("evm, ru0, ru1, bu0, bu1 missing") && run.stderr.contains("hint: "), "{run}");
}

/// A node that waits, for run control or for others, ends on a signal.
#[test]
fn a_node_that_waits_hears_signals() {
    let lab = Lab::with(EXPERIMENT);
    let closed = format!("127.0.0.1:{}", free_tcp_port());
    let (_run, address) = control(&lab, &[]);
    for (address, signal) in
        [(&closed, Signal::INT), (&closed, Signal::TERM), (&address, Signal::INT), (&address, Signal::TERM)]
    {
        let node = node(&lab, "ru0", address).start();
        wait_until("the node listens to signals", || hears(node.pid(), signal).then_some(()));
        node.signal(signal);
        let outcome = node.wait();
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        assert!(outcome.stderr.contains("stopped before the run began") && outcome.seconds < 30.0, "{outcome}");
    }
}

/// A node that was ended while it waited can be started again, and the run begins.
#[test]
fn the_place_of_a_node_that_left_is_free() {
    let lab = Lab::with(EXPERIMENT);
    let (mut run, address) = control(&lab, &[]);
    let first = node(&lab, "ru0", &address).start();
    // Who is connected says hello before it listens to anybody.
    wait_until("the node has reached run control", || has_connection_to(&address).then_some(()));
    first.signal(Signal::INT);
    assert_eq!(first.wait().code(), Some(2));
    let nodes = NODES.map(|role| node(&lab, role, &address).start()).into();
    run.wait_for("ru0 has left before the run began");
    check_good(run, nodes);
}

/// Whether somebody on this machine has a connection to this address.
fn has_connection_to(address: &str) -> bool {
    let port: u16 = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("an address");
    let (table, wanted) = (std::fs::read_to_string("/proc/net/tcp").expect("/proc"), format!(":{port:04X}"));
    table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|words| {
        // Number, local address, remote address, state; 01 is established.
        words.get(2).is_some_and(|remote| remote.ends_with(&wanted)) && words.get(3) == Some(&"01")
    })
}

/// Whether a process has its own handler for a signal.
fn hears(pid: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// However early run control dies, its nodes go with it.
#[test]
fn no_node_outlives_a_run_control_that_dies_while_it_starts() {
    for milliseconds in [0, 2, 5, 10, 20, 40, 80] {
        let lab = Lab::with(EXPERIMENT);
        let run = lab.run(&["--processes"]).set("trigger.events=1000000000").start();
        std::thread::sleep(Duration::from_millis(milliseconds));
        run.signal(Signal::KILL);
        // The pipe of standard error closes when the last node has ended.
        let outcome = run.wait();
        assert!(outcome.seconds < 40.0, "{outcome}");
    }
}
