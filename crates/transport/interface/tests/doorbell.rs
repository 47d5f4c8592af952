//! The doorbell under a model checker: interleavings, and every value that the memory model lets a load see. A
//! lost wake-up is a deadlock here, because the model's park has no timeout.

mod sync {
    //! The primitives of loom under the names that the doorbell uses. Parking is built from them, because loom's own
    //! `unpark` wakes a thread that waits for something else.
    use loom::sync::{Arc, Notify};
    pub(crate) use loom::sync::{
        Mutex,
        atomic::{AtomicBool, Ordering, fence},
    };

    loom::thread_local! {
        static CURRENT: Thread = Thread(Arc::new(Notify::new()));
    }

    #[derive(Clone, Debug)]
    pub(crate) struct Thread(Arc<Notify>);

    impl Thread {
        pub(crate) fn unpark(&self) {
            self.0.notify();
        }
    }

    pub(crate) fn current() -> Thread {
        CURRENT.with(Clone::clone)
    }

    pub(crate) fn park_timeout(_: std::time::Duration) {
        current().0.wait();
    }
}

#[expect(unreachable_pub, reason = "it is public in the library")]
#[path = "../src/doorbell.rs"]
mod doorbell;

use doorbell::Doorbell;
use loom::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

/// Runs a case with three preemptions, which are enough to find the faults, and keep the search short.
fn model(case: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(case);
}

#[test]
fn no_ring_is_lost() {
    model(|| {
        let (bell, published) = (Arc::new(Doorbell::default()), Arc::new(AtomicUsize::new(0)));
        let (their_bell, their_published) = (Arc::clone(&bell), Arc::clone(&published));
        let ringer = loom::thread::spawn(move || {
            for _ in 0..2 {
                their_published.fetch_add(1, Ordering::Relaxed);
                their_bell.ring();
            }
        });
        for wanted in 1..=2 {
            while published.load(Ordering::Relaxed) < wanted {
                bell.wait(Duration::ZERO, || published.load(Ordering::Relaxed) >= wanted);
            }
        }
        ringer.join().unwrap();
    });
}

#[test]
fn of_two_ringers_none_is_lost() {
    model(|| {
        let (bell, published) = (Arc::new(Doorbell::new()), Arc::new(AtomicUsize::new(0)));
        let ringers: Vec<_> = (0..2)
            .map(|_| {
                let (bell, published) = (Arc::clone(&bell), Arc::clone(&published));
                loom::thread::spawn(move || {
                    published.fetch_add(1, Ordering::Relaxed);
                    bell.ring();
                })
            })
            .collect();
        while published.load(Ordering::Relaxed) < 2 {
            bell.wait(Duration::ZERO, || published.load(Ordering::Relaxed) == 2);
        }
        ringers.into_iter().for_each(|ringer| ringer.join().unwrap());
    });
}

#[test]
fn a_call_ends_the_wait_even_when_it_comes_first() {
    model(|| {
        let bell = Arc::new(Doorbell::new());
        let theirs = Arc::clone(&bell);
        let caller = loom::thread::spawn(move || theirs.call());
        bell.wait(Duration::ZERO, || false);
        caller.join().unwrap();
    });
}
