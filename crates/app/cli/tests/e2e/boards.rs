//! What a shift crew sees while a board never connects, is killed, stops sending, and comes back out of step.

use crate::serving::{explained_metrics, names};
use crate::support::{Browser, Lab, Service, free_tcp_port, is_there, wait_until};
use evb_sources::{Frame, encode};
use rustix::process::Signal;
use serde_json::json;
use std::{
    collections::BTreeSet,
    io::Write as _,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Time between two fragments of a board.
const INTERVAL: Duration = Duration::from_millis(5);

/// A board that sends fragments with counters from 1. Dropping it closes its connection without an end of run.
struct Board {
    stop: Arc<AtomicBool>,
    paused: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Board {
    /// Connects a board. `resynchronised` announces that its counter has restarted.
    fn connect(unit: u16, port: u16, resynchronised: bool) -> Self {
        let stream = wait_until("the source listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        let (stop, paused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let flags = (stop.clone(), paused.clone());
        let thread = Some(thread::spawn(move || play(stream, unit, resynchronised, &flags)));
        Self { stop, paused, thread }
    }

    fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// Sends fragments until the board stops or the run is over.
fn play(mut stream: TcpStream, source: u16, resynchronised: bool, (stop, paused): &(Arc<AtomicBool>, Arc<AtomicBool>)) {
    let mut counter = 1;
    while !stop.load(Ordering::Relaxed) {
        if !paused.load(Ordering::Relaxed) {
            let is_first = counter == 1;
            let payload = [7_u8; 64].as_slice();
            let resynchronised = resynchronised && is_first;
            let frame = Frame { source, counter, end_of_run: false, resynchronised, good: true, mark: None, payload };
            let mut bytes = Vec::new();
            encode(&frame, &mut bytes);
            if stream.write_all(&bytes).is_err() {
                return;
            }
            counter += 1;
        }
        thread::sleep(INTERVAL);
    }
}

/// A service with three boards, and the page if there is a browser.
struct Room {
    service: Service,
    page: Option<Browser>,
    lab: Lab,
}

impl Room {
    /// Waits until the service, the page and `evb top` say that the run waits for this source only.
    fn waits_for(&mut self, source: &str, state: &str, words: &str, picture: &str) {
        self.service.wait(&format!("{source} is {state}"), |status| {
            let waiting = status["waiting"].as_array().map_or(&[][..], Vec::as_slice);
            waiting.len() == 1 && waiting[0]["source"] == source && waiting[0]["state"] == state
        });
        if let Some(page) = &mut self.page {
            page.wait_for_text("#banners", &format!("Waiting for {source}: {words}"));
            page.wait("an amber state", "document.querySelector('.state').classList.contains('tone-warn')");
            page.picture(picture);
        }
        let top = self.lab.evb(&["top", &format!("http://{}", self.service.place)]);
        let top = top.env("EVB_HTTP_TOKEN", &self.service.token).run();
        assert!(top.stdout.contains(&format!("WAITING for {source}: {}", state.replace('_', " "))), "{top}");
        let metrics = self.service.ask("GET", "/metrics", None).body;
        let metric = format!("evb_source_state{{source=\"{source}\",state=\"{state}\"}} 1.0");
        assert!(metrics.lines().any(|line| line == metric), "{metrics}");
    }

    fn waits_for_none(&mut self) {
        self.service.wait("no source is waited for", |status| status["waiting"] == json!([]));
        if let Some(page) = &mut self.page {
            page.wait("a state that is not amber", "!document.querySelector('.state').classList.contains('tone-warn')");
        }
    }
}

#[test]
fn a_shift_crew_sees_which_board_is_waited_for() {
    let ports = [free_tcp_port(), free_tcp_port(), free_tcp_port()];
    let units = ports.map(|port| {
        format!("[[readout.unit]]\nsource = {{ type = \"tcp\", listen = \"127.0.0.1:{port}\", first_counter = 1 }}\n")
    });
    let lab = Lab::with(&format!("[trigger]\ntype = \"data\"\n{}[builder]\nunits = 1\n", units.concat()));
    let service = Service::start(&lab, &[]);
    let mut page = is_there("chromium").then(|| Browser::start(&lab.path("")));
    if let Some(page) = &mut page {
        page.open(&format!("http://{}/#token={}", service.place, service.token));
        page.wait_for_text("#header", "initial");
        page.colours("light");
    }
    for (command, state) in [("configure", "configured"), ("start", "running")] {
        service.command(command);
        service.wait_for_state(state);
    }
    let mut room = Room { service, page, lab };
    let first = Board::connect(0, ports[0], false);
    let second = Board::connect(1, ports[1], false);
    room.waits_for("ru2", "never_connected", "never connected", "board-missing.png");
    let third = Board::connect(2, ports[2], false);
    room.waits_for_none();
    third.pause(true);
    room.waits_for("ru2", "silent", "silent", "board-silent.png");
    third.pause(false);
    room.waits_for_none();
    drop(second);
    room.waits_for("ru1", "disconnected", "disconnected", "board-killed.png");
    let second = Board::connect(1, ports[1], true);
    room.waits_for("ru1", "out_of_step", "out of step", "board-out-of-step.png");
    let status = room.service.get("/api/status");
    let source = &status["record"]["readouts"][0]["source"];
    assert_eq!(source["state"], "sending", "{source}");
    assert!(source["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{source}");
    assert!(source["last_counter"].as_u64() > Some(1), "{source}");
    let metrics = names(&room.service.ask("GET", "/metrics", None).body);
    let of_sources: BTreeSet<_> = metrics.into_iter().filter(|name| name.starts_with("evb_source_")).collect();
    assert_eq!(of_sources, explained_metrics().0);
    drop((first, second, third));
    room.service.evb.signal(Signal::INT);
}
