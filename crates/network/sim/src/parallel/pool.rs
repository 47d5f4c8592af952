//! The threads that simulate the partitions of a network.
//!
//! Each has its own partitions, and waits for the mail of the others. A machine that does other work at the same time
//! takes the core from a thread for milliseconds, in which the others could do a thousand windows. So a thread that
//! waits long takes over partitions that no other thread holds; and one that has lost its core leaves its partitions to
//! the others for a while.

use super::runner::{PartitionRunner, RunOutcome, WindowStep};
use crate::simulation::{Observe, Progress, Simulation};
use rustix::{
    thread::sched_getcpu,
    time::{ClockId, clock_gettime},
};
use std::{
    hint,
    num::NonZeroUsize,
    sync::{
        Mutex, MutexGuard, TryLockError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

/// Steps between two looks at the progress and the clock.
const STRIDE: u64 = 1 << 10;

/// Looks at the others before a thread has waited long: about 0.2 ms.
const LOOKS: u32 = 1 << 13;

/// Rest of a thread that has waited long and found nothing to do.
const NAP: Duration = Duration::from_micros(50);

/// Time over which a thread finds out whether it has lost its core: for more than a quarter of it.
const SPELL: Duration = Duration::from_millis(4);
const LOSS: u32 = 4;

/// Rest of a thread after a first spell without a core, and after many of them: it is twice as long after each.
const REST: Duration = Duration::from_millis(4);
const LONGEST_REST: Duration = Duration::from_millis(500);

/// The core of a thread that rests.
const NOWHERE: usize = usize::MAX;

/// The threads and their partitions.
pub(super) struct PartitionPool<'a> {
    partitions: Vec<PooledPartition<'a>>,
    threads: usize,
    /// Threads that do not rest.
    awake: AtomicUsize,
    /// The core of each thread when it last looked.
    cores: Vec<AtomicUsize>,
    /// Parts that have not ended.
    left: AtomicUsize,
    /// The first thread, which waits for the end.
    first: Thread,
}

/// A partition, on separate cache lines (two, because of the adjacent-line prefetcher).
#[repr(align(128))]
struct PooledPartition<'a> {
    runner: Mutex<PartitionRunner<'a>>,
    /// The thread whose partition it is wants it back.
    is_wanted: AtomicBool,
    progress: PartitionProgress,
}

/// What a partition has done and holds, from time to time.
#[derive(Default)]
struct PartitionProgress {
    ended: AtomicU64,
    packet_hops: AtomicU64,
    planned_events: AtomicU64,
    packets: AtomicU64,
    messages: AtomicU64,
}

impl PartitionProgress {
    fn note(&self, now: &Progress) {
        self.ended.store(now.ended, Relaxed);
        self.packet_hops.store(now.packet_hops, Relaxed);
        self.planned_events.store(now.planned_events, Relaxed);
        self.packets.store(now.packets, Relaxed);
        self.messages.store(now.messages, Relaxed);
    }
}

/// A partition that a thread holds.
struct HeldPartition<'c, 'a> {
    partition: &'c PooledPartition<'a>,
    runner: MutexGuard<'c, PartitionRunner<'a>>,
    is_own: bool,
}

/// One thread at work.
struct PartitionWorker<'c, 'a> {
    pool: &'c PartitionPool<'a>,
    thread: usize,
    held: Vec<HeldPartition<'c, 'a>>,
    time: CoreTime,
    /// Its next rest.
    rest: Duration,
}

/// Time that a thread had a core, of that which has passed.
struct CoreTime {
    wall: Instant,
    core: Duration,
}

impl<'a> PartitionPool<'a> {
    /// A thread for each partition, if there are as many cores.
    pub(super) fn new(runners: Vec<PartitionRunner<'a>>) -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self::of(runners, cores)
    }

    /// Has this number of threads at most.
    pub(super) fn of(runners: Vec<PartitionRunner<'a>>, most: usize) -> Self {
        let (threads, left) = (runners.len().min(most), runners.len().into());
        let partition = |runner| PooledPartition {
            runner: Mutex::new(runner),
            is_wanted: false.into(),
            progress: PartitionProgress::default(),
        };
        Self {
            partitions: runners.into_iter().map(partition).collect(),
            threads,
            awake: 0.into(),
            cores: (0..threads).map(|_| NOWHERE.into()).collect(),
            left,
            first: thread::current(),
        }
    }

