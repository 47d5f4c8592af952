//! Boards with framing of their own: matched by their counters, and by their clocks.
//!
//! A board sends frames of a digitiser: magic, length in 32-bit words, board, counter, clock of 48 bits at 125 MHz, the
//! trigger as the truth, and a CRC-16. What it sends lies in a file, or goes through a connection.

use crate::support::{Lab, Numbers, Outcome, THREADS, check_accounts, read_all};
use evb_record::{ClockPlace, FindingKind};
use std::{collections::BTreeMap, io::Write as _, net::TcpListener, thread};

const SEED: u64 = 7;
const TRIGGERS: u64 = 3000;
/// Mean interval of triggers in ticks of 8 ns: 1 ms.
const INTERVAL: usize = 125_000;
const FRAMING: &str = r#"
[readout.framing]
magic = "ef be ad de"
length = { at = 4, bits = 16, unit = "4 B" }
counter = { at = 8, bits = 32 }
clock = { at = 12, bits = 48, frequency = "125 MHz" }
checksum = { type = "crc-16/ibm-3740", at = -2 }
"#;

/// What is wrong with a board.
#[derive(Clone, Copy, Default)]
struct Board {
    /// Its first counter; it has no counter if there is none.
    first_counter: Option<u32>,
    /// Ticks of its clock at the time 0, and ticks that it gains in 100,000.
    offset: u64,
    gain: u64,
    /// The board misses one trigger in this many, drawn by chance.
    misses: Option<usize>,
    /// Its triggers come at equal intervals.
    is_regular: bool,
    /// The board adds a hit without a trigger before one trigger in this many, drawn by chance.
    noise: Option<usize>,
}

/// The truth of a frame that no trigger belongs to.
const NOISE: u64 = u64::MAX;

fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 })
    })
}

fn frame(counter: u32, clock: u64, truth: u64) -> Vec<u8> {
    let mut frame = vec![0xef, 0xbe, 0xad, 0xde, 8, 0, 0, 0];
    frame.extend(counter.to_le_bytes());
    frame.extend(&clock.to_le_bytes()[..6]);
    frame.extend([0; 2]);
    frame.extend(truth.to_le_bytes());
    frame.extend([0; 2]);
    let crc = crc(&frame);
    frame.extend(crc.to_le_bytes());
    frame
}

impl Board {
    /// The frames of all triggers, whose times in ticks are the same for all boards.
    fn frames(self, number: u64) -> Vec<u8> {
        let (mut common, mut own) = (Numbers(SEED), Numbers(SEED + 1 + number));
        let mut frames = Vec::new();
        let (mut time, mut counter) = (0, self.first_counter.unwrap_or(0));
        let mut add = |time: u64, truth: u64, own: &mut Numbers| {
            let clock = self.offset + time + time * self.gain / 100_000 + own.below(3) as u64;
            frames.extend(frame(counter, clock, truth));
            counter += u32::from(self.first_counter.is_some());
        };
        for trigger in 0..TRIGGERS {
            // The minimum of two uniform numbers: irregular, and never two at once.
            let drawn = 500 + common.below(3 * INTERVAL).min(common.below(3 * INTERVAL)) as u64;
            let next = time + if self.is_regular { INTERVAL as u64 } else { drawn };
            if self.noise.is_some_and(|one_in| own.below(one_in) == 0) {
                add(time + (next - time) / 2, NOISE, &mut own);
            }
            time = next;
            if self.misses.is_none_or(|one_in| own.below(one_in) > 0) {
                add(time, trigger, &mut own);
            }
        }
        frames
    }
}

/// A run with the frames of these boards, each in a file.
fn run(trigger: &str, boards: &[Board]) -> (Lab, Outcome) {
    run_framed(trigger, FRAMING, boards)
}

fn run_framed(trigger: &str, framing: &str, boards: &[Board]) -> (Lab, Outcome) {
    let unit = |n: usize| format!("[[readout.unit]]\nsource = {{ type = \"file\", file = \"board-{n}.raw\" }}\n");
    let units: String = (0..boards.len()).map(unit).collect();
    let lab =
        Lab::with(&format!("[trigger]\n{trigger}\n{framing}{units}[builder]\nunits = 1\n[storage]\nkeep = \"all\"\n"));
    for (n, board) in boards.iter().enumerate() {
        lab.write(&format!("board-{n}.raw"), board.frames(n as u64));
    }
    let outcome = lab.run(THREADS).run();
    (lab, outcome)
}

