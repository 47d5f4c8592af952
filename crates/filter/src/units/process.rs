//! The process of a filter unit. Its pipes are read and written without blocking, so every wait has a limit.

use super::{Reason, spawn::spawn};
use crate::{
    Hello, Incoming, Received, UnitsPlan,
    area::Area,
    wire::{Decided, HEAD, HELLO_FIXED, encode_events, encode_hello, encode_places},
};
use bytes::Bytes;
use evb_core::Span;
use evb_protocol::Built;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
};
use std::{
    io::{self, ErrorKind, Read, Write},
    os::fd::AsFd,
    process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Longest time for which a process that closed its pipes, or was told to end, may go on.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time between two looks at a process that is to end.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Time between two looks whether anybody still waits.
const SLICE: Duration = Duration::from_millis(100);

/// A process that has answered the hello. Dropping it kills it.
pub(super) struct Process {
    child: Child,
    /// None when the process is told to end.
    input: Option<ChildStdin>,
    output: ChildStdout,
    incoming: Incoming,
    timeout: Span,
    message: Vec<u8>,
    /// The process reads events in the area of memory.
    in_memory: bool,
}

impl Process {
    /// Starts the process and waits until it is ready. It may read events in `area`.
    ///
    /// # Errors
    /// A sentence that says why there is no such process.
    pub(super) fn start(
        plan: &UnitsPlan,
        hello: &Hello,
        area: Option<&mut Area>,
        is_dropped: &dyn Fn() -> bool,
    ) -> Result<Self, String> {
        let (mut command, name) = plan.code.command().map_err(|error| format!("evb cannot be found: {error}"))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn(&mut command, area.as_deref().map(Area::file))
            .map_err(|error| format!("{name} cannot be started: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{name} has no pipes"));
        };
        let timeout = plan.timeout;
        let (incoming, message) = (Incoming::default(), Vec::new());
        let mut process = Self { child, input: Some(input), output, incoming, timeout, message, in_memory: false };
        process.greet(hello, area, is_dropped).map_err(|reason| format!("{name} does not get ready: {reason}"))?;
        Ok(process)
    }

    fn greet(&mut self, hello: &Hello, area: Option<&mut Area>, is_dropped: &dyn Fn() -> bool) -> Result<(), Reason> {
        let unblocked = |fd: rustix::fd::BorrowedFd<'_>| fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK);
        let input = self.input.as_ref().ok_or(Reason::Closed)?;
        let both = unblocked(input.as_fd()).and_then(|()| unblocked(self.output.as_fd()));
        both.map_err(|error| Reason::Crashed(error.to_string()))?;
        self.message.clear();
        encode_hello(hello, area.as_deref().map_or(0, Area::descriptor), &mut self.message);
        let has_area = area.is_some();
        if let (Some(area), Some(fixed)) = (area, self.message[HEAD..].first_chunk::<HELLO_FIXED>()) {
            area.mark(fixed);
        }
        self.send(is_dropped)?;
        match self.receive(is_dropped)? {
            Received::Ready { in_memory: true } if !has_area => {
                Err(Reason::Nonsense("it has mapped memory, and there is none".into()))
            }
            Received::Ready { in_memory } => {
                self.in_memory = in_memory;
                Ok(())
            }
            Received::Verdicts(_) => Err(Reason::Nonsense("verdicts before any event".into())),
        }
    }

    /// Sends events: in the area if the process reads it and they have room there, and through its pipe if not. The
    /// process has no other events. Returns true if they stand in the area.
    ///
    /// # Errors
    /// The reason why the process cannot decide.
    pub(super) fn send_events<'a>(
        &mut self,
        events: impl ExactSizeIterator<Item = &'a Built<Bytes>> + Clone,
        area: Option<&mut Area>,
        is_dropped: &dyn Fn() -> bool,
    ) -> Result<bool, Reason> {
        self.message.clear();
        let places = area.filter(|_| self.in_memory).and_then(|area| area.write(events.clone()));
        match &places {
            Some(places) => encode_places(places, &mut self.message),
            None => encode_events(events, &mut self.message),
        }
        self.send(is_dropped).map(|()| places.is_some())
    }

    /// Waits for verdicts.
    ///
    /// # Errors
    /// The reason why there are none.
    pub(super) fn receive_verdicts(&mut self, is_dropped: &dyn Fn() -> bool) -> Result<Vec<Decided>, Reason> {
        match self.receive(is_dropped)? {
            Received::Verdicts(verdicts) => Ok(verdicts),
            Received::Ready { .. } => Err(Reason::Nonsense("it says again that it is ready".into())),
        }
    }

    /// True if the process has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Lets the process end by itself for a while.
    pub(super) fn end(mut self) {
        self.input = None;
        self.exit_status();
    }

    /// Writes the message.
    fn send(&mut self, is_dropped: &dyn Fn() -> bool) -> Result<(), Reason> {
        let (mut sent, mut until) = (0, Instant::now() + self.timeout.as_duration());
        while sent < self.message.len() {
            let Some(input) = &mut self.input else { return Err(Reason::Closed) };
            match input.write(&self.message[sent..]) {
                Ok(bytes) => (sent, until) = (sent + bytes, Instant::now() + self.timeout.as_duration()),
                Err(error) if is_not_yet(&error) => {
                    wait(input, PollFlags::OUT, until, is_dropped).map_err(|()| Reason::Hung(self.timeout))?;
                }
                Err(_) => return Err(self.why_closed()),
            }
        }
        Ok(())
    }

    /// Reads the next message.
    fn receive(&mut self, is_dropped: &dyn Fn() -> bool) -> Result<Received, Reason> {
        let until = Instant::now() + self.timeout.as_duration();
        let mut bytes = [0; 4096];
        loop {
            let next = self.incoming.next_message().map_err(|error| Reason::Nonsense(error.to_string()))?;
            if let Some(message) = next {
                return Ok(message);
            }
            match self.output.read(&mut bytes) {
                Ok(0) => return Err(self.why_closed()),
                Ok(length) => self.incoming.push(&bytes[..length]),
                Err(error) if is_not_yet(&error) => {
                    wait(&self.output, PollFlags::IN, until, is_dropped).map_err(|()| Reason::Hung(self.timeout))?;
                }
                Err(error) => return Err(Reason::Crashed(error.to_string())),
            }
        }
    }

    /// The reason why a pipe is closed: often the process has ended.
    fn why_closed(&mut self) -> Reason {
        match self.exit_status() {
            Some(status) if !status.success() => Reason::Crashed(status.to_string()),
            Some(_) | None => Reason::Closed,
        }
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
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended_by_itself = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn is_not_yet(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Waits until a pipe is ready; an error means that the time is over, or that nobody waits any more.
fn wait(pipe: &impl AsFd, flags: PollFlags, until: Instant, is_dropped: &dyn Fn() -> bool) -> Result<(), ()> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || is_dropped() {
            return Err(());
        }
        let slice = left.min(SLICE);
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(slice.subsec_nanos()) };
        // An error of the poll itself is a signal: the time limit still holds.
        if poll(&mut [PollFd::new(pipe, flags)], Some(&time)).is_ok_and(|ready| ready > 0) {
            return Ok(());
        }
    }
}
