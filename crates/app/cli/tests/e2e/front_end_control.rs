//! Front ends that hear run control: emulated boards, in threads and in processes.

use crate::support::{Lab, Outcome, both_modes, free_tcp_port, wait_until};
use evb_record::FindingKind;
use evb_sources::{Frame, encode};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

/// Fragments of a board in a run.
const FRAGMENTS: u32 = 20;
/// Longest wait for a line.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a board does with an order: the lines that it says, or none if it dies.
type Answer = fn(id: &str, order: &str) -> Option<String>;

fn ok(id: &str, _: &str) -> Option<String> {
    Some(format!("{id} ok\n"))
}

/// A board that listens for run control, and sends its data when it starts. It passes on what it hears.
fn listening(answer: Answer, unit: u16, data: u16) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, heard) = channel();
    thread::spawn(move || {
        listener.incoming().try_for_each(|stream| serve(&stream.ok()?, answer, (unit, data), &sender))
    });
    (port, heard)
}

/// A board that connects for run control in each of two runs.
fn connecting(port: u16, unit: u16, data: u16) -> Receiver<String> {
    let (sender, heard) = channel();
    thread::spawn(move || {
        (0..2).try_for_each(|_| {
            let stream = wait_until("evb listens", || TcpStream::connect(("127.0.0.1", port)).ok());
            serve(&stream, ok, (unit, data), &sender)
        })
    });
    heard
}

/// Serves one connection. Returns `None` once the test has dropped its end of the channel.
fn serve(mut stream: &TcpStream, answer: Answer, (unit, data): (u16, u16), heard: &Sender<String>) -> Option<()> {
    let _gone = stream.write_all(b"evb-front-end 1\n");
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let (id, order) = line.split_once(' ').unwrap_or((&line, ""));
        if line == "evb-front-end 1" {
            continue;
        }
        heard.send(order.to_owned()).ok()?;
        let Some(said) = answer(id, order) else { break };
        let _gone = stream.write_all(said.as_bytes());
        if order.starts_with("start") {
            send_data(unit, data);
        }
    }
    Some(())
}

