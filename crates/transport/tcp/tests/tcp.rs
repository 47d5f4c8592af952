//! Faults of TCP only: strangers, wrong tokens, cut streams, silent peers, wrong frames.

mod support;

use bytes::Bytes;
use evb_core::NodeId;
use evb_transport::{
    ConnectError, EndpointOptions, HEAD_BYTES, Message, Received, Refusal, SendError, Token, Transport,
    conformance::{PATIENCE, changed},
};
use evb_transport_secure::{Dialer, GREETING_BYTES, Purpose, SEAL_BYTES, dial};
use evb_transport_tcp::{FrameHeader, Tcp, TcpOptions};
use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};
use support::{tcp_nodes, tcp_through};

const TOKEN: Token = Token::new([7; Token::BYTES]);

fn options(nodes: u16) -> TcpOptions {
    TcpOptions::new(changed(EndpointOptions::new(nodes, TOKEN), |endpoint| endpoint.connect_timeout = PATIENCE))
}

fn message(number: u32, length: usize) -> Message {
    Message { head: [number as u8; HEAD_BYTES], body: Bytes::from(vec![(number >> 3) as u8; length]) }
}

/// The connection of a dialer that plays by the rules, with the verdict of the acceptor about it.
fn introduced(
    mut stream: TcpStream,
    from: u16,
    to: u16,
    nodes: u16,
    token: [u8; 32],
) -> std::io::Result<(TcpStream, u16)> {
    let hello: Vec<u8> = [from, to, nodes, 0].iter().flat_map(|field| field.to_le_bytes()).collect();
    let mut session =
        dial(&stream, &Token::new(token), Purpose::Tcp, &hello, PATIENCE).map_err(std::io::Error::other)?;
    // Not a byte more: frames may follow.
    let mut record = [0; 8 + SEAL_BYTES];
    stream.read_exact(&mut record)?;
    let verdict = session.opener.open(&record)?.expect("a whole record");
    Ok((stream, u16::from_le_bytes([verdict[0], verdict[1]])))
}

fn poll_until<T>(node: &mut Tcp, mut found: impl FnMut(&mut Tcp, &mut Vec<Received>) -> Option<T>) -> T {
    let (start, mut sink) = (Instant::now(), Vec::new());
    loop {
        node.flush();
        node.receive(100, &mut sink);
        if let Some(result) = found(node, &mut sink) {
            return result;
        }
        assert!(start.elapsed() < PATIENCE, "no end; received {} items", sink.len());
        node.wait(Duration::from_millis(1));
    }
}

fn loss_reason(node: &mut Tcp, lost: NodeId) -> String {
    poll_until(node, |_, sink| match sink.pop()? {
        Received::Lost { peer, reason } if peer == lost => Some(reason),
        other => panic!("expected a loss, got {other:?}"),
    })
}

/// Node 0 of 2, joined by a peer that the test plays by hand.
fn with_raw_peer(options: TcpOptions) -> (Tcp, TcpStream) {
    let mut node = Tcp::bind(NodeId(0), options).unwrap();
    let address = node.listen_addr();
    let peer = thread::spawn(move || {
        let (stream, verdict) = introduced(TcpStream::connect(address).unwrap(), 1, 0, 2, [7; 32]).unwrap();
        assert_eq!(verdict, 0);
        stream
    });
    node.connect(&[(NodeId(1), "127.0.0.1:1".parse().unwrap())]).unwrap();
    (node, peer.join().unwrap())
}

#[test]
fn a_wrong_token_is_refused_and_counted() {
    let mut node = Tcp::bind(NodeId(0), options(2)).unwrap();
    let mut stranger = Tcp::bind(NodeId(1), TcpOptions::new(EndpointOptions::new(2, Token::new([8; 32])))).unwrap();
    let (address, honest) = (node.listen_addr(), Tcp::bind(NodeId(1), options(2)).unwrap());
    let joining = thread::spawn(move || {
        let refused = stranger.connect(&[(NodeId(0), address)]).unwrap_err();
        let mut honest = honest;
        honest.connect(&[(NodeId(0), address)]).map(|()| (refused, honest)).unwrap()
    });
    node.connect(&[(NodeId(1), address)]).unwrap();
    let (refused, _honest) = joining.join().unwrap();
    assert!(matches!(refused, ConnectError::Refused { peer: NodeId(0), refusal: Refusal::Token, .. }), "{refused}");
    assert_eq!(refused.to_string(), format!("node 0 at {address} refuses this node: the token is not that of its run"));
    assert_eq!(node.rejected(), 1);
}

