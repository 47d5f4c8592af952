//! Destinations, times and amounts of sent messages.

mod support;

use evb_core::{Machine, NodeId, Time};
use evb_patterns::{Pattern, Start, Traffic, TrafficCommand, TrafficEvent, TrafficMessage};
use proptest::prelude::*;
use support::{config, destinations, receiver, saturate, send, sender};

const ROTATION: Pattern = Pattern::Rotation { start: Start::Simultaneous };
const RETARDED: Pattern = Pattern::Rotation { start: Start::Retarded };
/// Messages beyond which offers are refused.
const MOST_WAITING: usize = 65_536;

#[test]
fn a_simultaneous_rotation_begins_with_the_first_receiver_everywhere() {
    let config = config(ROTATION, 4, 3);
    for index in 0..4 {
        assert_eq!(destinations(&config, index, None, 7), [0, 1, 2, 0, 1, 2, 0], "sender {index}");
    }
}

#[test]
fn a_retarded_sender_skips_as_many_messages_as_its_index() {
    let config = config(RETARDED, 4, 3);
    assert_eq!(destinations(&config, 0, None, 4), [0, 1, 2, 0]);
    assert_eq!(destinations(&config, 1, None, 4), [1, 2, 0, 1]);
    assert_eq!(destinations(&config, 2, None, 4), [2, 0, 1, 2]);
    assert_eq!(destinations(&config, 3, None, 4), [0, 1, 2, 0]);
}

#[test]
fn pairs_are_half_the_receivers_apart() {
    let even = config(Pattern::Pairs, 6, 6);
    let odd = config(Pattern::Pairs, 5, 5);
    let first = |config, index| destinations(config, index, None, 3);
    assert_eq!((0..6).map(|index| first(&even, index)[0]).collect::<Vec<_>>(), [3, 4, 5, 0, 1, 2]);
    assert_eq!((0..5).map(|index| first(&odd, index)[0]).collect::<Vec<_>>(), [2, 3, 4, 0, 1]);
    assert_eq!(first(&even, 2), [5; 3]);
}

#[test]
fn an_assigned_sender_stays_with_its_receiver() {
    let config = config(Pattern::Assigned { destinations: vec![2, 2, 0] }, 3, 3);
    for (index, expected) in [(0, 2), (1, 2), (2, 0)] {
        assert_eq!(destinations(&config, index, None, 4), [expected; 4]);
    }
}

/// Chi-square over nine receivers: the 99.9 % point for eight degrees of freedom is 26.1.
#[test]
fn random_receivers_are_all_alike_but_the_senders_own() {
    let config = config(Pattern::Random, 10, 10);
    for index in 0..10 {
        const SENT: usize = 9000;
        let drawn = destinations(&config, index, Some(index), SENT);
        let count = |receiver: u16| drawn.iter().filter(|&&other| other == receiver).count() as f64;
        assert_eq!(count(index), 0.0, "sender {index} sends to its own host");
        let expected = SENT as f64 / 9.0;
        let others = (0..10).filter(|&receiver| receiver != index);
        let chi_square: f64 = others.map(|receiver| (count(receiver) - expected).powi(2) / expected).sum();
        assert!(chi_square < 26.1, "sender {index}: {chi_square}");
    }
}

#[test]
fn senders_draw_independently_and_the_seed_decides() {
    let config = config(Pattern::Random, 2, 64);
    let other_seed = evb_patterns::TrafficConfig { seed: config.seed + 1, ..config.clone() };
    let drawn = destinations(&config, 0, None, 50);
    assert_eq!(drawn, destinations(&config, 0, None, 50));
    assert_ne!(drawn, destinations(&config, 1, None, 50));
    assert_ne!(drawn, destinations(&other_seed, 0, None, 50));
}

#[test]
fn a_random_sender_with_one_receiver_uses_it() {
    assert_eq!(destinations(&config(Pattern::Random, 1, 1), 0, Some(0), 3), [0; 3]);
}

#[test]
fn a_stream_waits_for_every_receiver_and_then_takes_turns() {
    let config = config(Pattern::Stream, 2, 3);
    let mut machine = sender(&config, 0, None);
    machine.handle_command(Time(1), saturate(None));
    for from in 0..3 {
        assert_eq!(machine.poll_transmit(), None, "after {from} starts");
        machine.handle_message(Time(5 + u64::from(from)), receiver(&config, from), TrafficMessage::Start);
    }
    // The first message is as old as the start that it waited for.
    let first = send(&config, &mut machine).expect("all are ready");
    assert_eq!(first, (0, TrafficMessage::Data { number: 1, born: Time(7) }));
    assert_eq!(send(&config, &mut machine).expect("the window is two").0, 1);
}

#[test]
fn receivers_of_a_stream_tell_all_senders_once() {
    let config = config(Pattern::Stream, 4, 2);
    let mut machine = Traffic::new(&config, receiver(&config, 1), None);
    let start = machine.poll_transmit().expect("it begins by itself");
    assert_eq!((start.to, start.message), (config.senders, TrafficMessage::Start));
    assert_eq!(machine.poll_transmit(), None);
}

#[test]
fn receivers_of_other_patterns_are_silent() {
    for pattern in [ROTATION, Pattern::Random, Pattern::Pairs, Pattern::Assigned { destinations: vec![0; 4] }] {
        let config = config(pattern, 4, 2);
        let mut machine = Traffic::new(&config, receiver(&config, 0), None);
        machine.handle_command(Time(0), saturate(None));
        let data = TrafficMessage::Data { number: 1, born: Time(0) };
        machine.handle_message(Time(1), NodeId(1), data);
        assert!(
            machine.poll_transmit().is_none() && machine.poll_event().is_none() && machine.poll_timeout().is_none()
        );
    }
}

