//! Connections over a network that loses, marks and reorders: every byte arrives once, and the sender learns it.

use evb_connection::{
    Dcqcn, Next, RdmaConfig, RdmaControl, Receiver, Recovery, Reply, Segment, Sender, TcpConfig, TcpControl, Transport,
};
use evb_core::{Bandwidth, ByteCount, Span, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

enum OnTheWay {
    Segment(Segment, bool),
    Reply(Reply),
}

/// A network that decides the fate of each packet by a list of draws, which it repeats.
struct World {
    draws: Vec<u8>,
    drawn: usize,
    way: BTreeMap<(Time, usize), OnTheWay>,
}

impl World {
    fn draw(&mut self) -> u8 {
        self.drawn += 1;
        // After many packets nothing is lost any more, so that each case ends.
        if self.drawn > 3000 { 255 } else { self.draws[self.drawn % self.draws.len()] }
    }

    /// A packet takes 10 to 17 us, or is lost.
    fn carry(&mut self, now: Time, what: OnTheWay) {
        let draw = self.draw();
        if draw < 30 {
            return;
        }
        let at = Time(now.0 + Span::from_micros(10 + u64::from(draw & 7)).0);
        self.way.insert((at, self.drawn), what);
    }
}

fn run(transport: &Transport, messages: &[u32], draws: Vec<u8>) {
    let mut sender = Sender::new(transport, 1000, 40, Bandwidth(1_000_000_000));
    let mut receiver = Receiver::new(transport);
    let total: u64 = messages.iter().map(|&bytes| u64::from(bytes)).sum();
    messages.iter().for_each(|&bytes| sender.write(bytes.into()));
    let mut world = World { draws, drawn: 0, way: BTreeMap::new() };
    let (mut now, mut arrived) = (Time::ZERO, 0_u64);
    for _ in 0..200_000 {
        let send_at = loop {
            match sender.send(now) {
                Next::Segment(segment) => {
                    let is_marked = world.draw().is_multiple_of(5);
                    world.carry(now, OnTheWay::Segment(segment, is_marked));
                }
                Next::At(at) => break Some(at),
                Next::Wait => break None,
            }
        };
        let on_the_way = world.way.keys().next().map(|(at, _)| *at);
        let times = [send_at, on_the_way, sender.deadline(), receiver.deadline()];
        let Some(next) = times.into_iter().flatten().min() else { break };
        assert!(next >= now, "time goes on");
        now = next;
        if sender.deadline().is_some_and(|at| at <= now) {
            sender.handle_deadline(now);
        }
        if receiver.deadline().is_some_and(|at| at <= now) {
            receiver.handle_deadline().into_iter().for_each(|reply| world.carry(now, OnTheWay::Reply(reply)));
        }
        while let Some(entry) = world.way.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                OnTheWay::Segment(segment, is_marked) => {
                    let received = receiver.receive(now, segment, is_marked);
                    arrived += u64::from(received.new_bytes);
                    received.replies.into_iter().flatten().for_each(|one| world.carry(now, OnTheWay::Reply(one)));
                }
                OnTheWay::Reply(reply) => sender.handle(now, &reply),
            }
        }
        if receiver.expected() == total && sender.deadline().is_none() {
            break;
        }
    }
    assert_eq!((arrived, receiver.expected(), sender.next()), (total, total, total), "{:?}", sender.counts());
    let counts = sender.counts();
    assert!(counts.again <= counts.segments, "{counts:?}");
}

fn transports() -> Vec<Transport> {
    let tcp = |control, tail_probes| {
        Transport::Tcp(TcpConfig {
            control,
            initial_window: 10,
            window: ByteCount(64_000),
            least_timeout: Span::from_millis(1),
            ack_every: 2,
            ack_delay: Span::from_micros(100),
            tail_probes,
        })
    };
    let rdma = |recovery, control| {
        let (window, timeout) = (ByteCount(16_000), Span::from_micros(200));
        Transport::Rdma(RdmaConfig { recovery, window, timeout, ack_every: 4, control })
    };
    let dcqcn = RdmaControl::Dcqcn(Dcqcn::default());
    vec![
        tcp(TcpControl::Reno, false),
        tcp(TcpControl::Reno, true),
        tcp(TcpControl::Cubic, true),
        tcp(TcpControl::Dctcp, true),
        rdma(Recovery::GoBackN, RdmaControl::None),
        rdma(Recovery::Selective, RdmaControl::None),
        rdma(Recovery::GoBackN, dcqcn),
        rdma(Recovery::Selective, dcqcn),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn every_byte_arrives_once_and_in_order(
        messages in prop::collection::vec(1_u32..9000, 1..30),
        draws in prop::collection::vec(any::<u8>(), 97..98),
        which in 0_usize..8,
    ) {
        run(&transports()[which], &messages, draws);
    }
}
