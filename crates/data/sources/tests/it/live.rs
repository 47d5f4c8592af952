//! Live front ends on real sockets.

use crate::{
    framing::{encoded, frame, with_header_byte},
    support::options,
};
use bytes::Bytes;
use evb_core::EventCounter;
use evb_sources::{Frame, FrontEndLink, LiveItem, LiveSource, LiveSpec, RejectKind};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{TcpStream, UdpSocket},
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

/// A live source and the calls of its waker. Frames of the tests are for readout unit 3.
pub(crate) struct Listening {
    source: RefCell<LiveSource>,
    woken: Receiver<()>,
}

impl Listening {
    pub(crate) fn start(spec: &LiveSpec, max_fragment: u32) -> Self {
        let (wake, woken) = channel();
        let mut options = options(Path::new(""), 3);
        options.max_fragment = max_fragment;
        let waker = Arc::new(move || wake.send(()).unwrap_or_default());
        Self { source: LiveSource::start(spec, &options, waker).unwrap().into(), woken }
    }

    pub(crate) fn address(&self) -> String {
        self.source.borrow().local_addr().expect("an address").to_string()
    }

    /// The next item; the waker, and nothing else, says when to look.
    pub(crate) fn next(&self) -> LiveItem {
        loop {
            if let Some(item) = self.source.borrow_mut().try_next() {
                return item;
            }
            self.woken.recv_timeout(Duration::from_secs(60)).expect("the waker is called");
        }
    }

    /// Items until the end of the run: fragments, and rejections added up.
    pub(crate) fn run(&self) -> (Vec<LiveItem>, BTreeMap<RejectKind, u64>) {
        let (mut fragments, mut rejected) = (Vec::new(), BTreeMap::new());
        loop {
            match self.next() {
                LiveItem::EndOfRun { .. } => return (fragments, rejected),
                LiveItem::Rejected { kind, count, .. } => *rejected.entry(kind).or_default() += count,
                fragment => fragments.push(fragment),
            }
        }
    }

    fn expect_rejected(&self, kind: RejectKind) {
        let next = self.next();
        let is_such =
            |item: &LiveItem| matches!(item, LiveItem::Rejected { kind: found, count: 1, .. } if *found == kind);
        assert!(is_such(&next), "{next:?}");
    }
}

/// A source of evb's own framing.
pub(crate) fn live(link: FrontEndLink, counter_bits: u8) -> LiveSpec {
    LiveSpec {
        link,
        counter: EventCounter::new(counter_bits),
        framing: None,
        slices: None,
        control: None,
        shared: Vec::new(),
    }
}

pub(crate) fn tcp(counter_bits: u8) -> LiveSpec {
    live(FrontEndLink::Tcp("127.0.0.1:0".into()), counter_bits)
}

pub(crate) fn udp(counter_bits: u8) -> LiveSpec {
    live(FrontEndLink::Udp("127.0.0.1:0".into()), counter_bits)
}

fn fragment(counter: u64, bytes: &'static [u8]) -> LiveItem {
    let bytes = Bytes::from_static(bytes);
    LiveItem::Fragment { counter, resynchronised: false, mark: None, clock: None, good: true, bytes }
}

fn end_of_run(counter: u64) -> Vec<u8> {
    encoded(&Frame { end_of_run: true, ..frame(counter, b"") })
}

#[test]
fn tcp_fragments_come_in_order_with_their_counter_cut() {
    let live = Listening::start(&tcp(8), 100);
    let mut front_end = TcpStream::connect(live.address()).unwrap();
    let mut stream = encoded(&frame(255, b"first"));
    stream.extend(encoded(&Frame { resynchronised: true, good: false, ..frame(256, b"second") }));
    stream.extend(end_of_run(257));
    for piece in stream.chunks(11) {
        front_end.write_all(piece).unwrap();
    }
    assert_eq!(live.next(), fragment(255, b"first"));
    let bytes = Bytes::from_static(b"second");
    assert_eq!(
        live.next(),
        LiveItem::Fragment { counter: 0, resynchronised: true, mark: None, clock: None, good: false, bytes }
    );
    assert_eq!(live.next(), LiveItem::EndOfRun { counter: Some(1), sent: None });
}

/// A front end closes its connection and connects again while the queue is full: its fragments come in order.
#[test]
fn fragments_of_a_later_connection_come_after_those_of_the_earlier() {
    // With large fragments the queue is short, so that most of them wait in the connections.
    let live = Listening::start(&tcp(64), 4 << 20);
    let payload = vec![7; 100_000];
    let address = live.address();
    let front_end = std::thread::spawn(move || {
        for numbers in [1..=60, 61..=90, 91..=100] {
            let mut connection = TcpStream::connect(&address).unwrap();
            numbers.for_each(|number| connection.write_all(&encoded(&frame(number, &payload))).unwrap());
        }
        let mut connection = TcpStream::connect(&address).unwrap();
        connection.write_all(&end_of_run(100)).unwrap();
    });
    let (fragments, _) = live.run();
    let counters = fragments.iter().filter_map(|item| match item {
        LiveItem::Fragment { counter, .. } => Some(*counter),
        _ => None,
    });
    assert!(counters.eq(1..=100));
    front_end.join().unwrap();
}

