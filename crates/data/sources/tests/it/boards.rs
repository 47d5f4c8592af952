//! Boards with described framing: in step, after garbage, and over sockets and files.

use crate::{live::Listening, support::data_folder};
use bytes::Bytes;
use evb_core::{EventCounter, Frequency};
use evb_sources::{
    BoardFrame, ByteOrder, ClockField, Field, FrameChecksum, FrameEnd, FrameError, FrameScanner, Framing, FrontEndLink,
    LiveItem, LiveSpec, RejectKind,
};
use proptest::prelude::*;
use std::{
    io::Write as _,
    net::{TcpListener, UdpSocket},
    sync::Arc,
};

const MAGIC: [u8; 4] = [0xef, 0xbe, 0xad, 0xde];
const MOST: u32 = 4096;

/// A digitiser: magic, length in 32-bit words, board, 32-bit trigger, 48-bit clock at 125 MHz, payload, CRC-16.
pub(crate) fn digitiser() -> Framing {
    let little = |at, bits| Field::new(at, bits, ByteOrder::Little);
    Framing {
        magic: MAGIC.to_vec(),
        magic_at: 0,
        end: FrameEnd::Length { field: little(4, 16), unit: 4, adds: 0 },
        counter: Some(little(8, 32)),
        clock: Some(ClockField { field: little(12, 48), frequency: "125 MHz".parse::<Frequency>().unwrap() }),
        mark: None,
        source: Some((little(6, 16), 7)),
        damaged: None,
        checksum: Some(FrameChecksum {
            kind: "crc-16/ibm-3740".parse().unwrap(),
            at: -2,
            from: 0,
            to: -2,
            order: ByteOrder::Little,
        }),
        stream_header: 0,
        across_datagrams: false,
        hits: None,
    }
}

fn unchecked() -> Framing {
    Framing { checksum: None, ..digitiser() }
}

/// The CRC of the digitiser, bit by bit.
fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 })
    })
}

/// A frame of the digitiser with this many words of payload.
pub(crate) fn board_frame(counter: u32, words: u16) -> Vec<u8> {
    frame_of(7, counter, words)
}

/// A frame of the digitiser with this source id.
pub(crate) fn frame_of(id: u16, counter: u32, words: u16) -> Vec<u8> {
    let mut frame = MAGIC.to_vec();
    frame.extend((6 + words).to_le_bytes());
    frame.extend(id.to_le_bytes());
    frame.extend(counter.to_le_bytes());
    frame.extend(&(u64::from(counter) * 1000).to_le_bytes()[..6]);
    frame.extend([0; 2]);
    frame.extend((0..4 * words).map(|byte| byte as u8));
    frame.extend([0; 2]);
    let crc = crc(&frame);
    frame.extend(crc.to_le_bytes());
    frame
}

/// The counters of all frames, with those of damaged ones negative, and the errors in their order.
fn scan(framing: Framing, pieces: impl IntoIterator<Item = impl AsRef<[u8]>>) -> (Vec<i64>, Vec<FrameError>) {
    let mut scanner = FrameScanner::new(Arc::new(framing), MOST);
    let (mut counters, mut errors) = (Vec::new(), Vec::new());
    let mut drain = |scanner: &mut FrameScanner, settles: bool| {
        loop {
            match if settles { scanner.settle() } else { scanner.pop() } {
                Ok(None) => return,
                Ok(Some(BoardFrame { counter, good, .. })) => {
                    counters.push(if good { counter as i64 } else { -(counter as i64) });
                }
                Err(error) => {
                    errors.push(error);
                    if error.ends_stream() {
                        return;
                    }
                }
            }
        }
    };
    for piece in pieces {
        scanner.push(piece.as_ref());
        drain(&mut scanner, false);
    }
    drain(&mut scanner, true);
    (counters, errors)
}

pub(crate) fn frames(counters: impl IntoIterator<Item = u32>) -> Vec<u8> {
    counters.into_iter().flat_map(|counter| board_frame(counter, (counter % 5) as u16)).collect()
}

#[test]
fn the_fields_of_a_frame_are_read() {
    let mut scanner = FrameScanner::new(Arc::new(digitiser()), MOST);
    let bytes = board_frame(3, 2);
    scanner.push(&bytes);
    let frame = scanner.pop().unwrap().expect("a frame");
    let bytes = Bytes::from(bytes);
    let (source, counter, clock) = (Some(7), 3, Some(3000));
    assert_eq!(frame, BoardFrame { is_ours: true, source, counter, clock, mark: None, good: true, bytes });
    let mut other = board_frame(4, 0);
    other[6] = 8;
    scanner.push(&other);
    scanner.push(&board_frame(5, 0));
    assert!(!scanner.pop().unwrap().expect("a frame").is_ours);
}

