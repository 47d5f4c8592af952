//! The acceptor's part for many connections: those that have proved nothing yet are bounded in number, time and bytes, and
//! none of them costs a thread or holds up another.

use super::{
    greeting::{GREETING_BYTES, Greeting, Purpose, Refusal, may_begin, refuse},
    handshake::{Session, accept},
    opener::Opener,
    sealer::Sealer,
};
use evb_transport::Token;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    collections::{HashSet, VecDeque},
    io::{self, ErrorKind, Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

/// Most connections that have not proved who they are; a new one replaces another.
const MOST_STRANGERS: usize = 64;
/// Longest time in which a connection must prove who it is.
const PROOF_TIMEOUT: Duration = Duration::from_secs(2);
/// Connections that the system keeps until they are accepted.
const BACKLOG: i32 = 1024;
/// Most connections that are accepted in one look, so that a flood leaves time for other work.
pub(super) const MOST_ACCEPTED: usize = 16;
/// Least time between two looks of who waits for newcomers. With [`MOST_ACCEPTED`] this bounds what a flood costs; an
/// honest newcomer does not notice it.
pub(super) const MOMENT: Duration = Duration::from_millis(5);
/// Most hellos that are remembered, so that a recorded one is refused before it costs anything.
const MOST_REMEMBERED: usize = 1024;

/// The place at which those who have the token of a run come in.
#[derive(Debug)]
pub struct Acceptor {
    listener: TcpListener,
    token: Token,
    purpose: Purpose,
    pub(super) strangers: VecDeque<Stranger>,
    remembered: Remembered,
    turned_away: u64,
    last_look: Option<Instant>,
}

/// A connection that has proved that it has the token.
#[derive(Debug)]
pub struct Arrived {
    /// The connection, which blocks.
    pub stream: TcpStream,
    /// The address of the other side.
    pub peer: SocketAddr,
    /// Seals what this side sends.
    pub sealer: Sealer,
    /// Opens what the other side sends.
    pub opener: Opener,
    /// The first record of the other side.
    pub first: Vec<u8>,
}

/// News from an entrance.
#[derive(Debug)]
pub enum AcceptResult {
    /// Somebody with the token.
    Arrived(Box<Arrived>),
    /// Somebody who speaks this protocol, but was refused.
    Refused {
        /// The address of the other side.
        peer: SocketAddr,
        /// The reason, which was sent to it, too.
        refusal: Refusal,
    },
}

/// A connection in its handshake.
#[derive(Debug)]
pub(super) struct Stranger {
    stream: TcpStream,
    peer: SocketAddr,
    since: Instant,
    has_news: bool,
    stage: AcceptStage,
}

#[derive(Debug)]
enum AcceptStage {
    /// Its hello comes.
    Hello { bytes: Greeting, filled: usize },
    /// It was answered, and has to make a first record.
    Proof(Box<Session>),
}

/// The outcome of a look at a stranger.
enum Look {
    Waits(Stranger),
    Comes(AcceptResult),
    Gone,
}

impl Acceptor {
    /// The entrance at a listener.
    ///
    /// # Errors
    /// The listener cannot be asked without waiting.
    pub fn new(listener: TcpListener, token: Token, purpose: Purpose) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        // Who comes in the midst of a flood waits here, and is not sent away by the system.
        rustix::net::listen(&listener, BACKLOG)?;
        let (strangers, remembered) = (VecDeque::new(), Remembered::default());
        Ok(Self { listener, token, purpose, strangers, remembered, turned_away: 0, last_look: None })
    }

    /// The listener.
    #[must_use]
    pub const fn listener(&self) -> &TcpListener {
        &self.listener
    }

    /// Returns true if no handshake is in progress.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.strangers.is_empty()
    }

    /// Number of connections that have proved nothing, and were closed.
    #[must_use]
    pub const fn turned_away(&self) -> u64 {
        self.turned_away
    }

    /// Accepts new connections and goes on with the others, without waiting.
    ///
    /// # Errors
    /// The system accepts no connection, for another reason than that there is none.
    pub fn look(&mut self) -> io::Result<Vec<AcceptResult>> {
        self.last_look = Some(Instant::now());
        let accepted = if self.has_news(Duration::ZERO) { self.accept() } else { Ok(()) };
        let mut results = Vec::new();
        for _ in 0..self.strangers.len() {
            let Some(stranger) = self.strangers.pop_front() else { break };
            if !stranger.has_news && stranger.has_time() {
                self.strangers.push_back(stranger);
                continue;
            }
            match stranger.look(&self.token, self.purpose, &mut self.remembered) {
                Look::Waits(stranger) => self.strangers.push_back(stranger),
                Look::Comes(result) => {
                    self.turned_away += u64::from(matches!(result, AcceptResult::Refused { .. }));
                    results.push(result);
                }
                Look::Gone => self.turned_away += 1,
            }
        }
        // Arrived connections are accepted, also when no other can come.
        if results.is_empty() { accepted.map(|()| results) } else { Ok(results) }
    }

    /// Waits until there may be something new, at most for about `timeout`.
    pub fn wait(&mut self, timeout: Duration) {
        let since = self.last_look.map_or(MOMENT, |last| last.elapsed());
        thread::sleep(MOMENT.saturating_sub(since).min(timeout));
        self.has_news(timeout);
    }

    /// Waits until somebody knocks or a stranger says something. Returns true if somebody knocks.
    fn has_news(&mut self, timeout: Duration) -> bool {
        let mut files = vec![PollFd::new(&self.listener, PollFlags::IN)];
        files.extend(self.strangers.iter().map(|stranger| PollFd::new(&stranger.stream, PollFlags::IN)));
        let limit = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        // A signal ends this early, and so may the caller. The next look sees what is there.
        let _interrupted = poll(&mut files, Some(&limit));
        let news: Vec<_> = files.iter().map(|file| !file.revents().is_empty()).collect();
        self.strangers.iter_mut().zip(&news[1..]).for_each(|(stranger, &has_news)| stranger.has_news = has_news);
        news[0]
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..MOST_ACCEPTED {
            match self.listener.accept() {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        if stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_err() {
            return;
        }
        if self.strangers.len() >= MOST_STRANGERS
            && let Some(place) = self.most_expendable()
        {
            self.strangers.remove(place);
            self.turned_away += 1;
        }
        let stage = AcceptStage::Hello { bytes: [0; GREETING_BYTES], filled: 0 };
        self.strangers.push_back(Stranger { stream, peer, since: Instant::now(), has_news: true, stage });
    }

    /// The stranger that has to go: one that has not sent a hello before one that has, then one from the address that has
    /// most of them, then the oldest. So a flood takes the places of a flood.
    fn most_expendable(&self) -> Option<usize> {
        let from = |address: IpAddr| self.strangers.iter().filter(|one| one.peer.ip() == address).count();
        let cost =
            |stranger: &Stranger| (stranger.has_greeted(), usize::MAX - from(stranger.peer.ip()), stranger.since);
        (0..self.strangers.len()).min_by_key(|&place| cost(&self.strangers[place]))
    }
}

impl Stranger {
    pub(super) const fn has_greeted(&self) -> bool {
        matches!(self.stage, AcceptStage::Proof(_))
    }

    fn look(mut self, token: &Token, purpose: Purpose, remembered: &mut Remembered) -> Look {
        if let AcceptStage::Hello { bytes, filled } = &mut self.stage {
            match read_hello(&mut self.stream, bytes, filled, purpose) {
                Ok(true) => {}
                Ok(false) => return self.waits(),
                Err(_) => return Look::Gone,
            }
            let known = remembered.knows(bytes);
            let accepted = if known { Err(Refusal::Token) } else { accept(token, purpose, bytes) };
            let (session, answer) = match accepted {
                Ok(accepted) => accepted,
                Err(refusal) => {
                    let _gone = self.stream.write_all(&refuse(purpose, refusal));
                    return Look::Comes(AcceptResult::Refused { peer: self.peer, refusal });
                }
            };
            remembered.keep(*bytes);
            // The empty buffer of a new connection takes this at once.
            if self.stream.write_all(&answer).is_err() {
                return Look::Gone;
            }
            self.stage = AcceptStage::Proof(Box::new(session));
        }
        let AcceptStage::Proof(session) = &mut self.stage else { return Look::Gone };
        match session.opener.record(&mut self.stream) {
            Ok(Some(first)) => self.arrive(first),
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.waits(),
            Ok(None) | Err(_) => Look::Gone,
        }
    }

    fn waits(self) -> Look {
        if self.has_time() { Look::Waits(self) } else { Look::Gone }
    }

    fn has_time(&self) -> bool {
        self.since.elapsed() < PROOF_TIMEOUT
    }

    fn arrive(self, first: Vec<u8>) -> Look {
        let Self { stream, peer, stage: AcceptStage::Proof(session), .. } = self else { return Look::Gone };
        let Session { sealer, mut opener } = *session;
        opener.trust();
        match stream.set_nonblocking(false) {
            Ok(()) => Look::Comes(AcceptResult::Arrived(Box::new(Arrived { stream, peer, sealer, opener, first }))),
            Err(_) => Look::Gone,
        }
    }
}

/// Continues reading a hello. Returns true if it is complete, and an error if it can never be.
fn read_hello(stream: &mut impl Read, bytes: &mut Greeting, filled: &mut usize, purpose: Purpose) -> io::Result<bool> {
    while *filled < GREETING_BYTES {
        match stream.read(&mut bytes[*filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => *filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if !may_begin(&bytes[..*filled], purpose) {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    Ok(true)
}

/// The latest hellos of those who have the token.
#[derive(Debug, Default)]
struct Remembered {
    set: HashSet<Greeting>,
    order: VecDeque<Greeting>,
}

impl Remembered {
    fn knows(&self, hello: &Greeting) -> bool {
        self.set.contains(hello)
    }

    fn keep(&mut self, hello: Greeting) {
        if self.order.len() >= MOST_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.set.remove(&oldest);
        }
        self.set.insert(hello);
        self.order.push_back(hello);
    }
}
