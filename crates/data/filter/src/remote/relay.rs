//! The connection of a filter unit to its builder, carried to the pipes of its program and back, in one thread.

use crate::{
    code::Code,
    units::{Pipes, is_not_yet},
    wire::{HEAD, body_length, encode_alive, encode_failed, is_end, program_message},
};
use evb_transport_secure::Channel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

/// Time between two signs of life.
const ALIVE_EVERY: Duration = Duration::from_millis(500);
/// Longest wait of a round: how soon a stop is seen.
const SLICE: Duration = Duration::from_millis(100);
/// Most bytes that wait on each way.
const MOST_WAITING: usize = 1 << 20;
/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;
/// Longest time for telling the builder the end of the program.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The end of the work for a builder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The builder has said that its run is over.
    Over,
    /// The connection was lost.
    Lost,
    /// The program has ended, or could not be started. The builder knows it.
    Failed(String),
    /// The user wants it to end.
    Stopped,
}

/// A connection and a program.
pub(super) struct Relay<'a> {
    channel: Channel<TcpStream>,
    pipes: Pipes,
    /// Bytes of the builder for the program.
    inward: Vec<u8>,
    /// Bytes of the builder that are not a whole head yet.
    head: Vec<u8>,
    /// Bytes of the body that follows.
    left: usize,
    /// Whole messages for the builder.
    outward: Vec<u8>,
    /// Bytes of the program that are not a whole message yet.
    said: Vec<u8>,
    /// The program says what means nothing. The builder gets it as it is, and judges.
    is_garbled: bool,
    alive_sent: Instant,
    /// Number of messages of the program.
    pub(super) messages: u64,
    is_stopped: &'a dyn Fn() -> bool,
}

/// Carries the connection to a new program until one of them ends. Returns the end, and whether the program has said
/// anything after its first message.
pub(super) fn serve(mut channel: Channel<TcpStream>, code: &Code, is_stopped: &dyn Fn() -> bool) -> (End, bool) {
    if channel.stream().set_nonblocking(true).is_err() {
        return (End::Lost, false);
    }
    match Pipes::start(code, None) {
        Ok(pipes) => {
            let mut relay = Relay::new(channel, pipes, is_stopped);
            let end = relay.run();
            (end, relay.messages > 1)
        }
        Err(error) => {
            say_failed(&mut channel, Vec::new(), Some(&error.to_string()));
            (End::Failed(error.to_string()), false)
        }
    }
}

impl<'a> Relay<'a> {
    fn new(channel: Channel<TcpStream>, pipes: Pipes, is_stopped: &'a dyn Fn() -> bool) -> Self {
        Self {
            channel,
            pipes,
            inward: Vec::new(),
            head: Vec::new(),
            left: 0,
            outward: Vec::new(),
            said: Vec::new(),
            is_garbled: false,
            alive_sent: Instant::now(),
            messages: 0,
            is_stopped,
        }
    }

    fn run(&mut self) -> End {
        loop {
            if (self.is_stopped)() {
                return End::Stopped;
            }
            match self.round() {
                Ok(None) => self.wait(),
                Ok(Some(end)) => {
                    self.pipes.end();
                    return end;
                }
                Err(_) if self.is_garbled => return End::Failed("it said what means nothing".into()),
                Err(_) => return End::Lost,
            }
        }
    }

    /// Moves what can be moved. An error is one of the connection.
    fn round(&mut self) -> io::Result<Option<End>> {
        if self.is_over()? {
            return Ok(Some(End::Over));
        }
        let has_ended = self.write_inward().is_err() || self.hear_program().is_err();
        if self.outward.is_empty() && !self.is_garbled && self.alive_sent.elapsed() >= ALIVE_EVERY {
            encode_alive(&mut self.outward);
        }
        if has_ended {
            let crash = self.pipes.crash();
            say_failed(&mut self.channel, std::mem::take(&mut self.outward), crash.as_deref());
            return Ok(Some(End::Failed(crash.unwrap_or_else(|| "it closed its input or output".into()))));
        }
        self.say()?;
        if self.outward.is_empty() {
            // What waits is a sign of life, too.
            self.alive_sent = if self.alive_sent.elapsed() >= ALIVE_EVERY { Instant::now() } else { self.alive_sent };
        }
        Ok(None)
    }

