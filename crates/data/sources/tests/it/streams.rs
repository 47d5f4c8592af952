//! Frames that go on in the next datagram of their sender.

use crate::{
    boards::{add_packet, capture_header, counters, digitiser, frames, spec},
    live::Listening,
};
use evb_sources::{
    Framing, FrontEndLink, Inspection, InspectionInput, InspectionLimits, LiveItem, LiveSpec, RejectKind,
};
use std::{collections::BTreeMap, net::UdpSocket, ops::Range, time::Duration};

const MOST: u32 = 4096;

fn framing() -> Framing {
    Framing { across_datagrams: true, ..digitiser() }
}

/// What a source makes of a capture of these datagrams, each with its sender: fragments and refusals.
fn read(datagrams: &[(u8, &[u8])]) -> (Vec<LiveItem>, BTreeMap<RejectKind, u64>) {
    let (file, mut bytes) = (tempfile::NamedTempFile::new().unwrap(), capture_header());
    datagrams.iter().for_each(|(host, datagram)| add_packet(&mut bytes, (*host, 6006), datagram, usize::MAX));
    std::fs::write(&file, bytes).unwrap();
    let link = FrontEndLink::Capture { file: file.path().into(), port: None, paced: false };
    Listening::start(&LiveSpec { framing: Some(framing()), ..spec(link) }, MOST).run()
}

fn from_one<'a>(datagrams: impl IntoIterator<Item = &'a [u8]>) -> Vec<(u8, &'a [u8])> {
    datagrams.into_iter().map(|datagram| (1, datagram)).collect()
}

#[test]
fn datagrams_may_be_cut_at_every_byte() {
    let stream = frames(1..6);
    for at in 1..stream.len() {
        let (items, rejected) = read(&from_one([&stream[..at], &stream[at..]]));
        assert_eq!((counters(&items), rejected.len()), ((1..6).collect(), 0), "at {at}");
    }
    let (items, rejected) = read(&from_one(stream.chunks(1)));
    assert_eq!((counters(&items), rejected.len()), ((1..6).collect(), 0), "all bytes");
}

/// The counters of frames that are whole although these bytes are lost.
fn untouched(numbers: Range<u32>, lost: &Range<usize>) -> Vec<u64> {
    let mut end = 0;
    let whole = |number: &u32| {
        let begin = end;
        end += frames([*number]).len();
        lost.end <= begin || end <= lost.start
    };
    numbers.filter(whole).map(u64::from).collect()
}

/// Each datagram in turn is lost: the frames that it had no part of come whole and in order, and no frame is wrong.
#[test]
fn a_lost_datagram_costs_the_frames_that_it_touched() {
    let (numbers, stream) = (1..21, frames(1..21));
    for size in [1, 5, 17, 28, 29, 64, 200] {
        let datagrams: Vec<_> = stream.chunks(size).collect();
        for lost in 0..datagrams.len() {
            let rest = datagrams.iter().enumerate().filter(|(n, _)| *n != lost).map(|(_, datagram)| *datagram);
            let (items, _) = read(&from_one(rest));
            let good = items.iter().filter(|item| matches!(item, LiveItem::Fragment { good: true, .. })).cloned();
            let bytes = lost * size..(lost * size + size).min(stream.len());
            assert_eq!(
                counters(&good.collect::<Vec<_>>()),
                untouched(numbers.clone(), &bytes),
                "{lost} of {size} bytes"
            );
        }
    }
}

/// The datagrams of each sender are a stream, and their order among senders means nothing.
#[test]
fn senders_have_streams_of_their_own() {
    let streams = [frames(1..9), frames(101..109)];
    let pieces = streams[0].chunks(11).zip(streams[1].chunks(11));
    let mixed: Vec<_> = pieces.flat_map(|(first, second)| [(1, first), (2, second)]).collect();
    let (items, rejected) = read(&mixed);
    let mut came = counters(&items);
    came.sort_unstable();
    assert_eq!((came, rejected.len()), ((1..9).chain(101..109).collect(), 0));
}

/// A sender that was not heard for long makes room for another, and what it had begun is told.
#[test]
fn the_number_of_senders_has_a_limit() {
    let frame = frames(1..2);
    let begins: Vec<_> = (1..=20).map(|host| (host, &frame[..9])).collect();
    let ends = (1..=20).map(|host| (host, &frame[9..]));
    let (items, rejected) = read(&begins.iter().copied().chain(ends.rev().take(16)).collect::<Vec<_>>());
    assert_eq!((counters(&items), rejected), (vec![1; 16], BTreeMap::from([(RejectKind::CutOff, 4)])));
}

#[test]
fn a_socket_has_streams_too() {
    let link = FrontEndLink::Udp("127.0.0.1:0".into());
    let live = Listening::start(&LiveSpec { framing: Some(framing()), ..spec(link) }, MOST);
    let board = UdpSocket::bind("127.0.0.1:0").unwrap();
    board.connect(live.address()).unwrap();
    frames(1..40).chunks(100).for_each(|piece| assert_eq!(board.send(piece).unwrap(), piece.len()));
    let items: Vec<_> = (1..40).map(|_| live.next()).collect();
    assert_eq!(counters(&items), (1..40).collect::<Vec<_>>());
    // The length of a frame is wrong, and nothing else comes: the frame within it is found when it is quiet.
    let mut long = frames(40..41);
    long[5] = 1;
    board.send(&[long, frames(41..42)].concat()).unwrap();
    let mut items: Vec<_> = (0..3).map(|_| live.next()).collect();
    let refused = items.iter().position(|item| matches!(item, LiveItem::Rejected { .. })).expect("garbage");
    items.remove(refused);
    assert!(matches!(&items[0], LiveItem::Skipped { bytes } if bytes.len() == 24), "{items:?}");
    assert_eq!(counters(&items[1..]), [41]);
}

#[test]
fn an_inspection_follows_the_streams() {
    let (file, mut bytes, stream) = (tempfile::NamedTempFile::new().unwrap(), capture_header(), frames(1..100));
    stream.chunks(50).for_each(|datagram| add_packet(&mut bytes, (1, 6006), datagram, usize::MAX));
    std::fs::write(&file, bytes).unwrap();
    let mut inspection = Inspection::new(framing(), MOST, 3);
    let limits = InspectionLimits { duration: Duration::from_secs(60), frames: u64::MAX };
    InspectionInput::new(&mut inspection, limits).read_file(file.path(), None).unwrap();
    let report = inspection.finish();
    assert!(report.fits() && report.frames == 99, "{report:?}");
}
