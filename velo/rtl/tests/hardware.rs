//! The hardware as a message layer and as a transport. Where it cannot be simulated, the tests are skipped with a
//! message.

use evb_core::NodeId;
use evb_transport::{
    HEAD_BYTES, MessageLayer, OverLayer, Refused, Transport,
    conformance::{Subject, run_all_but},
};
use evb_velo::registers::Control;
use evb_velo_rtl::{CYCLE, Pace, RtlError, RtlLayer, RtlOptions, cluster};
use std::thread;

/// Longest body: that of the longest messages of the suite that every transport takes. Every byte costs cycles.
const MAX_BODY: usize = 4096;

/// Polls after which nothing more comes.
const MOST_POLLS: u32 = 1_000_000;

/// A cluster; `None` where no tool can build it.
fn nodes(count: usize, options: &RtlOptions) -> Option<Vec<RtlLayer>> {
    match cluster(count, options) {
        Ok(nodes) => Some(nodes),
        Err(error @ RtlError::NoTool { .. }) => {
            evb_os::tools::skip_because(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn free() -> RtlOptions {
    RtlOptions { pace: Pace::Free, ..RtlOptions::default() }
}

/// Takes `count` messages.
fn receive(layer: &mut RtlLayer, count: usize) -> Vec<(NodeId, Vec<u8>)> {
    let mut messages = Vec::new();
    for poll in 0.. {
        if messages.len() == count {
            break;
        }
        assert!(poll < MOST_POLLS, "{} of {count} messages came", messages.len());
        layer.receive(count - messages.len(), &mut |from, bytes| messages.push((from, bytes.to_vec())));
    }
    messages
}

/// The suite drives several nodes from one thread, which cannot be in lockstep with itself. The wide link does the same in
/// fewer cycles, and 500 small messages must find room.
#[test]
fn the_transport_over_the_hardware_conforms() {
    let options = RtlOptions { link: 96, queue_words: 30_000, max_bytes: MAX_BODY + HEAD_BYTES, ..free() };
    if nodes(2, &options).is_none() {
        return;
    }
    let connect = |count| {
        let layers = nodes(count, &options).expect("the tools are there").into_iter();
        layers.map(|layer| Box::new(OverLayer::new(layer)) as Box<dyn Transport>).collect()
    };
    // A thread that waits makes the time of the hardware pass, which is work.
    run_all_but(&Subject { connect: &connect, max_body: MAX_BODY }, &["a wait leaves the core to others"]);
}

/// Cycles of single round trips, by two threads in lockstep.
fn round_trips(length: usize) -> Option<Vec<u64>> {
    let [mut first, mut second] = <[_; 2]>::try_from(nodes(2, &RtlOptions::default())?).expect("two nodes");
    let echo = thread::spawn(move || {
        for _ in 0..20 {
            let (from, bytes) = receive(&mut second, 1).remove(0);
            second.send(from, &bytes).expect("nothing waits");
        }
    });
    let time = first.virtual_time().expect("it is simulated");
    let mut trip = |number: u8| {
        let start = time.now();
        first.send(NodeId(1), &vec![number; length]).expect("nothing waits");
        assert_eq!(receive(&mut first, 1), [(NodeId(1), vec![number; length])]);
        time.now().since(start).0 / CYCLE.0
    };
    let trips = (0..20).map(&mut trip).collect();
    echo.join().expect("the other node answers");
    Some(trips)
}

/// Frames of a link follow each other, so a round trip may have to wait for the next one, and it never has to wait for more.
#[test]
fn round_trips_take_the_same_cycles_each_time() {
    let (Some(short), Some(again), Some(long)) = (round_trips(8), round_trips(8), round_trips(64)) else { return };
    assert_eq!(short, again);
    assert!(short.iter().all(|cycles| (30..200).contains(cycles)), "{short:?}");
    // 64 B are seven words more than 8 B, six cycles each, there and back.
    let seven_words = 2 * 7 * 6;
    assert!(long[19].abs_diff(short[19] + seven_words) < 12, "{long:?} and {short:?}");
}

#[test]
fn the_unit_counts_what_it_moves() {
    let Some(mut layers) = nodes(3, &free()) else { return };
    for length in [1, 64, 65, 200] {
        layers[0].send(NodeId(2), &vec![9; length]).expect("room");
    }
    let lengths: Vec<_> = receive(&mut layers[2], 4).iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(lengths, [1, 64, 65, 200]);
    let packets = 1 + 1 + 2 + 4;
    assert_eq!(layers[0].register(Control::Sent), packets);
    assert_eq!(layers[2].register(Control::Received), packets);
    assert_eq!(layers[1].register(Control::Node), 1);
    for register in [Control::BadStores, Control::FaultNode, Control::FaultClosed, Control::FaultData] {
        assert!(layers.iter_mut().all(|layer| layer.register(register) == 0), "{register:?}");
    }
    for register in [Control::LinkErrors, Control::LinkRepeats] {
        assert!(layers.iter_mut().all(|layer| layer.register(register) == 0), "{register:?}");
    }
}

/// A full mailbox stops its senders, and all that is queued behind. When its node is gone, the way is free.
#[test]
fn a_full_mailbox_stops_its_senders_until_its_node_is_gone() {
    let Some(mut layers) = nodes(3, &RtlOptions { pages: 1, ..free() }) else { return };
    let mut sent = 0;
    // Far more polls than cycles for one message.
    let mut refused = 0;
    while refused < 2000 {
        match layers[0].send(NodeId(1), &[3; 64]) {
            Ok(()) => (sent, refused) = (sent + 1, 0),
            Err(Refused::Full) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!((32..64).contains(&sent), "{sent} messages, of which 32 are in the mailbox");
    drop(layers.remove(1));
    let is_sent = (0..20_000).any(|_| layers[0].send(NodeId(2), &[4]).is_ok());
    assert!(is_sent, "what is for the node that has left is in the way");
    assert_eq!(receive(&mut layers[1], 1), [(NodeId(0), vec![4])]);
}
