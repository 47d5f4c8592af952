//! Live front ends over TCP and UDP, played by `evb feed` and by hand, with strangers and faults among them.

use crate::support::{
    Lab, Outcome, PROCESSES, Running, THREADS, free_tcp_port, free_udp_port, good, holds_event, not_good, read_all,
    wait_until,
};
use evb_sources::{Frame, encode};
use rustix::process::Signal;
use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{Shutdown, TcpStream, UdpSocket},
};

/// What the feeds play. Few events, so that all datagrams fit into the buffer of a socket, however slow its reader is.
const FED: &str = r#"
[trigger]
type = "free-running"
events = 200
[readout]
units = 2
source = { type = "uniform", min = "1 B", max = "200 B" }
[builder]
units = 1
[run]
seed = 11
"#;
const EVENTS: u64 = 200;
const SEED: u64 = 11;

/// A run that listens, and where.
pub(crate) struct Listening {
    pub(crate) lab: Lab,
    pub(crate) tcp: u16,
    udp: u16,
}

impl Listening {
    /// Two readout units, TCP and UDP, or both TCP.
    pub(crate) fn new(second: &str, bits: u8) -> Self {
        let (tcp, udp) = (free_tcp_port(), if second == "udp" { free_udp_port() } else { free_tcp_port() });
        let experiment = format!(
            r#"
            [[readout.unit]]
            source = {{ type = "tcp", listen = "127.0.0.1:{tcp}", counter_bits = {bits}, first_counter = 1 }}
            [[readout.unit]]
            source = {{ type = "{second}", listen = "127.0.0.1:{udp}", counter_bits = {bits}, first_counter = 1 }}
            [builder]
            units = 2
            [run]
            drain_timeout = "20 s"
            "#
        );
        let lab = Lab::with(&experiment);
        lab.write("fed.toml", FED);
        Self { lab, tcp, udp }
    }

    pub(crate) fn start(&self, mode: &[&str], changes: &[&str]) -> Running {
        let run = changes.iter().fold(self.lab.run(mode), |run, change| run.set(change)).start();
        wait_until("the TCP source listens", || TcpStream::connect(("127.0.0.1", self.tcp)).ok());
        run
    }

    pub(crate) fn feed(&self, unit: u16, protocol: &str, arguments: &[&str]) -> Running {
        let to = format!("127.0.0.1:{}", if unit == 0 { self.tcp } else { self.udp });
        let feed =
            self.lab.evb(&["feed", "fed.toml", "--to", &to, "--protocol", protocol, "--unit", &unit.to_string()]);
        feed.args(arguments).start()
    }
}

/// The sockets of a run are all bound before the first is seen to listen in threads, but not in processes.
fn wait_for_udp(port: u16) {
    wait_until("the UDP source listens", || UdpSocket::bind(("127.0.0.1", port)).err());
}

fn check_fed(listening: &Listening, outcome: &Outcome, events: u64) -> evb_record::Record {
    let record = good(outcome);
    assert_eq!(record.events.built, events, "{outcome}");
    let stored = read_all(&listening.lab.stored_files());
    stored.check_generated(SEED, 2);
    assert!(stored.copies().into_iter().eq((1..=events).map(|event| (event, 1))), "{outcome}");
    record
}

fn ended_well(feed: Running) {
    let outcome = feed.wait();
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(0), ""), "{outcome}");
    assert!(outcome.stderr.contains("evb: sent "), "{outcome}");
}

/// One front end by TCP and one by UDP: every event is built from what both sent, and the run ends with them.
#[test]
fn fed_events_are_built_complete() {
    for mode in [THREADS, PROCESSES] {
        let listening = Listening::new("udp", 24);
        let run = listening.start(mode, &[]);
        wait_for_udp(listening.udp);
        let feeds = [listening.feed(0, "tcp", &[]), listening.feed(1, "udp", &["--rate", "2 kHz"])];
        feeds.into_iter().for_each(ended_well);
        let record = check_fed(&listening, &run.wait(), EVENTS);
        assert!(record.faults.is_empty(), "{record:?}");
        assert!(record.readouts.iter().all(|readout| readout.rejected == 0), "{record:?}");
    }
}