/// The number of complete events, in each of which all fragments are of one trigger, and of all fragments without an event.
fn check(lab: &Lab, outcome: &Outcome, boards: &[Board]) -> (usize, BTreeMap<String, u64>) {
    let record = outcome.record();
    check_accounts(&record);
    let mut complete = 0;
    let mut stored = vec![0; boards.len()];
    for event in &read_all(&lab.stored_files()).events {
        let truth = |bytes: &[u8]| u64::from_le_bytes(*bytes[20..].first_chunk().expect("a truth"));
        let fragments = || event.fragments.iter().filter(|fragment| !fragment.bytes.is_empty());
        let mut truths: Vec<_> = fragments().map(|fragment| truth(&fragment.bytes)).collect();
        fragments().for_each(|fragment| stored[usize::from(fragment.source.0)] += 1);
        complete += usize::from(truths.len() == boards.len());
        truths.dedup();
        assert_eq!(truths.len(), 1, "seed {SEED}: event {} is of the triggers {truths:?}", event.id.0);
    }
    let mut apart = BTreeMap::new();
    for ((n, board), readout) in boards.iter().enumerate().zip(&record.readouts) {
        let frames = board.frames(n as u64).len() / 32;
        assert_eq!(stored[n] + readout.apart, frames as u64, "seed {SEED}: board {n}: {outcome}");
        readout.apart_by_reason.iter().for_each(|(reason, count)| *apart.entry(reason.clone()).or_default() += count);
    }
    (complete, apart)
}

/// Number of triggers that all boards have seen.
fn common_triggers(boards: &[Board]) -> usize {
    let mut seen = BTreeMap::<u64, usize>::new();
    for (n, board) in boards.iter().enumerate() {
        for frame in board.frames(n as u64).chunks(32) {
            *seen.entry(u64::from_le_bytes(*frame[20..].first_chunk().expect("a truth"))).or_default() += 1;
        }
    }
    seen.iter().filter(|(truth, count)| **truth != NOISE && **count == boards.len()).count()
}

const BOARDS: [Board; 3] = [
    Board { first_counter: Some(1), offset: 0, gain: 0, misses: None, is_regular: false, noise: None },
    Board { first_counter: None, offset: 462_500_000, gain: 1, misses: Some(100), is_regular: false, noise: None },
    Board { first_counter: Some(77), offset: 5, gain: 2, misses: Some(50), is_regular: false, noise: Some(100) },
];

/// Clocks with other beginnings and rates, no counter, one that counts its own triggers, misses and noise: complete events
/// are of one trigger, and every frame is accounted for.
#[test]
fn boards_are_matched_by_the_times_of_a_trigger_source() {
    let (lab, outcome) = run("type = \"time\"\nwindow = \"1 us\"\npatience = \"1 min\"\nsource = 0", &BOARDS);
    let (complete, apart) = check(&lab, &outcome, &BOARDS);
    assert_eq!(outcome.record().events.triggered, TRIGGERS, "{outcome}");
    assert_eq!(complete, common_triggers(&BOARDS), "{outcome}");
    assert_eq!(apart.keys().collect::<Vec<_>>(), ["out_of_window"], "{outcome}");
    // Counters of what a board has seen itself have no gaps.
    assert!(!outcome.record().findings.iter().any(|finding| finding.kind == FindingKind::CounterGaps), "{outcome}");
    let clocks = outcome.record().readouts.into_iter().map(|readout| readout.clock.expect("a clock"));
    let gains = BOARDS.map(|board| board.gain as f64 * 10.0);
    for (clock, gain) in clocks.zip(gains) {
        let ahead = gains[0] - gain - clock.drift_ppm.unwrap_or(0.0);
        assert!(clock.place == ClockPlace::Known && ahead.abs() < 0.5, "{clock:?} of a board that gains {gain} ppm");
        assert_eq!(clock.lost, 0, "{clock:?}");
    }
}

/// Hits at equal intervals fit each other at many places: that is said, and no event is made by chance.
#[test]
fn hits_at_equal_intervals_are_not_matched_by_chance() {
    let boards =
        [Board { is_regular: true, ..Board::default() }, Board { is_regular: true, offset: 9_000, ..Board::default() }];
    let (lab, outcome) = run("type = \"time\"\nwindow = \"1 us\"\nsource = 0", &boards);
    assert_eq!(check(&lab, &outcome, &boards).0, 0, "{outcome}");
    let record = outcome.record();
    assert_eq!(record.readouts[1].clock.expect("a clock").place, ClockPlace::Regular, "{outcome}");
    let told = record.findings.iter().find(|finding| finding.kind == FindingKind::OutOfStep).expect("a finding");
    assert!(told.message.contains("of its fragments belong: they come at regular intervals"), "{told:?}");
}