    /// Simulates all partitions to the end; returns them, and how they ended.
    ///
    /// # Panics
    /// If a partition does.
    pub(super) fn run(self, observe: &mut Observe<'_>) -> (RunOutcome, Vec<Simulation<'a>>) {
        thread::scope(|scope| {
            let pool = &self;
            // Where the system grants no more threads, the others simulate the partitions of the missing ones.
            let start = |thread| {
                let work = move || pool.work(thread, &mut |_| true);
                thread::Builder::new().spawn_scoped(scope, work).ok()
            };
            let others: Vec<_> = (1..self.threads).filter_map(start).collect();
            pool.work(0, observe);
            others.iter().for_each(|other| other.thread().unpark());
        });
        self.into_partitions()
    }

    /// Works as one of the threads until all partitions have ended. Only the first one reports the progress.
    pub(super) fn work(&self, thread: usize, observe: &mut Observe<'_>) {
        PartitionWorker::new(self, thread).work(observe);
    }

    /// The partitions after their end, and how they ended.
    pub(super) fn into_partitions(self) -> (RunOutcome, Vec<Simulation<'a>>) {
        let runners = self
            .partitions
            .into_iter()
            .map(|partition| partition.runner.into_inner().expect("no partition has panicked"));
        let (ends, partitions): (Vec<_>, Vec<_>) = runners.map(|runner| (runner.end(), runner.partition)).unzip();
        (ends[0].expect("all partitions have ended"), partitions)
    }

    /// The progress of all partitions, with the times of the first one.
    fn progress(&self, first: Progress) -> Progress {
        let sum = |count: fn(&PartitionProgress) -> &AtomicU64| {
            self.partitions.iter().map(|partition| count(&partition.progress).load(Relaxed)).sum()
        };
        Progress {
            ended: sum(|one| &one.ended),
            packet_hops: sum(|one| &one.packet_hops),
            planned_events: sum(|one| &one.planned_events),
            packets: sum(|one| &one.packets),
            messages: sum(|one| &one.messages),
            ..first
        }
    }

    /// Leaves a partition as a thread does that panics while it holds it.
    #[cfg(test)]
    pub(super) fn poison(&self, partition: usize) {
        let hold = std::panic::AssertUnwindSafe(|| {
            let _held = self.partitions[partition].runner.lock();
            panic!("as intended");
        });
        assert!(std::panic::catch_unwind(hold).is_err());
    }

    /// True for a thread that rests from now on: not the last one that does not.
    fn may_rest(&self) -> bool {
        let others = |awake| (awake > 1).then(|| awake - 1);
        self.awake.fetch_update(Relaxed, Relaxed, others).is_ok()
    }
}

impl<'c, 'a> PartitionWorker<'c, 'a> {
    fn new(pool: &'c PartitionPool<'a>, thread: usize) -> Self {
        pool.awake.fetch_add(1, Relaxed);
        Self { pool, thread, held: Vec::new(), time: CoreTime::now(), rest: REST }
    }

    /// Simulates partitions until all have ended.
    fn work(mut self, observe: &mut Observe<'_>) {
        self.take_own();
        let (mut steps, mut looks) = (0_u64, 0);
        while self.pool.left.load(Relaxed) > 0 {
            if self.step() {
                steps += 1;
                looks = 0;
                if steps.is_multiple_of(STRIDE) {
                    self.report_progress(observe);
                    self.rest(false);
                }
            } else if looks < LOOKS {
                looks += 1;
                hint::spin_loop();
            } else if !self.rest(true) && !self.take_free() {
                self.time.nap();
            }
        }
    }

    /// Advances all held partitions; returns true if one advanced.
    fn step(&mut self) -> bool {
        self.held.retain(|held| held.is_own || !held.partition.is_wanted.load(Relaxed));
        let mut advanced = false;
        for held in &mut self.held {
            match held.runner.step() {
                WindowStep::Advanced => advanced = true,
                WindowStep::Waits => {}
                WindowStep::Ended if self.pool.left.fetch_sub(1, Relaxed) == 1 => self.pool.first.unpark(),
                WindowStep::Ended => {}
            }
        }
        advanced
    }

