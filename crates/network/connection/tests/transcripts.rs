//! What each end says, step by step, as the specifications have it.

use evb_connection::{
    Dcqcn, Next, RdmaConfig, RdmaControl, Receiver, Recovery, Reply, ReplyKind, Segment, Sender, TcpConfig, TcpControl,
    Transport, UltraEthernetConfig, UltraEthernetControl,
};
use evb_core::{Bandwidth, ByteCount, Span, Time};

const SEGMENT: u32 = 1000;
const LINK: Bandwidth = Bandwidth(1_000_000_000);

fn tcp(control: TcpControl) -> Transport {
    Transport::Tcp(tcp_config(control))
}

fn tcp_config(control: TcpControl) -> TcpConfig {
    TcpConfig {
        control,
        initial_window: 10,
        window: ByteCount(1 << 20),
        least_timeout: Span::from_millis(200),
        ack_every: 2,
        ack_delay: Span::from_millis(40),
        tail_probes: false,
        interface_queue: ByteCount(0),
    }
}

fn rdma(recovery: Recovery, control: RdmaControl) -> Transport {
    Transport::Rdma(RdmaConfig {
        recovery,
        window: ByteCount(8000),
        timeout: Span::from_millis(1),
        ack_every: 1,
        control,
    })
}

fn sender(transport: &Transport, bytes: u64) -> Sender {
    let mut sender = Sender::new(transport, SEGMENT, 0, LINK);
    sender.write(bytes);
    sender
}

fn us(us: u64) -> Time {
    Time(Span::from_micros(us).0)
}

/// The places, in segments, of all that a sender sends now.
fn sent(sender: &mut Sender, now: Time) -> Vec<u64> {
    let next = || match sender.send(now) {
        Next::Segment(segment) => Some(segment.first / u64::from(SEGMENT)),
        Next::At(_) | Next::Wait => None,
    };
    std::iter::from_fn(next).collect()
}

fn segment(place: u64, sent_at: Time) -> Segment {
    Segment { first: place * u64::from(SEGMENT), bytes: SEGMENT, sent_at, is_again: false, path: 0, needed: 0 }
}

/// An acknowledgement of all segments before `expected`, and of those from `block.0` to `block.1` ahead of their turn.
fn ack(expected: u64, block: (u64, u64), is_marked: bool) -> Reply {
    let bytes = u64::from(SEGMENT);
    Reply {
        kind: ReplyKind::Acknowledgement,
        expected: expected * bytes,
        block: block.0 * bytes..block.1 * bytes,
        echo: us(0),
        is_repeated: false,
        is_marked,
        path: 0,
        credit: 0,
    }
}

#[test]
fn slow_start_sends_two_segments_for_each_one_acknowledged() {
    let mut sender = sender(&tcp(TcpControl::Reno), 1_000_000);
    assert_eq!(sent(&mut sender, us(0)), (0..10).collect::<Vec<_>>());
    sender.handle(us(100), &ack(2, (0, 0), false));
    assert_eq!(sent(&mut sender, us(100)), [10, 11, 12, 13]);
    sender.handle(us(101), &ack(4, (0, 0), false));
    assert_eq!(sent(&mut sender, us(101)), [14, 15, 16, 17]);
    assert_eq!(sender.congestion_window(), 14_000);
}

/// RFC 8985: the third segment that arrives behind a missing one starts the recovery, which halves the window.
#[test]
fn three_segments_behind_a_missing_one_start_the_recovery() {
    let mut sender = sender(&tcp(TcpControl::Reno), 1_000_000);
    assert_eq!(sent(&mut sender, us(0)).len(), 10);
    // Segment 0 is lost. Each segment that has arrived lets a new one go.
    for (block, new) in [((1, 2), vec![10]), ((1, 3), vec![11])] {
        sender.handle(us(100), &ack(0, block, false));
        assert_eq!(sent(&mut sender, us(100)), new);
    }
    sender.handle(us(100), &ack(0, (1, 4), false));
    // 12 segments without an acknowledgement: the window is 6. 8 are under way: all but the lost one and three.
    assert_eq!(sender.congestion_window(), 6000);
    assert_eq!(sent(&mut sender, us(100)), []);
    for last in 5..8 {
        sender.handle(us(101), &ack(0, (1, last), false));
    }
    assert_eq!(sent(&mut sender, us(101)), [0], "5 segments are under way");
    // All until 11 were sent before the recovery: with them it ends, and the window grows by a segment in a round trip.
    sender.handle(us(200), &ack(12, (0, 0), false));
    assert_eq!(sent(&mut sender, us(200)), [12, 13, 14, 15, 16, 17]);
    assert_eq!((sender.counts().recoveries, sender.counts().again, sender.counts().timeouts), (1, 1, 0));
}

