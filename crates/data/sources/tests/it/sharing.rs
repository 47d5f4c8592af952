//! Several sources on one link: each has the frames with its source id.

use crate::{
    boards::{digitiser, frame_of as frame, spec},
    support::options,
};
use evb_sources::{Framing, FrontEndLink, LiveItem, LiveSource, LiveSpec, RejectKind, SharedLinks};
use std::{
    io::Write as _,
    net::{TcpStream, UdpSocket},
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

/// Longest fragment: the queue of a source holds 8 long ones, and 2048 short ones.
const LONG: u32 = 8 << 20;
const SHORT: u32 = 4096;

/// Sources with these ids that share a link, and the calls of their wakers.
struct Sharers {
    sources: Vec<LiveSource>,
    woken: Receiver<usize>,
}

impl Sharers {
    fn start(link: &FrontEndLink, ids: &[u64], max_fragment: u32) -> Self {
        let (wake, woken) = channel();
        let links = SharedLinks::default();
        let specs = specs(link, ids);
        let start = |(place, spec): (usize, &LiveSpec)| start(&links, spec, (place as u16, max_fragment), &wake);
        Self { sources: specs.iter().enumerate().map(start).collect(), woken }
    }

    fn address(&self) -> String {
        self.sources[0].local_addr().expect("an address").to_string()
    }

    /// The next item of a source.
    fn next(&mut self, place: usize) -> LiveItem {
        loop {
            if let Some(item) = self.sources[place].try_next() {
                return item;
            }
            self.woken.recv_timeout(Duration::from_secs(60)).expect("a waker is called");
        }
    }

    /// The counters of the next fragments of a source.
    fn counters(&mut self, place: usize, count: usize) -> Vec<u64> {
        let mut counter = || match self.next(place) {
            LiveItem::Fragment { counter, .. } => counter,
            item => panic!("{item:?}"),
        };
        (0..count).map(|_| counter()).collect()
    }
}

fn start(links: &SharedLinks, spec: &LiveSpec, (unit, most): (u16, u32), wake: &Sender<usize>) -> LiveSource {
    let mut options = options(Path::new(""), unit);
    options.max_fragment = most;
    let wake = wake.clone();
    links.start(spec, &options, Arc::new(move || wake.send(unit.into()).unwrap_or_default())).expect("a source")
}

fn specs(link: &FrontEndLink, ids: &[u64]) -> Vec<LiveSpec> {
    let of_id = |id: &u64| {
        let framing = digitiser();
        let source = framing.source.map(|(field, _)| (field, *id));
        LiveSpec { framing: Some(Framing { source, ..framing }), shared: ids.to_vec(), ..spec(link.clone()) }
    };
    ids.iter().map(of_id).collect()
}

fn tcp() -> FrontEndLink {
    FrontEndLink::Tcp("127.0.0.1:0".into())
}

#[test]
fn frames_go_to_the_source_of_their_id() {
    let mut sharers = Sharers::start(&tcp(), &[4, 2], SHORT);
    let mut board = TcpStream::connect(sharers.address()).unwrap();
    let stream: Vec<u8> =
        (1..=20).flat_map(|n| [frame(2, n, 1), frame(9, n, 0), frame(4, 100 + n, 3)].concat()).collect();
    for piece in stream.chunks(13) {
        board.write_all(piece).unwrap();
    }
    assert_eq!(sharers.counters(0, 20), (101..=120).collect::<Vec<_>>());
    // The first source reports frames whose id is that of no source.
    let (mut came, mut foreign) = (Vec::new(), 0);
    while came.len() < 20 || foreign < 20 {
        match sharers.next(1) {
            LiveItem::Fragment { counter, .. } => came.push(counter),
            LiveItem::Rejected { kind: RejectKind::WrongSource, count, .. } => foreign += count,
            item => panic!("{item:?}"),
        }
    }
    assert_eq!((came, foreign), ((1..=20).collect(), 20));
    let are_open =
        |sharers: &Sharers| sharers.sources.iter().map(|source| source.connections().open).collect::<Vec<_>>();
    assert_eq!(are_open(&sharers), [true, true]);
    drop(board);
    while are_open(&sharers) != [false, false] {
        std::thread::yield_now();
    }
    // A later connection is that of both, too.
    let mut board = TcpStream::connect(sharers.address()).unwrap();
    board.write_all(&[frame(2, 21, 0), frame(4, 121, 0)].concat()).unwrap();
    assert_eq!((sharers.counters(0, 1), sharers.counters(1, 1)), (vec![121], vec![21]));
}

#[test]
fn a_datagram_may_hold_frames_of_several_sources() {
    let mut sharers = Sharers::start(&FrontEndLink::Udp("127.0.0.1:0".into()), &[2, 4], SHORT);
    let board = UdpSocket::bind("127.0.0.1:0").unwrap();
    board.connect(sharers.address()).unwrap();
    for n in 1..=10 {
        board.send(&[frame(4, n, 1), frame(2, n, 2), frame(2, 10 + n, 0)].concat()).unwrap();
    }
    let twice: Vec<_> = (1..=10).flat_map(|n| [n, 10 + n]).collect();
    assert_eq!((sharers.counters(1, 10), sharers.counters(0, 20)), ((1..=10).collect(), twice));
    let buffers: Vec<_> = sharers.sources.iter().map(|source| source.datagram_buffer().is_some()).collect();
    assert_eq!(buffers, [true, false], "what the host loses is counted once");
}

/// The queue of one source is full: the other one has all that was sent before, and the rest when there is room.
#[test]
fn a_full_queue_of_one_source_leaves_the_others_what_has_come() {
    let mut sharers = Sharers::start(&tcp(), &[2, 4], LONG);
    let mut board = TcpStream::connect(sharers.address()).unwrap();
    // The queue holds 8 frames: it is full when the reader comes to the ninth.
    board.write_all(&frame(4, 1, 0)).unwrap();
    (1..=9).for_each(|n| board.write_all(&frame(2, n, 0)).unwrap());
    board.write_all(&frame(4, 2, 0)).unwrap();
    assert_eq!(sharers.counters(1, 1), [1]);
    // The second source wants more, which lies behind what the first has no room for: that is reported.
    while sharers.sources[0].held_up().is_zero() {
        assert_eq!(sharers.sources[1].try_next(), None);
        std::thread::yield_now();
    }
    assert!(sharers.sources[1].held_up().is_zero());
    assert_eq!(sharers.counters(0, 9), (1..=9).collect::<Vec<_>>());
    assert_eq!(sharers.counters(1, 1), [2]);
}

/// A source that has gone does not stop the others, even while the reader waits for room in its queue.
#[test]
fn a_source_that_leaves_holds_up_nobody() {
    let mut sharers = Sharers::start(&tcp(), &[2, 4], LONG);
    let mut board = TcpStream::connect(sharers.address()).unwrap();
    (1..=9).for_each(|n| board.write_all(&frame(2, n, 0)).unwrap());
    board.write_all(&frame(4, 1, 0)).unwrap();
    // The waker of the first source is called when its queue is full, or for frames before.
    while sharers.woken.recv_timeout(Duration::from_secs(60)).expect("a waker is called") != 0 {}
    drop(sharers.sources.remove(0));
    assert_eq!(sharers.counters(0, 1), [1]);
    (10..=99).for_each(|n| board.write_all(&frame(2, n, 0)).unwrap());
    board.write_all(&frame(4, 2, 0)).unwrap();
    assert_eq!(sharers.counters(0, 1), [2]);
}

#[test]
fn a_link_is_read_when_all_its_sources_are_there() {
    let ((wake, _woken), links, specs) = (channel(), SharedLinks::default(), specs(&tcp(), &[2, 4]));
    let first = start(&links, &specs[0], (0, LONG), &wake);
    assert_eq!(first.local_addr(), None);
    let second = start(&links, &specs[1], (1, LONG), &wake);
    let address = first.local_addr().expect("an address");
    assert_eq!(second.local_addr(), Some(address));
    let third = links.start(&specs[1], &options(Path::new(""), 2), Arc::new(|| ()));
    assert!(third.err().expect("no third place").to_string().contains("127.0.0.1:0"));
    drop(first);
    let _board = TcpStream::connect(address).expect("the second source is still there");
}
