//! The way to a filter unit: the pipes of a process that the builder has started, or the connection of one that has
//! joined from another machine. Neither blocks, so every wait has a limit.

use super::{Reason, spawn::spawn};
use crate::{Incoming, Received, area::Area, code::Code, wire::encode_end};
use evb_core::Span;
use evb_transport_secure::Channel;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    os::fd::{AsFd, BorrowedFd},
    process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Longest time for which a process that closed its pipes, or was asked to end, may continue.
pub(crate) const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest silence of a remote filter unit: it says often that it is there.
const LOST_AFTER: Duration = Duration::from_secs(5);
/// Time between two looks at a process that is to end.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Time between two looks whether anybody still waits.
const SLICE: Duration = Duration::from_millis(100);
/// Most bytes of a filter unit that wait while it is sent events.
const MOST_WAITING: usize = 1 << 20;

/// The way to a filter unit.
pub(super) enum Link {
    /// A process of this builder. Dropping it kills it.
    Process(Pipes),
    /// A filter unit that has joined. Dropping it closes the connection.
    Joined(Joined),
}

/// A process and its pipes.
pub(crate) struct Pipes {
    child: Child,
    /// `None` when the process is asked to end.
    pub(crate) input: Option<ChildStdin>,
    pub(crate) output: ChildStdout,
}

/// The connection of a remote filter unit.
pub(super) struct Joined {
    channel: Channel<TcpStream>,
    /// Time of the last byte.
    heard: Instant,
}

impl Pipes {
    /// Starts a process, which may read events in `area`, with pipes that do not block.
    ///
    /// # Errors
    /// A sentence that says why the process did not start.
    pub(crate) fn start(code: &Code, area: Option<&Area>) -> Result<Self, StartError> {
        let (mut command, name) = code.command().map_err(StartError::Evb)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |error| StartError::Start(name.clone(), error);
        let mut child = spawn(&mut command, area.map(Area::file)).map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(ErrorKind::BrokenPipe.into()));
        };
        let pipes = Self { child, input: Some(input), output };
        let input = pipes.input.as_ref().map_or(Ok(()), |input| unblock(input.as_fd()));
        input.and_then(|()| unblock(pipes.output.as_fd())).map_err(failed)?;
        Ok(pipes)
    }

    /// True if the process has ended.
    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Closes the input of the process, and lets it end by itself for a while.
    pub(crate) fn end(&mut self) -> Option<ExitStatus> {
        self.input = None;
        self.exit_status()
    }

    fn exit_status(&mut self) -> Option<ExitStatus> {
        let until = Instant::now() + EXIT_TIMEOUT;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < until => thread::sleep(LOOK_AGAIN),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    /// The reason why a pipe is closed: often the process has ended. None if it ended well, or goes on.
    pub(crate) fn crash(&mut self) -> Option<String> {
        self.exit_status().filter(|status| !status.success()).map(|status| status.to_string())
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let _ended_by_itself = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The reason why the process did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// This program is to run a library or a module, and does not find itself.
    #[error("evb cannot be found: {0}")]
    Evb(io::Error),
    /// The system does not start the program.
    #[error("{0} cannot be started: {1}")]
    Start(String, io::Error),
}

impl Link {
    /// The way to a filter unit that has joined over this connection.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) fn joined(channel: Channel<TcpStream>) -> io::Result<Self> {
        channel.stream().set_nonblocking(true)?;
        Ok(Self::Joined(Joined { channel, heard: Instant::now() }))
    }

    pub(super) const fn is_joined(&self) -> bool {
        matches!(self, Self::Joined(_))
    }

    /// Returns true if something is written that the connection has not taken. Writing nothing continues.
    pub(super) fn has_rest(&self) -> bool {
        matches!(self, Self::Joined(joined) if joined.channel.waiting() > 0)
    }

    /// Writes what there is room for.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Process(pipes) => {
                pipes.input.as_mut().map_or(Err(ErrorKind::BrokenPipe.into()), |it| it.write(bytes))
            }
            Self::Joined(joined) => joined.channel.write(bytes),
        }
    }

    /// Reads what has come.
    pub(super) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Process(pipes) => pipes.output.read(bytes),
            Self::Joined(joined) => joined.read(bytes),
        }
    }

    /// Waits for room to write, at most until the time limit. A remote filter unit that says in time that it is there
    /// hangs after the limit; one that is silent is lost.
    pub(super) fn wait_to_write(
        &mut self,
        incoming: &mut Incoming,
        (until, timeout): (Instant, Span),
        is_dropped: &dyn Fn() -> bool,
    ) -> Result<(), Reason> {
        let joined = match self {
            Self::Process(Pipes { input: Some(input), .. }) => {
                return wait(input, PollFlags::OUT, until, is_dropped).map(|_| ()).map_err(|()| Reason::Hung(timeout));
            }
            Self::Process(_) => return Err(Reason::Closed),
            Self::Joined(joined) => joined,
        };
        let both = PollFlags::IN | PollFlags::OUT;
        let ready = wait(joined.channel.stream(), both, joined.heard + LOST_AFTER, is_dropped)
            .map_err(|()| Reason::silent())?;
        if ready.contains(PollFlags::IN) {
            let mut bytes = [0; 4096];
            if incoming.waiting() > MOST_WAITING {
                return Err(Reason::Nonsense("it says too much before it has its events".into()));
            }
            match joined.read(&mut bytes) {
                Ok(1..) if Instant::now() >= until && !ready.contains(PollFlags::OUT) => {
                    return Err(Reason::Hung(timeout));
                }
                Ok(0) => return Err(Reason::Lost("it closed the connection".into())),
                Ok(length) => incoming.push(&bytes[..length]),
                Err(error) if is_not_yet(&error) => {}
                Err(error) => return Err(Reason::Lost(error.to_string())),
            }
        }
        Ok(())
    }

    /// Waits for bytes to read. Whether a remote filter unit hangs is seen by what it says.
    pub(super) fn wait_to_read(
        &self,
        (until, timeout): (Instant, Span),
        is_dropped: &dyn Fn() -> bool,
    ) -> Result<(), Reason> {
        let ready = match self {
            Self::Process(pipes) => {
                wait(&pipes.output, PollFlags::IN, until, is_dropped).map_err(|()| Reason::Hung(timeout))
            }
            Self::Joined(joined) if joined.channel.has_more() => return Ok(()),
            Self::Joined(joined) => wait(joined.channel.stream(), PollFlags::IN, joined.heard + LOST_AFTER, is_dropped)
                .map_err(|()| Reason::silent()),
        };
        ready.map(|_| ())
    }

    /// The reason why the filter unit has ended while it had nothing to do; `None` if it is there.
    pub(super) fn ended(&mut self, incoming: &mut Incoming) -> Option<Reason> {
        match self {
            Self::Process(pipes) => pipes.has_ended().then_some(Reason::Closed),
            Self::Joined(joined) => joined.ended(incoming),
        }
    }

    /// The reason why bytes can neither be written nor read.
    pub(super) fn why_closed(&mut self, incoming: &mut Incoming, error: Option<&io::Error>) -> Reason {
        match self {
            Self::Process(pipes) => pipes.crash().map_or(Reason::Closed, Reason::Crashed),
            Self::Joined(joined) => joined.ended(incoming).unwrap_or_else(|| {
                Reason::Lost(error.map_or_else(|| "it closed the connection".into(), ToString::to_string))
            }),
        }
    }

    /// Ends the work of the filter unit in order.
    pub(super) fn end(mut self) {
        match &mut self {
            Self::Process(pipes) => _ = pipes.end(),
            Self::Joined(joined) => {
                let mut message = Vec::new();
                encode_end(&mut message);
                // Without room for it the unit takes the end for a loss, and waits for the next run all the same.
                let _gone = joined.channel.write(&message);
            }
        }
    }
}

