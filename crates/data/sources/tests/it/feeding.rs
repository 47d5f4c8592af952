//! Feeds play front ends to live sources.

use crate::{
    live::{Listening, tcp, udp},
    support::{fed_file, options},
};
use evb_core::{ByteCount, EventId, Frequency};
use evb_sources::{
    FeedError, FeedOptions, FeedProgress, FeedProtocol, FrameParser, LiveItem, Source, SourceError, SourceSpec, feed,
    payload,
};
use std::{
    io::Read as _,
    net::{TcpListener, TcpStream, UdpSocket},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

static GO_ON: AtomicBool = AtomicBool::new(false);

fn feeding(to: String, protocol: FeedProtocol) -> FeedOptions<'static> {
    FeedOptions {
        to,
        protocol,
        unit: 3,
        rate: None,
        events: None,
        counter_bits: 12,
        first_counter: 1,
        marked: None,
        connect_timeout: Duration::from_secs(30),
        stop: &GO_ON,
    }
}

fn generated(size: u64) -> Source {
    Source::open(&SourceSpec::Fixed { size: ByteCount(size) }, &options(Path::new(""), 3)).unwrap()
}

#[test]
fn tcp_delivers_every_fragment_with_its_counter_wrapping() {
    let live = Listening::start(&tcp(12), 4096);
    let feed_options = FeedOptions { events: Some(10_000), ..feeding(live.address(), FeedProtocol::Tcp) };
    let feeder = std::thread::spawn(move || feed(generated(500), &feed_options, |_| ()).unwrap());
    let (fragments, rejected) = live.run();
    assert!(rejected.is_empty());
    assert_eq!(fragments.len(), 10_000);
    for (item, event) in fragments.iter().zip(1..) {
        let LiveItem::Fragment { counter, good: true, resynchronised: false, mark: None, clock: None, bytes } = item
        else {
            panic!("{item:?}");
        };
        assert_eq!(*counter, event % 4096);
        assert!(payload::check(bytes, 11, EventId(event), 3));
    }
    let sent = FeedProgress { events: 10_000, fragments: 10_000, bytes: 5_000_000, ..FeedProgress::default() };
    assert_eq!(feeder.join().unwrap(), sent);
}

#[test]
fn the_counter_is_cut_before_it_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    let feed_options = FeedOptions { events: Some(5), counter_bits: 2, ..feeding(to, FeedProtocol::Tcp) };
    let feeder = std::thread::spawn(move || feed(generated(16), &feed_options, |_| ()).unwrap());
    let mut bytes = Vec::new();
    listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
    feeder.join().unwrap();
    let mut parser = FrameParser::new(16);
    parser.push(&bytes);
    let frames = std::iter::from_fn(|| parser.pop().unwrap());
    let seen: Vec<_> = frames.map(|frame| (frame.source, frame.counter, frame.end_of_run)).collect();
    let event = |counter| (3, counter, false);
    assert_eq!(seen, [event(1), event(2), event(3), event(0), event(1), (3, 1, true)]);
}