#[test]
fn tcp_garbage_is_counted_and_disturbs_nobody() {
    let live = Listening::start(&tcp(64), 100);
    let mut good = TcpStream::connect(live.address()).unwrap();
    good.write_all(&encoded(&frame(1, b"one"))).unwrap();
    assert_eq!(live.next(), fragment(1, b"one"));

    let send = |bytes: &[u8]| {
        let mut bad = TcpStream::connect(live.address()).unwrap();
        bad.write_all(bytes).unwrap();
        bad
    };
    let mut closed = send(b"GET / HTTP/1.1\r\n\r\n");
    live.expect_rejected(RejectKind::Garbage);
    // The connection is closed, by an end of stream or a reset.
    assert!(!matches!(closed.read(&mut [0; 1]), Ok(1..)));
    drop(send(&encoded(&frame(1, b"cut off"))[..35]));
    live.expect_rejected(RejectKind::CutOff);
    send(&with_header_byte(encoded(&frame(1, b"")), 5, 0x80));
    live.expect_rejected(RejectKind::Field);
    let mut flipped = encoded(&frame(1, b""));
    flipped[9] ^= 1;
    send(&flipped);
    live.expect_rejected(RejectKind::HeaderChecksum);

    good.write_all(&encoded(&Frame { source: 4, ..frame(2, b"two") })).unwrap();
    live.expect_rejected(RejectKind::WrongSource);
    good.write_all(&encoded(&frame(2, &[0; 101]))).unwrap();
    live.expect_rejected(RejectKind::Oversized);
    good.write_all(&encoded(&frame(3, b"three"))).unwrap();
    assert_eq!(live.next(), fragment(3, b"three"));
}

/// A device that looks like a serial line: what its other end writes is a stream.
#[test]
fn a_serial_line_is_read_as_a_stream() {
    let board = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&board).unwrap();
    unlockpt(&board).unwrap();
    let device = Path::new(ptsname(&board, Vec::new()).unwrap().to_str().unwrap()).to_owned();
    let source = Listening::start(&live(FrontEndLink::Serial { device, baud: 115_200 }, 64), 100);
    // Line ends and control characters are bytes as all others.
    let payloads = [b"one\r\n\x03\x04".as_slice(), b"two\n", b""];
    for (counter, payload) in (1..).zip(payloads) {
        let bytes = encoded(&frame(counter, payload));
        assert_eq!(rustix::io::write(&board, &bytes).unwrap(), bytes.len());
        let item = source.next();
        let LiveItem::Fragment { counter: came, good: true, bytes, .. } = item else { panic!("{item:?}") };
        assert_eq!((came, &bytes[..]), (counter, payload));
    }
    assert!(source.source.borrow().connections().open);
}

#[test]
fn what_is_no_serial_line_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (device, text) in [(file.path(), "ioctl"), (Path::new("/dev/no-such-line"), "No such file")] {
        let spec = live(FrontEndLink::Serial { device: device.to_owned(), baud: 9600 }, 64);
        let opened = LiveSource::start(&spec, &options(Path::new(""), 3), Arc::new(|| ()));
        let error = opened.err().expect("an error").to_string();
        assert!(error.contains(text) && error.contains(device.to_str().unwrap()), "{error}");
    }
}

/// The queue takes little, and nobody empties it: the buffer of the socket fills, and the system counts what it throws away.
#[test]
fn datagrams_that_the_host_loses_are_counted() {
    let live = Listening::start(&udp(64), 4 << 20);
    let lost = || live.source.borrow().datagram_buffer().expect("a buffer").lost.expect("a count");
    assert_eq!(lost(), 0);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let payload = vec![7; 60_000];
    let mut sent = 0;
    // The buffer holds 32 MiB at most, and the queue 16 fragments.
    while lost() == 0 && sent < 10_000 {
        for _ in 0..100 {
            sent += 1;
            socket.send_to(&encoded(&frame(sent, &payload)), live.address()).unwrap();
        }
    }
    let mut taken = 0;
    while taken + lost() < sent {
        taken += u64::from(matches!(live.next(), LiveItem::Fragment { .. }));
    }
    assert_eq!(taken + lost(), sent);
    assert!(lost() > 0);
}

#[test]
fn udp_garbage_is_counted_and_disturbs_nobody() {
    let live = Listening::start(&udp(64), 100);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |bytes: &[u8]| assert_eq!(socket.send_to(bytes, live.address()).unwrap(), bytes.len());
    let good = encoded(&frame(1, b"one"));
    send(&good);
    assert_eq!(live.next(), fragment(1, b"one"));
    send(b"");
    live.expect_rejected(RejectKind::DatagramSize);
    send(&good[..34]);
    live.expect_rejected(RejectKind::DatagramSize);
    send(&[&good[..], &good].concat());
    live.expect_rejected(RejectKind::DatagramSize);
    send(&[0; 65_507]);
    live.expect_rejected(RejectKind::Garbage);
    send(&encoded(&frame(1, &[0; 101])));
    live.expect_rejected(RejectKind::Oversized);
    send(&encoded(&frame(2, b"two")));
    assert_eq!(live.next(), fragment(2, b"two"));
    send(&end_of_run(2));
    assert_eq!(live.next(), LiveItem::EndOfRun { counter: Some(2), sent: None });
}