/// The windows in segments after each of five round trips of 10 ms, in which segments are acknowledged one by one every `spacing`.
/// From the third one on a round trip takes `longer` more.
fn slow_start(control: TcpControl, spacing: u64, longer: u64) -> Vec<u64> {
    let mut sender = sender(&tcp(control), 1_000_000);
    let (mut begins, mut acked) = (0, 0);
    let round = |round: u64| {
        let segments = sent(&mut sender, us(begins)).len() as u64;
        begins += 10_000 + if round >= 2 { longer } else { 0 };
        for segment in 1..=segments {
            let reply = Reply {
                echo: us(begins - 10_000 - if round >= 2 { longer } else { 0 }),
                ..ack(acked + segment, (0, 0), false)
            };
            sender.handle(us(begins + segment * spacing), &reply);
        }
        acked += segments;
        begins += segments * spacing;
        sender.congestion_window() / u64::from(SEGMENT)
    };
    (0..5).map(round).collect()
}

/// Ha and Rhee 2011, as in Linux: slow start ends when acknowledgements follow each other for half of the shortest round trip (and
/// of the millisecond by which bursts spread them), or when the shortest of a round trip is 4 ms longer.
#[test]
fn hystart_ends_slow_start_before_a_loss() {
    assert_eq!(slow_start(TcpControl::Cubic, 200, 0), [20, 40, 80, 160, 320]);
    // 20 segments for 200 us each are a train of 4 ms, and 40 one of 8 ms.
    let trains = slow_start(TcpControl::LinuxCubic, 200, 0);
    assert_eq!(trains[..2], [20, 40]);
    assert!(trains[2] < 80 && trains[4] < 100, "{trains:?}");
    let delays = slow_start(TcpControl::LinuxCubic, 1, 5000);
    assert_eq!(delays[..2], [20, 40]);
    assert!(delays[2] < 80 && delays[4] < 100, "{delays:?}");
    assert_eq!(slow_start(TcpControl::LinuxCubic, 1, 3000), [20, 40, 80, 160, 320], "the delay is within 4 ms");
    assert_eq!(
        slow_start(TcpControl::LinuxCubic, 2500, 0)[..2],
        [20, 40],
        "acknowledgements 2.5 ms apart do not form a train"
    );
}

/// RFC 6937, the example of its section 1: of 20 segments the first 15 are lost. The recovery is to end with 0.7 of the 22 that were sent (RFC 9438), and sends two
/// segments for each one that arrives, where the window alone would send all at once.
#[test]
fn a_recovery_sends_in_proportion_to_what_arrives() {
    let in_recovery = |control: TcpControl| {
        let config = TcpConfig { initial_window: 20, ..tcp_config(control) };
        let mut sender = sender(&Transport::Tcp(config), 1_000_000);
        assert_eq!(sent(&mut sender, us(0)).len(), 20);
        let after = |last: u64| {
            sender.handle(us(100 + last), &ack(0, (15, last), false));
            sent(&mut sender, us(100 + last)).len()
        };
        (16..=20).map(after).collect::<Vec<_>>()
    };
    assert_eq!(in_recovery(TcpControl::Cubic), [1, 1, 11, 1, 1]);
    assert_eq!(in_recovery(TcpControl::LinuxCubic), [1, 1, 2, 2, 2]);
}

