//! Live boards without a trigger: the hits in their frames go into slices of time.
//!
//! A frame has a magic, its length, a clock of 48 bits at 1 GHz, and hits of 8 bytes: a time of 16 bits that counts 8 ns
//! from the clock of the frame, the board, and the number of the hit, by which the truth knows its time.

use crate::support::{
    Lab, Service, THREADS, apart_files, check_accounts, free_tcp_port, free_udp_port, read_all, recorded_data,
    wait_until,
};
use evb_events::Fragment;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    io::Write as _,
    net::{TcpStream, UdpSocket},
};

const MS: u64 = 1_000_000;
const SLICE: u64 = 20 * MS;
const OVERLAP: u64 = MS;
/// The clock of the third board is behind the others.
const BEHIND: u64 = 3000 * MS;
/// Time between two hits, and hits in a frame.
const INTERVAL: u64 = 500_000;
const IN_FRAME: usize = 40;
const FRAMING: &str = r#"
[readout.framing]
magic = "ef be ad de"
length = { at = 4, bits = 16 }
clock = { at = 6, bits = 48, frequency = "1 GHz" }
hits = { at = 12, size = "8 B", time = [{ at = 0, bits = 16, tick = "8 ns" }] }
"#;

/// A board, and all hits that it has sent.
struct Board {
    number: u16,
    link: Link,
    behind: u64,
    /// The times of its hits, by their numbers.
    truth: Vec<u64>,
}

enum Link {
    Tcp(TcpStream),
    Udp(UdpSocket),
    File(Vec<u8>),
}

impl Board {
    const fn new(number: u16, link: Link, behind: u64) -> Self {
        Self { number, link, behind, truth: Vec::new() }
    }

    /// A frame with a hit at each of these times, which are not far behind the first.
    fn frame(&mut self, times: &[u64]) -> Vec<u8> {
        let clock = times[0].saturating_sub(100_000) / 8 * 8;
        let mut frame = vec![0xef, 0xbe, 0xad, 0xde];
        frame.extend((12 + 8 * times.len() as u16).to_le_bytes());
        frame.extend(&(clock - self.behind).to_le_bytes()[..6]);
        for time in times {
            let ticks = u16::try_from((time - clock) / 8).expect("a time near the clock");
            frame.extend(ticks.to_le_bytes());
            frame.extend(self.number.to_le_bytes());
            frame.extend((self.truth.len() as u32).to_le_bytes());
            self.truth.push(clock + u64::from(ticks) * 8);
        }
        frame
    }

    /// Sends hits at regular times in this range: all at once by TCP, and a datagram for each frame by UDP.
    fn send(&mut self, times: std::ops::Range<u64>) {
        let times: Vec<_> = times.step_by(INTERVAL as usize).collect();
        // The clock of a frame and its hits span at most half a millisecond.
        let frames: Vec<_> = times.iter().map(|time| self.frame(&[*time, time + 100_000, time + 50_000])).collect();
        match self.link {
            Link::Udp(_) => frames.chunks(IN_FRAME).for_each(|frames| self.send_bytes(&frames.concat())),
            _ => self.send_bytes(&frames.concat()),
        }
    }

    fn send_frame(&mut self, times: &[u64]) {
        let frame = self.frame(times);
        self.send_bytes(&frame);
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        match &mut self.link {
            Link::Tcp(stream) => stream.write_all(bytes).expect("evb reads"),
            Link::Udp(socket) => drop(socket.send(bytes).expect("a datagram")),
            Link::File(file) => file.extend(bytes),
        }
    }
}

/// Hits by board and number.
type Hits = BTreeMap<(u16, u32), Vec<(u64, u64)>>;

/// Adds the hits of a fragment, with their times, to those of a slice.
fn add(hits: &mut Hits, slice: u64, fragment: &Fragment) {
    let (records, rest) = fragment.bytes.as_chunks::<16>();
    assert!(rest.is_empty(), "whole hits");
    let time = |record: &[u8; 16]| u64::from_le_bytes(*record.first_chunk().expect("a time"));
    assert!(records.is_sorted_by_key(time), "in the order of their times");
    for record in records {
        let (board, serial) = (&record[10..12], &record[12..]);
        let board = u16::from_le_bytes(board.try_into().expect("two bytes"));
        let serial = u32::from_le_bytes(serial.try_into().expect("four bytes"));
        assert_eq!(board, fragment.source.0);
        hits.entry((board, serial)).or_default().push((slice, time(record)));
    }
}

