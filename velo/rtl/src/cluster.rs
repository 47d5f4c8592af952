//! The nodes of a cluster, and the clock that they share.
//!
//! In lockstep a node is a thread. A poll or a refused message takes one cycle, computing takes several: the thread
//! requests them and waits. When all nodes wait, the last of them runs the clock until one has waited for long enough.
//! Between two edges a thread touches its own host only, and the effects of others appear after the next edge. So every
//! run is the same, whatever the machine does meanwhile.

use crate::{
    CYCLE, Pace, RtlOptions,
    hardware::{Hardware, Inputs, Outputs},
    host::Host,
};
use evb_core::{Span, Time};
use evb_transport::VirtualTime;
use std::{
    hint,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

/// Interval at which a sleeping node checks that the clock runs.
const LOOK: Duration = Duration::from_millis(200);
/// Polls of a waiting node before it yields to others, and yields before it sleeps.
const SPINS: u32 = 200;
const YIELDS: u32 = 20;
/// Most cycles of one wait that may end early if nodes are not in lockstep: others may have work in real time.
const MOST_FREE: u64 = 10_000;

/// The length of a node's wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// Cycles, at least 1.
    pub(crate) cycles: u64,
    /// True if an arrival ends the wait, or room for what was refused.
    pub(crate) ends_early: bool,
}

/// Nodes, hardware and clock.
pub(crate) struct Cluster {
    pace: Pace,
    patience: Duration,
    hosts: Vec<Mutex<Host>>,
    clock: Mutex<Clock>,
    /// For each node, true if its wait is over.
    over: Vec<AtomicBool>,
    /// True if the clock has stopped: a node panicked, or did not reach the next edge.
    broken: AtomicBool,
    time: VirtualTime,
}

struct Clock {
    hardware: Box<dyn Hardware>,
    inputs: Vec<Inputs>,
    outputs: Vec<Outputs>,
    cycle: u64,
    states: Vec<NodeState>,
    /// Nodes that have left since the last edge.
    leaving: Vec<usize>,
}

/// The state of a node at the clock.
enum NodeState {
    /// The node is working.
    Busy,
    Waiting {
        until: u64,
        ends_early: bool,
        thread: Thread,
    },
    Left,
}

