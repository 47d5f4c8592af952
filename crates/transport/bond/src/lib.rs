//! Several links as one (channel bonding, as the event builder of CMS had it over two networks in 2007): a transport whose
//! members are transports, one for each link.
//!
//! [`Stripe`] says what goes over which link. Messages are put in order again by the receiver. They are kept by the sender
//! until they have come to the receiver over some link. So a link that dies costs its rate only: what was under way on it
//! goes over the others, and what comes twice is dropped. A peer is lost when all links to it are.
//!
//! A member reports the death of a link: it has lost the peer. A link that stalls while the peer is heard over another
//! one is doubted before: new messages go over the others, and what is under way on it goes there, too. A doubt costs
//! repeated messages and nothing else, and ends when the link moves again. So a slow link is never taken for a dead one.
//!
//! The protocol is a machine without clock and links ([`Bond`] drives it), so that tests can run it through deaths in virtual
//! time. `docs/reference/bond-wire.md` describes the messages.
//!
//! A bond is made above the transports, so one protocol serves links of any kind, and each link has its own evidence of
//! a death. The price is a second window above that of each link. A bond sleeps by `poll` on the files of its links.
//! With edges of their `epoll` files it woke late: 2 x 2 over two loopback links built 1.16 in place of 2.11 million
//! fragments per second.

mod incoming;
mod lane;
mod machine;
mod pair;
mod stripe;
#[cfg(test)]
mod tests;
mod wire;

pub use stripe::Stripe;

use evb_core::{NodeId, Span, Time};
use evb_transport::{
    Connect, DeadLink, JoinError, Message, Parker, Received, SendError, Transport, Waker, finish_in_background,
};
use machine::Machine;
use std::{
    io, mem,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Most messages that are taken from a link at once.
const MOST_AT_ONCE: usize = 256;
/// Bytes for a peer that are given to the links without a flush.
const WRITE_AHEAD_BYTES: usize = 64 << 10;
/// Longest time in which links are not looked at, however many messages wait for the user.
const LOOK: Span = Span::from_millis(1);
/// Longest sleep, whatever the files of the links say: it bounds what a missed change costs.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
/// Longest time for which a node that leaves waits for acknowledgements itself, since its process may end after that. They come
/// sooner from peers that work.
const STAY: Duration = Duration::from_millis(20);
/// Separator of the addresses of the links.
const SEPARATOR: char = ' ';

/// Options of a bond.
#[derive(Clone, Debug)]
pub struct BondOptions {
    /// Names of the links, for people, in the same order at all nodes.
    pub links: Vec<String>,
    /// Rule by which messages are spread.
    pub stripe: Stripe,
    /// Longest body in bytes, which all members take.
    pub max_body: usize,
    /// Most bytes that a peer's user has not taken, sent and not sent; a node holds as many for each peer, and as many from
    /// it. One message always fits.
    pub window_bytes: usize,
}

impl BondOptions {
    /// Window of the defaults in bytes.
    pub const WINDOW_BYTES: usize = 8 << 20;

    /// The defaults for these links: whole messages, a window of 8 MiB.
    #[must_use]
    pub fn new(links: Vec<String>, max_body: usize) -> Self {
        Self { links, stripe: Stripe::default(), max_body, window_bytes: Self::WINDOW_BYTES }
    }
}

/// The endpoint of one node: its endpoints on several links.
#[derive(Debug)]
pub struct Bond<T: Transport + 'static> {
    machine: Machine,
    members: Vec<T>,
    names: Vec<String>,
    /// Links that were given something since they were flushed.
    unflushed: Vec<bool>,
    inbox: Vec<Received>,
    parker: Arc<Parker>,
    start: Instant,
    looked: Time,
    has_left: bool,
}