/// A process that listens at the address of a peer without the token gets one hello that means nothing to it, and is not a peer.
#[test]
fn an_impostor_learns_nothing_and_does_not_join() {
    let impostor = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = impostor.local_addr().unwrap();
    let heard = thread::spawn(move || {
        let (mut stream, _) = impostor.accept().unwrap();
        let mut hello = [0; 56];
        stream.read_exact(&mut hello).unwrap();
        let mut answer = hello;
        answer[7] = 2;
        stream.write_all(&answer).unwrap();
        let mut rest = Vec::new();
        let _reset = stream.read_to_end(&mut rest);
        (hello, rest)
    });
    let mut node = Tcp::bind(NodeId(1), options(2)).unwrap();
    let refused = node.connect(&[(NodeId(0), address)]).unwrap_err();
    assert!(matches!(refused, ConnectError::Refused { refusal: Refusal::Proof, .. }), "{refused}");
    drop(node);
    let (hello, rest) = heard.join().unwrap();
    assert!(rest.is_empty() && !hello.windows(4).any(|part| part == [7; 4]));
}

/// Garbage, nothing at all, half a hello, wrong nodes, and more silent strangers than may wait.
#[test]
fn strangers_neither_stall_nor_crash_a_node() {
    let mut node = Tcp::bind(
        NodeId(0),
        TcpOptions::new(changed(options(2).endpoint, |endpoint| {
            endpoint.handshake_timeout = Duration::from_millis(20)
        })),
    )
    .unwrap();
    let address = node.listen_addr();
    let visitors = thread::spawn(move || {
        let knock = |bytes: &[u8]| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(bytes).unwrap();
            stream
        };
        let mut silent: Vec<_> = (0..100).map(|_| knock(&[])).collect();
        let hello = || Dialer::new(&TOKEN, Purpose::Tcp).unwrap().1.to_vec();
        let foreign = Dialer::new(&Token::new([0; 32]), Purpose::Tcp).unwrap().1.to_vec();
        let talkers: [Vec<u8>; 5] = [
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            vec![0xff; 100_000],
            hello()[..20].to_vec(),
            foreign,
            [hello(), vec![0; 26]].concat(),
        ];
        let count = silent.len() + talkers.len();
        silent.extend(talkers.iter().map(|bytes| {
            // The node may have closed before all of a long text is there.
            let mut stream = TcpStream::connect(address).unwrap();
            let _ = stream.write_all(bytes);
            stream
        }));
        // It may have been pushed out by the many: then it knocks again.
        let introduce = |from, to, nodes| loop {
            if let Ok(found) = introduced(TcpStream::connect(address).unwrap(), from, to, nodes, [7; 32]) {
                return found;
            }
        };
        let others = [(0, 0, 2), (9, 0, 2), (1, 5, 2), (1, 0, 3)];
        assert!(others.into_iter().all(|(from, to, nodes)| introduce(from, to, nodes).1 == 1), "not the wanted node");
        let (peer, verdict) = introduce(1, 0, 2);
        assert_eq!(verdict, 0);
        let count = count + others.len();
        (count, silent, peer)
    });
    node.connect(&[(NodeId(1), address)]).unwrap();
    let (count, _silent, _peer) = visitors.join().unwrap();
    let late = TcpStream::connect(address).unwrap_err();
    assert_eq!(late.kind(), std::io::ErrorKind::ConnectionRefused, "the listener is closed when all are there");
    assert!(node.rejected() >= count as u64, "{} of {count}", node.rejected());
}

#[test]
fn a_missing_peer_and_a_wrong_list_are_named() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let quick =
        TcpOptions::new(changed(options(4).endpoint, |endpoint| endpoint.connect_timeout = Duration::from_millis(100)));
    let mut node = Tcp::bind(NodeId(1), quick).unwrap();
    let address = silent.local_addr().unwrap();
    let error = node.connect(&[(NodeId(0), address), (NodeId(3), address)]).unwrap_err();
    assert_eq!(error.to_string(), "no connection with node 0, node 3 within 100ms");
    for wrong in [1, 4] {
        let error = node.connect(&[(NodeId(wrong), address)]).unwrap_err();
        assert!(matches!(error, ConnectError::Peer(NodeId(found)) if found == wrong));
    }
    let taken = TcpOptions { listen: address, ..options(2) };
    let error = Tcp::bind(NodeId(0), taken).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot listen on {address}: ")), "{error}");
}