/// RFC 6298 and 5681: after a timeout one segment goes, and the timeout is twice as long.
#[test]
fn a_timeout_sends_one_segment_again_and_doubles() {
    let mut sender = sender(&tcp(TcpControl::Reno), 4000);
    assert_eq!(sent(&mut sender, us(0)), [0, 1, 2, 3]);
    let second = Time(Span::from_secs(1).0);
    assert_eq!(sender.deadline(), Some(second), "nothing was measured yet");
    sender.handle_deadline(second);
    assert_eq!(sent(&mut sender, second), [0]);
    assert_eq!(sender.deadline(), Some(Time(3 * second.0)));
    let echo = second;
    sender.handle(Time(second.0 + us(100).0), &Reply { echo, ..ack(1, (0, 0), false) });
    assert_eq!(sent(&mut sender, Time(second.0 + us(100).0)), [1, 2], "slow start");
    assert_eq!(sender.deadline(), Some(Time(second.0 + us(100).0 + us(200_000).0)), "the least timeout");
    assert_eq!(sender.counts().timeouts, 1);
}

#[test]
fn a_receiver_acknowledges_every_second_segment_and_the_last_one_late() {
    let mut receiver = Receiver::new(&tcp(TcpControl::Reno));
    let quiet = receiver.receive(us(10), segment(0, us(1)), false);
    assert_eq!((quiet.new_bytes, quiet.replies), (1000, [None, None]));
    let [None, Some(reply)] = receiver.receive(us(20), segment(1, us(2)), false).replies else { panic!("no reply") };
    assert_eq!(reply, Reply { echo: us(1), ..ack(2, (0, 0), false) });
    receiver.receive(us(30), segment(2, us(3)), false);
    assert_eq!(receiver.deadline(), Some(us(40_030)));
    assert_eq!(receiver.handle_deadline(), Some(Reply { echo: us(3), ..ack(3, (0, 0), false) }));
    assert_eq!(receiver.deadline(), None);
}

/// RFC 5681, 4.2, and RFC 2018: what comes out of its turn is acknowledged at once, with its block.
#[test]
fn a_receiver_tells_what_came_ahead_and_when_a_gap_is_filled() {
    let mut receiver = Receiver::new(&tcp(TcpControl::Reno));
    let mut reply = |place| {
        let [None, reply] = receiver.receive(us(9), segment(place, us(1)), false).replies else {
            panic!("two replies")
        };
        reply.map(|reply| (reply.expected / 1000, reply.block.start / 1000..reply.block.end / 1000))
    };
    assert_eq!(reply(2), Some((0, 2..3)));
    assert_eq!(reply(3), Some((0, 2..4)));
    assert_eq!(reply(5), Some((0, 5..6)));
    assert_eq!(reply(3), Some((0, 2..4)), "a segment that came again");
    assert_eq!(reply(0), Some((1, 0..0)), "a gap is left");
    assert_eq!(reply(1), Some((4, 0..0)));
    assert_eq!(reply(4), Some((6, 0..0)), "the last gap");
    assert_eq!(reply(6), None);
}

/// RFC 8257, figure 1: a change of the mark lets the acknowledgement of what came before go at once.
#[test]
fn a_receiver_of_dctcp_tells_marks_exactly() {
    let mut receiver = Receiver::new(&tcp(TcpControl::Dctcp));
    let mut marks = |place, is_marked| {
        let replies = receiver.receive(us(9), segment(place, us(1)), is_marked).replies;
        replies.map(|reply| reply.map(|reply| (reply.expected / 1000, reply.is_marked)))
    };
    assert_eq!(marks(0, false), [None, None]);
    assert_eq!(marks(1, true), [Some((1, false)), None]);
    assert_eq!(marks(2, true), [None, Some((3, true))]);
    assert_eq!(marks(3, true), [None, None]);
    assert_eq!(marks(4, false), [Some((4, true)), None]);
}

