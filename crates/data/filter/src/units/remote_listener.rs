//! The listener of a builder for remote filter units: one that proves that it has the token of the run becomes a filter unit,
//! with its own thread. Unauthenticated connections are few and short, and delay no other.

use super::{Shared, keeper::Keeper, process::Process};
use crate::{
    Hello, UnitsPlan,
    remote::handshake::{self, Refusal},
};
use evb_transport::Token;
use evb_transport_secure::{AcceptResult, Acceptor, Arrived, Channel, Purpose, Session};
use rustix::net::{Shutdown, shutdown};
use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Longest time for writing an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Largest number of remote filter units of one builder.
const MOST_JOINED: usize = 256;
/// Pause after a failure of the system.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Longest wait for a connection before the next look at the time of those who are there.
const LOOK: Duration = Duration::from_millis(200);

/// The address at which remote filter units join one builder.
#[derive(Debug)]
pub struct RemoteListener {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    closed: AtomicBool,
}

impl RemoteListener {
    /// A listener that accepts filter units with the token.
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

    /// Starts the thread that accepts connections until the listener is closed.
    pub(super) fn open(
        self: Arc<Self>,
        plan: UnitsPlan,
        hello: Hello,
        shared: Arc<Shared>,
    ) -> io::Result<JoinHandle<()>> {
        let acceptor = Acceptor::new(self.listener.try_clone()?, self.token, Purpose::Filter)?;
        thread::Builder::new().spawn(move || self.welcome(acceptor, &plan, &hello, &shared))
    }

    /// Accepts no further connection.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // On Linux this ends the wait for a connection.
        let _closed_before = shutdown(&self.listener, Shutdown::Both);
    }

    fn welcome(self: &Arc<Self>, mut acceptor: Acceptor, plan: &UnitsPlan, hello: &Hello, shared: &Arc<Shared>) {
        let mut unit = plan.units;
        while !self.closed.load(Ordering::Relaxed) {
            acceptor.wait(LOOK);
            if self.closed.load(Ordering::Relaxed) {
                return;
            }
            let Ok(results) = acceptor.look() else {
                thread::sleep(LOOK_AGAIN);
                continue;
            };
            for result in results {
                let arrived = match result {
                    AcceptResult::Arrived(arrived) => *arrived,
                    AcceptResult::Refused { peer, refusal } => {
                        tracing::debug!(builder = hello.builder, %peer, %refusal, "refused a filter unit");
                        continue;
                    }
                };
                let hello = Hello { unit, ..hello.clone() };
                let (remote, kept) = (RemoteUnit::arrive(shared), plan.clone());
                // Without a thread the connection ends, and the filter unit comes again.
                if thread::Builder::new().spawn(move || remote.stay(arrived, kept, hello)).is_ok() {
                    unit = unit.wrapping_add(1).max(plan.units);
                }
            }
        }
    }
}

/// A connection that is counted while it is there.
struct RemoteUnit {
    shared: Arc<Shared>,
    is_full: bool,
    works: bool,
}

impl RemoteUnit {
    fn arrive(shared: &Arc<Shared>) -> Self {
        let mut state = shared.state();
        let is_full = state.connections >= MOST_JOINED;
        state.connections += 1;
        drop(state);
        Self { shared: shared.clone(), is_full, works: false }
    }

    /// Answers a connection that has the token, and keeps the filter unit until it leaves.
    fn stay(mut self, arrived: Arrived, plan: UnitsPlan, hello: Hello) {
        let (channel, peer) = match self.answer(arrived) {
            Ok(welcomed) => welcomed,
            Err(refusal) => {
                tracing::warn!(builder = hello.builder, reason = refusal, "refused a filter unit");
                return;
            }
        };
        let shared = self.shared.clone();
        let is_dropped = || shared.state().dropped;
        match Process::joined(channel, &plan, &hello, &is_dropped) {
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

    /// Tells a filter unit whether it has a place.
    fn answer(&self, arrived: Arrived) -> Result<(Channel<TcpStream>, SocketAddr), String> {
        let Arrived { stream, peer, mut sealer, opener, first } = arrived;
        let result = match self.is_full {
            _ if first != handshake::HELLO => Err(Refusal::Version),
            true => Err(Refusal::Full),
            false => Ok(()),
        };
        let answered = stream.set_write_timeout(Some(ANSWER_TIMEOUT));
        let answered = answered.and_then(|()| handshake::answer(&mut sealer, result, &stream));
        result.map_err(|refusal| refusal.to_string())?;
        answered
            .map(|()| (Channel::sealed(stream, Session { sealer, opener }), peer))
            .map_err(|error| error.to_string())
    }

    fn begin(&mut self, hello: &Hello, peer: SocketAddr) {
        tracing::info!(builder = hello.builder, unit = hello.unit, %peer, "a filter unit joined");
        self.works = true;
        let mut state = self.shared.state();
        state.working += 1;
        state.report.joined += 1;
    }
}

impl Drop for RemoteUnit {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.connections -= 1;
        if self.works {
            state.leave();
        }
        drop(state);
        (self.shared.waker)();
    }
}
