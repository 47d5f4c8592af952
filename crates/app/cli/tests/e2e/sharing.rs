//! Boards that send the frames of several sources by one connection, or from one socket.

use crate::support::{Lab, Service, THREADS, check_accounts, free_tcp_port, free_udp_port, good, read_all, wait_until};
use evb_events::Status;
use evb_record::{FindingKind, Record};
use serde_json::Value;
use std::{
    io::Write as _,
    net::{TcpStream, UdpSocket},
};

/// Number of triggers of a run.
const TRIGGERS: u32 = 600;
/// The source ids of the two readout units, and one that no source has.
const IDS: [u16; 2] = [5, 3];
const FOREIGN: u16 = 9;

/// A frame: magic, length in bytes, source id, trigger, payload and CRC-32C.
fn frame(id: u16, trigger: u32) -> Vec<u8> {
    let payload = vec![id as u8; (trigger % 7) as usize];
    let mut frame = b"SHAR".to_vec();
    frame.extend((16 + payload.len() as u16).to_le_bytes());
    frame.extend(id.to_le_bytes());
    frame.extend(trigger.to_le_bytes());
    frame.extend(payload);
    let check = evb_core::checksum(&frame);
    frame.extend(check.to_le_bytes());
    frame
}

/// The frames of a trigger, those of one id by turns before and behind those of the other.
fn frames(trigger: u32) -> Vec<u8> {
    let [first, second] = if trigger.is_multiple_of(2) { IDS } else { [IDS[1], IDS[0]] };
    let foreign = if trigger.is_multiple_of(100) { frame(FOREIGN, trigger) } else { Vec::new() };
    [frame(first, trigger), foreign, frame(second, trigger)].concat()
}

/// Two readout units that name one link.
fn lab(link: &str) -> Lab {
    lab_with(link, "")
}

/// The same, with more keys of both framings.
fn lab_with(link: &str, framing: &str) -> Lab {
    let unit = |id: u16| {
        format!(
            "[[readout.unit]]\n[readout.unit.source]\n{link}\nfirst_counter = 1\n[readout.unit.source.framing]\n\
             magic = \"53 48 41 52\"\nlength = {{ at = 4, bits = 16 }}\nsource = {{ at = 6, bits = 16, value = {id} }}\n\
             counter = {{ at = 8, bits = 32 }}\nchecksum = {{ type = \"crc-32c\", at = -4 }}\n{framing}"
        )
    };
    Lab::with(&format!(
        "[trigger]\ntype = \"data\"\n{}[builder]\nunits = 2\n[storage]\nkeep = \"all\"\n",
        IDS.map(unit).concat()
    ))
}

fn start(lab: &Lab) -> Service {
    let service = Service::start(lab, &[]);
    for (command, state) in [("configure", "configured"), ("start", "running")] {
        service.command(command);
        service.wait_for_state(state);
    }
    service
}

fn wait_for(service: &Service, built: u32) {
    service.wait("the events are built", |status| status["record"]["events"]["built"] == u64::from(built));
}

/// Stops the run, whose events all have the frames of both ids.
fn stop(lab: &Lab, service: &Service) -> Record {
    service.command("stop");
    let status = service.wait_for_state("stopped");
    let record: Record = serde_json::from_value(status["record"].clone()).expect("a record");
    check_accounts(&record);
    let events = read_all(&lab.stored_files()).events;
    assert_eq!(events.len(), TRIGGERS as usize, "{status}");
    for event in &events {
        let trigger = event.id.0 as u32;
        for (fragment, id) in event.fragments.iter().zip(IDS) {
            assert_eq!((fragment.status, fragment.counter), (Status::Good, Some(trigger.into())), "{id}");
            assert_eq!(&fragment.bytes[..], frame(id, trigger), "{id}");
        }
    }
    // Frames of an id that no source has are told once, by the first id.
    let refused = u64::from(TRIGGERS / 100);
    assert_eq!([0, 1].map(|unit| record.readouts[unit].rejected), [0, refused], "{status}");
    let finding = record.findings.iter().find(|finding| finding.kind == FindingKind::Refused).expect("a finding");
    assert!(finding.message.contains("one of the source ids 3, 5 were expected"), "{}", finding.message);
    record
}