/// RFC 8257, 3.3, with g = 1/16 and an estimate of 1 at the start.
#[test]
fn dctcp_shrinks_once_in_a_window_by_half_its_estimate() {
    let mut sender = sender(&tcp(TcpControl::Dctcp), 1_000_000);
    assert_eq!(sent(&mut sender, us(0)).len(), 10);
    // The first acknowledgement ends the first window of the estimate, unmarked: 15/16.
    sender.handle(us(100), &ack(2, (0, 0), false));
    assert_eq!(sent(&mut sender, us(100)), [10, 11, 12, 13]);
    assert_eq!(sender.congestion_window(), 12_000);
    sender.handle(us(101), &ack(4, (0, 0), true));
    let shrunk = 12_000.0 * (1.0 - 15.0 / 16.0 / 2.0);
    assert_eq!(sender.congestion_window(), shrunk as u64);
    // No further time before all that was under way then has arrived: segments 0 to 13.
    sender.handle(us(102), &ack(12, (0, 0), true));
    assert_eq!(sender.congestion_window(), shrunk as u64);
    assert_eq!(sent(&mut sender, us(102)), [14, 15, 16, 17]);
    // One window of the estimate ended with segment 9, the next one with segment 13; all bytes of both were marked.
    let estimate = [(); 2].iter().fold(15.0 / 16.0, |estimate, ()| 15.0 / 16.0 * estimate + 1.0 / 16.0);
    sender.handle(us(200), &ack(15, (0, 0), true));
    assert_eq!(sender.congestion_window(), (shrunk * (1.0 - estimate / 2.0)) as u64);
}

/// RFC 9438: 0.7 of the window is left, and is full again after K = cbrt(W_max (1 - 0.7) / 0.4) seconds.
#[test]
fn cubic_is_back_at_its_window_after_k() {
    let Transport::Tcp(mut config) = tcp(TcpControl::Cubic) else { unreachable!() };
    (config.initial_window, config.window) = (1000, ByteCount(1 << 30));
    let mut sender = sender(&Transport::Tcp(config), 1 << 40);
    let mut arrived = sent(&mut sender, us(0)).len() as u64;
    assert_eq!(arrived, 1000);
    sender.handle(us(100), &ack(0, (1, 4), false));
    assert_eq!(sender.congestion_window(), 700_000);
    // Round trips of 100 ms, each acknowledged as a whole: the first ends the recovery, at which the time begins.
    let mut windows = Vec::new();
    for round in 1..150 {
        let now = us(100_000 * round);
        arrived += sent(&mut sender, now).iter().filter(|&&place| place >= arrived).count() as u64;
        sender.handle(us(100_000 * (round + 1)), &Reply { echo: now, ..ack(arrived, (0, 0), false) });
        windows.push(sender.congestion_window() as f64 / 1000.0);
    }
    let k = (1000.0_f64 * 0.3 / 0.4).cbrt();
    for tenths in [20, 50, 90, 140] {
        let expected = 0.4 * (f64::from(tenths) / 10.0 - k).powi(3) + 1000.0;
        let window = windows[tenths as usize - 1];
        assert!((window / expected - 1.0).abs() < 0.02, "{window} of {expected} after {tenths} round trips");
    }
}

/// A receiver keeps nothing ahead of its turn, and tells once that a packet is missing.
#[test]
fn go_back_n_sends_all_again_from_the_missing_packet_on() {
    let transport = rdma(Recovery::GoBackN, RdmaControl::None);
    let mut sender = sender(&transport, 20_000);
    let mut receiver = Receiver::new(&transport);
    assert_eq!(sent(&mut sender, us(0)), (0..8).collect::<Vec<_>>(), "the window");
    let mut replies = Vec::new();
    for place in [0, 1, 3, 4, 5] {
        let received = receiver.receive(us(5), segment(place, us(0)), false);
        replies.extend(received.replies.into_iter().flatten());
    }
    let kinds: Vec<_> = replies.iter().map(|reply| (reply.kind, reply.expected / 1000)).collect();
    let acknowledged = ReplyKind::Acknowledgement;
    assert_eq!(kinds, [(acknowledged, 1), (acknowledged, 2), (ReplyKind::OutOfSequence, 2)]);
    replies.iter().for_each(|reply| sender.handle(us(9), reply));
    assert_eq!(sent(&mut sender, us(9)), (2..10).collect::<Vec<_>>());
    // Its answers are lost: it sends all again.
    sender.handle_deadline(us(1009));
    assert_eq!(sent(&mut sender, us(1009)), (2..10).collect::<Vec<_>>());
    assert_eq!((sender.counts().again, sender.counts().timeouts), (6 + 8, 1));
}

