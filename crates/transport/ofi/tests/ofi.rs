//! Faults of libfabric endpoints only: wrong tokens and limits, strangers, wrong addresses, missing providers,
//! silent peers, and peers that go while much is on the way.

mod support;

use bytes::Bytes;
use evb_core::NodeId;
use evb_os::tools::skip_because;
use evb_transport::{
    Connect, ConnectError, HEAD_BYTES, Message, Received, Refusal, SendError, Token, Transport, conformance::PATIENCE,
};
use evb_transport_ofi::{Ofi, OfiError, OfiLayer, OfiOptions, providers};
use std::{
    thread,
    time::{Duration, Instant},
};
use support::{PROVIDERS, joined_nodes, open, options, there_is, with};

fn with_each(case: impl Fn(&OfiOptions)) {
    for provider in PROVIDERS.into_iter().filter(|provider| there_is(provider)) {
        println!("{provider}");
        case(&options(provider));
    }
}

fn message(number: u32, length: usize) -> Message {
    Message { head: [number as u8; HEAD_BYTES], body: Bytes::from(vec![(number >> 3) as u8; length]) }
}

fn poll_until<T>(node: &mut Ofi, mut found: impl FnMut(&mut Ofi, &mut Vec<Received>) -> Option<T>) -> T {
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

/// Joins node 0 and a node with other options; returns the error of each.
fn joined_with(
    mut node: Ofi,
    mut other: impl Connect + Send + 'static,
) -> (Result<(), ConnectError>, Result<(), String>, u64) {
    let (here, there) = (Connect::address(&node), other.address());
    let joining = thread::spawn(move || other.connect(&[(NodeId(0), here)]).map_err(|error| error.to_string()));
    let result = node.connect(&[(NodeId(1), there)]);
    (result, joining.join().expect("joining does not fail"), node.rejected())
}

#[test]
fn a_wrong_token_is_refused_and_counted() {
    with_each(|options| {
        let wrong = with(options, |endpoint| endpoint.token = Token::new([8; Token::BYTES]));
        let node = Ofi::open(NodeId(0), options.clone()).unwrap();
        let (mine, theirs, rejected) = joined_with(node, Ofi::open(NodeId(1), wrong).unwrap());
        let is_refused = |text: &str| text.ends_with("refuses this node: the token is not that of its run");
        let mine = mine.map_err(|error| error.to_string());
        // The node that refuses first leaves, and the other may be refused, or find it gone.
        let (mine, theirs) = (mine.unwrap_err(), theirs.unwrap_err());
        assert!(is_refused(&mine) || is_refused(&theirs), "{mine}, {theirs}");
        assert!(rejected > 0 || is_refused(&mine), "{mine}, {theirs}");
    });
}

#[test]
fn a_layer_and_a_transport_do_not_join() {
    with_each(|options| {
        let short = with(options, |endpoint| endpoint.connect_timeout = Duration::from_secs(5));
        let node = Ofi::open(NodeId(0), short.clone()).unwrap();
        let (mine, theirs, _) = joined_with(node, OfiLayer::open(NodeId(1), short).unwrap());
        assert!(mine.is_err() && theirs.is_err());
        let limits = matches!(mine, Err(ConnectError::Refused { peer: NodeId(1), refusal: Refusal::Limits, .. }));
        assert!(limits || theirs.is_err_and(|text| text.contains("other limits")), "{mine:?}");
    });
}

/// The stranger has the address, but the node does not expect it.
#[test]
fn messages_of_strangers_are_dropped_and_counted() {
    with_each(|options| {
        let options = with(options, |endpoint| {
            endpoint.nodes = 3;
            endpoint.connect_timeout = Duration::from_millis(300);
        });
        let token = Token::new([9; Token::BYTES]);
        let mut nodes = open(2, &options, |node, _| Ofi::open(node, options.clone()));
        let mut stranger = Ofi::open(NodeId(2), with(&options, |endpoint| endpoint.token = token)).unwrap();
        let address = nodes[0].address();
        let trying = thread::spawn(move || stranger.connect(&[(NodeId(0), address)]).unwrap_err());
        let rejected = poll_until(&mut nodes[0], |node, _| (node.rejected() > 0).then(|| node.rejected()));
        assert!(rejected > 0);
        assert!(matches!(trying.join().unwrap(), ConnectError::Timeout { .. } | ConnectError::Lost { .. }));
        assert_eq!(nodes[0].send(NodeId(2), message(0, 1)), Err(SendError::Lost));
    });
}

#[test]
fn a_peer_that_does_not_come_is_named() {
    with_each(|options| {
        let timeout = Duration::from_millis(50);
        let options = with(options, |endpoint| endpoint.connect_timeout = timeout);
        let mut nodes = open(2, &options, Ofi::open);
        let address = nodes[1].address();
        let error = nodes[0].connect(&[(NodeId(1), address)]).unwrap_err();
        assert_eq!(error, ConnectError::Timeout { missing: vec![NodeId(1)], timeout, last_error: None });
    });
}

#[test]
fn wrong_lists_of_peers_are_refused() {
    with_each(|options| {
        let mut node = Ofi::open(NodeId(0), options.clone()).unwrap();
        let address = node.address();
        for peer in [0, 2, 65535] {
            let peer = NodeId(peer);
            assert_eq!(node.connect(&[(peer, address.clone())]), Err(ConnectError::Peer(peer)));
        }
        let (provider, digits) = address.split_once('/').unwrap();
        let cut = format!("{provider}/{}", &digits[..digits.len() - 3]);
        for text in ["", "tcp", "other/00", &format!("{provider}/"), &format!("{provider}/0g"), &cut] {
            let error = node.connect(&[(NodeId(1), text.to_owned())]).unwrap_err();
            assert!(matches!(error, ConnectError::Address { peer: NodeId(1), .. }), "{text}: {error}");
        }
    });
}

#[test]
fn a_missing_provider_is_answered_with_those_that_are_there() {
    let Ok(names) = providers() else { return skip_because("libfabric is not installed") };
    let error = Ofi::open(NodeId(0), options("carrier-pigeon")).map(drop).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, OfiError::Provider { .. }), "{text}");
    assert!(text.contains("carrier-pigeon") && names.iter().all(|name| text.contains(name)), "{text}");
}

