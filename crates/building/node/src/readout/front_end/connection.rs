//! The control connection of a front end: one thread connects or listens, writes orders and reads what comes.
//!
//! A connection lasts for one preparation and its run. One that ends within the run is not taken up again: what is behind
//! it may have started anew, and has no settings.

use super::lines::{GREETING, Lines, Said, parse};
use crate::{error::NodeError, limits};
use evb_sources::ControlLink;
use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write as _},
    net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs as _},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Longest wait for one attempt to connect. It is short, for the end of the node waits for it.
const ATTEMPT: Duration = Duration::from_millis(250);
/// Time between two attempts to connect, and between two looks at a listener.
const RETRY: Duration = Duration::from_millis(50);
/// Longest wait for bytes before the orders are looked at again.
const TICK: Duration = Duration::from_millis(10);
/// Longest wait for a front end that does not read its orders.
const WRITE_TIMEOUT: Duration = Duration::from_millis(500);
/// Most orders that wait to be written. A run has a handful.
const MOST_ORDERS: usize = 16;
/// Most answers and texts that wait for the node: more than any front end has to say between two of its turns.
const MOST_HEARD: usize = 64;

/// What is heard on a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Said(Said),
    /// Nothing comes any more, for this reason.
    Ended(String),
}

/// What the thread and the node share.
#[derive(Default)]
struct Shared {
    heard: Mutex<VecDeque<(Instant, Heard)>>,
    /// Something was heard.
    any: AtomicBool,
    /// The reason why the last attempt to connect failed.
    attempt: Mutex<Option<String>>,
    is_connected: AtomicBool,
    stop: AtomicBool,
}

/// The node's end of a control connection. Dropping it writes the orders that wait, and closes it.
pub(super) struct Connection {
    orders: Option<SyncSender<String>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// Begins to connect or to listen. `waker` is called from another thread when something was heard.
    ///
    /// # Errors
    /// The address cannot be listened at, or the system has no more threads.
    pub(super) fn open(link: &ControlLink, waker: Arc<dyn Fn() + Send + Sync>) -> Result<Self, NodeError> {
        let listener = match link {
            ControlLink::Connect(_) => None,
            ControlLink::Listen(address) => Some(
                listen(address)
                    .map_err(|error| NodeError::new(format!("cannot listen for run control at {address}: {error}")))?,
            ),
        };
        let (orders, waiting) = sync_channel(MOST_ORDERS);
        let shared = Arc::new(Shared::default());
        let (link, of_thread) = (link.clone(), shared.clone());
        let thread = limits::spawn(move || {
            let Some(stream) = reach(&link, listener, &of_thread) else { return };
            of_thread.is_connected.store(true, Ordering::Release);
            if let Err(why) = talk(&stream, &waiting, &of_thread, &*waker) {
                of_thread.hear(Heard::Ended(why), &*waker);
            }
        })?;
        Ok(Self { orders: Some(orders), shared, thread: Some(thread) })
    }

    /// Sends a line. One for which there is no room is not answered, which is noticed.
    pub(super) fn send(&self, line: String) {
        let _unanswered = self.orders.as_ref().map(|orders| orders.try_send(line));
    }

    /// What was heard next, and when.
    pub(super) fn next(&self) -> Option<(Instant, Heard)> {
        if !self.shared.any.load(Ordering::Acquire) {
            return None;
        }
        let mut heard = lock(&self.shared.heard);
        let next = heard.pop_front();
        self.shared.any.store(!heard.is_empty(), Ordering::Release);
        next
    }

    /// There is a connection, or there was one.
    pub(super) fn is_connected(&self) -> bool {
        self.shared.is_connected.load(Ordering::Acquire)
    }

    /// The reason why there is no connection yet, if it is known.
    pub(super) fn obstacle(&self) -> Option<String> {
        lock(&self.shared.attempt).clone()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Notes what was heard. A front end that says more than the node takes waits, by TCP.
    fn hear(&self, what: Heard, waker: &(dyn Fn() + Send + Sync)) {
        while lock(&self.heard).len() >= MOST_HEARD && !self.stopped() {
            thread::park_timeout(TICK);
        }
        lock(&self.heard).push_back((Instant::now(), what));
        self.any.store(true, Ordering::Release);
        waker();
    }
}

fn listen(address: &str) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects to the front end, or waits until it connects; none if it is stopped before.
fn reach(link: &ControlLink, listener: Option<TcpListener>, shared: &Shared) -> Option<TcpStream> {
    while !shared.stopped() {
        let attempt = match (link, &listener) {
            (_, Some(listener)) => listener.accept().map(|(stream, _)| stream),
            (ControlLink::Connect(address) | ControlLink::Listen(address), None) => dial(address),
        };
        match attempt {
            Ok(stream) => return Some(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => *lock(&shared.attempt) = Some(error.to_string()),
        }
        thread::park_timeout(RETRY);
    }
    None
}

fn dial(address: &str) -> io::Result<TcpStream> {
    let mut outcome = Err(io::Error::new(ErrorKind::NotFound, "the host has no address"));
    for peer in address.to_socket_addrs()? {
        outcome = TcpStream::connect_timeout(&peer, ATTEMPT);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Writes the orders that come and reads lines, until either side ends.
fn talk(
    stream: &TcpStream,
    orders: &Receiver<String>,
    shared: &Shared,
    waker: &(dyn Fn() + Send + Sync),
) -> Result<(), String> {
    let failed = |error: io::Error| format!("lost its control connection ({error})");
    stream.set_nonblocking(false).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    stream.set_read_timeout(Some(TICK)).map_err(failed)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(failed)?;
    let mut writer = stream;
    let mut write = |line: &str| writer.write_all(format!("{line}\n").as_bytes()).map_err(failed);
    write(GREETING)?;
    let mut lines = Lines::default();
    loop {
        // Orders that were given before the stop are written in any case.
        let is_over = shared.stopped();
        orders.try_iter().try_for_each(|line| write(&line))?;
        if is_over {
            let _already_closed = stream.shutdown(Shutdown::Write);
            return Ok(());
        }
        read(stream, &mut lines, shared, waker)?;
    }
}

fn read(
    mut stream: &TcpStream,
    lines: &mut Lines,
    shared: &Shared,
    waker: &(dyn Fn() + Send + Sync),
) -> Result<(), String> {
    let mut bytes = [0; 1024];
    let count = match stream.read(&mut bytes) {
        Ok(0) => return Err("closed its control connection".to_owned()),
        Ok(count) => count,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
            return Ok(());
        }
        Err(error) => return Err(format!("lost its control connection ({error})")),
    };
    let mut outcome = Ok(());
    lines.take(&bytes[..count], |line| {
        if outcome.is_ok() {
            outcome = parse(line).map(|said| shared.hear(Heard::Said(said), waker));
        }
    })?;
    outcome
}
