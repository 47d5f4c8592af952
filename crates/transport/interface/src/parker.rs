//! Rest of a node until something may have arrived, and wakers that end it.

use crate::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    io::{self, Read as _, Write as _},
    os::{fd::BorrowedFd, unix::net::UnixStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Naps of a node that has no file to sleep on; each is twice as long as the one before.
const FIRST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// The wakers' side.
#[derive(Debug)]
struct Bell {
    called: AtomicBool,
    writer: UnixStream,
}

/// The resting side of a node, which makes wakers for others.
///
/// ```
/// use evb_transport::Parker;
/// use std::{thread, time::Duration};
///
/// let rest = Parker::new()?;
/// let waker = rest.waker();
/// thread::spawn(move || waker());
/// while !rest.was_called() {
///     rest.sleep(&[], Duration::from_secs(60));
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Parker {
    bell: Arc<Bell>,
    reader: UnixStream,
}

impl Parker {
    /// A parker that was not called.
    ///
    /// # Errors
    /// The system gives no more files.
    pub fn new() -> io::Result<Self> {
        let (writer, reader) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        reader.set_nonblocking(true)?;
        Ok(Self { bell: Arc::new(Bell { called: AtomicBool::new(false), writer }), reader })
    }

    /// Returns true if a waker was called since the last time.
    #[must_use]
    pub fn was_called(&self) -> bool {
        self.bell.called.load(Ordering::Relaxed) && self.bell.called.swap(false, Ordering::AcqRel)
    }

    /// Sleeps until one of these files can be read, or written where `true` is beside it, a waker is called, or `longest` is
    /// over. It may end early, as after a signal.
    pub fn sleep(&self, files: &[(BorrowedFd<'_>, bool)], longest: Duration) {
        let wanted = |wants_room| if wants_room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut asked = Vec::with_capacity(1 + files.len());
        asked.push(PollFd::new(&self.reader, PollFlags::IN));
        asked.extend(files.iter().map(|&(file, wants_room)| PollFd::from_borrowed_fd(file, wanted(wants_room))));
        let longest = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: longest.subsec_nanos().into() };
        let _ended = poll(&mut asked, Some(&longest));
        // The flag is set before the byte is written: a thread that has read the byte sees the flag next.
        if !asked[0].revents().is_empty() {
            let _emptied = (&self.reader).read(&mut [0; 64]);
        }
    }

    /// Sleeps without a file, as the nap of this number in a row, from 0.
    pub fn nap(&self, number: u32, longest: Duration) {
        let nap = FIRST_NAP.saturating_mul(1 << number.min(16)).min(LONGEST_NAP);
        self.sleep(&[], nap.min(longest));
    }

    /// A handle that ends the present sleep, or else the next one.
    #[must_use]
    pub fn waker(&self) -> Waker {
        let bell = Arc::clone(&self.bell);
        Arc::new(move || {
            if !bell.called.swap(true, Ordering::AcqRel) {
                // A stream that is full has a byte in it, which is all that is wanted.
                let _rung = (&bell.writer).write(&[1]);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::fd::AsFd, time::Instant};

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_call_is_seen_once_however_often_it_came() {
        let parker = Parker::new().unwrap();
        let (silent, _other) = UnixStream::pair().unwrap();
        let waker = parker.waker();
        assert!(!parker.was_called());
        for round in 0..1000 {
            (0..3).for_each(|_| waker());
            match round % 2 {
                0 => parker.sleep(&[(silent.as_fd(), false)], LONG),
                _ => parker.nap(u32::MAX, LONG),
            }
            assert!(parker.was_called() && !parker.was_called());
        }
    }

    #[test]
    fn a_file_ends_the_sleep_and_so_does_the_time() {
        let parker = Parker::new().unwrap();
        let (mut writer, reader) = UnixStream::pair().unwrap();
        let start = Instant::now();
        parker.sleep(&[(reader.as_fd(), false)], Duration::from_millis(3));
        assert!(start.elapsed() >= Duration::from_millis(3));
        parker.sleep(&[(reader.as_fd(), true)], LONG);
        writer.write_all(&[1]).unwrap();
        parker.sleep(&[(reader.as_fd(), false)], LONG);
        assert!(start.elapsed() < LONG && !parker.was_called());
    }
}
