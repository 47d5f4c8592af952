//! The meeting of threads that all wait for each other, every microsecond or less: nobody sleeps.

use std::{
    hint,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    thread,
};

/// Looks at the others before a thread lets another program have its core.
const LOOKS: u32 = 1 << 6;

/// A barrier that spins.
pub(super) struct Meeting {
    members: usize,
    arrived: AtomicUsize,
    /// Meetings so far.
    number: AtomicU64,
    /// A member has panicked and will never come.
    broken: AtomicBool,
}

/// The attendance of a member. If it ends by a panic, so does that of all others.
pub(super) struct Attendance<'a>(&'a Meeting);

impl Meeting {
    pub(super) const fn new(members: usize) -> Self {
        Self { members, arrived: AtomicUsize::new(0), number: AtomicU64::new(0), broken: AtomicBool::new(false) }
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
            self.number.store(number + 1, Ordering::Release);
            return;
        }
        let mut looks = 0;
        while self.number.load(Ordering::Acquire) == number {
            assert!(!self.broken.load(Ordering::Relaxed), "another part of the simulation has panicked");
            looks += 1;
            if looks % LOOKS == 0 { thread::yield_now() } else { hint::spin_loop() }
        }
    }
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
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