/// Locks, ignoring poison: data under these locks are consistent between any two calls, and a panic breaks the cluster
/// besides.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cluster {
    /// A cluster of `nodes` nodes after a reset, with open mailboxes. The time begins then.
    pub(crate) fn new(hardware: Box<dyn Hardware>, nodes: usize, options: &RtlOptions) -> Self {
        let clock = Clock {
            hardware,
            inputs: vec![Inputs::default(); nodes],
            outputs: vec![Outputs::default(); nodes],
            cycle: 0,
            states: (0..nodes).map(|_| NodeState::Busy).collect(),
            leaving: Vec::new(),
        };
        let cluster = Self {
            pace: options.pace,
            patience: options.patience,
            hosts: (0..nodes).map(|_| Mutex::new(Host::new(nodes, options))).collect(),
            clock: Mutex::new(clock),
            over: (0..nodes).map(|_| AtomicBool::new(false)).collect(),
            broken: AtomicBool::new(false),
            time: VirtualTime::default(),
        };
        cluster.open();
        cluster
    }

    pub(crate) fn nodes(&self) -> usize {
        self.hosts.len()
    }

    pub(crate) fn host(&self, node: usize) -> MutexGuard<'_, Host> {
        lock(&self.hosts[node])
    }

    pub(crate) fn time(&self) -> &VirtualTime {
        &self.time
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Lets a node wait.
    pub(crate) fn pass(&self, node: usize, wait: Wait) {
        if !self.is_broken() {
            match self.pace {
                Pace::Lockstep => self.pass_together(node, wait),
                Pace::Free => self.pass_alone(node, wait),
            }
        }
    }

    /// Removes a node. Its stores are still sent; packets to it are discarded.
    pub(crate) fn leave(&self, node: usize) {
        let mut clock = lock(&self.clock);
        if thread::panicking() {
            self.give_up();
        }
        clock.states[node] = NodeState::Left;
        clock.leaving.push(node);
        match self.pace {
            Pace::Lockstep if !self.is_broken() => self.turn(&mut clock),
            _ => self.announce(&mut clock),
        }
    }

    fn open(&self) {
        let mut clock = lock(&self.clock);
        let each = |what: &dyn Fn(u64, &mut Host)| {
            (0_u64..).zip(&self.hosts).for_each(|(node, host)| what(node, &mut lock(host)));
        };
        each(&|_, host| host.bus.ask_tail());
        self.settle(&mut clock);
        each(&|node, host| host.open(node, host.bus.read.into()));
        self.settle(&mut clock);
        clock.cycle = 0;
        self.time.set(Time::ZERO);
    }

    /// Runs the clock until all requests to registers are answered.
    fn settle(&self, clock: &mut Clock) {
        while !self.hosts.iter().all(|host| lock(host).bus.is_settled()) {
            self.step(clock);
        }
        self.step(clock);
    }

    fn pass_alone(&self, node: usize, wait: Wait) {
        let most = if wait.ends_early { MOST_FREE } else { u64::MAX };
        for _ in 0..wait.cycles.min(most) {
            self.step(&mut lock(&self.clock));
            if wait.ends_early && self.host(node).has_news() {
                return;
            }
        }
    }

    fn pass_together(&self, node: usize, wait: Wait) {
        self.over[node].store(false, Ordering::Relaxed);
        let mut clock = lock(&self.clock);
        let until = clock.cycle + wait.cycles.max(1);
        clock.states[node] = NodeState::Waiting { until, ends_early: wait.ends_early, thread: thread::current() };
        self.turn(&mut clock);
        drop(clock);
        self.rest(node);
    }

    /// Runs the clock, when all nodes wait, until the first of them has waited long enough.
    fn turn(&self, clock: &mut Clock) {
        let waiting = clock.states.iter().filter(|state| matches!(state, NodeState::Waiting { .. })).count();
        if waiting == 0 || clock.states.iter().any(|state| matches!(state, NodeState::Busy)) {
            return;
        }
        self.announce(clock);
        loop {
            self.step(clock);
            let due: Vec<_> = (0..clock.states.len()).filter(|&node| self.is_due(clock, node)).collect();
            due.iter().for_each(|&node| self.wake(clock, node));
            if !due.is_empty() {
                return;
            }
        }
    }

    fn is_due(&self, clock: &Clock, node: usize) -> bool {
        match clock.states[node] {
            NodeState::Waiting { until, ends_early, .. } => {
                until <= clock.cycle || (ends_early && self.host(node).has_news())
            }
            NodeState::Busy | NodeState::Left => false,
        }
    }

    fn wake(&self, clock: &mut Clock, node: usize) {
        if let NodeState::Waiting { thread, .. } = std::mem::replace(&mut clock.states[node], NodeState::Busy) {
            self.over[node].store(true, Ordering::Release);
            thread.unpark();
        }
    }

    /// Runs one cycle.
    fn step(&self, clock: &mut Clock) {
        for (host, inputs) in self.hosts.iter().zip(&mut clock.inputs) {
            *inputs = lock(host).inputs();
        }
        clock.hardware.step(&clock.inputs, &mut clock.outputs);
        for ((host, outputs), state) in self.hosts.iter().zip(&clock.outputs).zip(&clock.states) {
            let mut host = lock(host);
            host.outputs(outputs);
            if matches!(state, NodeState::Left) {
                while host.take().is_some() {}
            }
        }
        clock.cycle += 1;
        self.time.set(Time::ZERO + Span(CYCLE.0 * clock.cycle));
    }

    /// Tells all nodes about those that have left.
    fn announce(&self, clock: &mut Clock) {
        for gone in clock.leaving.drain(..) {
            for node in (0..self.nodes()).filter(|&node| node != gone) {
                let sent = self.host(gone).peers.sent(node);
                self.host(node).peers.note_gone(gone, sent);
            }
        }
    }

    /// Waits until the wait of a node is over, or the cluster is broken.
    fn rest(&self, node: usize) {
        let is_over = || self.over[node].load(Ordering::Acquire) || self.is_broken();
        for spins in 0..SPINS + YIELDS {
            if is_over() {
                return;
            }
            if spins < SPINS { hint::spin_loop() } else { thread::yield_now() }
        }
        let (mut seen, mut since) = (self.time.now(), Instant::now());
        while !is_over() {
            thread::park_timeout(LOOK.min(self.patience));
            let now = self.time.now();
            if now != seen {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() > self.patience {
                self.give_up();
            }
        }
    }

    fn give_up(&self) {
        self.broken.store(true, Ordering::Release);
    }
}
