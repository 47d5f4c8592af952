//! Sleep of a node on all its links, and wakers that end it.

use crate::Waker;
use mio::{Events, Interest, Poll, Token, unix::SourceFd};
use std::{
    io,
    os::fd::RawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

const WAKER: Token = Token(usize::MAX);
/// Longest sleep, whatever a file says: it bounds what a missed change costs.
const LONGEST: Duration = Duration::from_millis(20);
/// Naps of a node with links that have no file to sleep on; each is twice as long as the one before.
const FIRST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// The sleeping side.
#[derive(Debug)]
pub(super) struct Rest {
    poll: Poll,
    events: Events,
    waker: Arc<mio::Waker>,
    called: Arc<AtomicBool>,
    /// Every link has a file.
    sleeps: bool,
    nap: Duration,
}

impl Rest {
    /// A rest on these files, one for each link that has one.
    pub(super) fn new(files: impl Iterator<Item = Option<RawFd>>) -> io::Result<Self> {
        let (poll, mut sleeps) = (Poll::new()?, true);
        for (link, file) in files.enumerate() {
            match file {
                Some(file) => poll.registry().register(&mut SourceFd(&file), Token(link), Interest::READABLE)?,
                None => sleeps = false,
            }
        }
        let waker = Arc::new(mio::Waker::new(poll.registry(), WAKER)?);
        let events = Events::with_capacity(16);
        Ok(Self { poll, events, waker, called: Arc::default(), sleeps, nap: FIRST_NAP })
    }

    /// Begins a wait: its first naps are short.
    pub(super) fn begin(&mut self) {
        self.nap = FIRST_NAP;
    }

    /// True if a waker was called since the last time.
    pub(super) fn was_called(&self) -> bool {
        self.called.load(Ordering::Relaxed) && self.called.swap(false, Ordering::AcqRel)
    }

    /// Sleeps until a link may have something, a waker is called, or `longest` is over, or less.
    pub(super) fn sleep(&mut self, longest: Duration) {
        if self.sleeps {
            // A signal ends the sleep early, as the caller allows.
            let _ended = self.poll.poll(&mut self.events, Some(longest.min(LONGEST)));
        } else {
            thread::sleep(self.nap.min(longest));
            self.nap = (2 * self.nap).min(LONGEST_NAP);
        }
    }

    /// A handle that ends a sleep.
    pub(super) fn waker(&self) -> Waker {
        let (waker, called) = (Arc::clone(&self.waker), Arc::clone(&self.called));
        Arc::new(move || {
            called.store(true, Ordering::Release);
            // Waking fails only when the endpoint is gone, and then nobody waits.
            drop(waker.wake());
        })
    }
}
