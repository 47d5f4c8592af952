//! Connections over a network that loses, marks, trims and reorders: every byte arrives once, and the sender learns it.

use evb_connection::{
    CreditPacer, Dcqcn, Next, RdmaConfig, RdmaControl, Receiver, Recovery, Reply, Segment, Sender, TcpConfig,
    TcpControl, Transport, UltraEthernetConfig, UltraEthernetControl,
};
use evb_core::{Bandwidth, ByteCount, Span, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

enum OnTheWay {
    Segment(Segment, bool),
    Header(Segment),
    Reply(Reply),
}

/// The time that a packet takes on the link of the receiver.
const PACKET: Span = Span::from_micros(8);

/// A network that decides the fate of each packet by a list of draws, which it repeats.
struct World {
    /// It cuts some segments to their headers.
    trims: bool,
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
        let what = match what {
            OnTheWay::Segment(segment, _) if self.trims && draw < 70 => OnTheWay::Header(segment),
            what => what,
        };
        let at = Time(now.0 + Span::from_micros(10 + u64::from(draw & 7)).0);
        self.way.insert((at, self.drawn), what);
    }
}

fn run(transport: &Transport, messages: &[u32], draws: Vec<u8>) {
    let mut sender = Sender::new(transport, 1000, 40, Bandwidth(1_000_000_000));
    let mut receiver = Receiver::new(transport);
    let total: u64 = messages.iter().map(|&bytes| u64::from(bytes)).sum();
    messages.iter().for_each(|&bytes| sender.write(bytes.into()));
    let trims = matches!(transport, Transport::UltraEthernet(_));
    let mut world = World { trims, draws, drawn: 0, way: BTreeMap::new() };
    let mut credit = CreditPacer::default();
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
        if credit.deadline().is_none() && receiver.missing_credit() > 0 {
            credit.add(());
        }
        let grant_at = credit.deadline().map(|at| at.max(now));
        let times = [send_at, on_the_way, sender.deadline(), receiver.deadline(), grant_at];
        let Some(next) = times.into_iter().flatten().min() else { break };
        assert!(next >= now, "time goes on");
        now = next;
        if sender.deadline().is_some_and(|at| at <= now) {
            sender.handle_deadline(now);
        }
        if receiver.deadline().is_some_and(|at| at <= now) {
            receiver.handle_deadline().into_iter().for_each(|reply| world.carry(now, OnTheWay::Reply(reply)));
        }
        if credit.next(now).is_some() {
            world.carry(now, OnTheWay::Reply(receiver.grant(now, 1000)));
            credit.wait(now, PACKET);
        }
        while let Some(entry) = world.way.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                OnTheWay::Segment(segment, is_marked) => {
                    let received = receiver.receive(now, segment, is_marked);
                    arrived += u64::from(received.new_bytes);
                    received.replies.into_iter().flatten().for_each(|one| world.carry(now, OnTheWay::Reply(one)));
                }
                OnTheWay::Header(segment) => {
                    let reply = receiver.receive_trimmed(segment);
                    world.carry(now, OnTheWay::Reply(reply));
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
            interface_queue: ByteCount(0),
        })
    };
    let rdma = |recovery, control| {
        let (window, timeout) = (ByteCount(16_000), Span::from_micros(200));
        Transport::Rdma(RdmaConfig { recovery, window, timeout, ack_every: 4, control })
    };
    let dcqcn = RdmaControl::Dcqcn(Dcqcn::default());
    let ultra_ethernet = |control, ack_every| {
        Transport::UltraEthernet(UltraEthernetConfig {
            control,
            round_trip: Span::from_micros(20),
            window: None,
            paths: 16,
            steering: true,
            timeout: Span::from_micros(200),
            ack_every,
        })
    };
    let nscc = UltraEthernetControl::Nscc { target: Span::from_micros(15) };
    vec![
        tcp(TcpControl::Reno, false),
        tcp(TcpControl::Reno, true),
        tcp(TcpControl::Cubic, true),
        tcp(TcpControl::Dctcp, true),
        rdma(Recovery::GoBackN, RdmaControl::None),
        rdma(Recovery::Selective, RdmaControl::None),
        rdma(Recovery::GoBackN, dcqcn),
        rdma(Recovery::Selective, dcqcn),
        ultra_ethernet(nscc, 1),
        ultra_ethernet(nscc, 4),
        ultra_ethernet(UltraEthernetControl::Rccc, 1),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn every_byte_arrives_once_and_in_order(
        messages in prop::collection::vec(1_u32..9000, 1..30),
        draws in prop::collection::vec(any::<u8>(), 97..98),
        which in 0_usize..11,
    ) {
        run(&transports()[which], &messages, draws);
    }
}