#[test]
fn wrong_frames_drop_the_peer_after_its_messages() {
    let header = |body, sequence| {
        let mut bytes = Vec::new();
        FrameHeader::Message { head: [0; HEAD_BYTES], body }.encode(sequence, &mut bytes);
        bytes
    };
    let cases = [
        (header(1001, 1), "it announced a body of 1001 bytes, above the limit of 1000 bytes"),
        (
            vec![0xef, 0xff, 0xff, 0xff, 1, 0, 0, 0],
            "it announced a body of 4294967279 bytes, above the limit of 1000 bytes",
        ),
        (header(0, 7), "it sent frame 7 where frame 1 was due"),
        (header(10, 1), "its connection was closed within a message"),
        (header(10, 1)[..5].to_vec(), "its connection was closed within a message"),
        (vec![], "its connection was closed"),
        (vec![0xfe, 0xff, 0xff, 0xff, 1, 0, 0, 0], "it left"),
    ];
    for (wrong, reason) in cases {
        let (mut node, mut peer) =
            with_raw_peer(TcpOptions::new(changed(options(2).endpoint, |endpoint| endpoint.max_body = 1000)));
        peer.write_all(&[header(0, 0), wrong].concat()).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        let news = poll_until(&mut node, |_, sink| (sink.len() == 2).then(|| std::mem::take(sink)));
        assert!(matches!(news[0], Received::Message { from: NodeId(1), .. }), "{news:?}");
        assert_eq!(news[1], Received::Lost { peer: NodeId(1), reason: reason.into() });
        assert_eq!(node.send(NodeId(1), message(0, 0)), Err(SendError::Lost));
    }
}

/// Data and end come with one event, and one read takes the data only.
#[test]
fn an_end_right_behind_a_message_is_seen() {
    let (mut node, mut peer) = with_raw_peer(options(2));
    assert_eq!(node.receive(10, &mut Vec::new()), 0, "the node has found its socket empty");
    let mut bytes = Vec::new();
    FrameHeader::Message { head: [0; HEAD_BYTES], body: 0 }.encode(0, &mut bytes);
    peer.write_all(&bytes).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let news = poll_until(&mut node, |_, sink| (sink.len() == 2).then(|| std::mem::take(sink)));
    assert_eq!(news[1], Received::Lost { peer: NodeId(1), reason: "its connection was closed".into() });
}

#[test]
fn a_silent_peer_is_given_up() {
    let (mut node, _half_open) = with_raw_peer(TcpOptions::new(changed(options(2).endpoint, |endpoint| {
        endpoint.peer_timeout = Duration::from_millis(100)
    })));
    let reason = loss_reason(&mut node, NodeId(1));
    assert!(reason.starts_with("it was silent for 0."), "{reason}");
}

/// The peer exists but reads nothing: its messages stay queued, and it is given up.
#[test]
fn a_stopped_peer_is_given_up_while_the_queue_is_full() {
    let options =
        TcpOptions::new(changed(options(2).endpoint, |endpoint| endpoint.peer_timeout = Duration::from_millis(200)));
    let (mut node, _stopped) = with_raw_peer(options);
    let reason = poll_until(&mut node, |node, sink| {
        while node.send(NodeId(1), message(1, 10_000)).is_ok() {}
        match sink.pop()? {
            Received::Lost { reason, .. } => Some(reason),
            other => panic!("{other:?}"),
        }
    });
    assert!(reason.starts_with("it was silent for"), "{reason}");
    assert!(node.flush(), "nothing waits for a lost peer");
}

/// The node was away for too long, and learns that it was given up.
#[test]
fn a_node_that_was_given_up_sees_its_connection_close() {
    let mut nodes = tcp_nodes(
        2,
        &TcpOptions::new(changed(options(2).endpoint, |endpoint| endpoint.peer_timeout = Duration::from_millis(100))),
    );
    nodes[0].send(NodeId(1), message(1, 3000)).unwrap();
    nodes[0].flush();
    assert!(loss_reason(&mut nodes[0], NodeId(1)).starts_with("it was silent for"));
    let news = poll_until(&mut nodes[1], |_, sink| (sink.len() == 2).then(|| std::mem::take(sink)));
    assert_eq!(news[0], Received::Message { from: NodeId(0), message: message(1, 3000) });
    assert!(matches!(news[1], Received::Lost { peer: NodeId(0), .. }), "{news:?}");
}