#[test]
fn garbage_is_passed_over_and_counted() {
    let mut bytes = frames(1..4);
    bytes.extend(b"rubbish with a magic: ");
    bytes.extend(MAGIC);
    bytes.extend([9, 0]);
    bytes.extend(frames(4..8));
    for framing in [digitiser(), unchecked()] {
        let (counters, errors) = scan(framing, [&bytes]);
        assert_eq!((counters, errors), ((1..8).collect(), vec![FrameError::Skipped { bytes: 28 }]));
    }
}

#[test]
fn a_stream_that_begins_within_a_frame_is_found() {
    let bytes = frames(1..6);
    for framing in [digitiser(), unchecked()] {
        let (counters, errors) = scan(framing, [&bytes[10..]]);
        assert_eq!((counters, errors.len()), ((2..6).collect(), 1));
    }
}

#[test]
fn a_damaged_payload_is_a_damaged_fragment() {
    let mut bytes = frames(1..6);
    let at = frames(1..4).len() + 21;
    bytes[at] ^= 1;
    assert_eq!(scan(digitiser(), [&bytes]), (vec![1, 2, 3, -4, 5], vec![]));
    // The last one is not followed by another.
    let mut last = frames(1..3);
    let end = last.len() - 1;
    last[end] ^= 1;
    assert_eq!(scan(digitiser(), [&last]), (vec![1, -2], vec![]));
}

#[test]
fn a_damaged_length_costs_one_frame() {
    for wrong in [0_u16, 2, 9, 400, 1000, u16::MAX] {
        let mut bytes = frames(1..9);
        let at = frames(1..4).len() + 4;
        bytes[at..at + 2].copy_from_slice(&wrong.to_le_bytes());
        let (counters, errors) = scan(digitiser(), [&bytes]);
        assert_eq!(counters, [1, 2, 3, 5, 6, 7, 8], "{wrong}");
        let skipped = FrameError::Skipped { bytes: board_frame(4, 4).len() as u64 };
        assert_eq!(errors.last(), Some(&skipped), "{wrong}: {errors:?}");
    }
}

#[test]
fn a_frame_above_the_largest_size_is_told() {
    let mut bytes = frames(1..3);
    bytes.extend(board_frame(3, 2000));
    bytes.extend(frames(4..6));
    let (counters, errors) = scan(digitiser(), bytes.chunks(100));
    assert_eq!(counters, [1, 2, 4, 5]);
    assert_eq!(errors, [FrameError::Oversized { bytes: 8024, limit: MOST }, FrameError::Skipped { bytes: 8024 }]);
}

#[test]
fn frames_of_one_size_and_frames_with_an_end() {
    let counter = Some(Field::new(0, 8, ByteOrder::Big));
    let plain = Framing { magic: vec![], counter, clock: None, source: None, ..unchecked() };
    let fixed = Framing { end: FrameEnd::Size(3), ..plain.clone() };
    assert_eq!(scan(fixed, [b"\x01ab\x02c", &b"d\x03ef"[..]]), (vec![1, 2, 3], vec![]));
    let lines = Framing { end: FrameEnd::Marker(b"\r\n".to_vec()), ..plain.clone() };
    assert_eq!(scan(lines, [b"\x01 one\r\n\x02 two\r", &b"\n\x03\r\n"[..]]), (vec![1, 2, 3], vec![]));
    let long = Framing { end: FrameEnd::Marker(b"\n".to_vec()), ..plain };
    let (none, errors) = scan(long, [&[7; 5000]]);
    assert_eq!((none, errors.last()), (vec![], Some(&FrameError::Lost)));
}

#[test]
fn frames_without_a_counter_are_counted() {
    let framing = Framing { counter: None, ..digitiser() };
    assert_eq!(scan(framing, [frames(5..8)]), (vec![0, 1, 2], vec![]));
}