/// A front end that counts with eight bits is followed through every wrap.
#[test]
fn a_narrow_counter_wraps() {
    let listening = Listening::new("tcp", 8);
    let run = listening.start(THREADS, &[]);
    let narrow = ["--events", "1000", "--counter-bits", "8"];
    [listening.feed(0, "tcp", &narrow), listening.feed(1, "tcp", &narrow)].into_iter().for_each(ended_well);
    let record = check_fed(&listening, &run.wait(), 1000);
    assert_eq!(record.faults, BTreeMap::from([("wrapped".to_owned(), 2 * 3)]), "{record:?}");
}

/// Garbage is counted and harms no frame before, after or beside it.
#[test]
fn garbage_on_both_ports_is_counted_and_does_no_harm() {
    for mode in [THREADS, PROCESSES] {
        let listening = Listening::new("udp", 32);
        let run = listening.start(mode, &[]);
        wait_for_udp(listening.udp);
        let held_open = TcpStream::connect(("127.0.0.1", listening.tcp)).unwrap();
        let feed = listening.feed(0, "tcp", &["--rate", "500 Hz"]);
        let on_tcp = tcp_garbage().into_iter().map(|bytes| send_garbage(listening.tcp, &bytes)).count() as u64;
        let on_udp = udp_frames_between_garbage(&listening);
        ended_well(feed);
        drop(held_open);
        let record = check_fed(&listening, &run.wait(), EVENTS);
        let rejected: Vec<_> = record.readouts.iter().map(|readout| readout.rejected).collect();
        assert_eq!(rejected, [on_tcp, on_udp], "{record:?}");
    }
}

/// Sends bytes, and waits until the other end has seen what they are.
fn send_garbage(port: u16, bytes: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let _cut_off = stream.write_all(bytes);
    let _cut_off = stream.shutdown(Shutdown::Write);
    let _reset = stream.read_to_end(&mut Vec::new());
}

/// Each of these is refused once.
fn tcp_garbage() -> Vec<Vec<u8>> {
    let good = frame(0, 1, b"of a stranger");
    let mut bad_header = good.clone();
    bad_header[9] ^= 1;
    vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 100_000],
        good[..20].to_vec(),
        good[..40].to_vec(),
        bad_header,
        frame(5, 1, b"for another readout unit"),
    ]
}

/// Sends all good frames of the second source by hand, with garbage between them; how many are garbage.
fn udp_frames_between_garbage(listening: &Listening) -> u64 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", listening.udp)).unwrap();
    let mut garbage = 0;
    for event in 1..=EVENTS {
        let mut payload = vec![0; event as usize % 50];
        evb_sources::payload::fill(&mut payload, SEED, evb_core::EventId(event), 1);
        let good = frame(1, event, &payload);
        socket.send(&good).unwrap();
        if event % 10 == 0 {
            let bad: [&[u8]; 4] = [b"", b"garbage", &good[..31], &[&good[..], b"x"].concat()];
            socket.send(bad[garbage as usize % 4]).unwrap();
            garbage += 1;
        }
    }
    socket.send(&end_of_run(1, EVENTS)).unwrap();
    garbage
}

fn frame(source: u16, counter: u64, payload: &[u8]) -> Vec<u8> {
    encoded(Frame { source, counter, end_of_run: false, resynchronised: false, good: true, mark: None, payload })
}

pub(crate) fn end_of_run(source: u16, counter: u64) -> Vec<u8> {
    encoded(Frame { source, counter, end_of_run: true, resynchronised: false, good: true, mark: None, payload: b"" })
}

pub(crate) fn encoded(frame: Frame<&[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&frame, &mut bytes);
    bytes
}

