//! The meeting of threads that all wait for each other every few microseconds.

use std::{
    hint,
    num::NonZeroUsize,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

/// Looks at the others before a thread sleeps, where each has a core.
const LOOKS: u32 = 1 << 13;

/// The meeting of some members: each counts its arrivals, and waits for those of the others.
pub(super) struct Meeting {
    /// Arrivals of each member.
    arrivals: Vec<Arrivals>,
    /// Looks before a member sleeps: none where members are more than cores, since one that looks keeps a core from another.
    looks: u32,
    /// A member has panicked and will never come.
    broken: AtomicBool,
    /// Members that sleep, or are about to.
    asleep: AtomicUsize,
    lock: Mutex<()>,
    woken: Condvar,
}

/// The arrivals of a member, on cache lines of their own (two, because of the adjacent-line prefetcher).
#[derive(Default)]
#[repr(align(128))]
struct Arrivals(AtomicU64);

/// The attendance of a member. If it ends by a panic, so does that of all others.
pub(super) struct Attendance<'a> {
    meeting: &'a Meeting,
    member: usize,
    arrivals: u64,
}

impl Meeting {
    pub(super) fn new(members: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            arrivals: (0..members).map(|_| Arrivals::default()).collect(),
            looks: if members > cores { 0 } else { LOOKS },
            broken: AtomicBool::new(false),
            asleep: AtomicUsize::new(0),
            lock: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    pub(super) const fn attend(&self, member: usize) -> Attendance<'_> {
        Attendance { meeting: self, member, arrivals: 0 }
    }

    /// True if all members have arrived so often.
    fn are_there(&self, arrivals: u64) -> bool {
        assert!(!self.broken.load(Ordering::Relaxed), "another part of the simulation has panicked");
        self.arrivals.iter().all(|member| member.0.load(Ordering::SeqCst) >= arrivals)
    }

    /// Sleeps until all members have arrived so often.
    fn sleep(&self, arrivals: u64) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever arrives does so before it looks for sleepers; so it sees this one, or this one sees it.
        self.asleep.fetch_add(1, Ordering::SeqCst);
        while !self.are_there(arrivals) {
            guard = self.woken.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) > 0 {
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.woken.notify_all();
        }
    }
}

impl Attendance<'_> {
    /// Arrives, and waits for nobody. What this member has done before, all see that have waited for it.
    pub(super) fn arrive(&mut self) {
        self.arrivals += 1;
        self.meeting.arrivals[self.member].0.store(self.arrivals, Ordering::SeqCst);
        self.meeting.wake();
    }

    /// Waits until all have arrived as often as this member.
    ///
    /// # Panics
    /// If a member has panicked.
    pub(super) fn wait_for_last(&self) {
        self.wait(self.arrivals);
    }

    /// Waits until all have arrived as often as this member before its last arrival.
    ///
    /// # Panics
    /// If a member has panicked.
    pub(super) fn wait_for_last_but_one(&self) {
        self.wait(self.arrivals.saturating_sub(1));
    }

    fn wait(&self, arrivals: u64) {
        for _ in 0..self.meeting.looks {
            if self.meeting.are_there(arrivals) {
                return;
            }
            hint::spin_loop();
        }
        if !self.meeting.are_there(arrivals) {
            self.meeting.sleep(arrivals);
        }
    }

    /// Arrives and waits for all.
    pub(super) fn meet(&mut self) {
        self.arrive();
        self.wait_for_last();
    }
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.meeting.broken.store(true, Ordering::SeqCst);
            self.meeting.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets members count to 1000 in a place of their own. `step` lets one go on after each count, and gets all counts.
    fn count_together(members: usize, step: impl Fn(&mut Attendance<'_>, u64, &dyn Fn() -> Vec<u64>) + Sync) {
        let meeting = Meeting::new(members);
        let counts: Vec<_> = (0..members).map(|_| AtomicU64::new(0)).collect();
        let all = || counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        thread::scope(|scope| {
            for (member, count) in counts.iter().enumerate() {
                let (meeting, step, all) = (&meeting, &step, &all);
                scope.spawn(move || {
                    let mut attendance = meeting.attend(member);
                    for round in 1..=1000 {
                        count.store(round, Ordering::Relaxed);
                        step(&mut attendance, round, all);
                    }
                });
            }
        });
    }

    #[test]
    fn all_see_what_the_others_did_before() {
        count_together(3, |attendance, round, counts| {
            attendance.meet();
            assert_eq!(counts(), [round; 3]);
            attendance.meet();
        });
    }

    #[test]
    fn one_who_waits_for_the_last_arrival_but_one_is_ahead_by_one_at_most() {
        count_together(2, |attendance, round, counts| {
            attendance.arrive();
            attendance.wait_for_last_but_one();
            assert!(counts().into_iter().all(|count| count + 1 >= round));
        });
    }

    #[test]
    fn nobody_waits_for_one_who_panicked() {
        let meeting = Meeting::new(2);
        let attend = |member| {
            let mut attendance = meeting.attend(member);
            assert!(member > 0, "as told");
            attendance.meet();
        };
        thread::scope(|scope| {
            let threads = [0, 1].map(|member| scope.spawn(move || attend(member)));
            assert!(threads.into_iter().all(|thread| thread.join().is_err()));
        });
    }
}