/// Sends the fragments of a run and its end.
fn send_data(source: u16, port: u16) {
    if port == 0 {
        return;
    }
    let mut bytes = Vec::new();
    let fragment = Frame {
        source,
        counter: 0,
        end_of_run: false,
        resynchronised: false,
        good: true,
        mark: None,
        payload: [7; 64].as_slice(),
    };
    for counter in 1..=FRAGMENTS.into() {
        encode(&Frame { counter, ..fragment }, &mut bytes);
    }
    let end = Frame {
        counter: FRAGMENTS.into(),
        end_of_run: true,
        mark: Some(FRAGMENTS),
        payload: [].as_slice(),
        ..fragment
    };
    encode(&end, &mut bytes);
    let mut stream = wait_until("the source listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    stream.write_all(&bytes).unwrap();
}

fn next(heard: &Receiver<String>) -> String {
    heard.recv_timeout(PATIENCE).expect("run control says something")
}

/// An experiment with boards, each with its port for data and the table of its control connection.
fn lab(boards: &[(u16, String)]) -> Lab {
    let unit = |(data, control): &(u16, String)| {
        format!(
            "[[readout.unit]]\nsource = {{ type = \"tcp\", listen = \"127.0.0.1:{data}\", first_counter = 1, control = {control} }}\n"
        )
    };
    let units: String = boards.iter().map(unit).collect();
    Lab::with(&format!("[trigger]\ntype = \"data\"\n{units}[builder]\nunits = 1\n"))
}

#[test]
fn settings_start_and_stop_reach_boards_in_every_run() {
    both_modes(|mode| {
        let (data, control) = ([free_tcp_port(), free_tcp_port()], free_tcp_port());
        let (port, first) = listening(ok, 0, data[0]);
        let second = connecting(control, 1, data[1]);
        let settings = "settings = { threshold = 12, gain = \"high\" }";
        let lab = lab(&[
            (data[0], format!("{{ connect = \"127.0.0.1:{port}\", {settings} }}")),
            (data[1], format!("{{ listen = \"127.0.0.1:{control}\" }}")),
        ]);
        let outcome = lab.run(mode).args(&["--runs", "2"]).run();
        let records = outcome.records();
        assert!(records.iter().all(|record| record.good && record.events.built == u64::from(FRAGMENTS)), "{outcome}");
        assert_eq!(records.len(), 2, "{outcome}");
        for run in 1..=2 {
            assert_eq!(next(&first), r#"configure {"gain":"high","threshold":12}"#);
            assert_eq!(next(&second), "configure {}");
            for board in [&first, &second] {
                assert_eq!(next(board), format!(r#"start {{"run":{run},"type":""}}"#));
                assert_eq!(next(board), "stop");
            }
        }
    });
}

/// The operator pauses and resumes; the board reports a problem, and is busy for a while. A board that refused may be
/// there for the next start.
#[test]
fn boards_hear_of_pauses_and_speak_for_themselves() {
    both_modes(|mode| {
        fn moody(id: &str, order: &str) -> Option<String> {
            Some(match order {
                "pause" => format!("busy\nready\nproblem \u{1b}[31mhot\u{1b}[0m\n{id} ok\n"),
                "resume" => format!("{id} error no clock\n"),
                _ => format!("{id} ok\n"),
            })
        }
        let (port, heard) = listening(moody, 0, 0);
        let lab = lab(&[(free_tcp_port(), format!("{{ connect = \"127.0.0.1:{port}\" }}"))]);
        let mut run = lab.run(mode).args(&["--operator"]).start_listening();
        run.say("start");
        assert_eq!(next(&heard), "configure {}");
        assert!(next(&heard).starts_with("start "));
        run.wait_for("run control: running");
        run.say("pause");
        assert_eq!(next(&heard), "pause");
        run.wait_for(&format!("ru0 (127.0.0.1:{port}) reports a problem: hot"));
        run.say("resume");
        assert_eq!(next(&heard), "resume");
        run.wait_for(&format!("ru0 (127.0.0.1:{port}) refused resume: no clock"));
        run.say("stop");
        assert_eq!(next(&heard), "stop");
        run.wait_for("run control: stopped");
        run.say("quit");
        let outcome = run.wait();
        let record = &outcome.records()[0];
        let control = record.readouts[0].source.as_ref().and_then(|source| source.control.clone()).expect("a record");
        assert_eq!((control.vetoes, control.busy, control.problems), (1, false, 1), "{outcome}");
        for kind in [FindingKind::FrontEndProblem, FindingKind::FrontEndSilent] {
            assert!(record.findings.iter().any(|finding| finding.kind == kind), "{outcome}");
        }
    });
}

/// A run with one board whose control connection is this one, which does not begin.
fn refused(mode: &[&str], control: &str) -> Outcome {
    let outcome = lab(&[(free_tcp_port(), control.to_owned())]).run(mode).run();
    assert!(outcome.code().is_some_and(|code| code != 0) && outcome.stdout.is_empty(), "{outcome}");
    outcome
}

#[test]
fn a_board_that_fails_before_the_run_is_named() {
    both_modes(|mode| {
        let says = |control: &str, text: &str| {
            let outcome = refused(mode, control);
            assert!(outcome.stderr.contains(text), "{text}: {outcome}");
        };
        let answers: [(Answer, &str); 4] = [
            (|_, _| None, "closed its control connection before it answered configure"),
            (|_, _| Some(String::new()), "did not answer configure within 300 ms"),
            (|id, _| Some(format!("{id} error no clock\n")), "refused configure: no clock"),
            (|_, _| Some("HTTP/1.1 400\n".into()), "sent a line that run control does not know: \"HTTP/1.1 400\""),
        ];
        for (answer, text) in answers {
            let (port, _heard) = listening(answer, 0, 0);
            let control = format!("{{ connect = \"127.0.0.1:{port}\", timeout = \"300 ms\" }}");
            says(&control, &format!("ru0 (127.0.0.1:{port}) {text}"));
        }
        let port = free_tcp_port();
        let control = format!("{{ listen = \"127.0.0.1:{port}\", timeout = \"300 ms\" }}");
        says(&control, &format!("ru0 (127.0.0.1:{port}) did not connect within 300 ms"));
        let control = format!("{{ connect = \"127.0.0.1:{port}\", timeout = \"300 ms\" }}");
        says(&control, &format!("ru0 (127.0.0.1:{port}) could not be connected to within 300 ms"));
    });
}

/// A board that has started is stopped when another cannot start, and the next start finds both.
#[test]
fn a_start_that_fails_stops_the_boards_that_have_started() {
    fn lame(id: &str, order: &str) -> Option<String> {
        Some(if order.starts_with("start") { format!("{id} error no trigger\n") } else { format!("{id} ok\n") })
    }
    let ((one, first), (two, second)) = (listening(ok, 0, 0), listening(lame, 1, 0));
    let boards = [one, two].map(|port| (free_tcp_port(), format!("{{ connect = \"127.0.0.1:{port}\" }}")));
    let lab = lab(&boards);
    let mut run = lab.run(&[]).args(&["--operator"]).start_listening();
    for _ in 0..2 {
        run.say("start");
        run.wait_for_new(&format!("ru1 (127.0.0.1:{two}) refused start: no trigger"));
        for board in [&first, &second] {
            assert_eq!(next(board), "configure {}");
            assert!(next(board).starts_with("start "));
            assert_eq!(next(board), "stop");
        }
    }
    run.say("quit");
    run.wait();
}
