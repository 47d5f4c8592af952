//! The side of a machine that lends filter units to builders: each joins a builder, runs its program, and joins again for
//! the next run.

use super::{
    handshake::{self, Refusal},
    relay::{End, serve},
};
use crate::Code;
use evb_transport::Token;
use evb_transport_secure::Channel;
use rustix::net::sockopt::set_tcp_user_timeout;
use std::{
    io,
    net::{TcpStream, ToSocketAddrs},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Longest wait for the answer of a builder, and for a connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time in which a builder may take no byte.
const SILENCE: u32 = 10_000;
/// Time between two attempts to join.
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// Number of programs in turn that end without a verdict, after which no further one starts.
const MOST_FAILURES: u32 = 5;

/// Filter units for builders.
pub struct JoinFilters<'a> {
    /// Addresses of builders, as host and port.
    pub builders: Vec<String>,
    /// Number of filter units for each builder.
    pub processes: u16,
    /// The code that decides.
    pub code: Code,
    /// The secret of the run.
    pub token: Token,
    /// Longest wait for a builder, before its first run and between two runs.
    pub patience: Duration,
    /// Number of runs after which a filter unit ends; without it, it ends when no further run comes.
    pub runs: Option<u64>,
    /// Ends all of them when it is set.
    pub stop: &'a AtomicBool,
    /// Takes sentences for people.
    pub note: &'a (dyn Fn(&str) + Sync),
}

/// The reason why a filter unit ends before its time.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// No builder came.
    #[error("no builder takes filter units at {address}: {source}")]
    NoBuilder {
        /// The address.
        address: String,
        /// The last error.
        source: io::Error,
    },
    /// The builder refuses the filter unit.
    #[error("the builder at {address} refuses this filter unit: {reason}")]
    Refused {
        /// The address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The program ended again and again without a verdict.
    #[error("{program} ended {MOST_FAILURES} times without a verdict: {reason}")]
    GivenUp {
        /// The program.
        program: String,
        /// The last reason.
        reason: String,
    },
    /// The file with the code is not there.
    #[error("the filter {0} does not exist")]
    NoFile(String),
    /// The system gives no more threads.
    #[error("the system gives no more threads: {0}")]
    Thread(io::Error),
}

impl JoinError {
    /// The way out.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoBuilder { .. } => {
                "give the address that the builder notes at the begin of a run with `filter.listen`; `--patience` waits longer"
            }
            Self::Refused { .. } => "set the same EVB_TOKEN for the run and for its filter units, and use the same evb",
            Self::GivenUp { .. } => "run the filter by hand, or see its output on standard error",
            Self::NoFile(_) => "paths are relative to the folder in which this command runs",
            Self::Thread(_) => "raise the limit (`ulimit -u`), or use fewer `--processes`",
        }
    }
}

/// Joins the builders, and decides about their events until no further run comes, or until it is stopped.
///
/// # Errors
/// [`JoinError`] of the first filter unit that could not go on; the others end with it.
pub fn join_builders(options: &JoinFilters<'_>) -> Result<(), JoinError> {
    if let Some(path) = options.code.file().filter(|path| !path.is_file()) {
        return Err(JoinError::NoFile(path.display().to_string()));
    }
    let failed = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for address in options.builders.iter().flat_map(|builder| (0..options.processes).map(move |_| builder)) {
            let unit = Unit { options, address, failed: &failed };
            let thread = thread::Builder::new().spawn_scoped(scope, move || unit.run());
            threads.push(thread.map_err(|error| {
                failed.store(true, Ordering::Relaxed);
                JoinError::Thread(error)
            })?);
        }
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(())));
        // All of them are waited for.
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

/// One filter unit.
struct Unit<'a> {
    options: &'a JoinFilters<'a>,
    address: &'a str,
    /// Another one could not go on.
    failed: &'a AtomicBool,
}

impl Unit<'_> {
    fn run(self) -> Result<(), JoinError> {
        let result = self.serve();
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn serve(&self) -> Result<(), JoinError> {
        let (mut runs, mut failures, mut has_served) = (0, 0, false);
        while let Some(channel) = self.join(has_served)? {
            (self.options.note)(&format!("a filter unit has joined the builder at {}", self.address));
            let (end, has_decided) = serve(channel, &self.options.code, &|| self.is_stopped());
            has_served = true;
            failures = if has_decided { 0 } else { failures };
            match end {
                End::Over => {
                    runs += 1;
                    (self.options.note)(&format!("the run of the builder at {} is over", self.address));
                    if self.options.runs.is_some_and(|most| runs >= most) {
                        return Ok(());
                    }
                }
                End::Lost => (self.options.note)(&format!("the connection to the builder at {} is lost", self.address)),
                End::Stopped => return Ok(()),
                End::Failed(reason) => {
                    failures += 1;
                    let program = self.options.code.name();
                    (self.options.note)(&format!("{program} has ended: {reason}"));
                    if failures >= MOST_FAILURES {
                        return Err(JoinError::GivenUp { program, reason });
                    }
                }
            }
            self.pause();
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    fn pause(&self) {
        if !self.is_stopped() {
            thread::sleep(TRY_AGAIN);
        }
    }

    /// Joins the builder, and waits for it. None if it is stopped, or if no further run comes.
    fn join(&self, has_served: bool) -> Result<Option<Channel<TcpStream>>, JoinError> {
        let until = Instant::now() + self.options.patience;
        loop {
            if self.is_stopped() {
                return Ok(None);
            }
            let (error, address) = match self.try_to_join() {
                Ok(Ok(channel)) => return Ok(Some(channel)),
                Ok(Err(Refusal::Full)) => (io::Error::other(Refusal::Full.to_string()), self.address.to_owned()),
                Ok(Err(refusal)) => {
                    let (address, reason) = (self.address.to_owned(), refusal.to_string());
                    return Err(JoinError::Refused { address, reason });
                }
                Err(error) => (error, self.address.to_owned()),
            };
            if Instant::now() >= until {
                return if has_served { Ok(None) } else { Err(JoinError::NoBuilder { address, source: error }) };
            }
            self.pause();
        }
    }

    fn try_to_join(&self) -> io::Result<Result<Channel<TcpStream>, Refusal>> {
        let mut found = self.address.to_socket_addrs()?;
        let address = found.next().ok_or_else(|| io::Error::other("this name has no address"))?;
        let stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT)?;
        stream.set_nodelay(true)?;
        set_tcp_user_timeout(&stream, SILENCE)?;
        handshake::join(stream, &self.options.token, ANSWER_TIMEOUT)
    }
}