#[test]
fn a_slow_reader_slows_tcp_down_and_loses_nothing() {
    let live = Listening::start(&tcp(64), 8 << 20);
    let address = live.address();
    // The queue holds 16 of these; 300 times 256 KiB do not fit into queue and sockets together.
    let sender = std::thread::spawn(move || {
        let mut front_end = TcpStream::connect(address).unwrap();
        let payload = vec![5; 256 << 10];
        (1..=300).for_each(|counter| front_end.write_all(&encoded(&frame(counter, &payload))).unwrap());
        front_end.write_all(&end_of_run(300)).unwrap();
    });
    let (fragments, rejected) = live.run();
    sender.join().unwrap();
    let counters = fragments.iter().map(|item| match item {
        LiveItem::Fragment { counter, good: true, .. } => *counter,
        other => panic!("{other:?}"),
    });
    assert!(counters.eq(1..=300) && rejected.is_empty());
}

#[test]
fn connections_above_the_limit_are_refused_and_make_room_again() {
    let live = Listening::start(&tcp(64), 100);
    let connect = |counter| {
        let mut front_end = TcpStream::connect(live.address()).unwrap();
        front_end.write_all(&encoded(&frame(counter, b""))).unwrap();
        front_end
    };
    let mut open: Vec<_> = (0..16)
        .map(|counter| {
            let front_end = connect(counter);
            assert_eq!(live.next(), fragment(counter, b""));
            front_end
        })
        .collect();
    let one_too_many = connect(16);
    live.expect_rejected(RejectKind::TooManyConnections);
    drop((one_too_many, open.pop()));
    // The place is free as soon as the reader has seen the end of its stream.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let front_end = connect(17);
        match live.next() {
            LiveItem::Fragment { counter: 17, .. } => break,
            LiveItem::Rejected { kind: RejectKind::TooManyConnections, .. } => drop(front_end),
            other => panic!("{other:?}"),
        }
        assert!(Instant::now() < deadline, "no place becomes free");
    }
}

/// Silent connections, however many, take no place of a front end, and none of those that have sent something leaves.
#[test]
fn silent_connections_take_no_place_of_a_front_end() {
    let live = Listening::start(&tcp(64), 100);
    let connect = || TcpStream::connect(live.address()).unwrap();
    let mut known = connect();
    known.write_all(&encoded(&frame(0, b""))).unwrap();
    assert_eq!(live.next(), fragment(0, b""));
    let silent: Vec<_> = (0..40).map(|_| connect()).collect();
    let mut late = connect();
    late.write_all(&encoded(&frame(1, b""))).unwrap();
    let next = || loop {
        match live.next() {
            LiveItem::Rejected { kind: RejectKind::TooManyConnections, .. } => {}
            other => return other,
        }
    };
    assert_eq!(next(), fragment(1, b""));
    known.write_all(&encoded(&frame(2, b""))).unwrap();
    assert_eq!(next(), fragment(2, b""));
    drop(silent);
}

#[test]
fn dropping_a_source_ends_its_threads_even_when_they_wait() {
    let live = Listening::start(&tcp(64), 8 << 20);
    let address = live.address();
    let mut front_end = TcpStream::connect(&address).unwrap();
    // More than the queue holds, read at once: the reader waits for room.
    let frames: Vec<u8> = (1..=100).flat_map(|counter| encoded(&frame(counter, b"x"))).collect();
    front_end.write_all(&frames).unwrap();
    assert_eq!(live.next(), fragment(1, b"x"));
    let _silent = TcpStream::connect(&address).unwrap();
    drop(live);
    let read = front_end.read(&mut [0; 1]);
    assert!(!matches!(read, Ok(1..)), "the connection is closed, by an end of stream or a reset: {read:?}");
}

#[test]
fn an_unusable_address_is_an_error() {
    let start = |spec: &LiveSpec| LiveSource::start(spec, &options(Path::new(""), 0), Arc::new(|| ())).err().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let error = start(&live(FrontEndLink::Tcp(listen.clone()), 8)).to_string();
    assert!(error.starts_with(&format!("cannot listen on {listen:?}: ")), "{error}");
    for link in [FrontEndLink::Udp, FrontEndLink::TcpClient] {
        assert!(start(&live(link("nonsense".into()), 8)).to_string().contains("nonsense"));
    }
    assert_eq!(start(&tcp(0)).to_string(), "counter_bits is 0, but must be 1 to 64");
    assert_eq!(start(&tcp(65)).to_string(), "counter_bits is 65, but must be 1 to 64");
}
