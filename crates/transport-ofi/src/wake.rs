//! Rests of a node until something may have arrived, and wakers that end them.

use crate::ffi::wait_readable;
use evb_transport::{Waker, doorbell::Doorbell};
use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Number of polls without a pause of a node without a file to sleep on. Then it yields to other threads as often, and
/// then naps, each nap twice as long as the one before.
const SPINS: u32 = 200;
const YIELDS: u32 = 50;
const FIRST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// The bell that ends a rest: shared by the node and its wakers.
struct Bell {
    called: AtomicBool,
    /// The bell of a node that naps.
    doorbell: Doorbell,
    /// The bell of a node that sleeps on files.
    writer: UnixStream,
}

/// The resting side of a bell.
pub(crate) struct Rest {
    bell: Arc<Bell>,
    reader: UnixStream,
}

impl Rest {
    pub(crate) fn new() -> io::Result<Self> {
        let (writer, reader) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        reader.set_nonblocking(true)?;
        let bell = Bell { called: AtomicBool::new(false), doorbell: Doorbell::new(), writer };
        Ok(Self { bell: Arc::new(bell), reader })
    }

    /// Returns true if a waker was called since the last time.
    pub(crate) fn was_called(&self) -> bool {
        self.bell.called.load(Ordering::Relaxed) && self.bell.called.swap(false, Ordering::AcqRel)
    }

    /// Sleeps until the file can be read, a waker is called, or `longest` is over. The flag is set before the byte is
    /// written, so the reader of the byte sees the flag next.
    pub(crate) fn sleep(&self, file: RawFd, longest: Duration) {
        wait_readable([file, self.reader.as_raw_fd()], longest);
        let _ = (&self.reader).read(&mut [0; 8]);
    }

    /// Rests without a file, after `idle` such rests without work.
    pub(crate) fn nap(&self, idle: u32, longest: Duration) {
        if idle < SPINS {
            std::hint::spin_loop();
        } else if idle < SPINS + YIELDS {
            thread::yield_now();
        } else {
            let doublings = (idle - SPINS - YIELDS).min(16);
            let nap = (FIRST_NAP * (1 << doublings)).min(LONGEST_NAP).min(longest);
            self.bell.doorbell.wait(nap, || self.bell.called.load(Ordering::Relaxed));
        }
    }

    /// A handle that ends a rest.
    pub(crate) fn waker(&self) -> Waker {
        let bell = Arc::clone(&self.bell);
        Arc::new(move || {
            if !bell.called.swap(true, Ordering::AcqRel) {
                bell.doorbell.call();
                // A full pipe has a byte in it, which is all that is wanted.
                let _ = (&bell.writer).write(&[1]);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_seen_once_however_often_it_came() {
        let rest = Rest::new().unwrap();
        let waker = rest.waker();
        assert!(!rest.was_called());
        for _ in 0..1000 {
            (0..3).for_each(|_| waker());
            rest.sleep(rest.reader.as_raw_fd(), Duration::from_secs(60));
            assert!(rest.was_called() && !rest.was_called());
        }
        waker();
        rest.nap(u32::MAX, Duration::from_secs(60));
        assert!(rest.was_called());
    }
}
