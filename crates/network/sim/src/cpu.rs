//! The computers that carry the nodes: workers, the cores that they share, and how the system gives them out.
//!
//! A worker is a thread that gives each of its nodes a turn. What works beside a builder, its writer and its filter units, has
//! workers of its own, which sleep as soon as they have nothing to do. When a round brings no work it polls for a while, then yields
//! to others, and then sleeps until something comes, as the workers of a run do. The system lets workers that are ready run
//! in the order in which they became so, each until it rests or its time slice is over. One that was asleep goes first:
//! it has had less of the cores than all others (as Linux's EEVDF scheduler has it).
//!
//! Work is given to it by `Simulation`; here is only who runs when. Each worker has one planned time, at which
//! [`due`](Cpus::due) says what it does; a plan that was changed is left in the event queue and ignored.

use crate::disk::Disk;
use evb_core::{LongYields, NodeId, Span, Time};
use evb_experiment::{Computers, CpuPlan, LocalMessages, Plan};
use evb_protocol::Config;
use evb_unit::{WORKER_SPINS, WORKER_YIELDS, worker_count, workers_of};
use interruptions::Interruptions;
use std::collections::VecDeque;
use tasks::Tasks;

mod interruptions;
mod tasks;
mod work;

pub(crate) use tasks::{Task, has_writers, local_filter_units};
pub(crate) use work::{Work, WorkItem};

/// What a worker does at its planned time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A turn begins; the worker needed `found` to see that there is something to do.
    Turn { task: Task, found: Span },
    /// Nothing: the plan was changed, or it rests.
    Rest,
}

/// All computers.
pub(crate) struct Cpus {
    pub(crate) plan: CpuPlan,
    computers: Vec<Computer>,
    workers: Vec<Worker>,
    tasks: Tasks,
    /// The worker of each task.
    worker_of: Vec<usize>,
    /// The number of nodes from which each node gets messages.
    peers_of: Vec<u64>,
    /// Tasks that have something to do, as far as is known.
    called: Vec<bool>,
    /// Workers and the times that were planned for them, for the event queue.
    planned: Vec<(Time, u16)>,
    /// Work in the measured time.
    pub(crate) work: Work,
}

/// One computer.
struct Computer {
    free_cores: u16,
    /// The number of workers that share a core with another one, on average.
    sharing: u64,
    /// Workers that wait for a core.
    ready: VecDeque<usize>,
    /// Payload that was read and is not checked yet.
    under_way: u64,
    disk: Option<Disk>,
}

/// A thread.
struct Worker {
    tasks: Vec<Task>,
    /// It waits for what it has to do, and never polls.
    waits: bool,
    computer: usize,
    state: State,
    planned_at: Time,
    /// The task that has the next turn.
    next: usize,
    /// Turns without work in a row.
    idle_turns: usize,
    /// When it got its core.
    running_since: Time,
    /// Yields since its last work.
    yields: u32,
    /// When it gave its core away in a yield.
    yielded_at: Option<Time>,
    long_yields: LongYields,
    interruptions: Interruptions,
    busy: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asleep,
    /// It was called, and is about to be ready.
    Waking,
    /// It waits for a core.
    Ready,
    Running,
    /// It has a core and polls without work.
    Polling,
    /// It has a core and yields, but no other worker is ready.
    Yielding,
}

