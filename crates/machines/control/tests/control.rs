//! Run control with nodes that obey, and with nodes, operators and clocks that do anything.

use evb_control::{Command, Config, ConfigureStep, Control, Event, Loss, Notice, Order, RunState};
use evb_core::{NodeId, NodeRange, Span, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

const NODES: u16 = 4;
const EVM: NodeId = NodeId(0);

fn config() -> Config {
    Config { drain_timeout: Span::from_secs(2), ..Config::new(NODES) }
}

/// Run control, and nodes that answer at once unless a test says otherwise.
struct World {
    control: Control,
    now: Time,
    orders: Vec<(NodeId, Order)>,
    events: Vec<Event>,
    /// Nodes that do not answer.
    silent: Vec<NodeId>,
}

impl World {
    fn new(config: Config) -> Self {
        let mut world =
            Self { control: Control::new(config), now: Time::ZERO, orders: vec![], events: vec![], silent: vec![] };
        world.command(Command::Configure);
        (0..NODES).for_each(|node| world.notice(NodeId(node), Notice::Joined));
        world
    }

    fn running() -> Self {
        let mut world = Self::new(config());
        world.command(Command::Start);
        assert_eq!(world.control.state(), RunState::Running);
        world.orders.clear();
        world.events.clear();
        world
    }

    fn command(&mut self, command: Command) {
        self.control.handle_command(self.now, command);
        self.settle();
    }

    fn notice(&mut self, node: NodeId, notice: Notice) {
        self.control.handle_notice(self.now, node, notice);
        self.settle();
    }

    fn wait(&mut self, span: Span) {
        self.now = self.now + span;
        self.control.handle_timeout(self.now);
        self.settle();
    }

    /// Carries out all orders.
    fn settle(&mut self) {
        while let Some((node, order)) = self.control.poll_order() {
            self.orders.push((node, order));
            let answer = match order {
                Order::Open | Order::Connect | Order::Prepare | Order::Arm => Notice::Ready,
                Order::Reset => Notice::Reset,
                Order::Finish | Order::Next => Notice::Finished,
                Order::Settle => Notice::Settled,
                Order::Stop => Notice::Drained,
                Order::Die | Order::Exit => Notice::Gone,
                _ => continue,
            };
            if !self.silent.contains(&node) {
                self.control.handle_notice(self.now, node, answer);
            }
        }
        self.events.extend(std::iter::from_fn(|| self.control.poll_event()));
    }

    fn count(&self, order: Order) -> usize {
        self.orders.iter().filter(|(_, one)| *one == order).count()
    }

    fn states(&self) -> Vec<RunState> {
        let states = self.events.iter().filter_map(|event| match event {
            Event::State(state) => Some(*state),
            _ => None,
        });
        states.collect()
    }
}

#[test]
fn nodes_are_connected_once_and_run_again_and_again() {
    let mut world = World::new(config());
    assert_eq!(world.states(), [RunState::Configuring, RunState::Configured]);
    for _ in 0..3 {
        world.command(Command::Start);
        world.command(Command::Stop);
        assert_eq!(world.control.state(), RunState::Stopped);
    }
    assert_eq!(world.count(Order::Connect), usize::from(NODES));
    assert_eq!((world.count(Order::Prepare), world.count(Order::Start)), (12, 12));
    world.command(Command::Shutdown);
    assert_eq!((world.control.state(), world.count(Order::Exit)), (RunState::Initial, 4));
}

#[test]
fn a_start_configures_unconfigured_nodes() {
    let mut world = World::running();
    world.command(Command::Stop);
    world.notice(NodeId(2), Notice::Gone);
    world.orders.clear();
    world.command(Command::Start);
    assert_eq!(world.control.state(), RunState::Configuring);
    assert_eq!(world.control.absent(), [NodeId(2)]);
    world.notice(NodeId(2), Notice::Joined);
    assert_eq!(world.control.state(), RunState::Running);
    assert_eq!((world.count(Order::Reset), world.count(Order::Connect)), (3, 4), "all are connected anew");
}

#[test]
fn a_pause_turns_triggers_away_and_does_not_count_as_running_time() {
    let mut world = World::new(Config { duration: Some(Span::from_secs(10)), ..config() });
    world.command(Command::Start);
    world.wait(Span::from_secs(4));
    world.command(Command::Pause);
    world.wait(Span::from_secs(60));
    assert_eq!(world.control.state(), RunState::Paused);
    world.command(Command::Resume);
    world.wait(Span::from_secs(5));
    assert_eq!(world.control.state(), RunState::Running, "it has run for 9 s");
    world.wait(Span::from_secs(1));
    assert_eq!(world.control.state(), RunState::Stopped);
    assert_eq!((world.count(Order::Pause), world.count(Order::Resume), world.count(Order::Stop)), (1, 1, 1));
}

#[test]
fn the_second_stop_stores_open_events_and_the_third_does_not_wait() {
    let mut world = World::running();
    world.silent = (0..NODES).map(NodeId).collect();
    world.command(Command::Stop);
    assert_eq!((world.count(Order::Stop), world.count(Order::Cut)), (1, 0));
    world.command(Command::Stop);
    assert_eq!((world.count(Order::Cut), world.count(Order::Finish)), (4, 0));
    world.command(Command::Stop);
    assert_eq!((world.count(Order::Finish), world.control.state()), (4, RunState::Draining));
    world.command(Command::Stop);
    assert_eq!((world.count(Order::Die), world.control.state()), (0, RunState::Draining), "files are being closed");
    world.command(Command::Abort);
    assert_eq!((world.count(Order::Die), world.control.state()), (4, RunState::Failed), "the event manager is lost");
}

#[test]
fn an_abort_waits_for_no_event_but_lets_files_be_closed() {
    let mut world = World::running();
    world.silent.push(EVM);
    world.command(Command::Abort);
    assert_eq!((world.count(Order::Stop), world.count(Order::Finish)), (0, 4));
    world.notice(EVM, Notice::Finished);
    assert_eq!(world.control.state(), RunState::Stopped);
}

#[test]
fn a_slow_drain_continues_and_one_without_progress_is_cut() {
    let mut world = World::running();
    world.silent.push(EVM);
    world.command(Command::Stop);
    for _ in 0..100 {
        world.wait(Span::from_millis(1900));
        world.notice(EVM, Notice::Moved);
    }
    assert_eq!(world.count(Order::Cut), 0);
    world.wait(Span::from_secs(2));
    assert_eq!(world.count(Order::Cut), 4);
    assert!(world.events.contains(&Event::NotDrained));
    world.silent.clear();
    world.notice(EVM, Notice::Drained);
    assert_eq!(world.control.state(), RunState::Stopped);
}

#[test]
fn units_that_die_degrade_a_run_and_the_event_manager_ends_it() {
    let mut world = World::running();
    world.notice(NodeId(3), Notice::Gone);
    assert_eq!(world.control.state(), RunState::Degraded);
    assert_eq!(world.events[0], Event::Lost { node: NodeId(3), loss: Loss::Gone });
    world.notice(EVM, Notice::Gone);
    assert_eq!((world.count(Order::Finish), world.control.state()), (2, RunState::Failed));
}

#[test]
fn a_node_that_its_peers_cannot_reach_is_lost_to_all() {
    let mut world = World::running();
    world.silent.push(NodeId(2));
    for peer in [EVM, NodeId(1), NodeId(3)] {
        assert_eq!(world.orders, []);
        world.notice(peer, Notice::LostPeer(NodeId(2)));
    }
    assert_eq!(world.orders, [(EVM, Order::Lost(NodeId(2))), (NodeId(2), Order::Finish)]);
    world.notice(NodeId(2), Notice::LostPeer(NodeId(1)));
    assert_eq!(world.events.len(), 2, "what a lost node says of its peers is not believed: {:?}", world.events);
    world.command(Command::Stop);
    assert_eq!(world.control.state(), RunState::Draining, "it may still answer");
    world.wait(Config::LOST_GRACE);
    assert_eq!((world.control.state(), world.count(Order::Die)), (RunState::Stopped, 1));
    world.silent.clear();
    world.command(Command::Start);
    world.notice(NodeId(2), Notice::Joined);
    assert_eq!(world.control.state(), RunState::Running);
}

/// A connection that breaks between the events of two runs is not a loss to either, and none begins on it.
#[test]
fn nodes_that_lose_each_other_between_runs_are_connected_anew() {
    let mut world = World::running();
    world.silent.push(NodeId(1));
    world.command(Command::Abort);
    world.notice(NodeId(2), Notice::LostPeer(NodeId(3)));
    world.notice(NodeId(1), Notice::Finished);
    assert_eq!(world.control.state(), RunState::Stopped, "all have finished");
    assert!(!world.control.is_lost(NodeId(3)));
    world.command(Command::Start);
    assert_eq!(
        (world.control.state(), world.count(Order::Prepare)),
        (RunState::Configuring, 0),
        "connections come first"
    );
    world.notice(NodeId(1), Notice::Reset);
    for _ in 0..3 {
        world.notice(NodeId(1), Notice::Ready);
    }
    assert_eq!((world.control.state(), world.count(Order::Connect)), (RunState::Running, 4));
}

#[test]
fn no_run_begins_when_nodes_lose_each_other_while_they_prepare() {
    let mut world = World::new(config());
    world.silent.push(NodeId(1));
    world.command(Command::Start);
    world.notice(NodeId(2), Notice::LostPeer(NodeId(3)));
    assert_eq!(world.control.state(), RunState::Failed);
    assert!(world.events.contains(&Event::NotReady { step: ConfigureStep::Prepare, node: NodeId(3) }));
    world.command(Command::Start);
    world.notice(NodeId(1), Notice::Ready);
    assert_eq!(world.count(Order::Connect), 4, "it answers an order of the configuration that was given up");
    world.silent.clear();
    (0..2).for_each(|_| world.notice(NodeId(1), Notice::Reset));
    world.notice(NodeId(1), Notice::Ready);
    assert_eq!((world.control.state(), world.count(Order::Connect)), (RunState::Running, 8));
}

#[test]
fn a_run_that_loses_a_required_node_is_stopped() {
    let needy = |required: Vec<NodeId>| {
        let least = vec![(NodeRange { first: NodeId(1), count: 2 }, 1)];
        let mut world = World::new(Config { required, least, ..config() });
        world.command(Command::Start);
        world
    };
    let mut one = needy(vec![NodeId(3)]);
    one.notice(NodeId(1), Notice::Gone);
    assert_eq!(one.control.state(), RunState::Degraded);
    one.notice(NodeId(3), Notice::Gone);
    assert_eq!((one.control.state(), one.count(Order::Stop)), (RunState::Stopped, 1), "a required node is lost");
    let mut two = needy(Vec::new());
    two.notice(NodeId(1), Notice::Gone);
    two.notice(NodeId(3), Notice::Gone);
    assert_eq!(two.control.state(), RunState::Degraded);
    two.notice(NodeId(2), Notice::Gone);
    assert_eq!(two.control.state(), RunState::Stopped, "none of two is left");
    assert!(two.events.contains(&Event::TooFew));
}

#[test]
fn a_node_that_takes_its_place_back_makes_the_run_whole() {
    let mut world = World::running();
    world.notice(NodeId(3), Notice::Gone);
    world.notice(NodeId(3), Notice::Rejoined);
    assert_eq!(world.control.state(), RunState::Running);
    world.command(Command::Stop);
    assert_eq!((world.count(Order::Finish), world.control.state()), (4, RunState::Stopped));
}

#[test]
fn a_node_that_fails_lets_the_run_drain_and_may_take_part_in_the_next() {
    let mut world = World::running();
    world.notice(NodeId(3), Notice::Failed);
    assert_eq!(world.control.state(), RunState::Stopped);
    assert_eq!(world.count(Order::Stop), 1);
    // Its peers wait for nothing of it: it leaves them before all others finish.
    assert_eq!(world.orders[..3], [(EVM, Order::Stop), (NodeId(3), Order::Finish), (EVM, Order::Finish)]);
    world.command(Command::Start);
    assert_eq!(world.control.state(), RunState::Running);
}

#[test]
fn a_late_step_names_the_late_nodes() {
    let mut world = World::new(config());
    world.silent.push(NodeId(1));
    world.command(Command::Start);
    world.wait(Span::from_secs(9));
    assert_eq!(world.control.state(), RunState::Configuring);
    world.wait(Span::from_secs(1));
    assert_eq!(world.control.state(), RunState::Failed);
    assert!(world.events.contains(&Event::Late { step: ConfigureStep::Prepare, nodes: vec![NodeId(1)] }));
    assert_eq!(world.count(Order::Reset), 4);
}

#[test]
fn kills_come_in_each_run() {
    let kills = vec![(Span::from_secs(2), NodeId(2)), (Span::from_secs(1), NodeId(1))];
    let mut world = World::new(Config { kills, ..config() });
    for _ in 0..2 {
        world.command(Command::Start);
        (1..3).for_each(|node| world.notice(NodeId(node), Notice::Joined));
        world.orders.clear();
        world.wait(Span::from_secs(1));
        assert_eq!(world.orders, [(NodeId(1), Order::Die)]);
        world.wait(Span::from_secs(5));
        assert_eq!(world.orders.last(), Some(&(NodeId(2), Order::Die)));
        world.command(Command::Stop);
    }
}

/// The runs that have followed each other, each with the time for which triggers were turned away before it.
fn switches(world: &World) -> Vec<Span> {
    let switches = world.events.iter().filter_map(|event| match event {
        Event::NextRun { switched, .. } => Some(*switched),
        _ => None,
    });
    switches.collect()
}

#[test]
fn a_split_begins_the_next_run_with_the_same_nodes() {
    let mut world = World::running();
    world.wait(Span::from_secs(3));
    world.command(Command::Split);
    world.command(Command::Split);
    assert_eq!(world.states(), [RunState::Splitting, RunState::Running, RunState::Splitting, RunState::Running]);
    assert_eq!(switches(&world), [Span::ZERO; 2]);
    let first = world.events.iter().find(|event| matches!(event, Event::NextRun { .. }));
    assert_eq!(first, Some(&Event::NextRun { elapsed: Span::from_secs(3), switched: Span::ZERO }));
    assert_eq!((world.count(Order::Next), world.count(Order::Settle), world.count(Order::Resume)), (8, 2, 2));
    let others = [Order::Finish, Order::Prepare, Order::Start, Order::Reset, Order::Connect];
    assert!(others.iter().all(|&order| world.count(order) == 0), "a node was stopped: {:?}", world.orders);
    world.command(Command::Stop);
    assert_eq!((world.control.state(), world.count(Order::Finish)), (RunState::Stopped, 4));
}

#[test]
fn triggers_are_taken_again_when_the_last_node_has_gone_over() {
    let mut world = World::running();
    world.silent = vec![EVM, NodeId(3)];
    world.command(Command::Split);
    assert_eq!(world.count(Order::Next), 0, "events are open");
    world.notice(EVM, Notice::Settled);
    world.notice(EVM, Notice::Finished);
    assert_eq!((world.count(Order::Next), world.count(Order::Resume)), (4, 0));
    assert!(world.control.is_over(NodeId(2)) && !world.control.is_over(NodeId(3)));
    world.wait(Span::from_millis(5));
    world.notice(NodeId(3), Notice::Finished);
    assert_eq!((world.count(Order::Resume), switches(&world)), (1, vec![Span::from_millis(5)]));
    assert!(!world.control.is_over(NodeId(2)));
}

/// What ends the run while its nodes go over ends the next one: no report is of two runs.
#[test]
fn input_between_two_runs_waits_for_the_second() {
    for (command, wanted) in [(Command::Stop, Order::Stop), (Command::Abort, Order::Finish)] {
        let mut world = World::running();
        world.silent = vec![NodeId(3)];
        world.command(Command::Split);
        world.command(command);
        assert_eq!((world.control.state(), world.count(wanted)), (RunState::Splitting, 0));
        world.silent.clear();
        world.notice(NodeId(3), Notice::Finished);
        assert_eq!((world.control.state(), switches(&world).len()), (RunState::Stopped, 1));
        assert!(world.count(wanted) > 0 && world.count(Order::Resume) == 0);
    }
}

#[test]
fn a_node_that_dies_between_two_runs_holds_up_no_run() {
    let mut world = World::running();
    world.silent = vec![NodeId(3)];
    world.command(Command::Split);
    world.notice(NodeId(3), Notice::Gone);
    assert_eq!((world.control.state(), switches(&world).len()), (RunState::Degraded, 1));
    assert_eq!(world.control.lost(), [NodeId(3)]);
    // A run without progress is given up.
    world.silent = vec![NodeId(2)];
    world.command(Command::Split);
    world.wait(Span::from_secs(3));
    assert_eq!((world.control.state(), switches(&world).len()), (RunState::Degraded, 2));
    assert_eq!(world.control.lost(), [NodeId(2), NodeId(3)]);
}

#[test]
fn a_run_that_does_not_settle_is_stopped_and_the_next_begins_anew() {
    let mut world = World::running();
    world.silent = vec![EVM];
    world.command(Command::Split);
    world.wait(Span::from_secs(3));
    assert!(world.events.contains(&Event::NotDrained));
    world.silent.clear();
    world.notice(EVM, Notice::Drained);
    assert_eq!(
        world.states(),
        [RunState::Splitting, RunState::Draining, RunState::Stopped, RunState::Configuring, RunState::Running]
    );
}

#[test]
fn lost_nodes_take_part_again_when_all_of_them_are_back() {
    for rejoin in [false, true] {
        let mut world = World::new(Config { rejoin, ..config() });
        world.command(Command::Start);
        (2..4).for_each(|node| world.notice(NodeId(node), Notice::Gone));
        world.notice(NodeId(2), Notice::Joined);
        assert_eq!(world.control.state(), RunState::Degraded, "one is still away");
        world.events.clear();
        world.notice(NodeId(3), Notice::Joined);
        if !rejoin {
            assert_eq!(world.events, [Event::Waits(NodeId(3))]);
            world.command(Command::Split);
        }
        assert_eq!(world.states(), [RunState::Draining, RunState::Stopped, RunState::Configuring]);
        // The driver of the nodes tells of those that are there already.
        assert_eq!(world.control.absent(), [NodeId(2), NodeId(3)]);
        (2..4).for_each(|node| world.notice(NodeId(node), Notice::Joined));
        assert_eq!((world.control.state(), world.control.lost()), (RunState::Running, vec![]));
    }
}

#[test]
fn a_node_that_dies_again_and_again_is_not_waited_for_forever() {
    let mut world = World::new(Config { rejoin: true, ..config() });
    world.command(Command::Start);
    for _ in 0..Config::MOST_REJOINS + 5 {
        world.notice(NodeId(2), Notice::Gone);
        (0..2).for_each(|_| world.notice(NodeId(2), Notice::Joined));
    }
    assert_eq!((world.control.state(), world.control.may_rejoin()), (RunState::Degraded, false));
    let begun = world.states().into_iter().filter(|&state| state == RunState::Configuring).count();
    assert_eq!(begun as u32, 2 + Config::MOST_REJOINS);
    world.command(Command::Stop);
    assert_eq!(world.control.state(), RunState::Stopped);
}

/// Something that happens to run control.
#[derive(Clone, Debug)]
enum Input {
    Command(Command),
    Notice(u16, Notice),
    Wait(u64),
}

fn input() -> impl Strategy<Value = Input> {
    use Command::*;
    let command = prop::sample::select(vec![Configure, Start, Pause, Resume, Split, Split, Stop, Abort, Shutdown]);
    let notice = prop_oneof![
        prop::sample::select(vec![
            Notice::Joined,
            Notice::Ready,
            Notice::Ready,
            Notice::Moved,
            Notice::Settled,
            Notice::Drained,
            Notice::NoBuilders,
            Notice::Failed,
            Notice::Finished,
            Notice::Rejoined,
            Notice::Gone,
        ]),
        (0..NODES + 1).prop_map(|node| Notice::LostPeer(NodeId(node))),
    ];
    prop_oneof![
        command.prop_map(Input::Command),
        (0..NODES).prop_map(|node| Input::Notice(node, Notice::Joined)),
        (0..NODES + 1, notice).prop_map(|(node, notice)| Input::Notice(node, notice)),
        (0..5_000_u64).prop_map(Input::Wait),
    ]
}

/// A check of orders that knows nothing of the machine: what an order is good for must have been done before.
#[derive(Default)]
struct Checker {
    /// The orders of each node since it was last reset or joined.
    since: BTreeMap<NodeId, Vec<Order>>,
    front_ends: bool,
}

impl Checker {
    fn check(&mut self, node: NodeId, order: Order) {
        let done = self.since.entry(node).or_default();
        let last = |wanted: &[Order]| done.iter().rev().find(|one| wanted.contains(one)).copied();
        match order {
            Order::Open => assert_eq!(done.last().filter(|one| **one != Order::Reset), None, "{node} is open"),
            Order::Connect => assert_eq!(done.last(), Some(&Order::Open)),
            Order::Prepare => {
                assert!(done.contains(&Order::Connect), "{node} has no peers");
                assert_ne!(last(&[Order::Start, Order::Finish]), Some(Order::Start), "{node} has a run");
            }
            Order::Arm => assert_eq!(done.last(), Some(&Order::Prepare)),
            Order::Start if self.front_ends => assert_eq!(done.last(), Some(&Order::Arm)),
            Order::Start => assert_eq!(done.last(), Some(&Order::Prepare)),
            // All others hear of the end of the event manager. One without a run has no use for it.
            Order::Lost(EVM) => {}
            Order::Pause | Order::Resume | Order::Stop if self.front_ends => {}
            Order::Pause | Order::Resume | Order::Settle | Order::Stop | Order::Lost(_) => assert_eq!(node, EVM),
            Order::Cut | Order::Next | Order::Finish | Order::Reset | Order::Exit | Order::Die => {}
        }
        match order {
            Order::Reset | Order::Exit | Order::Die => done.clear(),
            order => done.push(order),
        }
    }
}

proptest! {
    /// Orders make sense, states are reported, and a stopped run ends, for any input in any order.
    #[test]
    fn any_history_ends(inputs in prop::collection::vec(input(), 0..200), front_ends: bool) {
        let config = Config { rejoin: true, front_ends, ..config() };
        let checker = Checker { front_ends, ..Checker::default() };
        let (mut control, mut now, mut checker) = (Control::new(config), Time::ZERO, checker);
        let (mut shown, mut asked) = (RunState::Initial, 0_u32);
        for input in inputs {
            match input {
                Input::Command(command) => control.handle_command(now, command),
                Input::Notice(node, notice) => {
                    if matches!(notice, Notice::Joined | Notice::Gone | Notice::Rejoined) {
                        checker.since.remove(&NodeId(node));
                    }
                    control.handle_notice(now, NodeId(node), notice);
                }
                Input::Wait(millis) => {
                    now = now + Span::from_millis(millis);
                    control.handle_timeout(now);
                }
            }
            while let Some((node, order)) = control.poll_order() {
                prop_assert!(node.0 < NODES);
                checker.check(node, order);
                asked += 1;
                // Most nodes obey.
                if order == Order::Reset {
                    control.handle_notice(now, node, Notice::Reset);
                }
                if matches!(order, Order::Next) && !asked.is_multiple_of(5) {
                    control.handle_notice(now, node, Notice::Finished);
                }
                if order == Order::Settle && !asked.is_multiple_of(3) {
                    control.handle_notice(now, node, Notice::Settled);
                }
                if matches!(order, Order::Open | Order::Connect | Order::Prepare | Order::Arm) && !asked.is_multiple_of(17) {
                    control.handle_notice(now, node, Notice::Ready);
                }
            }
            while let Some(event) = control.poll_event() {
                if let Event::State(state) = event {
                    prop_assert_ne!(state, shown);
                    shown = state;
                }
            }
            prop_assert_eq!(shown, control.state());
        }
        control.handle_command(now, Command::Stop);
        for _ in 0..10 {
            now = now + Span::from_secs(60);
            control.handle_timeout(now);
        }
        prop_assert!(!control.state().is_active(), "{:?} does not end", control.state());
    }
}
