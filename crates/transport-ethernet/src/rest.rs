//! Sleep of a node until a frame arrives, and wakers that end it.

use evb_transport::Waker;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::{read, write},
};
use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The bell of a node. It is shared by the node and its wakers.
#[derive(Debug)]
struct Bell {
    called: AtomicBool,
    file: OwnedFd,
}

/// The sleeping side of a bell.
#[derive(Clone, Debug)]
pub(crate) struct Rest(Arc<Bell>);

impl Rest {
    pub(crate) fn new() -> io::Result<Self> {
        let file = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self(Arc::new(Bell { called: AtomicBool::new(false), file })))
    }

    /// Returns true if a waker was called since the last time.
    pub(crate) fn was_called(&self) -> bool {
        self.0.called.load(Ordering::Relaxed) && self.0.called.swap(false, Ordering::AcqRel)
    }

    /// Sleeps until the file can be read, or written if that is `wanted`, a waker is called, or `longest` is over. The flag
    /// is set before the bell is rung, so who is woken by the bell sees the flag next.
    pub(crate) fn sleep(&self, file: BorrowedFd<'_>, wants_room: bool, longest: Duration) {
        let wanted = if wants_room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut files = [PollFd::from_borrowed_fd(file, wanted), PollFd::new(&self.0.file, PollFlags::IN)];
        let longest = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
        // A signal ends the sleep early, as the caller allows.
        let _ended = poll(&mut files, Some(&longest));
        if files[1].revents().contains(PollFlags::IN) {
            let _emptied = read(&self.0.file, &mut [0; 8]);
        }
    }

    /// A handle that ends a sleep.
    pub(crate) fn waker(&self) -> Waker {
        let bell = Arc::clone(&self.0);
        Arc::new(move || {
            if !bell.called.swap(true, Ordering::AcqRel) {
                // A counter that is full has been rung.
                let _rung = write(&bell.file, &1_u64.to_ne_bytes());
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::{fd::AsFd, unix::net::UnixStream};

    #[test]
    fn a_call_is_seen_once_however_often_it_came() {
        let rest = Rest::new().unwrap();
        let (silent, _other) = UnixStream::pair().unwrap();
        let waker = rest.waker();
        assert!(!rest.was_called());
        for _ in 0..1000 {
            (0..3).for_each(|_| waker());
            rest.sleep(silent.as_fd(), false, Duration::from_secs(60));
            assert!(rest.was_called() && !rest.was_called());
        }
        rest.sleep(silent.as_fd(), true, Duration::from_secs(60));
    }
}