#[test]
fn recorded_fragments_are_delivered_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = fed_file([1, 2, 4, 5]);
    let last = file.len() - 6;
    file[last] ^= 1;
    std::fs::write(folder.path().join("fed.raw"), &file).unwrap();
    let spec = SourceSpec::CmsFed { file: "fed.raw".into(), source_id: None, refuse_damaged: false };
    let source = Source::open(&spec, &options(folder.path(), 3)).unwrap();
    let live = Listening::start(&tcp(12), 4096);
    let sent = feed(source, &feeding(live.address(), FeedProtocol::Tcp), |_| ()).unwrap();
    assert_eq!((sent.events, sent.fragments, sent.damaged, sent.missing), (5, 4, 1, 1));
    let (fragments, _) = live.run();
    let mut all = Vec::new();
    let seen: Vec<_> = fragments
        .iter()
        .map(|item| match item {
            LiveItem::Fragment { counter, good, bytes, .. } => {
                all.extend_from_slice(bytes);
                (*counter, *good)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(seen, [(1, true), (2, true), (4, true), (5, false)]);
    assert!(all == file);
}

#[test]
fn udp_delivers_datagrams_that_are_read_in_time() {
    let live = Listening::start(&udp(12), 4096);
    let feed_options = FeedOptions {
        events: Some(20),
        rate: Some(Frequency(1_000_000_000)),
        ..feeding(live.address(), FeedProtocol::Udp)
    };
    let sent = feed(generated(100), &feed_options, |_| ()).unwrap();
    assert_eq!(sent.fragments, 20);
    // Twenty small datagrams fit into the socket's own buffer: on one machine none is lost.
    let (fragments, rejected) = live.run();
    assert_eq!((fragments.len(), rejected.len()), (20, 0));
}

#[test]
fn a_rate_is_kept_on_average() {
    let live = Listening::start(&tcp(12), 4096);
    let rate = Some(Frequency(500_000));
    let options = FeedOptions { events: Some(51), rate, ..feeding(live.address(), FeedProtocol::Tcp) };
    let (start, mut reported) = (std::time::Instant::now(), Vec::new());
    feed(generated(10), &options, |progress| reported.push(progress.events)).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(100), "50 intervals of 2 ms");
    assert!(reported.is_sorted() && reported.last() == Some(&51));
}

#[test]
fn a_stop_ends_the_run_properly() {
    let stop = AtomicBool::new(false);
    let live = Listening::start(&tcp(64), 4096);
    std::thread::scope(|scope| {
        let options = FeedOptions { stop: &stop, counter_bits: 64, ..feeding(live.address(), FeedProtocol::Tcp) };
        let feeder = scope.spawn(move || feed(generated(64), &options, |_| ()).unwrap());
        let mut last = 0;
        loop {
            match live.next() {
                LiveItem::Fragment { counter, .. } => {
                    assert_eq!(counter, last + 1);
                    last = counter;
                    stop.store(last >= 100, Ordering::Relaxed);
                }
                LiveItem::EndOfRun { counter, .. } => break assert_eq!(counter, Some(last)),
                rejected => panic!("{rejected:?}"),
            }
        }
        assert_eq!(feeder.join().unwrap().events, last);
    });
}

#[test]
fn a_missing_listener_is_an_error_with_tcp_and_a_loss_with_udp() {
    // The near end of a connection: its port is taken, but has no listener.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let held = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let free = held.local_addr().unwrap().to_string();
    let connect_timeout = Duration::from_millis(100);
    let options = FeedOptions { connect_timeout, events: Some(3), ..feeding(free.clone(), FeedProtocol::Tcp) };
    let error = feed(generated(10), &options, |_| ()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot connect to {free} within 0.1 s: ")), "{error}");
    let options = FeedOptions { protocol: FeedProtocol::Udp, ..options };
    assert_eq!(feed(generated(10), &options, |_| ()).unwrap().fragments, 3);
    let options = FeedOptions { to: "nonsense".into(), ..options };
    let error = feed(generated(10), &options, |_| ()).unwrap_err();
    assert!(matches!(error, FeedError::Address { .. }), "{error}");
}

#[test]
fn a_receiver_that_goes_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = feeding(listener.local_addr().unwrap().to_string(), FeedProtocol::Tcp);
    let feeder = std::thread::spawn(move || feed(generated(1000), &options, |_| ()).unwrap_err());
    drop(listener.accept().unwrap());
    let error = feeder.join().unwrap().to_string();
    assert!(error.starts_with("cannot send to 127.0.0.1:") && error.contains(" fragments: "), "{error}");
}

#[test]
fn a_datagram_has_a_largest_size() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let options =
        FeedOptions { events: Some(1), ..feeding(socket.local_addr().unwrap().to_string(), FeedProtocol::Udp) };
    assert_eq!(feed(generated(65_475), &options, |_| ()).unwrap().fragments, 1);
    let error = feed(generated(65_476), &options, |_| ()).unwrap_err();
    let wanted = "event 1 has a fragment of 65476 bytes, but a UDP datagram carries at most 65475: use TCP";
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn a_live_source_cannot_be_fed() {
    let live = Source::open(&SourceSpec::Live(tcp(8).into()), &options(Path::new(""), 0)).unwrap();
    let error = feed(live, &feeding("127.0.0.1:1".into(), FeedProtocol::Tcp), |_| ()).unwrap_err();
    assert!(matches!(error, FeedError::Source(SourceError::Live)));
}