#[test]
fn too_many_nodes_for_a_provider_are_refused() {
    with_each(|options| {
        let error = Ofi::open(NodeId(0), with(options, |endpoint| endpoint.nodes = 5000)).map(drop).unwrap_err();
        assert!(matches!(error, OfiError::Option { .. }), "{error}");
    });
}

/// The node exists, but is never polled.
#[test]
fn a_silent_peer_is_lost() {
    with_each(|options| {
        let mut nodes = joined_nodes(2, &with(options, |endpoint| endpoint.peer_timeout = Duration::from_millis(400)));
        let silent = nodes.pop().unwrap();
        let reason = poll_until(&mut nodes[0], |_, sink| match sink.pop()? {
            Received::Lost { peer: NodeId(1), reason } => Some(reason),
            other => panic!("expected a loss, got {other:?}"),
        });
        assert!(reason.contains("silent"), "{reason}");
        drop(silent);
    });
}

/// Idle nodes keep each other alive. Both providers run at once to save time.
#[test]
fn signs_of_life_keep_idle_peers() {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let providers = PROVIDERS.into_iter().filter(|provider| there_is(provider));
    let nodes = providers
        .flat_map(|provider| joined_nodes(2, &with(&options(provider), |endpoint| endpoint.peer_timeout = TIMEOUT)))
        .map(|mut node| {
            thread::spawn(move || {
                let (start, mut sink) = (Instant::now(), Vec::new());
                while start.elapsed() < TIMEOUT + TIMEOUT / 2 {
                    node.wait(TIMEOUT / 20);
                    node.receive(10, &mut sink);
                }
                (node, sink)
            })
        })
        .collect::<Vec<_>>();
    let ends: Vec<_> = nodes.into_iter().map(|node| node.join().expect("a wait does not fail")).collect();
    ends.iter().for_each(|(node, sink)| assert!(sink.is_empty(), "{}: {sink:?}", node.provider()));
}

/// As many messages as there are credits, each alone in its frame, before the sender ends. The receiver's answers go
/// nowhere, and must not affect messages that it has not read yet.
#[test]
fn what_was_flushed_outlives_the_sender() {
    with_each(|options| {
        let mut nodes = joined_nodes(2, options);
        let mut leaving = nodes.pop().unwrap();
        for number in 0..u32::from(options.credits) - 4 {
            leaving.send(NodeId(0), message(number, 3900)).unwrap();
            leaving.flush();
        }
        let start = Instant::now();
        while !leaving.flush() {
            assert!(start.elapsed() < PATIENCE, "no end of a flush");
        }
        assert!(leaving.close(Duration::from_secs(10)));
        let mut next = 0;
        poll_until(&mut nodes[0], |_, sink| {
            for item in sink.drain(..) {
                match item {
                    Received::Message { message: got, .. } => {
                        assert_eq!(got, message(next, 3900), "message {next}");
                        next += 1;
                    }
                    Received::Lost { reason, .. } => {
                        assert_eq!(reason, "it left");
                        return Some(());
                    }
                }
            }
            None
        });
        assert_eq!(next, u32::from(options.credits) - 4);
    });
}

/// Bodies that are not taken are given up with their sender.
#[test]
fn a_peer_that_goes_within_bodies_is_lost_once() {
    with_each(|options| {
        let mut nodes = joined_nodes(2, &with(options, |endpoint| endpoint.peer_timeout = Duration::from_secs(2)));
        let mut leaving = nodes.pop().unwrap();
        (0..3).for_each(|number| leaving.send(NodeId(0), message(number, 300_000)).unwrap());
        leaving.flush();
        drop(leaving);
        let losses = poll_until(&mut nodes[0], |_, sink| {
            let losses = sink.iter().filter(|item| matches!(item, Received::Lost { .. })).count();
            (losses > 0).then_some(losses)
        });
        assert_eq!(losses, 1);
        assert!(nodes[0].receive(10, &mut Vec::new()) == 0 && nodes[0].flush());
    });
}

/// A node stalls in the middle of a long message, here because it is not called. Its peer gives it up, or does not
/// wait for that, and closes its endpoint.
#[test]
fn an_endpoint_ends_in_the_middle_of_a_message() {
    with_each(|options| {
        let options = with(options, |endpoint| endpoint.peer_timeout = Duration::from_millis(400));
        for waits in [true, false] {
            let mut nodes = joined_nodes(2, &options);
            let (mut sender, mut here) = (nodes.remove(1), nodes.remove(0));
            // The buffers of the system do not hold all of it.
            sender.send(NodeId(0), message(1, 48 << 20)).expect("room");
            let mut sink = Vec::new();
            for _ in 0..4 {
                sender.flush();
                here.receive(1, &mut sink);
            }
            if waits {
                poll_until(&mut here, |_, sink| {
                    sink.iter().any(|item| matches!(item, Received::Lost { .. })).then_some(())
                });
            }
        }
    });
}
