//! Whether anything that a front end has sent is still on its way through this host.
//!
//! A silent front end and a slow reader look the same from the queue. The difference is in the socket: a source is quiet
//! if no socket has bytes, no reader has taken bytes that it has not delivered, and then the queue is empty. A reader says
//! that it is busy before it takes bytes, so bytes are always in one of the three places.

use super::readers::POLL;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, OwnedFd},
    io::{Errno, ioctl_fionread},
};
use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// The sockets of a source that are read at present.
#[derive(Default)]
pub(super) struct Sockets(Mutex<Vec<Arc<Watched>>>);

/// A socket, or a file, and whether its reader has taken bytes that are not delivered.
struct Watched {
    socket: Option<OwnedFd>,
    is_busy: AtomicBool,
}

/// The watch of one reader over its socket, until it is dropped.
pub(super) struct SocketWatch<'a> {
    sockets: &'a Sockets,
    own: Arc<Watched>,
}

impl Sockets {
    /// Watches a socket.
    ///
    /// # Errors
    /// If no file descriptor is left.
    pub(super) fn watch(&self, socket: impl AsFd) -> io::Result<SocketWatch<'_>> {
        Ok(self.add(Watched { socket: Some(socket.as_fd().try_clone_to_owned()?), is_busy: AtomicBool::new(false) }))
    }

    /// Watches a file, whose reader is busy until it says that it waits.
    pub(super) fn watch_file(&self) -> SocketWatch<'_> {
        self.add(Watched { socket: None, is_busy: AtomicBool::new(true) })
    }

    fn add(&self, watched: Watched) -> SocketWatch<'_> {
        let own = Arc::new(watched);
        self.lock().push(own.clone());
        SocketWatch { sockets: self, own }
    }

    /// Returns true if no socket has bytes and no reader is busy. What was sent before is in the queue then.
    pub(super) fn are_quiet(&self) -> bool {
        let is_quiet = |watched: &Arc<Watched>| {
            let is_empty = |socket: &OwnedFd| ioctl_fionread(socket).is_ok_and(|bytes| bytes == 0);
            watched.socket.as_ref().is_none_or(is_empty) && !watched.is_busy.load(Ordering::SeqCst)
        };
        self.lock().iter().all(is_quiet)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Watched>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SocketWatch<'_> {
    /// Waits for bytes, for a while; returns false if none have come. What was read before has been delivered.
    pub(super) fn wait(&self) -> bool {
        self.set_busy(false);
        let Some(socket) = &self.own.socket else { return true };
        let came = wait_for_input(socket);
        self.set_busy(came);
        came
    }

    /// Says whether the reader has bytes that are not delivered.
    pub(super) fn set_busy(&self, is_busy: bool) {
        self.own.is_busy.store(is_busy, Ordering::SeqCst);
    }
}

/// Waits until a socket can be read, or a listener has a connection, for a while; returns false if it has nothing.
pub(crate) fn wait_for_input(socket: impl AsFd) -> bool {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(POLL.subsec_nanos()) };
    loop {
        match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            // The read says what is wrong.
            Err(_) => return true,
            Ok(ready) => return ready > 0,
        }
    }
}

impl Drop for SocketWatch<'_> {
    fn drop(&mut self) {
        self.sockets.lock().retain(|watched| !Arc::ptr_eq(watched, &self.own));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{Read as _, Write as _},
        net::{TcpListener, TcpStream},
    };

    #[test]
    fn bytes_in_a_socket_or_at_a_busy_reader_are_not_quiet() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut board = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let sockets = Sockets::default();
        assert!(sockets.are_quiet(), "no socket");
        let watch = sockets.watch(&stream).unwrap();
        assert!(!watch.wait() && sockets.are_quiet());
        board.write_all(b"x").unwrap();
        assert!(watch.wait());
        assert!(!sockets.are_quiet(), "in the socket");
        stream.read_exact(&mut [0]).unwrap();
        assert!(!sockets.are_quiet(), "not delivered");
        assert!(!watch.wait() && sockets.are_quiet());
        board.write_all(b"y").unwrap();
        assert!(watch.wait());
        drop(watch);
        assert!(sockets.are_quiet(), "given up");
        let file = sockets.watch_file();
        assert!(!sockets.are_quiet(), "a file that is read");
        drop(file);
        assert!(sockets.are_quiet());
    }
}