/// Both are polled from one thread, so that a pause of the machine is a pause of both.
#[test]
fn idle_peers_keep_each_other_alive() {
    let timeout = Duration::from_millis(200);
    let mut nodes =
        tcp_nodes(2, &TcpOptions::new(changed(options(2).endpoint, |endpoint| endpoint.peer_timeout = timeout)));
    let (start, mut sink) = (Instant::now(), Vec::new());
    while start.elapsed() < 5 * timeout {
        for node in &mut nodes {
            node.wait(Duration::from_millis(2));
            node.receive(10, &mut sink);
        }
    }
    assert_eq!(sink, [], "heartbeats are not messages, and no peer is lost");
}

#[test]
fn close_waits_until_the_peer_has_everything() {
    let mut nodes = tcp_nodes(2, &options(2));
    let (mut receiver, mut sender) = (nodes.remove(0), nodes.remove(0));
    for number in 0..300 {
        sender.send(NodeId(0), message(number, 8000)).unwrap();
        // What the closing node has not read must not harm what it has sent.
        receiver.send(NodeId(1), message(number, 3000)).unwrap();
    }
    receiver.flush();
    let closing = thread::spawn(move || sender.close(PATIENCE));
    let received = poll_until(&mut receiver, |_, sink| {
        matches!(sink.last(), Some(Received::Lost { .. })).then(|| std::mem::take(sink))
    });
    assert_eq!(received.len(), 301);
    assert_eq!(received[300], Received::Lost { peer: NodeId(1), reason: "it left".into() });
    drop(receiver);
    assert!(closing.join().unwrap(), "all has gone out");
}

/// Copies one direction in pieces of random length.
fn relay_direction(mut from: TcpStream, mut to: TcpStream, mut seed: u64) {
    let mut buffer = vec![0; 6000];
    loop {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let piece = if seed >> 63 == 0 { 1 + (seed >> 40) as usize % 60 } else { 1 + (seed >> 40) as usize % 6000 };
        match from.read(&mut buffer[..piece]) {
            Ok(count) if count > 0 && to.write_all(&buffer[..count]).is_ok() => {}
            _ => return drop(to.shutdown(Shutdown::Write)),
        }
    }
}

fn relay(target: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (near, far) = (listener.accept().unwrap().0, TcpStream::connect(target).unwrap());
        [&near, &far].iter().for_each(|stream| stream.set_nodelay(true).unwrap());
        let (near_again, far_again) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        thread::spawn(move || relay_direction(near, far, 1));
        relay_direction(far_again, near_again, 2);
    });
    address
}

#[test]
fn a_stream_cut_anywhere_gives_the_same_messages() {
    const MESSAGES: u32 = 1500;
    let length = |number: u32| [0, 1, 39, 40, 41, 600, 2048, 70_000][number as usize % 8] + number as usize % 5;
    let mut low = Tcp::bind(NodeId(0), options(2)).unwrap();
    let mut high = Tcp::bind(NodeId(1), options(2)).unwrap();
    let (between, unused) = (relay(low.listen_addr()), high.listen_addr());
    let joining = thread::spawn(move || high.connect(&[(NodeId(0), between)]).map(|()| high).unwrap());
    low.connect(&[(NodeId(1), unused)]).unwrap();
    let mut nodes = [low, joining.join().unwrap()];
    let (start, mut sent, mut received) = (Instant::now(), [0; 2], [0; 2]);
    while received != [MESSAGES; 2] {
        for (index, node) in nodes.iter_mut().enumerate() {
            let other = NodeId(1 - index as u16);
            while sent[index] < MESSAGES && node.send(other, message(sent[index], length(sent[index]))).is_ok() {
                sent[index] += 1;
            }
            node.flush();
            let mut sink = Vec::new();
            node.receive(10, &mut sink);
            for item in sink {
                let expected = message(received[index], length(received[index]));
                assert!(item == Received::Message { from: other, message: expected }, "message {}", received[index]);
                received[index] += 1;
            }
        }
        assert!(start.elapsed() < PATIENCE, "received {received:?} of {MESSAGES}");
    }
}