proptest! {
    /// However a stream is cut up, the frames are the same.
    #[test]
    fn cuts_do_not_matter(cuts in prop::collection::vec(1_usize..90, 1..60), garbage in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut bytes = frames(1..20);
        bytes.extend(&garbage);
        bytes.extend(frames(20..30));
        let whole = scan(digitiser(), [&bytes]);
        let mut rest = bytes.as_slice();
        let mut pieces = Vec::new();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(&scan(digitiser(), pieces), &whole);
        // A false magic within the garbage may not cost a good frame.
        prop_assert_eq!(whole.0, (1..30).collect::<Vec<_>>());
    }

    /// No input panics, and no byte is lost: each is in a frame, passed over, or left.
    #[test]
    fn no_byte_is_lost(pieces in prop::collection::vec(prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        (0_u32..9).prop_map(|counter| board_frame(counter, 1)),
        Just(MAGIC.to_vec()),
        prop::collection::vec(any::<u8>(), 0..30),
    ], 0..30), checked: bool) {
        let framing = if checked { digitiser() } else { unchecked() };
        let mut scanner = FrameScanner::new(Arc::new(framing), MOST);
        let (mut came, mut accounted) = (0, 0);
        for piece in pieces.iter().chain([&Vec::new()]) {
            scanner.push(piece);
            came += piece.len();
            let settles = piece.is_empty();
            loop {
                match if settles { scanner.settle() } else { scanner.pop() } {
                    Ok(None) => break,
                    Ok(Some(frame)) => accounted += frame.bytes.len(),
                    Err(FrameError::Skipped { bytes }) => accounted += bytes as usize,
                    Err(error) => prop_assert!(matches!(error, FrameError::Oversized { .. }), "{}", error),
                }
            }
        }
        prop_assert_eq!(came, accounted + scanner.unfinished().len());
    }
}

pub(crate) fn spec(link: FrontEndLink) -> LiveSpec {
    LiveSpec {
        link,
        counter: EventCounter::new(32),
        framing: Some(digitiser()),
        slices: None,
        control: None,
        shared: Vec::new(),
    }
}

pub(crate) fn counters(items: &[LiveItem]) -> Vec<u64> {
    let counter = |item: &LiveItem| if let LiveItem::Fragment { counter, .. } = item { *counter } else { u64::MAX };
    items.iter().map(counter).collect()
}

#[test]
fn a_board_that_listens_is_connected_to_again() {
    let board = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = board.local_addr().unwrap().to_string();
    let live = Listening::start(&spec(FrontEndLink::TcpClient(address)), MOST);
    for from in [1, 11] {
        let (mut evb, _) = board.accept().unwrap();
        evb.write_all(&frames(from..from + 10)).unwrap();
        let items: Vec<_> = (0..10).map(|_| live.next()).collect();
        assert_eq!(counters(&items), (from..from + 10).map(u64::from).collect::<Vec<_>>());
    }
}

#[test]
fn a_file_is_read_to_its_end() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut bytes = frames(1..100);
    bytes.extend(b"cut");
    bytes.extend(frames(100..200));
    bytes.extend(&board_frame(200, 3)[..20]);
    std::fs::write(&file, bytes).unwrap();
    let live = Listening::start(&spec(FrontEndLink::File(file.path().into())), MOST);
    let (mut fragments, rejected) = live.run();
    assert_eq!(fragments.remove(99), LiveItem::Skipped { bytes: b"cut".as_slice().into() });
    assert_eq!(counters(&fragments), (1..200).collect::<Vec<_>>());
    assert_eq!(rejected.into_iter().collect::<Vec<_>>(), [(RejectKind::Garbage, 1), (RejectKind::CutOff, 1)]);
}

/// Each connection has its header, and each file. One that ends within it is cut off.
#[test]
fn what_comes_before_the_first_frame_is_left_out() {
    let framing = |header| Some(Framing { stream_header: header, ..digitiser() });
    let board = TcpListener::bind("127.0.0.1:0").unwrap();
    let link = FrontEndLink::TcpClient(board.local_addr().unwrap().to_string());
    let live = Listening::start(&LiveSpec { framing: framing(7), ..spec(link) }, MOST);
    for from in [1, 11] {
        let (mut evb, _) = board.accept().unwrap();
        // What looks like a frame there is none.
        [&MAGIC[..], b"abc", &frames(from..from + 10)].iter().for_each(|bytes| evb.write_all(bytes).unwrap());
        let items: Vec<_> = (0..10).map(|_| live.next()).collect();
        assert_eq!(counters(&items), (from..from + 10).map(u64::from).collect::<Vec<_>>());
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, [b"header".as_slice(), &frames(1..10)].concat()).unwrap();
    let read = |header| {
        let link = FrontEndLink::File(file.path().into());
        let (items, rejected) = Listening::start(&LiveSpec { framing: framing(header), ..spec(link) }, MOST).run();
        (counters(&items), rejected.into_iter().collect::<Vec<_>>())
    };
    assert_eq!(read(6), ((1..10).collect(), vec![]));
    assert_eq!(read(1000), (vec![], vec![(RejectKind::CutOff, 1)]));
}