impl<T: Transport + 'static> Bond<T> {
    /// Bonds of connected links, each of which is given as the endpoints of all nodes.
    ///
    /// # Panics
    /// If links have different numbers of nodes, or the system refuses a file.
    pub fn of_connected(links: Vec<Vec<T>>, stripe: Stripe, max_body: usize) -> Vec<Self> {
        let names: Vec<_> = (0..links.len()).map(|link| format!("link {link}")).collect();
        let mut links: Vec<_> = links.into_iter().map(Vec::into_iter).collect();
        let nodes = links[0].len() as u16;
        let bond = |node| {
            let members = links.iter_mut().map(|link| link.next().expect("an endpoint for each node")).collect();
            let options = BondOptions { stripe, ..BondOptions::new(names.clone(), max_body) };
            let mut bond = Self::new(members, options).expect("a bond");
            bond.expect((0..nodes).filter(|&peer| peer != node).map(NodeId));
            bond
        };
        (0..nodes).map(bond).collect()
    }

    /// The bond of these endpoints of one node, in the order of `options.links`.
    ///
    /// # Errors
    /// If the system refuses a file.
    ///
    /// # Panics
    /// If there are no members, more than 255, or not as many as names.
    pub fn new(members: Vec<T>, options: BondOptions) -> io::Result<Self> {
        assert!((1..256).contains(&members.len()) && members.len() == options.links.len(), "a name for each link");
        Ok(Self {
            parker: Arc::new(Parker::new()?),
            names: options.links.clone(),
            machine: Machine::new(members[0].local(), options),
            unflushed: vec![false; members.len()],
            members,
            inbox: Vec::new(),
            start: Instant::now(),
            looked: Time::ZERO,
            has_left: false,
        })
    }

    /// Takes these peers for joined by all members.
    pub fn expect(&mut self, peers: impl IntoIterator<Item = NodeId>) {
        let now = self.now();
        peers.into_iter().for_each(|peer| self.machine.join(now, peer));
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from(self.start.elapsed())
    }

    /// Takes what the links have, handles timers, and gives the links what they take.
    fn poll(&mut self) -> Time {
        let now = self.now();
        self.looked = now;
        for (link, member) in self.members.iter_mut().enumerate() {
            member.receive(MOST_AT_ONCE, &mut self.inbox);
            self.inbox.drain(..).for_each(|received| self.machine.hear(now, link, received));
        }
        self.machine.on_time(now);
        self.push_out(now);
        now
    }

    fn push_out(&mut self, now: Time) {
        let (members, unflushed) = (&mut self.members, &mut self.unflushed);
        self.machine.pump(now, &mut |link, to, message| {
            unflushed[link] = true;
            members[link].send(to, message)
        });
    }

    /// Flushes links; true when nothing is left.
    fn flush_members(&mut self) -> bool {
        for (member, unflushed) in self.members.iter_mut().zip(&mut self.unflushed) {
            *unflushed = *unflushed && !member.flush();
        }
        self.machine.is_sent() && !self.unflushed.contains(&true)
    }

    /// Works until all messages have come to their peers, which it returns, or `longest` is over.
    fn linger(&mut self, longest: Duration) -> bool {
        let (start, mut rests) = (Instant::now(), 0);
        while !self.machine.has_arrived() {
            let now = self.poll();
            self.flush_members();
            let left = longest.saturating_sub(start.elapsed());
            if left.is_zero() {
                return false;
            }
            self.rest_for(left.min(self.machine.next_time().since(now).as_duration()), rests);
            rests += 1;
        }
        true
    }

    /// Sleeps until a link may have something, a waker is called, or `longest` is over, or less: after this number of rests
    /// in a row, if not every link has a file to sleep on.
    fn rest_for(&self, longest: Duration, rests: u32) {
        let files = self.members.iter().map(|member| Some((member.file()?, false)));
        match files.collect::<Option<Vec<_>>>() {
            Some(files) => self.parker.sleep(&files, longest.min(LONGEST_SLEEP)),
            None => self.parker.nap(rests, longest),
        }
    }
}