impl Joined {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.channel.read(bytes);
        if self.channel.take_heard() {
            self.heard = Instant::now();
        }
        read
    }

    /// Reads what an idle filter unit says, up to the end of the connection. None if it is still there.
    fn ended(&mut self, incoming: &mut Incoming) -> Option<Reason> {
        let mut bytes = [0; 4096];
        let broken = loop {
            match self.read(&mut bytes) {
                Ok(0) => break Some("it closed the connection".into()),
                Ok(length) => incoming.push(&bytes[..length]),
                Err(error) if is_not_yet(&error) => break None,
                Err(error) => break Some(error.to_string()),
            }
            if incoming.waiting() > MOST_WAITING {
                return Some(Reason::Nonsense("it says too much".into()));
            }
            while let Ok(Some(message)) = incoming.next_message() {
                match message {
                    Received::Failed(why) => return Some(why.map_or(Reason::Closed, Reason::Crashed)),
                    // Verdicts that come with the end of a connection are given again.
                    Received::Alive | Received::Verdicts(_) | Received::Ready { .. } => {}
                }
            }
        };
        let is_silent = self.heard.elapsed() > LOST_AFTER;
        broken.map(Reason::Lost).or_else(|| is_silent.then(Reason::silent))
    }
}

/// Lets no call on a file wait.
fn unblock(file: BorrowedFd<'_>) -> io::Result<()> {
    Ok(fcntl_setfl(file, fcntl_getfl(file)? | OFlags::NONBLOCK)?)
}

pub(crate) fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Waits until a pipe is ready; an error means that the time is over, or that the wait was cancelled.
fn wait(pipe: &impl AsFd, flags: PollFlags, until: Instant, is_dropped: &dyn Fn() -> bool) -> Result<PollFlags, ()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || is_dropped() {
            return Err(());
        }
        let slice = left.min(SLICE);
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(slice.subsec_nanos()) };
        let mut asked = [PollFd::new(pipe, flags)];
        // An error of the poll itself is a signal: the time limit still holds.
        if poll(&mut asked, Some(&time)).is_ok_and(|ready| ready > 0) {
            return Ok(asked[0].revents());
        }
    }
}
