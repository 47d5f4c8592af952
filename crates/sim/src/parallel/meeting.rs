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

/// A barrier at which threads spin for a while before they sleep.
pub(super) struct Meeting {
    members: usize,
    /// Looks before a member sleeps: none where members are more than cores, since one that looks keeps a core from another.
    looks: u32,
    arrived: AtomicUsize,
    /// Meetings so far.
    number: AtomicU64,
    /// A member has panicked and will never come.
    broken: AtomicBool,
    /// Members that sleep, or are about to.
    asleep: AtomicUsize,
    lock: Mutex<()>,
    woken: Condvar,
}

/// The attendance of a member. If it ends by a panic, so does that of all others.
pub(super) struct Attendance<'a>(&'a Meeting);

impl Meeting {
    pub(super) fn new(members: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            members,
            looks: if members > cores { 0 } else { LOOKS },
            arrived: AtomicUsize::new(0),
            number: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            asleep: AtomicUsize::new(0),
            lock: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    pub(super) const fn attend(&self) -> Attendance<'_> {
        Attendance(self)
    }

    /// Waits until all members are here. What each has done before, all see after it.
    ///
    /// # Panics
    /// If a member has panicked.
    pub(super) fn meet(&self) {
        // Nobody counts on before this member has come.
        let number = self.number.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.store(0, Ordering::Relaxed);
            self.number.store(number + 1, Ordering::SeqCst);
            return self.wake();
        }
        for _ in 0..self.looks {
            if !self.is_before(number) {
                return;
            }
            hint::spin_loop();
        }
        self.sleep(number);
    }

    /// True while the members do not meet after this number of meetings.
    fn is_before(&self, number: u64) -> bool {
        assert!(!self.broken.load(Ordering::Relaxed), "another part of the simulation has panicked");
        self.number.load(Ordering::SeqCst) == number
    }

    /// Sleeps until the members meet.
    fn sleep(&self, number: u64) {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever ends the wait does so before it looks for sleepers; so it sees this one, or this one sees the end.
        self.asleep.fetch_add(1, Ordering::SeqCst);
        while self.is_before(number) {
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

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Ordering::SeqCst);
            self.0.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_see_what_the_others_did_before() {
        let (meeting, counts) = (Meeting::new(3), [const { AtomicU64::new(0) }; 3]);
        thread::scope(|scope| {
            for count in &counts {
                scope.spawn(|| {
                    let _attendance = meeting.attend();
                    for round in 1..=1000 {
                        count.store(round, Ordering::Relaxed);
                        meeting.meet();
                        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == round));
                        meeting.meet();
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_one_who_panicked() {
        let meeting = Meeting::new(2);
        let attend = |panics: bool| {
            let _attendance = meeting.attend();
            assert!(!panics, "as told");
            meeting.meet();
        };
        thread::scope(|scope| {
            let threads = [true, false].map(|panics| scope.spawn(move || attend(panics)));
            assert!(threads.into_iter().all(|thread| thread.join().is_err()));
        });
    }
}