#[test]
fn selective_repeat_sends_the_missing_packet_alone() {
    let transport = rdma(Recovery::Selective, RdmaControl::None);
    let mut sender = sender(&transport, 20_000);
    let mut receiver = Receiver::new(&transport);
    assert_eq!(sent(&mut sender, us(0)).len(), 8);
    for place in [0, 1, 3, 4, 6] {
        let received = receiver.receive(us(5), segment(place, us(0)), false);
        received.replies.iter().flatten().for_each(|reply| sender.handle(us(9), reply));
    }
    assert_eq!(sent(&mut sender, us(9)), [2, 5, 8, 9]);
}

/// Packets of RDMA belong to one message; segments of TCP do not.
#[test]
fn packets_of_rdma_end_with_their_message() {
    let sizes = |transport: &Transport| {
        let mut sender = Sender::new(transport, SEGMENT, 0, LINK);
        (0..3).for_each(|_| sender.write(1500));
        let next = || match sender.send(us(0)) {
            Next::Segment(segment) => Some(segment.bytes),
            Next::At(_) | Next::Wait => None,
        };
        std::iter::from_fn(next).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&rdma(Recovery::GoBackN, RdmaControl::None)), [1000, 500, 1000, 500, 1000, 500]);
    assert_eq!(sizes(&tcp(TcpControl::Reno)), [1000, 1000, 1000, 1000, 500]);
}

/// Zhu et al., SIGCOMM 2015, equations 1 to 4: a notice halves the rate, and five steps of recovery win it back.
#[test]
fn dcqcn_halves_its_rate_and_wins_it_back() {
    let transport = rdma(Recovery::GoBackN, RdmaControl::Dcqcn(Dcqcn::default()));
    let mut sender = sender(&transport, 1 << 30);
    assert_eq!(sender.rate(), None, "the full rate");
    sender.handle(us(0), &Reply { kind: ReplyKind::CongestionNotice, ..ack(0, (0, 0), true) });
    assert_eq!(sender.rate(), Some(Bandwidth(500_000_000)));
    // A packet of 1000 B takes 16 us.
    assert!(matches!(sender.send(us(0)), Next::Segment(_)));
    assert_eq!(sender.send(us(0)), Next::At(us(16)));
    for step in 1..=5 {
        assert_eq!(sender.deadline(), Some(us(55 * step)));
        sender.handle_deadline(us(55 * step));
        let rate = 1e9 * (1.0 - 0.5_f64.powi(step as i32 + 1));
        assert_eq!(sender.rate(), Some(Bandwidth(rate as u64)));
    }
    // The estimate has fallen five times: the next notice takes less.
    let (rate, alpha) = (1e9 * (1.0 - 0.5_f64.powi(6)), (255.0_f64 / 256.0).powi(5));
    sender.handle(us(300), &Reply { kind: ReplyKind::CongestionNotice, ..ack(0, (0, 0), true) });
    let expected = rate * (1.0 - alpha / 2.0);
    assert!(sender.rate().is_some_and(|rate| (rate.0 as f64 / expected - 1.0).abs() < 1e-6), "{:?}", sender.rate());
}

#[test]
fn a_receiver_of_dcqcn_sends_one_notice_in_an_interval() {
    let mut receiver = Receiver::new(&rdma(Recovery::GoBackN, RdmaControl::Dcqcn(Dcqcn::default())));
    let mut notices = |place: u64, now| {
        let replies = receiver.receive(us(now), segment(place, us(0)), true).replies;
        replies.iter().flatten().filter(|reply| reply.kind == ReplyKind::CongestionNotice).count()
    };
    assert_eq!([notices(0, 0), notices(1, 10), notices(2, 49), notices(3, 50), notices(4, 60)], [1, 0, 0, 1, 0]);
}

/// A sender with a round trip of 100 us, all of whose segments but the last four have arrived.
fn with_a_tail(tail_probes: bool) -> Sender {
    let Transport::Tcp(config) = tcp(TcpControl::Reno) else { unreachable!() };
    let mut sender = sender(&Transport::Tcp(TcpConfig { tail_probes, ..config }), 10_000);
    assert_eq!(sent(&mut sender, us(0)), (0..10).collect::<Vec<_>>());
    sender.handle(us(100), &ack(6, (0, 0), false));
    assert_eq!(sent(&mut sender, us(100)), []);
    sender
}