impl<T: Transport + 'static> Transport for Bond<T> {
    fn local(&self) -> NodeId {
        self.machine.local
    }

    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        match self.machine.send(to, message) {
            Ok(()) if self.machine.waiting_bytes(to) < WRITE_AHEAD_BYTES => Ok(()),
            Ok(()) => {
                let now = self.now();
                self.push_out(now);
                Ok(())
            }
            Err(SendError::Full(message)) => {
                self.poll();
                self.flush_members();
                self.machine.send(to, message)
            }
            Err(error) => Err(error),
        }
    }

    fn flush(&mut self) -> bool {
        let now = self.now();
        if !self.machine.is_sent() {
            self.push_out(now);
        }
        let is_done = self.flush_members();
        if is_done && now.since(self.looked) < LOOK {
            return true;
        }
        self.poll();
        self.flush_members()
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        let mut now = self.now();
        if !self.machine.is_readable() || now.since(self.looked) >= LOOK {
            now = self.poll();
        }
        let before = sink.len();
        self.machine.receive(now, limit, sink);
        self.machine.on_time(now);
        self.push_out(now);
        // Acknowledgements do not wait for the user.
        self.flush_members();
        sink.len() - before
    }

    fn wait(&mut self, timeout: Duration) {
        let start = Instant::now();
        let (mut rests, mut was_sent) = (0, self.machine.is_sent());
        loop {
            let now = self.poll();
            let is_sent = self.flush_members();
            let moved = mem::take(&mut self.machine.has_room) || is_sent && !was_sent;
            let left = timeout.saturating_sub(start.elapsed());
            if self.machine.is_readable() || moved || self.parker.was_called() || left.is_zero() {
                return;
            }
            was_sent = is_sent;
            self.rest_for(left.min(self.machine.next_time().since(now).as_duration()), rests);
            rests += 1;
        }
    }

    fn waker(&self) -> Waker {
        self.parker.waker()
    }

    fn dead_links(&self) -> &[DeadLink] {
        &self.machine.dead
    }
}

impl<T: Transport + Connect + 'static> Connect for Bond<T> {
    fn address(&self) -> String {
        let addresses: Vec<_> = self.members.iter().map(Connect::address).collect();
        addresses.join(&SEPARATOR.to_string())
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        let links = self.members.len();
        let mut of_links = vec![Vec::with_capacity(peers.len()); links];
        for (peer, address) in peers {
            let parts: Vec<_> = address.split(SEPARATOR).collect();
            if parts.len() != links {
                let others = parts.len();
                let text = format!("{peer} has {others} links and this node {links}: give all nodes the same links");
                return Err(JoinError::new(text));
            }
            of_links.iter_mut().zip(parts).for_each(|(link, part)| link.push((*peer, part.to_owned())));
        }
        join_all(&mut self.members, &of_links, &self.names)?;
        self.expect(peers.iter().map(|(peer, _)| *peer));
        Ok(())
    }
}

/// Lets all members join at the same time, so that none waits for the peers of another.
fn join_all<T: Transport + Connect>(
    members: &mut [T],
    peers: &[Vec<(NodeId, String)>],
    names: &[String],
) -> Result<(), JoinError> {
    thread::scope(|scope| {
        let joining = members.iter_mut().zip(peers).map(|(member, peers)| scope.spawn(|| member.connect(peers)));
        let joined = joining.collect::<Vec<_>>().into_iter().map(|thread| thread.join());
        let result = |(joined, name): (thread::Result<Result<(), JoinError>>, &String)| match joined {
            Ok(result) => result.map_err(|error| JoinError::new(format!("the link {name}: {error}"))),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        joined.zip(names).map(result).fold(Ok(()), Result::and)
    })
}

impl<T: Transport + 'static> Drop for Bond<T> {
    /// Closes the links when all messages have come to their peers. An acknowledgement to a link that is closed would break its
    /// connection, with all that is on its way to the peer.
    fn drop(&mut self) {
        if mem::replace(&mut self.has_left, true) {
            return;
        }
        self.machine.say_goodbye();
        let now = self.now();
        self.push_out(now);
        self.flush_members();
        if self.linger(STAY) {
            return;
        }
        let nothing = Machine::new(self.local(), BondOptions::new(Vec::new(), 0));
        let mut bond = Self {
            machine: mem::replace(&mut self.machine, nothing),
            members: mem::take(&mut self.members),
            names: Vec::new(),
            unflushed: mem::take(&mut self.unflushed),
            inbox: Vec::new(),
            parker: Arc::clone(&self.parker),
            start: self.start,
            looked: self.looked,
            has_left: true,
        };
        finish_in_background(move || bond.linger(Duration::ZERO));
    }
}