/// The slices that hold a time.
fn slices_of(time: u64) -> Vec<u64> {
    let last = time / SLICE + 1;
    let first = if last > 1 && time % SLICE < OVERLAP { last - 1 } else { last };
    (first..=last).collect()
}

/// Every hit of the truth is in the events of its slices, with its time, or apart once. Returns those apart by reason; the
/// events begin with this slice.
fn check(lab: &Lab, boards: &[Board], first_slice: u64) -> BTreeMap<&'static str, Vec<(u16, u32)>> {
    let (mut built, mut apart, mut reasons) = (Hits::new(), Hits::new(), BTreeMap::<_, Vec<_>>::new());
    let mut last = 0;
    for event in &read_all(&lab.stored_files()).events {
        let slice = event.id.0 + first_slice - 1;
        last = last.max(slice);
        assert_eq!(event.fragments.len(), boards.len());
        event.fragments.iter().for_each(|fragment| add(&mut built, slice, fragment));
    }
    for event in &read_all(&apart_files(&lab.path("evb-data"))).events {
        for fragment in event.fragments.iter().filter(|fragment| !fragment.bytes.is_empty()) {
            let before: Vec<_> = apart.keys().copied().collect();
            add(&mut apart, fragment.counter.expect("a slice"), fragment);
            let new = apart.keys().copied().filter(|hit| before.binary_search(hit).is_err());
            reasons.entry(fragment.apart.expect("a reason").name()).or_default().extend(new);
        }
    }
    for board in boards {
        for (time, serial) in board.truth.iter().zip(0..) {
            let hit = (board.number, serial);
            let found = built.remove(&hit).unwrap_or_default();
            assert!(found.iter().all(|(_, found)| found == time), "{hit:?} at {time}: {found:?}");
            let mut found: Vec<_> = found.into_iter().map(|(slice, _)| slice).collect();
            found.sort_unstable();
            let expected: Vec<_> =
                slices_of(*time).into_iter().filter(|slice| (first_slice..=last).contains(slice)).collect();
            match apart.contains_key(&hit) {
                true => assert!(found.len() < 2, "{hit:?} at {time} is apart and in {found:?}"),
                false => assert_eq!(found, expected, "{hit:?} at {time}, last slice {last}"),
            }
        }
    }
    assert!(built.is_empty(), "only what was sent: {built:?}");
    reasons
}

fn built(status: &Value) -> u64 {
    status["record"]["events"]["built"].as_u64().unwrap_or(0)
}