/// RFC 8985, 7: after two round trips the last segment goes again, and its block shows what is lost. Without probes the
/// timeout does.
#[test]
fn a_probe_finds_a_lost_tail() {
    assert_eq!(with_a_tail(false).deadline(), Some(us(200_100)));
    let mut sender = with_a_tail(true);
    assert_eq!(sender.deadline(), Some(us(300)));
    sender.handle_deadline(us(300));
    assert_eq!(sent(&mut sender, us(300)), [9], "the last segment");
    assert_eq!(sender.deadline(), Some(us(200_300)), "no second probe");
    sender.handle(us(400), &Reply { echo: us(300), ..ack(6, (9, 10), false) });
    assert_eq!(sent(&mut sender, us(400)), [6, 7], "half of the window of four segments");
    let counts = *sender.counts();
    assert_eq!((counts.probes, counts.recoveries, counts.timeouts, counts.again), (1, 1, 0, 3));
}

/// RFC 8985, 7.4: a probe that replaced the only lost segment counts as a loss, one that came twice does not.
#[test]
fn a_probe_tells_whether_the_last_segment_was_lost() {
    for (is_repeated, recoveries) in [(true, 0), (false, 1)] {
        let mut sender = with_a_tail(true);
        sender.handle_deadline(us(300));
        assert_eq!(sent(&mut sender, us(300)), [9]);
        sender.handle(us(350), &ack(10, (0, 0), false));
        sender.write(1000);
        sender.handle(us(400), &Reply { is_repeated, ..ack(10, (0, 0), false) });
        assert_eq!(sent(&mut sender, us(400)), [10]);
        sender.handle(us(500), &ack(11, (0, 0), false));
        assert_eq!(sender.counts().recoveries, recoveries, "repeated: {is_repeated}");
    }
}

/// RFC 8985, 6: a segment that is sent again and lost again is found by what was sent after it.
#[test]
fn a_segment_that_is_lost_twice_is_found_without_a_timeout() {
    let mut sender = sender(&tcp(TcpControl::Reno), 1_000_000);
    assert_eq!(sent(&mut sender, us(0)).len(), 10);
    sender.handle(us(100), &ack(0, (1, 10), false));
    assert_eq!(sent(&mut sender, us(100)), [0, 10, 11, 12, 13], "half of the window");
    sender.handle(us(200), &ack(0, (1, 14), false));
    assert_eq!(sent(&mut sender, us(200))[0], 0);
    assert_eq!((sender.counts().timeouts, sender.counts().recoveries), (0, 1));
}

/// RFC 8985, 6.2: one segment ahead may have overtaken the missing one. A quarter of a round trip later that is lost.
#[test]
fn a_single_segment_ahead_waits_for_one_that_it_may_have_overtaken() {
    let mut sender = sender(&tcp(TcpControl::Reno), 2000);
    assert_eq!(sent(&mut sender, us(0)), [0, 1]);
    sender.handle(us(100), &ack(0, (1, 2), false));
    assert_eq!((sent(&mut sender, us(100)), sender.deadline()), (vec![], Some(us(125))));
    sender.handle_deadline(us(125));
    assert_eq!(sent(&mut sender, us(125)), [0]);
}

#[test]
fn a_receiver_tells_that_a_segment_came_again() {
    let mut receiver = Receiver::new(&tcp(TcpControl::Reno));
    let mut is_repeated = |place| {
        let [None, reply] = receiver.receive(us(9), segment(place, us(1)), false).replies else {
            panic!("two replies")
        };
        reply.map(|reply| reply.is_repeated)
    };
    assert_eq!([is_repeated(0), is_repeated(1), is_repeated(1)], [None, Some(false), Some(true)]);
    assert_eq!([is_repeated(3), is_repeated(3)], [Some(false), Some(true)]);
}

/// What a receiver throws away, because it has too many gaps already, did not arrive before.
#[test]
fn a_segment_that_is_thrown_away_is_not_called_a_repetition() {
    let mut receiver = Receiver::new(&tcp(TcpControl::Reno));
    let mut receive = |place| receiver.receive(us(9), segment(place, us(1)), false);
    (0..1 << 12).for_each(|gap| assert_eq!(receive(2 * gap + 1).new_bytes, SEGMENT));
    let thrown_away = receive(2 << 12 | 1);
    let [None, Some(reply)] = &thrown_away.replies else { panic!("{thrown_away:?}") };
    assert_eq!((thrown_away.new_bytes, reply.is_repeated), (0, false));
}