/// Without a trigger source, an event is where enough boards have seen something.
#[test]
fn boards_are_matched_where_enough_of_them_have_a_hit() {
    let (lab, outcome) = run("type = \"time\"\nwindow = \"1 us\"\npatience = \"1 min\"\nsources = 3", &BOARDS);
    let (complete, apart) = check(&lab, &outcome, &BOARDS);
    assert_eq!(complete, common_triggers(&BOARDS), "{outcome}");
    assert_eq!(apart.keys().collect::<Vec<_>>(), ["alone"], "{outcome}");
}

/// Counters that begin anywhere come together by the values of a common clock, which boards read a tick early or late.
#[test]
fn counters_come_together_by_marks_that_differ_by_a_tick() {
    let board = |first| Board { first_counter: Some(first), offset: 1 << 31, ..Board::default() };
    let boards = [1, 7000, 1_000_000].map(board);
    let marks = format!("{FRAMING}mark = {{ at = 12, bits = 28 }}\n");
    let (lab, outcome) = run_framed("type = \"data\"", &format!("[readout]\nmark_tolerance = 2\n{marks}"), &boards);
    assert_eq!(check(&lab, &outcome, &boards).0, TRIGGERS as usize, "{outcome}");
    assert!(outcome.record().good, "{outcome}");
    let (_lab, outcome) = run_framed("type = \"data\"", &marks, &boards);
    assert!(!outcome.record().good, "without the tolerance they do not agree: {outcome}");
}

/// Boards with one counter need no converter: evb connects to them, and every event is complete.
#[test]
fn boards_that_listen_are_read_as_they_are() {
    let boards = [Board { first_counter: Some(1), ..Board::default() }; 3];
    let listeners = boards.map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let unit = |listener: &TcpListener| {
        let address = listener.local_addr().expect("an address");
        format!("[[readout.unit]]\nsource = {{ type = \"tcp-client\", connect = \"{address}\", first_counter = 1 }}\n")
    };
    let units: String = listeners.iter().map(unit).collect();
    let trigger = format!("[trigger]\ntype = \"data\"\nevents = {TRIGGERS}\n");
    let lab = Lab::with(&format!("{trigger}{FRAMING}{units}[builder]\nunits = 1\n[storage]\nkeep = \"all\"\n"));
    let play = |(n, listener): (u64, TcpListener)| {
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("evb connects");
            stream.write_all(&boards[0].frames(n)).expect("evb reads");
            stream
        })
    };
    let players: Vec<_> = (0..).zip(listeners).map(play).collect();
    let outcome = lab.run(THREADS).run();
    players.into_iter().for_each(|player| drop(player.join()));
    let (complete, apart) = check(&lab, &outcome, &boards);
    assert_eq!((outcome.code(), complete, apart.len()), (Some(0), TRIGGERS as usize, 0), "{outcome}");
}

/// The trial of a framing says that it fits, or what does not.
#[test]
fn a_framing_is_tried_on_data() {
    let unit = "[[readout.unit]]\nsource = { type = \"file\", file = \"board.raw\" }\n[builder]\nunits = 1\n";
    let lab = Lab::with(&format!("[trigger]\ntype = \"data\"\n{FRAMING}{unit}"));
    let mut bytes = Board { first_counter: Some(1), ..Board::default() }.frames(0);
    lab.write("board.raw", &bytes);
    let attempt = |arguments: &[&str]| lab.evb(&["sources", "try", "experiment.toml"]).args(arguments).run();
    let good = attempt(&["--show", "1"]);
    assert_eq!(good.code(), Some(0), "{good}");
    for part in ["magic 0-3", "at 0: 32 bytes  counter 1", "frames   3000 of 32 bytes", "steps +1 2999 times", "good: "]
    {
        assert!(good.stdout.contains(part), "{part}: {good}");
    }
    bytes.splice(64..64, *b"noise");
    let other = lab.write("other.raw", &bytes);
    let bad = attempt(&["--data", &other.to_string_lossy()]);
    assert_eq!(bad.code(), Some(1), "{bad}");
    assert!(bad.stdout.contains("skipped  5 bytes in 1 places, the first at 64: 6e 6f 69 73 65"), "{bad}");
}
