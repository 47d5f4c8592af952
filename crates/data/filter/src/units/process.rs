//! A filter unit that has answered the hello: messages to it and from it, each with a limit of time.

use super::{
    Reason,
    link::{Link, Pipes, is_not_yet},
};
use crate::{
    Hello, Incoming, Received, UnitsPlan,
    area::Area,
    wire::{Decided, HEAD, HELLO_FIXED, encode_events, encode_hello, encode_places},
};
use bytes::Bytes;
use evb_core::Span;
use evb_protocol::Built;
use evb_transport_secure::Channel;
use std::{net::TcpStream, time::Instant};

/// The way by which events went to a filter unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Memory,
    Pipe,
    Network,
}

/// A filter unit that has answered the hello. Dropping it kills it.
pub(super) struct Process {
    link: Link,
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
    /// A sentence that says why the process did not start.
    pub(super) fn start(
        plan: &UnitsPlan,
        hello: &Hello,
        area: Option<&mut Area>,
        is_dropped: &dyn Fn() -> bool,
    ) -> Result<Self, String> {
        let code = plan.code.as_ref().ok_or("no program was named")?;
        let pipes = Pipes::start(code, area.as_deref()).map_err(|error| error.to_string())?;
        let mut process = Self::over(Link::Process(pipes), plan.timeout);
        let ready = process.greet(hello, area, is_dropped);
        ready.map_err(|reason| format!("{} does not get ready: {reason}", code.name()))?;
        Ok(process)
    }

    /// Greets a filter unit that has joined over this connection, and waits until it is ready.
    ///
    /// # Errors
    /// The reason why it does not get ready.
    pub(super) fn joined(
        channel: Channel<TcpStream>,
        plan: &UnitsPlan,
        hello: &Hello,
        is_dropped: &dyn Fn() -> bool,
    ) -> Result<Self, Reason> {
        let link = Link::joined(channel).map_err(|error| Reason::Lost(error.to_string()))?;
        let mut process = Self::over(link, plan.timeout);
        process.greet(hello, None, is_dropped)?;
        Ok(process)
    }

    fn over(link: Link, timeout: Span) -> Self {
        Self { link, incoming: Incoming::default(), timeout, message: Vec::new(), in_memory: false }
    }

    fn greet(&mut self, hello: &Hello, area: Option<&mut Area>, is_dropped: &dyn Fn() -> bool) -> Result<(), Reason> {
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
            Received::Alive | Received::Failed(_) => Err(not_of_a_program()),
        }
    }

    /// Sends events: in the area if the process reads it and they have room there, and as bytes if not. The process has
    /// no other events. Returns the way that they went.
    ///
    /// # Errors
    /// The reason why the process cannot decide.
    pub(super) fn send_events<'a>(
        &mut self,
        events: impl ExactSizeIterator<Item = &'a Built<Bytes>> + Clone,
        area: Option<&mut Area>,
        is_dropped: &dyn Fn() -> bool,
    ) -> Result<Way, Reason> {
        self.message.clear();
        let places = area.filter(|_| self.in_memory).and_then(|area| area.write(events.clone()));
        let way = match &places {
            Some(_) => Way::Memory,
            None if self.link.is_joined() => Way::Network,
            None => Way::Pipe,
        };
        match &places {
            Some(places) => encode_places(places, &mut self.message),
            None => encode_events(events, &mut self.message),
        }
        self.send(is_dropped).map(|()| way)
    }

    /// Waits for verdicts.
    ///
    /// # Errors
    /// The reason why there are none.
    pub(super) fn receive_verdicts(&mut self, is_dropped: &dyn Fn() -> bool) -> Result<Vec<Decided>, Reason> {
        match self.receive(is_dropped)? {
            Received::Verdicts(verdicts) => Ok(verdicts),
            Received::Ready { .. } => Err(Reason::Nonsense("it says again that it is ready".into())),
            Received::Alive | Received::Failed(_) => Err(not_of_a_program()),
        }
    }

    /// The reason why a filter unit without events has ended; `None` if it is there.
    pub(super) fn ended(&mut self) -> Option<Reason> {
        self.link.ended(&mut self.incoming)
    }

    /// Lets the process end by itself for a while.
    pub(super) fn end(self) {
        self.link.end();
    }

    /// Writes the message.
    fn send(&mut self, is_dropped: &dyn Fn() -> bool) -> Result<(), Reason> {
        let (mut sent, mut until) = (0, self.limit());
        while sent < self.message.len() || self.link.has_rest() {
            match self.link.write(&self.message[sent..]) {
                Ok(bytes) => (sent, until) = (sent + bytes, self.limit()),
                Err(error) if is_not_yet(&error) => {
                    self.link.wait_to_write(&mut self.incoming, (until, self.timeout), is_dropped)?;
                }
                Err(error) => return Err(self.link.why_closed(&mut self.incoming, Some(&error))),
            }
        }
        Ok(())
    }

    /// Reads the next message of the program. A remote filter unit that says after the limit that it is there, and has
    /// said nothing else, hangs.
    fn receive(&mut self, is_dropped: &dyn Fn() -> bool) -> Result<Received, Reason> {
        let until = self.limit();
        let (mut bytes, mut is_late) = ([0; 4096], false);
        loop {
            let next = self.incoming.next_message().map_err(|error| Reason::Nonsense(error.to_string()))?;
            match next {
                Some(Received::Alive) if self.link.is_joined() => {
                    is_late |= Instant::now() >= until;
                    continue;
                }
                Some(Received::Failed(why)) if self.link.is_joined() => {
                    return Err(why.map_or(Reason::Closed, Reason::Crashed));
                }
                Some(message) => return Ok(message),
                None => {}
            }
            match self.link.read(&mut bytes) {
                Ok(0) => return Err(self.link.why_closed(&mut self.incoming, None)),
                Ok(length) => self.incoming.push(&bytes[..length]),
                Err(error) if is_not_yet(&error) && is_late => return Err(Reason::Hung(self.timeout)),
                Err(error) if is_not_yet(&error) => self.link.wait_to_read((until, self.timeout), is_dropped)?,
                Err(error) => return Err(self.link.why_closed(&mut self.incoming, Some(&error))),
            }
        }
    }

    fn limit(&self) -> Instant {
        Instant::now() + self.timeout.as_duration()
    }
}

fn not_of_a_program() -> Reason {
    Reason::Nonsense("it says what only a filter unit on another machine says".into())
}