/// A board by UDP and two by TCP: one hit too late, one frame far ahead, one board that is silent and later ends.
#[test]
fn hits_of_live_boards_are_sliced() {
    let (udp, tcp) = (free_udp_port(), [free_tcp_port(), free_tcp_port()]);
    // What a busy machine delays is not late: only the third board is given up soon.
    let experiment = format!(
        "[trigger]\ntype = \"data\"\n[readout]\nslice = \"20 ms\"\noverlap = \"1 ms\"\nslices_from = 0\n{FRAMING}\
         [[readout.unit]]\nsource = {{ type = \"udp\", listen = \"127.0.0.1:{udp}\", latency = \"30 min\" }}\n\
         [[readout.unit]]\nsource = {{ type = \"tcp\", listen = \"127.0.0.1:{}\", latency = \"30 min\" }}\n\
         [[readout.unit]]\nsource = {{ type = \"tcp\", listen = \"127.0.0.1:{}\", latency = \"200 ms\", clock_offset = \"3 s\" }}\n\
         [builder]\nunits = 2\n[storage]\nkeep = \"all\"\n[run]\ndrain_timeout = \"10 min\"\n",
        tcp[0], tcp[1]
    );
    let lab = Lab::with(&experiment);
    let service = Service::start(&lab, &[]);
    for (command, state) in [("configure", "configured"), ("start", "running")] {
        service.command(command);
        service.wait_for_state(state);
    }
    let connect = |port| wait_until("the source listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(("127.0.0.1", udp)).expect("an address");
    let mut boards = [
        Board::new(0, Link::Udp(socket), 0),
        Board::new(1, Link::Tcp(connect(tcp[0])), 0),
        Board::new(2, Link::Tcp(connect(tcp[1])), BEHIND),
    ];
    // The third board is silent after half a second, and events go on.
    let start = BEHIND + 100 * MS;
    boards[2].send(start..start + 500 * MS);
    boards[0].send(start..start + 500 * MS);
    boards[1].send(start..start + 900 * MS);
    let late = (1, boards[1].truth.len() as u32);
    boards[1].send_frame(&[start + 5 * MS]);
    let wild = (0, boards[0].truth.len() as u32);
    boards[0].send_frame(&[start + 3_600_000 * MS]);
    boards[0].send(start + 500 * MS..start + 900 * MS);
    boards[1].send(start + 900 * MS..start + 1000 * MS);
    boards[0].send(start + 900 * MS..start + 1000 * MS);
    let slice = |time: u64| time / SLICE;
    service.wait("the events go on", |status| built(status) + 1 >= slice(start + 990 * MS));
    // It comes back after a pause by its clock, longer than its silence, and ends. The others go on.
    let again = start + 60_000 * MS;
    for board in &mut boards {
        board.send(again..again + 200 * MS);
    }
    let [first, second, third] = &mut boards;
    third.link = Link::File(Vec::new());
    for board in [first, second] {
        board.send(again + 200 * MS..again + 1000 * MS);
    }
    service.wait("the events go on", |status| built(status) + 1 >= slice(again + 990 * MS));
    service.command("stop");
    // What the third board is taken to have no hits for, the others must have passed.
    for board in &mut boards[..2] {
        let end = again + 120_000 * MS;
        (0..4).for_each(|_| board.send_frame(&[end]));
    }
    let status = service.wait_for_state("stopped");
    let reasons = check(&lab, &boards, 1);
    assert_eq!(reasons.get("late"), Some(&vec![late]), "{status}");
    assert_eq!(reasons.get("out_of_sequence"), Some(&vec![wild]), "{status}");
    let unplaced = reasons.get("unplaced").expect("the last hits");
    assert!(reasons.len() == 3 && unplaced.iter().all(|(board, _)| *board < 2), "{reasons:?}");
    let events = &status["record"]["events"];
    assert_eq!((&events["incomplete"], &events["lost"]), (&0.into(), &0.into()), "{status}");
    for unit in 0..3 {
        assert_eq!(status["record"]["readouts"][unit]["waiting"], Value::Null, "{status}");
    }
}

/// Files that end at different times: the first event is the first slice that both have, and the longer one goes on alone.
#[test]
fn files_of_hits_are_sliced_to_their_ends() {
    let unit = |n: usize| format!("[[readout.unit]]\nsource = {{ type = \"file\", file = \"board-{n}.raw\" }}\n");
    let lab = Lab::with(&format!(
        "[trigger]\ntype = \"data\"\n[readout]\nslice = \"20 ms\"\noverlap = \"1 ms\"\n{FRAMING}{}{}[builder]\nunits = 2\n\
         [storage]\nkeep = \"all\"\n",
        unit(0),
        unit(1)
    ));
    let mut boards = [0, 1].map(|number| Board::new(number, Link::File(Vec::new()), 0));
    let start = 7_000_000 * MS;
    boards[0].send(start..start + 3000 * MS);
    boards[1].send(start + 205 * MS..start + 1500 * MS);
    for board in &boards {
        let Link::File(bytes) = &board.link else { panic!("a file") };
        lab.write(&format!("board-{}.raw", board.number), bytes);
    }
    let tried = lab.evb(&["sources", "try", "experiment.toml", "--show", "1"]).run();
    assert!(tried.stdout.contains("hits 7000000000000 ns, 7000000100000 ns, 7000000050000 ns"), "{tried}");
    assert!(tried.stdout.contains("hits     18000\n"), "{tried}");
    let outcome = lab.run(THREADS).run();
    let record = outcome.record();
    check_accounts(&record);
    // A hit may come a millisecond late.
    let first = (start + 205 * MS - MS - OVERLAP) / SLICE + 1;
    let reasons = check(&lab, &boards, first);
    assert_eq!(reasons.keys().collect::<Vec<_>>(), [&"early"], "{outcome}");
    assert_eq!((outcome.code(), record.events.incomplete), (Some(0), 0), "{outcome}");
    assert_eq!(record.events.built, (start + 3000 * MS) / SLICE - first + 1, "{outcome}");
}

/// The framing of the readout of VMM3a chips, out of the guide to boards.
fn guide_to_chips() -> String {
    let guide = include_str!("../../../../../docs/guides/boards.md");
    let block = |from: &str| {
        let (_, rest) = guide.split_once(from).expect("the guide has it");
        rest.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```")).expect("a block").0
    };
    let of_packets: String =
        block("the readout of VMM3a chips").lines().map(|line| format!("{}\n", line.trim())).collect();
    let without_source: Vec<_> = of_packets.lines().filter(|line| !line.starts_with("source")).collect();
    format!("[readout.framing]\n{}\n{}", without_source.join("\n"), block("### Hits of VMM3a chips"))
}

/// Captured chips of two front ends: every hit of every packet is in the slice of its time, or apart without a marker.
#[test]
fn captured_chips_are_sliced_as_the_guide_says() {
    let Some(data) = recorded_data() else { return };
    let file = data.join("public/vmm-example.pcapng");
    if !file.is_file() {
        return eprintln!("skipped: no capture of VMM3a chips at {}", file.display());
    }
    let unit = |fec: u16| {
        let source = format!("source = {{ at = 7, bits = 8, value = {fec} }}");
        let framing =
            guide_to_chips().replacen("[readout.framing]", &format!("[readout.unit.source.framing]\n{source}"), 1);
        let framing = framing.replace("[readout.framing.hits", "[readout.unit.source.framing.hits");
        format!("[[readout.unit]]\n[readout.unit.source]\ntype = \"pcap\"\nfile = {file:?}\nport = 6006\n{framing}")
    };
    let lab = Lab::with(&format!(
        "[trigger]\ntype = \"data\"\n[readout]\nslice = \"100 us\"\n{}{}[builder]\nunits = 2\n[storage]\nkeep = \"all\"\n",
        unit(16),
        unit(32)
    ));
    let outcome = lab.run(THREADS).run();
    let record = outcome.record();
    check_accounts(&record);
    assert_eq!((outcome.code(), record.events.incomplete), (Some(0), 0), "{outcome}");
    let events = read_all(&lab.stored_files()).events;
    let mut hits = 0;
    for fragment in events.iter().flat_map(|event| &event.fragments).filter(|fragment| !fragment.bytes.is_empty()) {
        let slice = fragment.counter.expect("the number of a slice");
        let (records, rest) = fragment.bytes.as_chunks::<14>();
        let times = records.iter().map(|record| u64::from_le_bytes(*record.first_chunk().expect("a time")));
        assert!(rest.is_empty() && times.clone().is_sorted() && times.clone().all(|time| time / 100_000 + 1 == slice));
        hits += records.len();
    }
    let apart: Vec<_> = record.readouts.iter().map(|readout| readout.apart_by_reason.clone()).collect();
    // What one front end sent before the other began is set apart as whole slices.
    for event in &read_all(&apart_files(&lab.path("evb-data"))).events {
        let early = event.fragments.iter().filter(|fragment| fragment.apart.is_some_and(|why| why.name() == "early"));
        hits += early.map(|fragment| fragment.bytes.len() / 14).sum::<usize>();
    }
    let without_marker: u64 = apart.iter().filter_map(|reasons| reasons.get("out_of_step")).sum();
    assert_eq!(hits as u64 + without_marker, 149_180, "{apart:?}");
    assert!(apart.iter().flat_map(BTreeMap::keys).all(|reason| ["early", "out_of_step"].contains(&reason.as_str())));
}