impl Cpus {
    /// The computers of a plan; `None` if the plan has none.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        let cpu = plan.network.cpu.clone()?;
        let nodes: Vec<_> = (0..plan.building.nodes()).map(NodeId).collect();
        let computer_of = |node: NodeId| match cpu.computers {
            Computers::One => 0,
            // A node without a host, such as an event manager on a separate network, has a computer of its own.
            Computers::EachHost => plan.host(node).map_or(usize::MAX, usize::from),
        };
        let mut places: Vec<_> = nodes.iter().map(|&node| computer_of(node)).collect();
        places.sort_unstable();
        places.dedup();
        let tasks = Tasks::of(plan);
        let mut cpus = Self {
            computers: Vec::new(),
            workers: Vec::new(),
            worker_of: vec![0; tasks.len()],
            peers_of: nodes.iter().map(|&node| peers(&plan.building, node)).collect(),
            called: vec![false; tasks.len()],
            tasks,
            planned: Vec::new(),
            work: Work::default(),
            plan: cpu.clone(),
        };
        for (computer, place) in places.into_iter().enumerate() {
            let here: Vec<_> = nodes.iter().copied().filter(|&node| computer_of(node) == place).collect();
            cpus.computers.push(Computer {
                free_cores: cpu.cores,
                sharing: 0,
                ready: VecDeque::new(),
                under_way: 0,
                disk: cpu.disk.map(Disk::new),
            });
            cpus.hire(plan, computer, &here);
        }
        Some(cpus)
    }

    /// Gives the nodes of a computer their workers.
    fn hire(&mut self, plan: &Plan, computer: usize, here: &[NodeId]) {
        let first = self.workers.len();
        let count =
            if self.plan.processes { here.len() } else { worker_count(plan, self.plan.cores.into(), here.len()) };
        let beside: Vec<_> = here.iter().flat_map(|&node| self.tasks.beside(node)).collect();
        let all = count + beside.len();
        self.computers[computer].sharing = (all as u64).div_ceil(self.plan.cores.into()).saturating_sub(1);
        let of_all = workers_of(plan, count);
        let interruptions = |worker| Interruptions::new(&self.plan.interruptions, plan.run.seed, worker);
        self.workers.extend((first..first + all).map(|worker| Worker::new(computer, interruptions(worker))));
        for (index, task) in beside.into_iter().enumerate() {
            let worker = first + count + index;
            self.workers[worker].waits = true;
            self.assign(task, worker);
        }
        for (index, &node) in here.iter().enumerate() {
            // A run in threads has all nodes on one computer; a part of them is dealt out in turn.
            let is_run = self.plan.computers == Computers::One && !self.plan.processes;
            let worker = first + if is_run { of_all[node.index()] } else { index % count };
            self.assign(Task::Node(node), worker);
        }
    }

    fn assign(&mut self, task: Task, worker: usize) {
        self.worker_of[self.tasks.place(task)] = worker;
        self.workers[worker].tasks.push(task);
    }

    fn worker_of(&self, task: Task) -> usize {
        self.worker_of[self.tasks.place(task)]
    }

    /// True if messages between two nodes go through the memory of their computer.
    pub(crate) fn share_memory(&self, from: NodeId, to: NodeId) -> bool {
        self.plan.messages == LocalMessages::Memory && self.computer(from) == self.computer(to)
    }

    /// True if a message comes from another worker of the same computer.
    pub(crate) fn crosses(&self, from: NodeId, to: NodeId) -> bool {
        self.computer(from) == self.computer(to) && self.worker_of[from.index()] != self.worker_of[to.index()]
    }

    /// True if something for this task wakes its worker.
    pub(crate) fn sleeps(&self, task: Task) -> bool {
        self.workers[self.worker_of(task)].state == State::Asleep
    }

    fn computer(&self, node: NodeId) -> usize {
        self.workers[self.worker_of[node.index()]].computer
    }

    /// The time at which the disk of a builder's computer has taken what was written to it at `now`.
    pub(crate) fn write(&mut self, now: Time, builder: NodeId, bytes: u64) -> Time {
        let computer = self.computer(builder);
        self.computers[computer].disk.as_mut().map_or(now, |disk| disk.write(now, bytes))
    }

    /// Takes note of payload that a readout unit has read.
    pub(crate) fn add_payload(&mut self, node: NodeId, bytes: u64) {
        let computer = self.computer(node);
        self.computers[computer].under_way += bytes;
    }

    /// Takes note of payload that came from `from` and was checked; returns the bytes of it that had left the caches.
    ///
    /// Payload is used in the order in which it was read. A cache that keeps what was used last then keeps nothing of it as
    /// soon as more is under way than fits; real caches keep some of it, up to about twice their size.
    pub(crate) fn take_payload(&mut self, from: NodeId, bytes: u64) -> u64 {
        let computer = self.computer(from);
        let under_way = &mut self.computers[computer].under_way;
        let before = *under_way;
        *under_way = before.saturating_sub(bytes);
        let Some(cache) = self.plan.cache else { return 0 };
        let beyond = before.saturating_sub(cache.size.0).min(cache.size.0);
        (u128::from(bytes) * u128::from(beyond) / u128::from(cache.size.0)) as u64
    }

    /// There is something to do for a task.
    pub(crate) fn call(&mut self, now: Time, task: Task) {
        let place = self.tasks.place(task);
        self.called[place] = true;
        let index = self.worker_of[place];
        let worker = &mut self.workers[index];
        match worker.state {
            State::Asleep => {
                worker.state = State::Waking;
                let at = now + self.plan.wake.delay;
                self.plan(now, index, at);
            }
            State::Polling | State::Yielding => {
                worker.state = State::Running;
                worker.next = worker.tasks.iter().position(|&other| other == task).unwrap_or(0);
                worker.begin_work();
                let at = now + self.round(&[task]);
                self.plan(now, index, at);
            }
            State::Waking | State::Ready | State::Running => {}
        }
    }

    /// The planned time of a worker has come.
    pub(crate) fn due(&mut self, now: Time, index: u16) -> Due {
        let index = usize::from(index);
        if self.workers[index].planned_at != now {
            return Due::Rest;
        }
        self.workers[index].planned_at = Time::MAX;
        match self.workers[index].state {
            State::Waking => self.make_ready(now, index),
            State::Running => return self.go_on(now, index),
            State::Polling => self.begin_to_yield(now, index),
            State::Yielding => self.sleep(now, index),
            State::Asleep | State::Ready => {}
        }
        Due::Rest
    }

    /// A worker goes on: with the next of its tasks that has something to do, unless its time slice is over.
    fn go_on(&mut self, now: Time, index: usize) -> Due {
        let (worker, slice) = (&self.workers[index], self.plan.slice);
        let others_wait = !self.computers[worker.computer].ready.is_empty();
        if others_wait && now.since(worker.running_since) >= slice {
            self.give_way(now, index);
            return Due::Rest;
        }
        let worker = &self.workers[index];
        let tasks = worker.tasks.len();
        if worker.idle_turns >= tasks {
            self.rest(now, index);
            return Due::Rest;
        }
        let task_at = |turn: usize| worker.tasks[(worker.next + turn) % tasks];
        let turns = (0..tasks).find(|&turn| self.called[self.tasks.place(task_at(turn))]);
        let polls = turns.map_or(tasks, |turns| turns + 1);
        let nodes = (0..polls).filter_map(|turn| self.peers(task_at(turn)));
        let (nodes, peers) = nodes.fold((0, 0), |(nodes, all), peers| (nodes + 1, all + peers));
        let time = self.work.add(WorkItem::Poll, nodes, self.plan.poll)
            + self.work.add(WorkItem::PollPeer, peers, self.plan.poll_peer);
        let Some(turns) = turns else {
            self.workers[index].idle_turns += tasks;
            self.plan(now, index, now + time);
            return Due::Rest;
        };
        let task = task_at(turns);
        self.workers[index].next = (worker.next + turns + 1) % tasks;
        self.called[self.tasks.place(task)] = false;
        Due::Turn { task, found: time }
    }

    /// A turn that began at `now` ends after `time`, that of finding it included.
    pub(crate) fn end_turn(&mut self, now: Time, task: Task, time: Span, has_worked: bool) {
        let place = self.tasks.place(task);
        let index = self.worker_of[place];
        let worker = &mut self.workers[index];
        worker.busy = worker.busy + time;
        if has_worked {
            self.called[place] = true;
            worker.begin_work();
        } else {
            worker.idle_turns += 1;
        }
        self.plan(now, index, now + time);
    }

    /// The number of nodes whose messages a node looks for in a turn; `None` for what works beside nodes.
    fn peers(&self, task: Task) -> Option<u64> {
        match task {
            Task::Node(node) => Some(self.peers_of[node.index()]),
            Task::Writer(_) | Task::FilterUnit(..) => None,
        }
    }

    /// The time of a turn without work of each of some tasks.
    fn round(&self, tasks: &[Task]) -> Span {
        let of = |peers: u64| self.plan.poll.0 + self.plan.poll_peer.0 * peers;
        Span(tasks.iter().filter_map(|&task| self.peers(task)).map(of).sum())
    }

    /// A worker on a core has nothing to do.
    fn rest(&mut self, now: Time, index: usize) {
        let worker = &mut self.workers[index];
        worker.idle_turns = 0;
        if worker.waits {
            return self.sleep(now, index);
        }
        if worker.yields > 0 || self.plan.processes {
            return self.begin_to_yield(now, index);
        }
        worker.state = State::Polling;
        let round = self.round(&self.workers[index].tasks);
        self.plan(now, index, now + Span(round.0 * u64::from(WORKER_SPINS)));
    }

    /// A worker yields its core to one that is ready, or keeps it if there is none.
    fn begin_to_yield(&mut self, now: Time, index: usize) {
        let worker = &mut self.workers[index];
        worker.yields += 1;
        if worker.yields > WORKER_YIELDS || !worker.long_yields.may_yield(now) {
            return self.sleep(now, index);
        }
        if self.computers[worker.computer].ready.is_empty() {
            worker.state = State::Yielding;
            let left = u64::from(WORKER_YIELDS - worker.yields + 1);
            let round = self.round(&self.workers[index].tasks);
            return self.plan(now, index, now + Span(round.0 * left));
        }
        worker.yielded_at = Some(now);
        self.give_way(now, index);
    }

    fn sleep(&mut self, now: Time, index: usize) {
        let worker = &mut self.workers[index];
        (worker.state, worker.yields, worker.idle_turns) = (State::Asleep, 0, 0);
        worker.planned_at = Time::MAX;
        let computer = worker.computer;
        self.free_core(now, computer);
        let called = self.workers[index].tasks.iter().copied().find(|&task| self.called[self.tasks.place(task)]);
        if let Some(task) = called {
            self.call(now, task);
        }
    }

    /// A worker leaves its core to the first that is ready, and waits behind the last.
    fn give_way(&mut self, now: Time, index: usize) {
        let worker = &mut self.workers[index];
        worker.state = State::Ready;
        let computer = worker.computer;
        self.computers[computer].ready.push_back(index);
        self.free_core(now, computer);
    }

    fn free_core(&mut self, now: Time, computer: usize) {
        match self.computers[computer].ready.pop_front() {
            Some(next) => self.run(now, next),
            None => self.computers[computer].free_cores += 1,
        }
    }

    /// A worker that was asleep wants a core, before all others.
    fn make_ready(&mut self, now: Time, index: usize) {
        let computer = self.workers[index].computer;
        if self.computers[computer].free_cores > 0 {
            self.computers[computer].free_cores -= 1;
            return self.run(now, index);
        }
        self.workers[index].state = State::Ready;
        self.computers[computer].ready.push_front(index);
        let yields = |worker: &Worker| worker.computer == computer && worker.state == State::Yielding;
        match self.workers.iter().position(yields) {
            Some(other) => {
                self.workers[other].planned_at = Time::MAX;
                self.workers[other].yielded_at = Some(now);
                self.give_way(now, other);
            }
            None => self.hurry(computer),
        }
    }

    /// The worker that has run longest leaves its core at the end of its turn.
    fn hurry(&mut self, computer: usize) {
        let running = self.workers.iter_mut();
        let running = running.filter(|worker| worker.computer == computer && worker.state == State::Running);
        if let Some(worker) = running.min_by_key(|worker| worker.running_since) {
            worker.running_since = Time::ZERO;
        }
    }

    fn run(&mut self, now: Time, index: usize) {
        let worker = &mut self.workers[index];
        worker.state = State::Running;
        worker.running_since = now;
        if let Some(yielded_at) = worker.yielded_at.take() {
            worker.long_yields.yielded(yielded_at, now);
        }
        let sharing = self.computers[self.workers[index].computer].sharing;
        let time = self.work.add(WorkItem::ContextSwitch, 1, self.plan.context_switch)
            + self.work.add(WorkItem::Refill, sharing, self.plan.refill);
        self.plan(now, index, now + time);
    }

    fn plan(&mut self, now: Time, index: usize, at: Time) {
        let at = self.workers[index].interruptions.delay(now, at);
        self.workers[index].planned_at = at;
        self.planned.push((at, index as u16));
    }

    /// The next worker with its time, for the event queue.
    pub(crate) fn pop_planned(&mut self) -> Option<(Time, u16)> {
        self.planned.pop()
    }

    /// Begins to measure.
    pub(crate) fn begin_to_measure(&mut self) {
        self.work = Work::default();
        self.workers.iter_mut().for_each(|worker| worker.busy = Span::ZERO);
    }

    /// Number of cores of all computers.
    pub(crate) fn cores(&self) -> u64 {
        self.computers.len() as u64 * u64::from(self.plan.cores)
    }

    /// The tasks of each worker, and the time for which it has worked.
    pub(crate) fn loads(&self) -> impl Iterator<Item = (&[Task], Span)> {
        self.workers.iter().map(|worker| (&*worker.tasks, worker.busy))
    }
}

/// The number of nodes from which a node gets messages.
fn peers(building: &Config, node: NodeId) -> u64 {
    let (readouts, builders) = (building.readout_nodes(), building.builder_nodes());
    let peers = match node {
        node if readouts.contains(node) => 1 + builders.count,
        node if builders.contains(node) => 1 + readouts.count,
        _ => building.nodes() - 1,
    };
    peers.into()
}

impl Worker {
    fn new(computer: usize, interruptions: Interruptions) -> Self {
        Self {
            tasks: Vec::new(),
            waits: false,
            computer,
            state: State::Asleep,
            planned_at: Time::MAX,
            next: 0,
            idle_turns: 0,
            running_since: Time::ZERO,
            yields: 0,
            yielded_at: None,
            long_yields: LongYields::default(),
            interruptions,
            busy: Span::ZERO,
        }
    }

    const fn begin_work(&mut self) {
        (self.idle_turns, self.yields) = (0, 0);
    }
}