#[test]
fn a_datagram_may_hold_several_frames() {
    let live = Listening::start(&spec(FrontEndLink::Udp("127.0.0.1:0".into())), MOST);
    let board = UdpSocket::bind("127.0.0.1:0").unwrap();
    board.connect(live.address()).unwrap();
    board.send(&frames(1..4)).unwrap();
    board.send(&board_frame(4, 0)[..20]).unwrap();
    board.send(&frames(5..6)).unwrap();
    let mut items: Vec<_> = (0..5).map(|_| live.next()).collect();
    let cut = items.iter().position(|item| matches!(item, LiveItem::Rejected { .. })).expect("a cut datagram");
    items.remove(cut);
    assert_eq!(counters(&items), [1, 2, 3, 5]);
}

/// A PCAP file with these datagrams to port 6006, one to another port before them, and one that was cut off.
fn capture(datagrams: &[Vec<u8>]) -> Vec<u8> {
    let mut file = capture_header();
    add_packet(&mut file, (1, 53), b"another", usize::MAX);
    datagrams.iter().for_each(|datagram| add_packet(&mut file, (1, 6006), datagram, usize::MAX));
    add_packet(&mut file, (1, 6006), b"cut off", 45);
    file
}

pub(crate) fn capture_header() -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    file
}

/// Adds a datagram from a host to a port, of which this number of bytes was captured.
pub(crate) fn add_packet(file: &mut Vec<u8>, (host, port): (u8, u16), payload: &[u8], captured: usize) {
    let mut bytes = vec![2; 12];
    bytes.extend([8, 0, 0x45, 0]);
    bytes.extend((28 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 10, 0, 0, 200]);
    bytes.extend([0, 9]);
    bytes.extend(port.to_be_bytes());
    bytes.extend((8 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    let length = bytes.len();
    bytes.truncate(captured);
    file.extend([0; 8]);
    file.extend((bytes.len() as u32).to_le_bytes());
    file.extend((length as u32).to_le_bytes());
    file.extend(&bytes);
}

#[test]
fn the_datagrams_of_a_capture_are_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, capture(&[frames(1..3), frames(3..4)])).unwrap();
    let link = FrontEndLink::Capture { file: file.path().into(), port: Some(6006), paced: false };
    let (fragments, rejected) = Listening::start(&spec(link), MOST).run();
    assert_eq!(counters(&fragments), [1, 2, 3]);
    assert_eq!(rejected.into_iter().collect::<Vec<_>>(), [(RejectKind::Unreadable, 1)]);
}

/// The packets of real front ends, where the file is there: all are read, and the counter tells which were lost.
#[test]
fn the_packets_of_vmm_front_ends_are_read() {
    let Some(file) = data_folder().map(|folder| folder.join("public/vmm-example.pcapng")).filter(|file| file.exists())
    else {
        println!("skipped: the capture is not there");
        return;
    };
    for (id, wanted) in [(0x20, 50), (0x10, 50)] {
        let big = |at, bits| Field::new(at, bits, ByteOrder::Big);
        let framing = Framing {
            magic: b"VM3".to_vec(),
            magic_at: 4,
            end: FrameEnd::Datagram,
            counter: Some(big(0, 32)),
            clock: None,
            source: Some((big(7, 8), id)),
            checksum: None,
            hits: None,
            ..digitiser()
        };
        let link = FrontEndLink::Capture { file: file.clone(), port: Some(6006), paced: false };
        let spec = LiveSpec { framing: Some(framing), ..spec(link) };
        let (fragments, rejected) = Listening::start(&spec, 1 << 16).run();
        let lost = counters(&fragments).windows(2).map(|pair| pair[1] - pair[0] - 1).sum::<u64>();
        println!("front end {id}: {} packets, {lost} lost", fragments.len());
        assert_eq!((fragments.len(), rejected.len()), (wanted, 0));
        assert!(lost > 0);
    }
}