/// A connection at rest plans nothing, and its rate is what it would be if time had been followed.
#[test]
fn the_rate_of_a_connection_at_rest_catches_up() {
    let dcqcn = rdma(Recovery::GoBackN, RdmaControl::Dcqcn(Dcqcn::default()));
    let notice = Reply { kind: ReplyKind::CongestionNotice, ..ack(0, (0, 0), true) };
    let (mut resting, mut busy) = (sender(&dcqcn, 1000), sender(&dcqcn, 1_000_000));
    for sender in [&mut resting, &mut busy] {
        sent(sender, us(0));
        sender.handle(us(10), &notice);
    }
    resting.handle(us(11), &ack(1, (0, 0), false));
    assert_eq!(resting.deadline(), None);
    while let Some(deadline) = busy.deadline().filter(|&at| at <= us(400)) {
        busy.handle_deadline(deadline);
    }
    resting.write(1000);
    assert_eq!(sent(&mut resting, us(400)), [1]);
    assert!(resting.rate().is_some_and(|rate| rate < LINK));
    assert_eq!(resting.rate(), busy.rate());
}

/// A connection of Ultra Ethernet: ten segments are in a round trip of 80 us.
fn ultra_ethernet(control: UltraEthernetControl) -> Transport {
    Transport::UltraEthernet(UltraEthernetConfig {
        control,
        round_trip: Span::from_micros(80),
        window: None,
        paths: 4,
        steering: true,
        timeout: Span::from_millis(1),
        ack_every: 1,
    })
}

fn nscc() -> Transport {
    ultra_ethernet(UltraEthernetControl::Nscc { target: Span::from_micros(60) })
}

/// The paths of all that a sender sends now.
fn paths(sender: &mut Sender, now: Time) -> Vec<u16> {
    let next = || match sender.send(now) {
        Next::Segment(segment) => Some(segment.path),
        Next::At(_) | Next::Wait => None,
    };
    std::iter::from_fn(next).collect()
}

/// The answer to the header of a segment that was sent at `echo`.
fn trimmed(place: u64, echo: Time) -> Reply {
    let bytes = u64::from(SEGMENT);
    Reply { kind: ReplyKind::Trimmed, block: place * bytes..(place + 1) * bytes, echo, ..ack(0, (0, 0), false) }
}

/// Bonato et al., arXiv:2404.01630, and Hoefler et al., arXiv:2508.08906: the first window is 1.5 times the bytes of a round
/// trip, a trimmed segment goes again at once, and takes its bytes off the window.
#[test]
fn a_trimmed_segment_is_sent_again_at_once() {
    let mut sender = sender(&nscc(), 1_000_000);
    assert_eq!(sent(&mut sender, us(0)).len(), 15);
    sender.handle(us(80), &trimmed(3, us(0)));
    assert_eq!((sender.congestion_window(), sender.counts().trimmed), (14_000, 1));
    assert_eq!(sent(&mut sender, us(80)), []);
    sender.handle(us(81), &Reply { echo: us(1), ..ack(1, (0, 0), false) });
    assert_eq!(sent(&mut sender, us(81)), [3]);
    // A header that comes late says nothing about the one on its way.
    sender.handle(us(82), &trimmed(3, us(0)));
    assert_eq!(sender.counts().trimmed, 1);
}

/// Hoefler et al., arXiv:2508.08906: a mark without a long delay is a matter of one path. The window stays, the path is left
/// out.
#[test]
fn a_mark_without_a_delay_changes_the_path_and_not_the_window() {
    let mut sender = sender(&nscc(), 1_000_000);
    assert_eq!(paths(&mut sender, us(0))[..6], [0, 1, 2, 3, 0, 1]);
    let window = sender.congestion_window();
    for place in 1..=4 {
        sender.handle(us(80), &Reply { path: 3, ..ack(place, (0, 0), true) });
    }
    assert_eq!(sender.congestion_window(), window);
    assert_eq!(paths(&mut sender, us(80)), [0, 1, 2, 0], "15 segments were sent before, the last on path 2");
}