#[test]
fn an_offered_message_is_as_old_as_its_offer_and_needs_no_window() {
    let config = config(ROTATION, 1, 2);
    let mut machine = sender(&config, 0, None);
    machine.handle_command(Time(0), TrafficCommand::Start { saturating: false, messages: None });
    assert_eq!(machine.poll_transmit(), None, "nothing was offered");
    (10..15).for_each(|at| machine.handle_command(Time(at), TrafficCommand::Offer { number: 0 }));
    for (number, at) in (1..).zip(10..15) {
        let (to, message) = send(&config, &mut machine).expect("five were offered");
        assert_eq!((u64::from(to), message), ((number - 1) % 2, TrafficMessage::Data { number, born: Time(at) }));
    }
    assert_eq!(machine.poll_transmit(), None);
}

#[test]
fn messages_beyond_the_limit_are_refused_and_reported() {
    let config = config(ROTATION, 1, 1);
    let mut machine = sender(&config, 0, None);
    machine.handle_command(Time(0), TrafficCommand::Start { saturating: false, messages: None });
    let offer = TrafficCommand::Offer { number: 0 };
    // Half of them wait in the machine, half below it.
    (0..MOST_WAITING / 2).for_each(|_| machine.handle_command(Time(1), offer));
    while machine.poll_transmit().is_some() {}
    (0..MOST_WAITING / 2).for_each(|_| machine.handle_command(Time(2), offer));
    assert_eq!(machine.poll_event(), None);
    machine.handle_command(Time(3), offer);
    assert_eq!(machine.poll_event(), Some(TrafficEvent::Refused));
    machine.handle_command(Time(4), TrafficCommand::Sent);
    machine.handle_command(Time(5), offer);
    assert_eq!(machine.poll_event(), None, "one has left the host");
}

#[test]
fn a_stopped_sender_sends_nothing_new() {
    for saturating in [true, false] {
        let config = config(ROTATION, 1, 1);
        let mut machine = sender(&config, 0, None);
        machine.handle_command(Time(0), TrafficCommand::Start { saturating, messages: None });
        machine.handle_command(Time(1), TrafficCommand::Offer { number: 0 });
        machine.handle_command(Time(2), TrafficCommand::Stop);
        assert_eq!(machine.poll_transmit(), None);
    }
}

fn patterns() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        Just(Pattern::Random),
        Just(Pattern::Pairs),
        Just(ROTATION),
        Just(RETARDED),
        Just(Pattern::Assigned { destinations: vec![0; 20] }),
    ]
}

proptest! {
    /// Whatever leaves the host and when, a saturating sender has its window under way, until it has sent all.
    #[test]
    fn the_window_is_kept_full_and_the_messages_are_counted(
        pattern in patterns(),
        senders in 1_u16..20,
        receivers in 1_u16..20,
        window in 1_u32..9,
        limit in 1_u64..40,
        leaving in prop::collection::vec(0_u32..4, 0..60),
    ) {
        let config = evb_patterns::TrafficConfig { window, ..config(pattern, senders, receivers) };
        let mut machine = sender(&config, senders - 1, None);
        machine.handle_command(Time(0), saturate(Some(limit)));
        let (mut sent, mut under_way) = (0, 0);
        for (now, leave) in (0..).zip(leaving) {
            while let Some((to, message)) = send(&config, &mut machine) {
                sent += 1;
                under_way += 1;
                let born = if let TrafficMessage::Data { born, .. } = message { born } else { Time::MAX };
                prop_assert_eq!(message, TrafficMessage::Data { number: sent, born });
                prop_assert!(to < receivers && born.0 <= now);
            }
            prop_assert!(u64::from(under_way) == (limit - sent + u64::from(under_way)).min(u64::from(window)));
            for _ in 0..leave.min(under_way) {
                machine.handle_command(Time(now + 1), TrafficCommand::Sent);
                under_way -= 1;
            }
        }
        prop_assert!(sent <= limit);
    }

    /// Any N turns of a rotation reach every receiver once, and the senders of a retarded one never meet.
    #[test]
    fn rotations_are_fair_and_retarded_senders_never_meet(nodes in 1_u16..30, turns in 1_usize..60) {
        let (together, retarded) = (config(ROTATION, nodes, nodes), config(RETARDED, nodes, nodes));
        let column = |index| destinations(&retarded, index, None, turns);
        let columns: Vec<Vec<u16>> = (0..nodes).map(column).collect();
        for turn in 0..turns {
            let mut met: Vec<u16> = columns.iter().map(|column| column[turn]).collect();
            met.sort_unstable();
            prop_assert_eq!(met, (0..nodes).collect::<Vec<_>>());
        }
        let mut cycle = destinations(&together, nodes - 1, None, nodes.into());
        cycle.sort_unstable();
        prop_assert_eq!(cycle, (0..nodes).collect::<Vec<_>>());
    }

    #[test]
    fn random_never_goes_to_the_own_host(receivers in 2_u16..50, own in 0_u16..50, seed in any::<u64>()) {
        let own = own % receivers;
        let config = evb_patterns::TrafficConfig { seed, ..config(Pattern::Random, 1, receivers) };
        let drawn = destinations(&config, 0, Some(own), 200);
        prop_assert!(drawn.iter().all(|&to| to != own && to < receivers));
    }
}