fn states(status: &Value) -> [&Value; 2] {
    [0, 1].map(|unit| &status["record"]["readouts"][unit]["source"]["state"])
}

#[test]
fn a_board_interleaves_two_sources_on_one_connection() {
    let port = free_tcp_port();
    let lab = lab(&format!("type = \"tcp\"\nlisten = \"127.0.0.1:{port}\""));
    let service = start(&lab);
    let connect = || wait_until("the link listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    // The loss of the connection is that of both sources, and they go on with the next one.
    for triggers in [1..=TRIGGERS / 2, TRIGGERS / 2 + 1..=TRIGGERS] {
        let (mut board, last) = (connect(), *triggers.end());
        let stream: Vec<u8> = triggers.flat_map(frames).collect();
        stream.chunks(1000).for_each(|piece| board.write_all(piece).expect("evb reads"));
        wait_for(&service, last);
        drop(board);
        service.wait("both are disconnected", |status| states(status) == ["disconnected"; 2]);
    }
    stop(&lab, &service);
}

#[test]
fn a_board_sends_two_sources_from_one_socket() {
    let port = free_udp_port();
    let lab = lab(&format!("type = \"udp\"\nlisten = \"127.0.0.1:{port}\""));
    let service = start(&lab);
    let board = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    board.connect(("127.0.0.1", port)).expect("an address");
    for trigger in 1..=TRIGGERS {
        board.send(&frames(trigger)).expect("a datagram");
        // No more are under way than the smallest buffer of a socket has room for.
        if trigger.is_multiple_of(50) {
            wait_for(&service, trigger);
        }
    }
    let record = stop(&lab, &service);
    let lost: Vec<_> = record.readouts.iter().map(|unit| unit.source.as_ref().and_then(|source| source.lost)).collect();
    assert_eq!(lost[0], None, "what the host loses is counted once");
}

/// What a board has sent lies in a file, behind a header: both sources read it, and `evb sources try` finds all of it good.
#[test]
fn two_sources_read_one_file_behind_its_header() {
    let lab = lab_with("type = \"file\"\nfile = \"board.raw\"", "stream_header = \"9 B\"\n");
    let frames = |trigger| IDS.map(|id| frame(id, trigger)).concat();
    lab.write("board.raw", [b"SHARED 42".to_vec(), (1..=TRIGGERS).flat_map(frames).collect()].concat());
    let tried = lab.evb(&["sources", "try", "experiment.toml", "--source", "1"]).run();
    assert!(tried.code() == Some(0) && tried.stdout.contains("others   600 frames of other sources"), "{tried}");
    let record = good(&lab.run(THREADS).run());
    assert_eq!((record.events.built, record.events.incomplete), (TRIGGERS.into(), 0));
}

/// Frames that are cut anywhere among datagrams are put together again.
#[test]
fn frames_go_on_in_the_next_datagram() {
    let port = free_udp_port();
    let lab = lab_with(&format!("type = \"udp\"\nlisten = \"127.0.0.1:{port}\""), "across_datagrams = true\n");
    let service = start(&lab);
    let board = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    board.connect(("127.0.0.1", port)).expect("an address");
    for first in (1..=TRIGGERS).step_by(50) {
        let stream: Vec<u8> = (first..first + 50).flat_map(frames).collect();
        stream.chunks(61).for_each(|piece| assert_eq!(board.send(piece).expect("a datagram"), piece.len()));
        wait_for(&service, first + 49);
    }
    stop(&lab, &service);
}

#[test]
fn units_that_share_a_link_are_no_processes() {
    let lab = lab("type = \"tcp\"\nlisten = \"127.0.0.1:9\"");
    let outcome = lab.run(&["--processes"]).run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("share \"127.0.0.1:9\"") && outcome.stderr.contains("--processes"), "{outcome}");
}