/// A front end that dies leaves its events incomplete; the run can be stopped, and everything is accounted for.
#[test]
fn a_front_end_that_dies_leaves_incomplete_events() {
    for mode in [THREADS, PROCESSES] {
        let listening = Listening::new("tcp", 32);
        let mut run = listening.start(mode, &["builder.deadline=\"300 ms\""]);
        let slow = listening.feed(0, "tcp", &["--rate", "50 Hz"]);
        ended_well(listening.feed(1, "tcp", &[]));
        wait_until("both are in step", || holds_event(&listening.lab.stored_files(), true).then_some(()));
        slow.signal(Signal::KILL);
        assert_eq!(slow.wait().code(), None);
        wait_until("an event is incomplete", || holds_event(&listening.lab.stored_files(), false).then_some(()));
        assert!(run.is_running());
        run.signal(Signal::INT);
        let outcome = run.wait();
        let record = not_good(&outcome);
        assert_eq!((record.events.lost, record.lost_nodes.len()), (0, 0), "{outcome}");
        assert!(record.events.incomplete > 0, "{outcome}");
        read_all(&listening.lab.stored_files()).check_generated(SEED, 2);
    }
}

/// Events wait for a front end that gives nothing more. When the run is stopped and nothing moves, what is there of them
/// is stored.
#[test]
fn what_a_silent_front_end_holds_up_is_stored_in_the_end() {
    for mode in [THREADS, PROCESSES] {
        let listening = Listening::new("tcp", 32);
        let run = listening.start(mode, &["run.drain_timeout=\"1 s\""]);
        let slow = listening.feed(0, "tcp", &["--rate", "50 Hz"]);
        ended_well(listening.feed(1, "tcp", &[]));
        wait_until("both are in step", || holds_event(&listening.lab.stored_files(), true).then_some(()));
        slow.signal(Signal::KILL);
        assert_eq!(slow.wait().code(), None);
        run.signal(Signal::INT);
        let outcome = run.wait();
        let record = not_good(&outcome);
        assert_eq!(record.events.lost, 0, "{outcome}");
        assert!(record.events.incomplete > 0 && record.faults["cut"] == record.events.incomplete, "{outcome}");
        read_all(&listening.lab.stored_files()).check_generated(SEED, 2);
    }
}

/// A builder that dies costs no event of a live front end, though the front end cannot be asked again.
#[test]
fn a_builder_that_dies_costs_no_live_event() {
    for mode in [THREADS, PROCESSES] {
        let listening = Listening::new("tcp", 32);
        let text = std::fs::read_to_string(listening.lab.path("experiment.toml")).unwrap();
        let fault = "\n[[fault]]\nnode = \"bu1\"\naction = \"kill\"\nat = \"400 ms\"\n";
        listening.lab.write("experiment.toml", format!("{text}{fault}"));
        let run = listening.start(mode, &[]);
        let feeds = [0, 1].map(|unit| listening.feed(unit, "tcp", &["--rate", "200 Hz"]));
        feeds.into_iter().for_each(ended_well);
        let outcome = run.wait();
        let record = not_good(&outcome);
        assert_eq!((record.events.built, record.events.lost), (EVENTS, 0), "{outcome}");
        assert_eq!(record.lost_nodes, ["bu1"], "{outcome}");
        let stored = read_all(&listening.lab.stored_files());
        stored.check_generated(SEED, 2);
        assert!(stored.copies().into_keys().eq(1..=EVENTS), "{outcome}");
    }
}

/// A run whose front ends say nothing more waits for them, and can be stopped.
#[test]
fn a_run_with_silent_front_ends_can_be_stopped() {
    for mode in [THREADS, PROCESSES] {
        let listening = Listening::new("tcp", 32);
        let mut run = listening.start(mode, &[]);
        let second = wait_until("the second source listens", || TcpStream::connect(("127.0.0.1", listening.udp)).ok());
        let first = TcpStream::connect(("127.0.0.1", listening.tcp)).unwrap();
        let payload = [7; 10_000];
        for (source, mut stream) in [&first, &second].into_iter().enumerate() {
            stream.write_all(&frame(source as u16, 1, &payload)).unwrap();
        }
        wait_until("the event is stored", || {
            let sizes = listening.lab.stored_files().into_iter().map(|path| std::fs::metadata(path).unwrap().len());
            (sizes.sum::<u64>() > 20_000).then_some(())
        });
        assert!(run.is_running());
        run.signal(Signal::INT);
        let outcome = run.wait();
        assert_eq!(good(&outcome).events.triggered, 1, "{outcome}");
    }
}
