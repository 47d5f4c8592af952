//! The door of a builder for filter units of elsewhere: a stranger that shows the token of the run becomes a filter unit.
//! Each connection has a thread, so that a silent one holds up nobody.

use super::{Shared, keeper::Keeper, process::Process};
use crate::{
    Hello, UnitsPlan,
    remote::handshake::{self, Refusal},
};
use evb_transport::Token;
use rustix::net::{Shutdown, shutdown};
use std::{
    io::{self, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Longest time that a connection may take to show the token.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);
/// Largest number of connections that may be saying hello at once; more wait in the system's queue.
const MOST_STRANGERS: usize = 16;
/// Largest number of filter units of elsewhere at one builder.
const MOST_JOINED: usize = 256;
/// Time between two looks for a place, or after a failure of the system.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The place at which filter units of elsewhere join one builder.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    closed: AtomicBool,
}

impl Door {
    /// The door at `listener` for those who have the token.
    ///
    /// # Errors
    /// The listener has no address.
    pub fn new(listener: TcpListener, token: Token) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self { listener, address, token, closed: AtomicBool::new(false) })
    }

    /// The address at which filter units join.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts the thread that accepts connections until the door is closed.
    pub(super) fn open(
        self: Arc<Self>,
        plan: UnitsPlan,
        hello: Hello,
        shared: Arc<Shared>,
    ) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().spawn(move || self.welcome(&plan, &hello, &shared))
    }

    /// Lets nobody in any more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // On Linux this ends the wait for a connection.
        let _closed_before = shutdown(&self.listener, Shutdown::Both);
    }

    fn welcome(self: &Arc<Self>, plan: &UnitsPlan, hello: &Hello, shared: &Arc<Shared>) {
        let mut unit = plan.units;
        loop {
            while !self.closed.load(Ordering::Relaxed) && shared.state().strangers >= MOST_STRANGERS {
                thread::sleep(LOOK_AGAIN);
            }
            let accepted = self.listener.accept();
            if self.closed.load(Ordering::Relaxed) {
                return;
            }
            let Ok((stream, peer)) = accepted else {
                thread::sleep(LOOK_AGAIN);
                continue;
            };
            let hello = Hello { unit, ..hello.clone() };
            let guest = Guest::arrive(shared);
            let (door, kept) = (self.clone(), plan.clone());
            // Without a thread the connection ends, and the filter unit comes again.
            if thread::Builder::new().spawn(move || guest.stay(stream, peer, &door, kept, hello)).is_ok() {
                unit = unit.wrapping_add(1).max(plan.units);
            }
        }
    }
}

/// A connection that is counted while it is there.
struct Guest {
    shared: Arc<Shared>,
    is_stranger: bool,
    works: bool,
}

impl Guest {
    fn arrive(shared: &Arc<Shared>) -> Self {
        let mut state = shared.state();
        state.connections += 1;
        state.strangers += 1;
        drop(state);
        Self { shared: shared.clone(), is_stranger: true, works: false }
    }

    /// Checks who it is, and keeps the filter unit until it leaves.
    fn stay(mut self, stream: TcpStream, peer: SocketAddr, door: &Door, plan: UnitsPlan, hello: Hello) {
        if let Err(refusal) = self.check(&stream, door) {
            tracing::warn!(builder = hello.builder, %peer, reason = refusal, "refused a filter unit");
            return;
        }
        let shared = self.shared.clone();
        let is_dropped = || shared.state().dropped;
        match Process::joined(stream, &plan, &hello, &is_dropped) {
            Ok(process) => {
                self.begin(&hello, peer);
                Keeper::joined(plan, hello, process, shared.clone()).run();
            }
            Err(reason) => {
                tracing::warn!(builder = hello.builder, %peer, %reason, "a filter unit did not get ready");
                if !is_dropped() {
                    let builder = hello.builder;
                    shared.state().note(format!("a filter unit of bu{builder} at {peer} does not get ready: {reason}"));
                }
            }
        }
    }

    /// Reads the hello of a stranger, and answers it.
    fn check(&mut self, mut stream: &TcpStream, door: &Door) -> Result<(), String> {
        let found = handshake::read(stream, HELLO_TIMEOUT).map_err(|error| error.to_string())?;
        let mut result = handshake::read_hello(&found, &door.token);
        self.welcome(&mut result);
        let answered = stream.set_write_timeout(Some(HELLO_TIMEOUT)).and_then(|()| stream.set_nodelay(true));
        let answered = answered.and_then(|()| stream.write_all(&handshake::answer(result, &door.token)));
        result.map_err(|refusal| refusal.to_string())?;
        answered.map_err(|error| error.to_string())
    }

    /// A connection that has shown the token is no stranger any more.
    fn welcome(&mut self, result: &mut Result<(), Refusal>) {
        let mut state = self.shared.state();
        if result.is_ok() && state.connections - state.strangers >= MOST_JOINED {
            *result = Err(Refusal::Full);
        }
        if result.is_ok() {
            self.is_stranger = false;
            state.strangers -= 1;
        }
    }

    fn begin(&mut self, hello: &Hello, peer: SocketAddr) {
        tracing::info!(builder = hello.builder, unit = hello.unit, %peer, "a filter unit joined");
        self.works = true;
        let mut state = self.shared.state();
        state.working += 1;
        state.report.joined += 1;
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.connections -= 1;
        state.strangers -= usize::from(self.is_stranger);
        if self.works {
            state.leave();
        }
        drop(state);
        (self.shared.waker)();
    }
}