/// The same: marks with long delays shrink the window, at most by half in a round trip, and delays without marks do not.
#[test]
fn marks_with_long_delays_shrink_the_window_once_in_a_round_trip() {
    let window_after = |is_marked| {
        let mut sender = sender(&nscc(), 1_000_000);
        sent(&mut sender, us(0));
        for place in 1..=14 {
            sender.handle(us(80 + 600), &ack(place, (0, 0), is_marked));
        }
        sender.congestion_window()
    };
    assert!((7500..15_000).contains(&window_after(true)), "{}", window_after(true));
    assert_eq!(window_after(false), 15_000);
}

/// The same: after trimmed segments, and when hardly anything arrived in an interval, the window is what arrived in it.
#[test]
fn the_window_is_reset_to_what_arrived() {
    let mut sender = sender(&nscc(), 1_000_000);
    sent(&mut sender, us(0));
    sender.handle(us(80), &ack(1, (0, 0), false));
    // The interval of a round trip and a target begins.
    for place in 3..13 {
        sender.handle(us(100), &trimmed(place, us(0)));
    }
    sender.handle(us(120), &Reply { echo: us(40), ..ack(2, (0, 0), false) });
    sender.handle(us(221), &trimmed(13, us(0)));
    assert_eq!(sender.congestion_window(), 1000);
}

/// Ultra Ethernet: a timeout is for each segment, and those sent later stay under way.
#[test]
fn a_timeout_is_for_the_segments_sent_so_long_ago() {
    let mut sender = sender(&nscc(), 1_000_000);
    sent(&mut sender, us(0));
    sender.handle(us(80), &ack(4, (0, 0), false));
    assert_eq!(sent(&mut sender, us(80)), [15, 16, 17, 18]);
    let deadline = sender.deadline().expect("segments are under way");
    assert_eq!(deadline, us(1000));
    sender.handle_deadline(deadline);
    assert_eq!(sent(&mut sender, deadline)[..2], [4, 5]);
    assert_eq!(sender.deadline(), Some(us(1080)));
}

/// Handley et al., SIGCOMM 2017, and Olteanu et al., NSDI 2022: a sender sends one window at once, and then what it has credit
/// for. The receiver grants trimmed segments again without being asked.
#[test]
fn a_receiver_grants_what_it_has_seen_headers_of() {
    let rccc = ultra_ethernet(UltraEthernetControl::Rccc);
    let (mut sender, mut receiver) = (sender(&rccc, 20_000), Receiver::new(&rccc));
    let mut segments = std::iter::from_fn(|| match sender.send(us(0)) {
        Next::Segment(segment) => Some(segment),
        Next::At(_) | Next::Wait => None,
    })
    .collect::<Vec<_>>();
    assert_eq!(segments.len(), 15);
    let last = segments.pop().expect("15 segments");
    receiver.receive(us(40), last, false);
    assert_eq!(receiver.missing_credit(), 5000);
    let reply = receiver.receive_trimmed(segments[0]);
    assert_eq!((reply.kind, receiver.missing_credit()), (ReplyKind::Trimmed, 6000));
    sender.handle(us(80), &reply);
    assert_eq!(sent(&mut sender, us(80)), [], "it has no credit yet");
    let grants = [receiver.grant(us(80), 1000), receiver.grant(us(88), 1000)];
    // The first one is lost: the second one has the sum.
    sender.handle(us(120), &grants[1]);
    assert_eq!(sent(&mut sender, us(120)), [0, 15]);
    assert_eq!(receiver.missing_credit(), 4000);
}

/// The same: a sender whose credit was lost asks once more after a timeout.
#[test]
fn a_sender_without_credit_asks_again() {
    let mut sender = sender(&ultra_ethernet(UltraEthernetControl::Rccc), 20_000);
    assert_eq!(sent(&mut sender, us(0)).len(), 15);
    sender.handle(us(80), &ack(15, (0, 0), false));
    assert_eq!(sent(&mut sender, us(80)), []);
    let deadline = sender.deadline().expect("it waits for credit");
    sender.handle_deadline(deadline);
    assert_eq!(sent(&mut sender, deadline), [15]);
}