    /// Sends the builder what the connection takes.
    fn say(&mut self) -> io::Result<()> {
        match self.channel.flush() {
            Ok(()) => write_some(&mut self.channel, &mut self.outward),
            Err(error) if is_not_yet(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads what the builder says; true if it has said that the run is over.
    fn is_over(&mut self) -> io::Result<bool> {
        let mut bytes = vec![0; CHUNK];
        while self.inward.len() < MOST_WAITING {
            match self.channel.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) if self.take(&bytes[..length]) => return Ok(true),
                Ok(_) => {}
                Err(error) if is_not_yet(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Passes on bytes of the builder; true if they end the work.
    fn take(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.left > 0 {
                let (body, rest) = bytes.split_at(self.left.min(bytes.len()));
                self.inward.extend_from_slice(body);
                (self.left, bytes) = (self.left - body.len(), rest);
                continue;
            }
            let (part, rest) = bytes.split_at((HEAD - self.head.len()).min(bytes.len()));
            self.head.extend_from_slice(part);
            bytes = rest;
            if let Ok(head) = <[u8; HEAD]>::try_from(&self.head[..]) {
                if is_end(head) {
                    return true;
                }
                self.left = body_length(head);
                self.inward.append(&mut self.head);
            }
        }
        false
    }

    fn write_inward(&mut self) -> io::Result<()> {
        match &mut self.pipes.input {
            Some(input) => write_some(input, &mut self.inward),
            None => Err(ErrorKind::BrokenPipe.into()),
        }
    }

    /// Reads what the program says, and passes on whole messages. An error is the end of its output.
    fn hear_program(&mut self) -> io::Result<()> {
        let mut bytes = [0; 1 << 16];
        while self.outward.len() < MOST_WAITING {
            match self.pipes.output.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.said.extend_from_slice(&bytes[..length]),
                Err(error) if is_not_yet(&error) => break,
                Err(error) => return Err(error),
            }
            self.pass_on();
        }
        Ok(())
    }

    fn pass_on(&mut self) {
        let mut at = 0;
        while !self.is_garbled {
            match program_message(&self.said[at..]) {
                Ok(Some(length)) if at + length <= self.said.len() => at += length,
                Ok(_) => break,
                Err(_) => {
                    self.is_garbled = true;
                    break;
                }
            }
            self.messages += 1;
        }
        let whole = if self.is_garbled { self.said.len() } else { at };
        self.outward.extend(self.said.drain(..whole));
    }

    fn wait(&self) {
        let (takes, says) = (self.inward.len() < MOST_WAITING, !self.outward.is_empty() || self.channel.waiting() > 0);
        if takes && self.channel.has_more() {
            return;
        }
        let mut of_builder = PollFlags::empty();
        of_builder.set(PollFlags::IN, takes);
        of_builder.set(PollFlags::OUT, says);
        let mut all = vec![PollFd::new(self.channel.stream(), of_builder)];
        if self.outward.len() < MOST_WAITING {
            all.push(PollFd::new(&self.pipes.output, PollFlags::IN));
        }
        if let Some(input) = self.pipes.input.as_ref().filter(|_| !self.inward.is_empty()) {
            all.push(PollFd::new(input, PollFlags::OUT));
        }
        // An error of the poll itself is a signal: the next round looks again.
        let _ready = poll(&mut all, Some(&Timespec { tv_sec: 0, tv_nsec: i64::from(SLICE.subsec_nanos()) }));
    }
}

/// Writes what there is room for.
fn write_some(out: &mut impl Write, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        match out.write(&bytes[written..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => written += length,
            Err(error) if is_not_yet(&error) => break,
            Err(error) => return Err(error),
        }
    }
    bytes.drain(..written);
    Ok(())
}

/// Tells the builder that the program has ended, behind what it has said before. The connection ends after that.
fn say_failed(channel: &mut Channel<TcpStream>, mut outward: Vec<u8>, why: Option<&str>) {
    encode_failed(why, &mut outward);
    let (limit, until) = (Some(LAST_WORDS), Instant::now() + LAST_WORDS);
    let stream = channel.stream();
    let said = stream.set_nonblocking(false).and_then(|()| stream.set_write_timeout(limit));
    let said = said.and_then(|()| channel.write_all(&outward)).and_then(|()| channel.flush());
    let mut stream = channel.stream();
    let said = said.and_then(|()| stream.shutdown(Shutdown::Write));
    // Unread bytes would make the system take back the last words.
    let mut rest = [0; 4096];
    if said.and_then(|()| stream.set_read_timeout(limit)).is_ok() {
        while Instant::now() < until && stream.read(&mut rest).is_ok_and(|length| length > 0) {}
    }
}
