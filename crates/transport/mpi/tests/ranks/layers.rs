//! The message layer, over three ranks.

use evb_core::{NodeId, NodeRange};
use evb_transport::{MessageLayer, Refused};
use evb_transport_mpi::{Layer, Mpi, MpiOptions};
use std::time::{Duration, Instant};

const MAX_BYTES: usize = 300_000;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(mpi: &Mpi) {
    let mut layers = mpi.layers(&[0, 1, 2], &MpiOptions { max_body: MAX_BYTES }).expect("three ranks");
    let layer = &mut layers[0];
    assert_eq!((layer.local(), layer.max_bytes()), (NodeId(mpi.rank() as u16), MAX_BYTES));
    sizes(layer);
    full(layer);
    broadcasts(layer);
    let other_thread =
        std::thread::scope(|scope| scope.spawn(|| layer.flush() && layer.receive(1, &mut |_, _| {}) > 0).join());
    assert!(other_thread.is_err(), "MPI was started for one thread");
    let me = mpi.rank();
    if me == 2 {
        // Node 0 waits for this, and for the end after it.
        until(layer, |layer| layer.send(NodeId(0), &[7]).is_ok());
        until(layer, MessageLayer::flush);
        return;
    }
    if me == 0 {
        assert_eq!(receive_one(layer), (NodeId(2), vec![7]));
    }
    // The other one may leave, too, but once.
    let mut lost = Vec::new();
    until(layer, |layer| {
        assert_eq!(layer.receive(1, &mut |from, _| panic!("a message from {from}")), 0);
        lost.extend(layer.lost());
        lost.contains(&NodeId(2))
    });
    assert_eq!(lost.iter().filter(|&&node| node == NodeId(2)).count(), 1);
    assert_eq!(layer.send(NodeId(2), &[1]), Err(Refused::Lost));
}

fn until(layer: &mut Layer, mut done: impl FnMut(&mut Layer) -> bool) {
    let start = Instant::now();
    while !done(layer) {
        layer.wait(Duration::from_millis(20));
        assert!(start.elapsed() < PATIENCE, "{:?} waits for good", layer.local());
    }
}

fn receive_one(layer: &mut Layer) -> (NodeId, Vec<u8>) {
    let mut got = None;
    until(layer, |layer| {
        layer.flush();
        layer.receive(1, &mut |from, bytes| got = Some((from, bytes.to_vec()))) == 1
    });
    got.expect("one was taken")
}

fn pattern(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + number * 13 + index / 251) as u8).collect()
}

/// Sends a message of each size around; node 0 sends the next when it is back.
fn sizes(layer: &mut Layer) {
    let near = |size: usize| [size - 1, size, size + 1];
    let sizes: Vec<_> = (1..70).chain([4032, 1 << 16].into_iter().flat_map(near)).chain([MAX_BYTES]).collect();
    let next = NodeId((layer.local().0 + 1) % 3);
    for (number, &size) in sizes.iter().enumerate() {
        let (bytes, send) = (pattern(number, size), |layer: &mut Layer| layer.send(next, &pattern(number, size)));
        if layer.local() == NodeId(0) {
            until(layer, |layer| send(layer).is_ok());
        }
        let (from, got) = receive_one(layer);
        assert!(got == bytes, "{size} bytes from {from}");
        if layer.local() != NodeId(0) {
            until(layer, |layer| send(layer).is_ok());
            until(layer, MessageLayer::flush);
        }
    }
    let limit = MAX_BYTES;
    assert_eq!(layer.send(next, &vec![0; MAX_BYTES + 1]), Err(Refused::TooLarge { limit }));
    assert_eq!(layer.send(layer.local(), &[0]), Err(Refused::Lost));
    assert_eq!(layer.send(NodeId(3), &[0]), Err(Refused::Lost));
}

/// Node 0 sends to node 1 until there is no room; all messages arrive, in order.
fn full(layer: &mut Layer) {
    let number = |number: u32| number.to_le_bytes();
    match layer.local().0 {
        0 => {
            let mut count = 0;
            while layer.send(NodeId(1), &number(count)).is_ok() {
                count += 1;
                assert!(count < 100_000, "the queue is not bounded");
            }
            // Node 1 starts to receive when it hears from node 2.
            until(layer, |layer| layer.send(NodeId(2), &number(count)).is_ok());
            until(layer, |layer| layer.send(NodeId(1), &number(count)).is_ok());
            until(layer, MessageLayer::flush);
        }
        1 => {
            let (mut numbers, mut last) = (0, None);
            while last.is_none_or(|last| numbers <= last) {
                let (from, bytes) = receive_one(layer);
                let got = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
                if from == NodeId(2) {
                    last = Some(got);
                } else {
                    assert_eq!(got, numbers);
                    numbers += 1;
                }
            }
        }
        _ => {
            let (_, count) = receive_one(layer);
            until(layer, |layer| layer.send(NodeId(1), &count).is_ok());
            until(layer, MessageLayer::flush);
        }
    }
}

/// Many broadcasts, more than may be on the way.
fn broadcasts(layer: &mut Layer) {
    const COUNT: usize = 100;
    const LENGTH: usize = 1000;
    let to = NodeRange { first: NodeId(1), count: 2 };
    assert!(layer.has_broadcast());
    layer.expect_broadcasts(NodeId(0), to, LENGTH);
    if layer.local() == NodeId(0) {
        assert_eq!(layer.broadcast(to, &[1]), Err(Refused::Lost), "another length");
        assert_eq!(layer.broadcast(NodeId(1).into(), &[1]), Err(Refused::Lost));
        for number in 0..COUNT {
            until(layer, |layer| {
                layer.flush();
                layer.receive(1, &mut |from, _| panic!("a message from {from}"));
                layer.broadcast(to, &pattern(number, LENGTH)).is_ok()
            });
        }
        until(layer, MessageLayer::flush);
    } else {
        for number in 0..COUNT {
            let (from, bytes) = receive_one(layer);
            assert!(from == NodeId(0) && bytes == pattern(number, LENGTH), "broadcast {number}");
        }
    }
}