    /// The partitions of this thread.
    fn own_partitions(&self) -> impl Iterator<Item = &'c PooledPartition<'a>> + use<'c, 'a> {
        self.pool.partitions.iter().skip(self.thread).step_by(self.pool.threads)
    }

    /// Takes the partitions of this thread, from other threads where these have them.
    fn take_own(&mut self) {
        for partition in self.own_partitions() {
            partition.is_wanted.store(true, Relaxed);
            let runner = partition.runner.lock().expect("no other partition of the simulation panics");
            partition.is_wanted.store(false, Relaxed);
            self.held.push(HeldPartition { partition, runner, is_own: true });
        }
    }

    /// Takes partitions that no thread has; returns true if there are some.
    fn take_free(&mut self) -> bool {
        let had = self.held.len();
        for partition in &self.pool.partitions {
            match partition.runner.try_lock() {
                Ok(runner) => self.held.push(HeldPartition { partition, runner, is_own: false }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Poisoned(_)) => panic!("another partition of the simulation has panicked"),
            }
        }
        self.held.len() > had
    }

    /// Reports the progress, and learns whether to continue.
    fn report_progress(&mut self, observe: &mut Observe<'_>) {
        for held in &self.held {
            held.partition.progress.note(&held.runner.partition.progress());
        }
        if self.thread == 0
            && let Some(first) = self.held.first_mut()
        {
            let all = self.pool.progress(first.runner.partition.progress());
            first.runner.continues = observe(&all);
        }
    }

    /// Leaves all partitions to the others for a while if this thread has lost its core, or `waits` and shares it with
    /// another one of these threads. It does not if it is the last one at work. Returns true if so.
    fn rest(&mut self, waits: bool) -> bool {
        let core = sched_getcpu();
        self.pool.cores[self.thread].store(core, Relaxed);
        let spell = self.time.end_spell(CoreTime::now());
        if spell == Some(true) {
            self.rest = REST;
        }
        let is_alone = !waits || self.pool.cores.iter().filter(|other| other.load(Relaxed) == core).count() == 1;
        if is_alone && spell != Some(false) || !self.pool.may_rest() {
            return false;
        }
        self.pool.cores[self.thread].store(NOWHERE, Relaxed);
        self.held.clear();
        thread::park_timeout(self.rest);
        self.rest = (2 * self.rest).min(LONGEST_REST);
        self.pool.awake.fetch_add(1, Relaxed);
        self.take_own();
        self.time = CoreTime::now();
        true
    }
}

impl CoreTime {
    fn now() -> Self {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Self { wall: Instant::now(), core: Duration::new(time.tv_sec as u64, time.tv_nsec as u32) }
    }

    /// True if the thread had its core for the most of the spell that ends `now`; `None` while the spell continues.
    fn end_spell(&mut self, now: Self) -> Option<bool> {
        let (wall, core) = (now.wall.saturating_duration_since(self.wall), now.core.saturating_sub(self.core));
        if wall < SPELL {
            return None;
        }
        *self = now;
        Some(wall.saturating_sub(core) * LOSS <= wall)
    }

    /// Sleeps. The sleep does not count as a loss of the core; waiting for the core after it does.
    fn nap(&mut self) {
        let start = Instant::now();
        thread::park_timeout(NAP);
        self.wall += start.elapsed().min(4 * NAP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_its_core_for_more_than_a_quarter_of_a_spell_has_lost_it() {
        let start = Instant::now();
        let had = |wall, core| {
            let mut time = CoreTime { wall: start, core: SPELL };
            time.end_spell(CoreTime { wall: start + wall, core: SPELL + core })
        };
        assert_eq!(had(SPELL / 2, Duration::ZERO), None);
        assert_eq!(had(SPELL, SPELL), Some(true));
        assert_eq!(had(2 * SPELL, 2 * SPELL - SPELL / 2), Some(true));
        assert_eq!(had(2 * SPELL, SPELL), Some(false));
    }

    #[test]
    fn one_thread_at_least_does_not_rest() {
        let pool = PartitionPool::of(Vec::new(), 0);
        pool.awake.store(2, Relaxed);
        assert!(pool.may_rest() && !pool.may_rest());
    }
}
