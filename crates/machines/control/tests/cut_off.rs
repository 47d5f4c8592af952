//! Nodes that lose each other: run control gives up those that are cut off, and no others.

use evb_control::{Command, Config, Control, Event, Loss, Notice, Order, RunState, Timer};
use evb_core::{NodeId, NodeRange, Span, Stream, Time, stream};
use rand_xoshiro::rand_core::Rng;
use std::collections::BTreeSet;

const EVM: NodeId = NodeId(0);
const READOUTS: NodeRange = NodeRange { first: NodeId(1), count: 8 };
const BUILDERS: NodeRange = NodeRange { first: NodeId(9), count: 6 };
const WINDOW: Span = Span::from_secs(2);

/// The report of a node that it has lost a peer.
type Report = (NodeId, NodeId);

fn config() -> Config {
    Config {
        report_window: WINDOW,
        groups: vec![READOUTS, BUILDERS],
        least: vec![(READOUTS, 1), (BUILDERS, 1)],
        ..Config::new(15)
    }
}

fn nodes() -> impl Iterator<Item = NodeId> {
    (0..15).map(NodeId)
}

/// All reports when these pairs of nodes cannot reach each other.
fn reports(is_cut: impl Fn(NodeId, NodeId) -> bool) -> Vec<Report> {
    let pairs = nodes().flat_map(|by| nodes().map(move |peer| (by, peer)));
    pairs.filter(|(by, peer)| by != peer && (is_cut(*by, *peer) || is_cut(*peer, *by))).collect()
}

/// All reports when the network of these nodes is cut.
fn isolated(cut: &[NodeId]) -> Vec<Report> {
    reports(|one, _| cut.contains(&one))
}