#[test]
fn seventeen_nodes_reach_each_other() {
    let mut nodes = tcp_nodes(17, &options(17));
    for node in &mut nodes {
        let local = node.local();
        for to in (0..17).map(NodeId).filter(|&to| to != local) {
            node.send(to, message(u32::from(local.0), 2048)).unwrap();
        }
        node.flush();
    }
    for node in &mut nodes {
        let local = node.local();
        let received = poll_until(node, |_, sink| (sink.len() >= 16).then(|| std::mem::take(sink)));
        let mut senders: Vec<_> = received
            .iter()
            .map(|item| match item {
                Received::Message { from, message: found } if *found == message(u32::from(from.0), 2048) => from.0,
                other => panic!("{other:?}"),
            })
            .collect();
        senders.sort_unstable();
        assert_eq!(senders, (0..17).filter(|&node| node != local.0).collect::<Vec<_>>());
        assert_eq!(node.rejected(), 0);
    }
}

/// Bytes in front of the frames of a dialer: its hello, and the record of who it is.
const OPENING_BYTES: usize = GREETING_BYTES + 8 + SEAL_BYTES;

#[test]
fn a_changed_byte_of_an_encrypted_connection_ends_it_wherever_it_is() {
    let encrypted = TcpOptions { encrypt: true, ..options(2) };
    for place in [0, 1, 2, 700, 60_000] {
        let mut seen = 0;
        let change = move |bytes: &mut [u8]| {
            let at = (OPENING_BYTES + place).wrapping_sub(seen);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 0x10;
            }
            seen += bytes.len();
        };
        let [mut first, mut second] = tcp_through(&encrypted, change);
        for number in 0..100 {
            second.send(NodeId(0), message(number, 2000)).unwrap();
        }
        let mut next = 0;
        let reason = poll_until(&mut first, |_, sink| {
            second.flush();
            for received in sink.drain(..) {
                match received {
                    Received::Message { message: got, .. } => {
                        assert_eq!(got, message(next, 2000), "what was opened is intact");
                        next += 1;
                    }
                    Received::Lost { reason, .. } => return Some(reason),
                }
            }
            None
        });
        assert!(reason.contains("a record was changed"), "byte {place}: {reason}");
        assert!(next < 100, "byte {place}");
    }
}

#[test]
fn an_encrypted_connection_shows_nothing_of_its_messages() {
    let encrypted = TcpOptions { encrypt: true, ..options(2) };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let copy = seen.clone();
    let [mut first, mut second] = tcp_through(&encrypted, move |bytes| copy.lock().unwrap().extend_from_slice(bytes));
    let secret = Message { head: [0xa5; HEAD_BYTES], body: Bytes::from_static(b"a peak at 125 GeV, not told yet") };
    second.send(NodeId(0), secret.clone()).unwrap();
    let got = poll_until(&mut first, |_, sink| {
        second.flush();
        sink.pop()
    });
    assert!(matches!(got, Received::Message { message, .. } if message == secret));
    let wire = seen.lock().unwrap();
    assert!(wire.len() > OPENING_BYTES && !wire.windows(8).any(|part| part == &secret.body[..8] || part == [0xa5; 8]));
}

#[test]
fn nodes_that_do_not_agree_on_encryption_refuse_each_other() {
    let mut first = Tcp::bind(NodeId(0), options(2)).unwrap();
    let mut second = Tcp::bind(NodeId(1), TcpOptions { encrypt: true, ..options(2) }).unwrap();
    let address = first.listen_addr();
    let joining = thread::spawn(move || second.connect(&[(NodeId(0), address)]).unwrap_err());
    let waiting = thread::spawn(move || first.connect(&[(NodeId(1), address)]));
    let refused = joining.join().unwrap();
    assert!(matches!(refused, ConnectError::Refused { refusal: Refusal::Encryption, .. }), "{refused}");
    drop(waiting);
}

#[test]
fn an_unknown_congestion_control_is_refused() {
    let options = TcpOptions { congestion_control: Some("nonesuch".to_owned()), ..options(2) };
    let error = Tcp::bind(NodeId(0), options).expect_err("there is none");
    assert!(error.to_string().starts_with("cannot use the congestion control `nonesuch`: "), "{error}");
}
