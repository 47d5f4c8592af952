//! Speed of the transports: the event builder's own pattern (some nodes send 2 KiB bodies, others receive them) and
//! ping-pong. Bodies are shared, so that the transport is measured and not the memory.

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use evb_core::NodeId;
use evb_transport::{EndpointOptions, HEAD_BYTES, Message, Received, SendError, Token, Transport, doorbell::Doorbell};
use evb_transport_shm::in_process;
use evb_transport_tcp::{Tcp, TcpOptions};
use std::{
    hint::black_box,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

const BODY_BYTES: usize = 2048;
const BATCH: usize = 64;
/// Most messages of a sender that its receivers have not confirmed.
const IN_FLIGHT: u64 = 512;

fn bodies(length: usize) -> Vec<Bytes> {
    (0..64).map(|value| Bytes::from(vec![value; length])).collect()
}

/// A node that sends its share to each of several receivers as fast as they take it.
struct Sender {
    node: Box<dyn Transport>,
    bodies: Vec<Bytes>,
    /// Receiver, remaining messages, and unconfirmed messages.
    left: Vec<(NodeId, u64, u64)>,
    sink: Vec<Received>,
}

impl Sender {
    fn new(node: Box<dyn Transport>, receivers: &[NodeId], messages: u64, body: usize) -> Self {
        let left = receivers.iter().map(|&to| (to, messages, 0)).collect();
        Self { node, bodies: bodies(body), left, sink: Vec::new() }
    }

    /// Sends a batch to each receiver; true if anything moved.
    fn step(&mut self) -> bool {
        let mut moved = self.node.receive(BATCH, &mut self.sink) > 0;
        for item in self.sink.drain(..) {
            let Received::Message { from, message } = item else { continue };
            if let Some(entry) = self.left.iter_mut().find(|entry| entry.0 == from) {
                entry.2 -= u64::from(message.head[0]);
            }
        }
        for (to, left, unconfirmed) in &mut self.left {
            let count = (BATCH as u64).min(*left).min(IN_FLIGHT - *unconfirmed);
            for number in 0..count {
                let body = self.bodies[number as usize % self.bodies.len()].clone();
                match self.node.send(*to, Message { head: [1; HEAD_BYTES], body }) {
                    Ok(()) => (*left, *unconfirmed, moved) = (*left - 1, *unconfirmed + 1, true),
                    Err(SendError::Full(_)) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        self.node.flush();
        moved
    }

    fn done(&self) -> bool {
        self.left.iter().all(|&(_, left, unconfirmed)| left == 0 && unconfirmed == 0)
    }
}

/// A node that receives and confirms every [`BATCH`] messages of a sender.
struct Receiver {
    node: Box<dyn Transport>,
    left: u64,
    unconfirmed: Vec<u8>,
    sink: Vec<Received>,
}

impl Receiver {
    fn new(node: Box<dyn Transport>, messages: u64, nodes: usize) -> Self {
        Self { node, left: messages, unconfirmed: vec![0; nodes], sink: Vec::new() }
    }

    fn step(&mut self) -> bool {
        let moved = self.node.receive(4 * BATCH, &mut self.sink) > 0;
        for item in self.sink.drain(..) {
            let Received::Message { from, message } = item else { continue };
            black_box(message.body.first());
            self.left -= 1;
            let count = &mut self.unconfirmed[from.index()];
            *count += 1;
            if usize::from(*count) == BATCH {
                let head = [std::mem::take(count); HEAD_BYTES];
                self.node.send(from, Message { head, body: Bytes::new() }).expect("confirmations are few");
            }
        }
        self.node.flush();
        moved
    }
}

/// `pairs` senders and as many receivers, two threads (in process).
fn in_process_workers(pairs: usize, messages: u64) {
    let bells = [Arc::new(Doorbell::new()), Arc::new(Doorbell::new())];
    let hosts: Vec<_> = (0..2 * pairs).map(|node| Arc::clone(&bells[node % 2])).collect();
    let receivers: Vec<_> = (pairs..2 * pairs).map(|node| NodeId(node as u16)).collect();
    let mut workers: [(Vec<Sender>, Vec<Receiver>); 2] = Default::default();
    for (index, node) in in_process::connect_workers(1024, &hosts).into_iter().enumerate() {
        let (senders, sinks) = &mut workers[index % 2];
        if index < pairs {
            senders.push(Sender::new(Box::new(node), &receivers, messages, BODY_BYTES));
        } else {
            sinks.push(Receiver::new(Box::new(node), messages * pairs as u64, 2 * pairs));
        }
    }
    thread::scope(|scope| {
        for (mut senders, mut sinks) in workers {
            scope.spawn(move || {
                let busy = |senders: &[Sender], sinks: &[Receiver]| {
                    !senders.iter().all(Sender::done) || sinks.iter().any(|sink| sink.left > 0)
                };
                while busy(&senders, &sinks) {
                    let sent = senders.iter_mut().map(Sender::step).filter(|&moved| moved).count();
                    let received = sinks.iter_mut().map(Receiver::step).filter(|&moved| moved).count();
                    if sent + received == 0 {
                        thread::yield_now();
                    }
                }
                (senders, sinks)
            });
        }
    });
}

fn tcp_nodes(count: u16, options: &TcpOptions) -> Vec<Tcp> {
    let nodes: Vec<_> = (0..count).map(|node| Tcp::bind(NodeId(node), options.clone()).unwrap()).collect();
    let addresses: Vec<_> = nodes.iter().map(|node| (node.local(), node.listen_addr())).collect();
    let joining: Vec<_> = nodes
        .into_iter()
        .map(|mut node| {
            let peers: Vec<_> = addresses.iter().copied().filter(|peer| peer.0 != node.local()).collect();
            thread::spawn(move || node.connect(&peers).map(|()| node).unwrap())
        })
        .collect();
    joining.into_iter().map(|node| node.join().unwrap()).collect()
}

/// `pairs` senders and as many receivers, a thread each, as processes would be.
fn tcp_threads(pairs: u16, messages: u64, body: usize, options: &TcpOptions) -> Duration {
    let receivers: Vec<_> = (pairs..2 * pairs).map(NodeId).collect();
    let nodes = tcp_nodes(2 * pairs, options);
    let start = Instant::now();
    let kept: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = nodes
            .into_iter()
            .map(|node| {
                let receivers = &receivers;
                scope.spawn(move || drive_tcp(node, pairs, receivers, messages, body))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let elapsed = start.elapsed();
    drop(kept);
    elapsed
}

fn drive_tcp(node: Tcp, pairs: u16, receivers: &[NodeId], messages: u64, body: usize) -> Box<dyn Transport> {
    let pause = Duration::from_millis(1);
    if node.local().0 < pairs {
        let mut sender = Sender::new(Box::new(node), receivers, messages, body);
        while !sender.done() {
            if !sender.step() {
                sender.node.wait(pause);
            }
        }
        return sender.node;
    }
    let mut receiver = Receiver::new(Box::new(node), messages * u64::from(pairs), 2 * usize::from(pairs));
    while receiver.left > 0 {
        if !receiver.step() {
            receiver.node.wait(pause);
        }
    }
    // The last confirmations must leave.
    while !receiver.node.flush() {}
    receiver.node
}

/// Time of `rounds` round trips between two nodes that poll.
fn ping_pong<T: Transport>(mut nodes: Vec<T>, rounds: u64) -> Duration {
    let (mut there, mut here) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    let ping = Message { head: [0; HEAD_BYTES], body: Bytes::new() };
    let pong = ping.clone();
    let catch = |node: &mut T, sink: &mut Vec<Received>| {
        sink.clear();
        while node.receive(1, sink) == 0 {
            std::hint::spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut sink = Vec::new();
            for _ in 0..rounds {
                catch(&mut there, &mut sink);
                there.send(NodeId(0), pong.clone()).unwrap();
                there.flush();
            }
            there
        });
        let (start, mut sink) = (Instant::now(), Vec::new());
        for _ in 0..rounds {
            here.send(NodeId(1), ping.clone()).unwrap();
            here.flush();
            catch(&mut here, &mut sink);
        }
        start.elapsed()
    })
}

fn benches(criterion: &mut Criterion) {
    let options = |nodes| TcpOptions::new(EndpointOptions::new(nodes, Token::new([1; Token::BYTES])));
    let mut group = criterion.benchmark_group("fragments");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    for pairs in [2, 8] {
        let per_pair = in_batches(800_000 / (pairs * pairs) as u64);
        group.throughput(Throughput::Elements(per_pair * (pairs * pairs) as u64));
        group.bench_function(BenchmarkId::new("in-process", pairs), |bencher| {
            bencher.iter(|| in_process_workers(pairs, per_pair));
        });
    }
    for pairs in [2, 8] {
        let per_pair = in_batches(200_000 / u64::from(pairs * pairs));
        group.throughput(Throughput::Elements(per_pair * u64::from(pairs * pairs)));
        group.bench_function(BenchmarkId::new("tcp", pairs), |bencher| {
            bencher.iter_custom(|rounds| {
                (0..rounds).map(|_| tcp_threads(pairs, per_pair, BODY_BYTES, &options(2 * pairs))).sum()
            });
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("round-trip");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    group.bench_function("in-process", |bencher| {
        bencher.iter_custom(|rounds| ping_pong(in_process::connect(2, 64), rounds))
    });
    group.bench_function("tcp", |bencher| bencher.iter_custom(|rounds| ping_pong(tcp_nodes(2, &options(2)), rounds)));
    group.finish();
    idle_polls(criterion);
}

/// The number rounded to whole batches, since only whole batches are confirmed.
fn in_batches(messages: u64) -> u64 {
    messages.next_multiple_of(BATCH as u64)
}

fn idle_polls(criterion: &mut Criterion) {
    let mut sink = Vec::new();
    let mut group = criterion.benchmark_group("idle-poll");
    let mut nodes = in_process::connect(17, 1024);
    group.bench_function("in-process/17", |bencher| bencher.iter(|| nodes[0].receive(BATCH, &mut sink)));
    let mut nodes = tcp_nodes(17, &TcpOptions::new(EndpointOptions::new(17, Token::new([1; Token::BYTES]))));
    group.bench_function("tcp/17", |bencher| bencher.iter(|| nodes[0].receive(BATCH, &mut sink)));
    group.finish();
}

criterion_group!(transport, benches);
criterion_main!(transport);