fn shuffle(reports: &mut [Report], random: &mut Stream) {
    for last in (1..reports.len()).rev() {
        reports.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}

/// Run control in a run, with nodes that obey, and what it decides.
struct Run {
    control: Control,
    now: Time,
    lost: Vec<(NodeId, Loss)>,
    /// Run control has reported that no builder unit is left.
    lacks_builders: bool,
    orders: Vec<(NodeId, Order)>,
}

impl Run {
    fn with(config: Config) -> Self {
        let control = Control::new(config);
        let mut run = Self { control, now: Time::ZERO, lost: vec![], lacks_builders: false, orders: vec![] };
        run.control.handle_command(run.now, Command::Start);
        nodes().for_each(|node| run.notice(node, Notice::Joined));
        assert_eq!(run.control.state(), RunState::Running);
        run.orders.clear();
        run
    }

    fn notice(&mut self, node: NodeId, notice: Notice) {
        self.control.handle_notice(self.now, node, notice);
        self.settle();
    }

    fn report(&mut self, (by, peer): Report) {
        self.notice(by, Notice::LostPeer(peer));
    }

    fn settle(&mut self) {
        while let Some((node, order)) = self.control.poll_order() {
            self.orders.push((node, order));
            let answer = match order {
                Order::Open | Order::Connect | Order::Prepare | Order::Arm => Notice::Ready,
                Order::Reset => Notice::Reset,
                Order::Finish => Notice::Finished,
                _ => continue,
            };
            self.control.handle_notice(self.now, node, answer);
        }
        while let Some(event) = self.control.poll_event() {
            match event {
                Event::Lost { node, loss } => self.lost.push((node, loss)),
                Event::NoBuilders => self.lacks_builders = true,
                _ => {}
            }
        }
    }

    /// Waits until run control has no reports that wait.
    fn wait(&mut self) {
        while let Some((at, Timer::LostPeers)) = self.control.poll_timeout() {
            self.now = self.now.max(at);
            self.control.handle_timeout(self.now);
            self.settle();
        }
    }

    /// The nodes that are lost to the run, when these reports come within the window, and no more.
    fn after(config: Config, reports: &[Report]) -> (Vec<NodeId>, Self) {
        let mut run = Self::with(config);
        for report in reports {
            run.now = run.now + Span(WINDOW.0 / (2 * reports.len() as u64));
            run.report(*report);
        }
        run.wait();
        (run.control.lost(), run)
    }
}

/// Tries 50 orders of the reports, which all must have this outcome.
fn check(config: &Config, mut reports: Vec<Report>, expected: &[NodeId]) {
    for seed in 0..50 {
        shuffle(&mut reports, &mut stream(seed, EVM, 1));
        let (lost, run) = Run::after(config.clone(), &reports);
        assert_eq!(lost, expected, "seed {seed}: {reports:?}");
        if !expected.contains(&EVM) {
            let of_order = |order: &(NodeId, Order)| match order {
                (EVM, Order::Lost(node)) => Some(*node),
                _ => None,
            };
            let reported: BTreeSet<_> = run.orders.iter().filter_map(of_order).collect();
            assert!(reported.iter().eq(expected), "seed {seed}: {:?}", run.orders);
        }
    }
}

#[test]
fn only_an_isolated_node_is_given_up() {
    for node in nodes() {
        check(&config(), isolated(&[node]), &[node]);
        // It may be heard alone, or not at all.
        let (by, about): (Vec<_>, Vec<_>) = isolated(&[node]).into_iter().partition(|(by, _)| *by == node);
        check(&config(), by, &[node]);
        check(&config(), about, &[node]);
    }
}

#[test]
fn an_isolated_node_is_given_up_without_a_wait() {
    for (node, peers) in [(EVM, 14), (NodeId(3), 7), (NodeId(10), 9)] {
        let mut run = Run::with(config());
        isolated(&[node]).into_iter().for_each(|report| run.report(report));
        let alternative = None;
        assert_eq!(run.lost, [(node, Loss::Unreachable { disconnected: peers, peers, alternative })]);
        assert_eq!(run.control.poll_timeout(), None, "no report waits");
    }
}

#[test]
fn only_two_isolated_nodes_are_given_up() {
    for one in nodes().skip(1) {
        for other in nodes().filter(|other| *other > one) {
            check(&config(), isolated(&[one, other]), &[one, other]);
        }
    }
}

#[test]
fn the_side_of_the_event_manager_stays() {
    // Most nodes are on the other side.
    let stay = [EVM, NodeId(1), NodeId(2), NodeId(9), NodeId(10)];
    let split = reports(|one, other| stay.contains(&one) && !stay.contains(&other));
    let lost: Vec<_> = nodes().filter(|node| !stay.contains(node)).collect();
    check(&config(), split, &lost);
    let halves = reports(|one, other| (one.0 % 2 == 0) && (other.0 % 2 == 1));
    check(&config(), halves, &nodes().filter(|node| node.0 % 2 == 1).collect::<Vec<_>>());
}

#[test]
fn of_a_broken_link_the_node_that_is_needed_less_is_given_up() {
    let (unit, builder) = (NodeId(3), NodeId(12));
    let link = |one, other| (one, other) == (unit, builder);
    check(&config(), reports(link), &[builder]);
    check(&Config { required: vec![builder], ..config() }, reports(link), &[unit]);
    let least = vec![(READOUTS, 1), (BUILDERS, 6)];
    check(&Config { least, ..config() }, reports(link), &[unit]);
    let (_, run) = Run::after(config(), &reports(link));
    let loss = Loss::Unreachable { disconnected: 1, peers: 9, alternative: Some(unit) };
    assert_eq!(run.lost, [(builder, loss)], "either of the two may be cut off");
    check(&config(), reports(|one, other| (one, other) == (EVM, unit)), &[unit]);
}

#[test]
fn a_report_that_no_other_node_confirms_is_held_against_the_node_that_makes_it() {
    check(&config(), vec![(NodeId(3), NodeId(12))], &[NodeId(3)]);
    let (_, run) = Run::after(config(), &[(NodeId(3), NodeId(12))]);
    assert!(matches!(run.lost[0].1, Loss::Unreachable { alternative: None, .. }));
    // Two others have lost the builder.
    check(&config(), vec![(NodeId(3), NodeId(12)), (NodeId(4), NodeId(12))], &[NodeId(12)]);
}

#[test]
fn a_node_without_a_path_to_the_builders_is_given_up_though_the_event_manager_reaches_it() {
    let unit = NodeId(5);
    check(&config(), reports(|one, other| one == unit && BUILDERS.contains(other)), &[unit]);
    let builder = NodeId(9);
    check(&config(), reports(|one, other| one == builder && READOUTS.contains(other)), &[builder]);
}

#[test]
fn nodes_that_exchange_nothing_do_not_miss_each_other() {
    let (lost, run) = Run::after(config(), &[(NodeId(1), NodeId(2)), (NodeId(2), NodeId(1))]);
    assert!(lost.is_empty() && run.orders.is_empty());
    // The next run connects them again.
    let mut run = run;
    run.control.handle_command(run.now, Command::Abort);
    run.settle();
    assert_eq!(run.control.state(), RunState::Stopped);
    run.control.handle_command(run.now, Command::Start);
    run.settle();
    assert_eq!(run.orders.iter().filter(|(_, order)| *order == Order::Connect).count(), 15);
}

#[test]
fn a_network_that_is_cut_again_and_again_costs_one_node() {
    let node = NodeId(4);
    let mut run = Run::with(config());
    let all = isolated(&[node]);
    for round in 0..10 {
        all.iter().skip(round).step_by(3).for_each(|report| run.report(*report));
        run.wait();
        run.now = run.now + Span::from_secs(1);
    }
    assert_eq!(run.control.lost(), [node]);
    assert_eq!(run.lost.len(), 1);
}

#[test]
fn the_window_begins_with_the_first_report_and_is_not_extended() {
    let mut run = Run::with(config());
    let begin = run.now;
    for second in 0..2 {
        run.now = begin + Span::from_secs(second);
        run.report((NodeId(3), NodeId(9 + second as u16)));
        assert_eq!(run.control.poll_timeout(), Some((begin + WINDOW, Timer::LostPeers)));
    }
    assert!(run.lost.is_empty());
    run.wait();
    assert_eq!((run.now, run.control.lost()), (begin + WINDOW, vec![NodeId(3)]));
}

#[test]
fn the_end_of_a_process_is_not_delayed_and_settles_the_reports() {
    let mut run = Run::with(config());
    run.report((NodeId(3), NodeId(9)));
    run.report((EVM, NodeId(9)));
    run.notice(NodeId(9), Notice::Gone);
    assert_eq!(run.lost, [(NodeId(9), Loss::Gone)]);
    assert_eq!(run.control.poll_timeout(), None, "no report waits");
    run.wait();
    assert_eq!(run.control.lost(), [NodeId(9)]);
}

#[test]
fn an_event_manager_that_hangs_is_given_up_before_its_last_peer_has_reported() {
    let about: Vec<_> = isolated(&[EVM]).into_iter().filter(|(_, peer)| *peer == EVM).take(10).collect();
    check(&config(), about, &[EVM]);
}

#[test]
fn an_event_manager_without_any_readout_unit_is_cut_off() {
    let cut = reports(|one, other| one == EVM && READOUTS.contains(other));
    check(&config(), cut, &[EVM]);
    let both = isolated(&BUILDERS.iter().collect::<Vec<_>>());
    check(&config(), both, &BUILDERS.iter().collect::<Vec<_>>());
}

/// An event manager that is cut off has no builder units, and perhaps no open event. Its report waits for those of its
/// peers.
#[test]
fn an_isolated_event_manager_does_not_end_the_run_before_it_is_given_up() {
    for notice in [Notice::NoBuilders, Notice::Drained] {
        let mut run = Run::with(config());
        BUILDERS.iter().for_each(|builder| run.report((EVM, builder)));
        run.notice(EVM, notice);
        assert_eq!(run.control.state(), RunState::Running);
        READOUTS.iter().for_each(|unit| run.report((unit, EVM)));
        assert_eq!((run.control.lost(), run.control.state()), (vec![EVM], RunState::Failed));
        assert!(!run.lacks_builders);
    }
}

/// A node that is cut off when the last event ends is lost to this run.
#[test]
fn a_run_does_not_end_before_a_node_is_found_to_be_cut_off() {
    let mut run = Run::with(config());
    run.report((NodeId(3), NodeId(12)));
    let drained = run.now + Span::from_millis(500);
    run.now = drained;
    run.notice(EVM, Notice::Drained);
    assert_eq!(run.control.state(), RunState::Running);
    run.wait();
    assert_eq!((run.control.lost(), run.control.state()), (vec![NodeId(3)], RunState::Stopped));
    assert_eq!(run.control.elapsed(run.now), Span::from_millis(500));
}

#[test]
fn without_reports_the_last_builder_ends_the_run_at_once() {
    let mut run = Run::with(config());
    BUILDERS.iter().for_each(|builder| run.notice(builder, Notice::Gone));
    run.notice(EVM, Notice::NoBuilders);
    assert_eq!(run.control.state(), RunState::Failed);
    assert!(run.lacks_builders);
}
