use super::*;
use bytes::Bytes;

/// Nodes 0 and 1 of one worker, and node 2 of another.
fn three(capacity: usize) -> [InProcess; 3] {
    let [one, other] = [(); 2].map(|()| Arc::new(Doorbell::new()));
    connect_workers(capacity, &[one.clone(), one, other]).try_into().expect("three nodes")
}

fn message(number: u8) -> Message {
    Message { head: [number; evb_transport::HEAD_BYTES], body: Bytes::new() }
}

/// All that arrives at a node, one at a time: the sender, and the number of the message or `None` for its end.
fn arrivals(node: &mut InProcess) -> Vec<(u16, Option<u8>)> {
    let mut received = Vec::new();
    while node.receive(1, &mut received) > 0 {}
    let text = |received| match received {
        Received::Message { from, message } => (from.0, Some(message.head[0])),
        Received::Lost { peer, .. } => (peer.0, None),
    };
    received.into_iter().map(text).collect()
}

#[test]
fn the_end_of_a_node_comes_behind_its_messages_and_leaves_the_others_of_its_worker() {
    let [mut zero, mut one, mut two] = three(8);
    (1..=3).for_each(|number| zero.send(NodeId(2), message(number)).expect("there is room"));
    drop(zero);
    one.send(NodeId(2), message(4)).expect("there is room");
    one.flush();
    assert_eq!(arrivals(&mut two), [(0, Some(1)), (0, Some(2)), (0, Some(3)), (1, Some(4)), (0, None)]);
    assert_eq!(arrivals(&mut one), [(0, None)], "also within the worker");
    assert_eq!(two.send(NodeId(0), message(5)), Err(SendError::Lost));
    one.send(NodeId(2), message(6)).expect("it has not left");
    drop(one);
    assert_eq!(arrivals(&mut two), [(1, Some(6)), (1, None)]);
    assert!(!two.is_ready(), "nothing more comes");
}

#[test]
fn the_nodes_of_a_worker_share_a_queue_and_all_hear_of_room() {
    let [mut zero, mut one, mut two] = three(2);
    assert!((1..=2).all(|number| zero.send(NodeId(2), message(number)).is_ok()));
    for node in [&mut zero, &mut one] {
        assert!(matches!(node.send(NodeId(2), message(3)), Err(SendError::Full(_))));
        assert!(!node.is_ready());
    }
    assert_eq!(arrivals(&mut two), [(0, Some(1)), (0, Some(2))]);
    assert!(zero.is_ready() && one.is_ready(), "there is room");
    one.send(NodeId(2), message(4)).expect("there is room");
    zero.send(NodeId(2), message(5)).expect("there is room");
    zero.flush();
    assert_eq!(arrivals(&mut two), [(1, Some(4)), (0, Some(5))]);
    assert!(one.send(NodeId(0), message(6)).is_ok(), "a queue to another node is another queue");
}
