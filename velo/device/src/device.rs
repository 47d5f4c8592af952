//! A device: the own segment and its mailbox, the peers it sends to, and the senders it knows.

use crate::{
    Address, Grant, bell,
    directory::{self, Name},
    fetch::{self, Span},
    layout as at,
    mailbox::{self, Content, Envelope, Incoming},
    outbox::{self, Note, Outbox, state},
    segment::Segment,
};
use std::{
    collections::HashMap,
    io,
    os::fd::{AsRawFd, OwnedFd},
    sync::atomic::Ordering,
    time::Duration,
};

#[cfg(test)]
mod tests;

/// Empty polls between two looks at a sender that has claimed a slot and does not publish it.
const DOUBT_POLLS: u32 = 1 << 14;

/// Most slots that are kept before they are given back together.
const TOGETHER: u64 = at::SLOTS as u64 / 4;
/// Empty polls before kept slots are given back: a reply that the program sends at once does not wait for that.
const QUIET_POLLS: u32 = 4;

/// The number of a peer in its device.
pub type Peer = usize;

/// The reason why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Mailbox, blocks or notes are full.
    #[error("no room: receive what has arrived, and try again")]
    Full,
    /// The peer has ended.
    #[error("the peer has ended: close its window")]
    Gone,
    /// The name is not valid.
    #[error("`{0}` is not a name: use 1 to 32 characters out of A-Za-z0-9._-")]
    Name(String),
    /// No device has this name.
    #[error("no device `{0}`: start its owner first, as the same user")]
    Unknown(String),
    /// More senders than a mailbox knows.
    #[error("the peer knows {} senders already: let it open its device again", at::SENDERS)]
    Crowded,
    /// Memory that was not lent, or not for this.
    #[error("no memory with key {0:#x} is lent for this: lend it first, with the right to read or write")]
    NotLent(u64),
    /// The message is longer than what this way of sending carries.
    #[error("the message is longer than {limit} bytes: send it in parts")]
    TooLong {
        /// Most bytes.
        limit: usize,
    },
    /// All nodes of the hardware have been opened.
    #[error("all {0} nodes of the hardware have been opened: start it with more, or again")]
    Taken(usize),
    /// The system refused.
    #[error(transparent)]
    System(#[from] io::Error),
}

#[derive(Debug)]
struct Target {
    segment: Segment,
    address: Address,
    number: u16,
    /// Headers of messages by the bytes in their line.
    headers: [u64; at::LINE_BYTES + 1],
}

impl Target {
    #[inline]
    fn push(&self, envelope: &Envelope, content: Content<'_>) -> bool {
        let in_line = if let Content::Line(_) = content { envelope.length as usize } else { 0 };
        mailbox::push(&self.segment, self.number, self.headers[in_line], envelope, content)
    }

    #[inline]
    fn is_open(&self) -> bool {
        is_open(&self.segment)
    }
}

/// Returns true until the owner of a segment closes its device; a killed process leaves this true.
#[inline]
fn is_open(segment: &Segment) -> bool {
    segment.word(at::MAGIC_AT).load(Ordering::Relaxed) == at::MAGIC
}

/// A device with its own mailbox.
#[derive(Debug)]
pub struct Device {
    address: Address,
    own: Segment,
    _file: OwnedFd,
    _name: Option<Name>,
    head: u64,
    /// Slots before this one belong to the senders again.
    released: u64,
    quiet: u32,
    outbox: Outbox,
    targets: Vec<Target>,
    by_address: HashMap<Address, Peer>,
    sources: Vec<Option<(Address, Segment)>>,
    fetches: bool,
}

impl Device {
    /// A new device. With a name, others of the same user find it by that.
    ///
    /// # Errors
    /// An invalid name or one that is taken, or no memory.
    pub fn open(name: Option<&str>) -> Result<Self, DeviceError> {
        if let Some(name) = name.filter(|name| !directory::is_valid(name)) {
            return Err(DeviceError::Name(name.to_owned()));
        }
        let file = evb_os::memory::create("evbvelo", at::SEGMENT_BYTES)?;
        let own = Segment::map(&file)?;
        let nonce = getrandom::u64().map_err(io::Error::other)?;
        let address = Address { process: std::process::id(), file: file.as_raw_fd() as u32, nonce };
        own.word(at::NONCE_AT).store(nonce, Ordering::Relaxed);
        own.word(at::MAGIC_AT).store(at::MAGIC, Ordering::Release);
        let name = name.map(|name| directory::publish(name, address)).transpose()?;
        let fetches = std::env::var_os("EVBVELO_NO_FETCH").is_none();
        let (outbox, sources) = (Outbox::new(), vec![None; at::SENDERS]);
        let (targets, by_address) = (Vec::new(), HashMap::new());
        let (head, released, quiet) = (0, 0, 0);
        Ok(Self {
            address,
            own,
            _file: file,
            _name: name,
            head,
            released,
            quiet,
            outbox,
            targets,
            by_address,
            sources,
            fetches,
        })
    }

    /// The address, by which others of the same user and machine find this device.
    pub fn address(&self) -> Address {
        self.address
    }

    /// The peer with this name.
    ///
    /// # Errors
    /// No device has this name, or it cannot be mapped.
    pub fn find(&mut self, name: &str) -> Result<Peer, DeviceError> {
        let address = directory::find(name)?.ok_or_else(|| DeviceError::Unknown(name.to_owned()))?;
        self.connect(address)
    }

    /// The peer with this address, whose segment is mapped, and which knows this device as a sender from now on.
    ///
    /// # Errors
    /// The segment cannot be mapped, or its owner knows too many senders.
    pub fn connect(&mut self, address: Address) -> Result<Peer, DeviceError> {
        if let Some(&peer) = self.by_address.get(&address) {
            return Ok(peer);
        }
        let segment = address.open()?;
        let number = register(&segment, self.address).ok_or(DeviceError::Crowded)?;
        let headers = std::array::from_fn(|bytes| mailbox::header(number, bytes));
        self.targets.push(Target { segment, address, number, headers });
        self.by_address.insert(address, self.targets.len() - 1);
        Ok(self.targets.len() - 1)
    }

    /// Address of a known sender, which may have ended. Maps its segment if it has not: what lies there then outlives it.
    pub fn sender(&mut self, number: u16) -> Option<Address> {
        let mapped = self.source(number).map(|(address, _)| *address);
        mapped.or_else(|| known(&self.own, number))
    }

    fn source(&mut self, number: u16) -> Option<&(Address, Segment)> {
        let place = self.sources.get_mut(number as usize)?;
        if place.is_none() {
            *place = known(&self.own, number).and_then(|address| Some((address, address.open().ok()?)));
        }
        place.as_ref()
    }

    /// Sends a message, whose length in the envelope is that of all spans. The answer is a note if the message stays in the memory of the program until [`serve`](Self::serve)
    /// tells that it has arrived; otherwise it is copied.
    ///
    /// # Errors
    /// [`DeviceError::Full`] if there is no room at the moment, [`DeviceError::Gone`] if the peer has closed its device.
    #[inline]
    pub fn send(&mut self, peer: Peer, envelope: &Envelope, spans: &[Span]) -> Result<Option<Note>, DeviceError> {
        let Some(target) = self.targets.get(peer).filter(|target| target.is_open()) else {
            return Err(DeviceError::Gone);
        };
        let length = envelope.length as usize;
        if length <= at::LINE_BYTES {
            let sent = target.push(envelope, Content::Line(spans));
            return if sent { Ok(None) } else { Err(DeviceError::Full) };
        }
        if length <= at::BLOCK_BYTES {
            let index = self.outbox.block(&self.own, peer).ok_or(DeviceError::Full)?;
            self.own.fill(outbox::block(index), length, spans, 0);
            if target.push(envelope, Content::Block(index)) {
                return Ok(None);
            }
            outbox::free_block(&self.own, index);
            return Err(DeviceError::Full);
        }
        let index = self.outbox.note(&self.own, spans).ok_or(DeviceError::Full)?;
        if target.push(envelope, Content::Note(index)) {
            return Ok(Some(Note { index, spans: spans.to_vec(), sent: 0, peer }));
        }
        self.outbox.free_note(&self.own, index);
        Err(DeviceError::Full)
    }

    /// Drives a message that is under way by a note. True when it has arrived, and its memory can be used again.
    pub fn serve(&mut self, note: &mut Note) -> bool {
        let done = outbox::serve(&self.own, &mut self.outbox, note);
        if done {
            self.outbox.free_note(&self.own, note.index);
        }
        done
    }

    /// Forgets a message that is under way to a peer that has ended.
    pub fn abandon(&mut self, note: &Note) {
        self.outbox.free_note(&self.own, note.index);
    }

    /// Takes back the blocks of messages to a peer that has ended.
    pub fn bury(&mut self, peer: Peer) {
        self.outbox.free_blocks(&self.own, peer);
    }

    /// Returns true if peers have received all messages that do not fit a line.
    pub fn is_idle(&self) -> bool {
        self.outbox.is_idle(&self.own)
    }

    /// The number of peers.
    pub fn peers(&self) -> usize {
        self.targets.len()
    }

    /// Returns true if a peer has not closed its device, and its process runs.
    pub fn is_alive(&self, peer: Peer) -> bool {
        self.targets.get(peer).is_some_and(|target| target.is_open() && target.address.is_alive())
    }

    /// Returns true if a known sender has not closed its device, and its process runs.
    pub fn is_sender_alive(&mut self, number: u16) -> bool {
        self.source(number).is_some_and(|(address, segment)| is_open(segment) && address.is_alive())
    }

    /// The peer of a note.
    pub fn peer_of(&self, note: &Note) -> Peer {
        note.peer
    }

    /// Returns true if a message has arrived. When some calls in a row have found nothing, senders get their slots back.
    #[inline]
    pub fn has_next(&mut self) -> bool {
        let is_there = mailbox::is_there(&self.own, self.head);
        if is_there {
            self.quiet = 0;
        } else {
            self.quiet += 1;
            if self.quiet == QUIET_POLLS || self.quiet >= DOUBT_POLLS {
                self.found_nothing();
            }
        }
        is_there
    }

    /// The next message, if one has arrived.
    #[inline]
    pub fn poll(&mut self) -> Option<Incoming> {
        let mut incoming = Incoming::default();
        self.poll_into(&mut incoming).then_some(incoming)
    }

    /// Puts the next message into `incoming`; false if none has arrived. It is what [`poll`](Self::poll) does without moving
    /// the message once more.
    #[inline]
    pub fn poll_into(&mut self, incoming: &mut Incoming) -> bool {
        if !self.has_next() {
            return false;
        }
        mailbox::read(&self.own, self.head, incoming);
        self.head += 1;
        if self.head - self.released >= TOGETHER {
            self.release();
        }
        true
    }

    #[cold]
    fn found_nothing(&mut self) {
        self.release();
        if self.quiet >= DOUBT_POLLS {
            self.quiet = 0;
            self.doubt();
        }
    }

    /// Passes over a slot whose sender has died before it could publish it.
    fn doubt(&mut self) {
        let is_dead = |sender| known(&self.own, sender).is_some_and(|address| !address.is_alive());
        if mailbox::is_abandoned(&self.own, self.head, is_dead) {
            self.head += 1;
            self.release();
        }
    }

    /// Gives the slots of messages that were taken back to the senders. [`poll`](Self::poll) does it for several at a time, or
    /// when it has found nothing some times, so a program that may not poll again for long calls this.
    pub fn release(&mut self) {
        (self.released..self.head).for_each(|position| mailbox::release(&self.own, position));
        self.released = self.head;
    }

    /// Sleeps until something arrives, for this time at most. True if something is there.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        self.release();
        let is_there = || mailbox::is_there(&self.own, self.head);
        if bell::wait(&self.own, timeout, is_there) {
            return true;
        }
        self.doubt();
        mailbox::is_there(&self.own, self.head)
    }

    /// Copies the block of a message into a vector, and frees it. None if the sender ended before its segment was mapped.
    pub fn take_block(&mut self, sender: u16, index: u16, length: usize) -> Option<Vec<u8>> {
        let (_, segment) = self.source(sender)?;
        let mut bytes = vec![0; length.min(at::BLOCK_BYTES)];
        segment.read(outbox::block(index), &mut bytes);
        outbox::free_block(segment, index);
        Some(bytes)
    }

    /// Copies the block of a message into memory of the program, and frees it. False if the sender ended before its segment
    /// was mapped.
    pub fn deliver_block(&mut self, sender: u16, index: u16, length: usize, spans: &[Span]) -> bool {
        let Some((_, segment)) = self.source(sender) else { return false };
        segment.drain(outbox::block(index), length.min(at::BLOCK_BYTES), spans, 0);
        outbox::free_block(segment, index);
        true
    }

    /// Fetches the message of a note. False if the system forbids it: [`pull`](Self::pull) then gets it in blocks.
    ///
    /// # Errors
    /// The sender has ended.
    pub fn fetch_note(&mut self, sender: u16, index: u16, spans: &[Span]) -> Result<bool, DeviceError> {
        let fetches = self.fetches;
        let (address, segment) = self.source(sender).ok_or(DeviceError::Gone)?;
        let theirs = outbox::spans(segment, index);
        let result = if fetches { fetch::fetch(address.process, spans, &theirs) } else { Err(forbidden()) };
        match result {
            Ok(()) => outbox::answer(segment, index, state::DONE),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                outbox::answer(segment, index, state::ASKED);
                return Ok(false);
            }
            Err(_) => {
                outbox::answer(segment, index, state::DONE);
                return Err(DeviceError::Gone);
            }
        }
        Ok(true)
    }

    /// Gets the next block of a note from its sender, into memory of the program behind `done` bytes. The number of bytes
    /// got, which may lie behind the end of that memory; 0 if the sender has put none yet.
    ///
    /// # Errors
    /// The sender has ended.
    pub fn pull(
        &mut self,
        sender: u16,
        index: u16,
        spans: &[Span],
        done: usize,
        total: usize,
    ) -> Result<usize, DeviceError> {
        let (_, segment) = self.source(sender).ok_or(DeviceError::Gone)?;
        let Some(length) = outbox::next(segment, index, spans, done) else { return Ok(0) };
        let all = length == 0 || done + length >= total;
        outbox::answer(segment, index, if all { state::DONE } else { state::ASKED });
        Ok(length)
    }

    /// Reports to the sender of a note that its message is not wanted.
    pub fn refuse(&mut self, sender: u16, index: u16) {
        if let Some((_, segment)) = self.source(sender) {
            outbox::answer(segment, index, state::DONE);
        }
    }

    /// Lends memory of the program to its peers. False if the key is in use or no place is left.
    pub fn lend(&self, grant: Grant) -> bool {
        self.own.lend(grant)
    }

    /// Takes lent memory back.
    pub fn take_back(&self, key: u64) {
        self.own.take_back(key);
    }

    /// Copies between memory of this program and lent memory of a peer: `put` writes there, otherwise it is read. `place` is
    /// an offset from the first lent byte, or with `absolute` an address in the memory of the peer.
    ///
    /// # Errors
    /// The memory is not lent for this, or the system forbids it.
    pub fn remote(
        &self,
        peer: Peer,
        put: bool,
        own: &[Span],
        key: u64,
        place: u64,
        absolute: bool,
    ) -> Result<(), DeviceError> {
        let target = self.targets.get(peer).filter(|target| target.is_open()).ok_or(DeviceError::Gone)?;
        let length = own.iter().map(|span| span.length as u64).sum::<u64>();
        let wanted = if put { 2 } else { 1 };
        let grant = target.segment.lent(key).filter(|grant| grant.rights & wanted != 0);
        let offset = match grant {
            Some(grant) if absolute => place.wrapping_sub(grant.address),
            _ => place,
        };
        let grant = grant.filter(|grant| offset <= grant.length && length <= grant.length - offset);
        let grant = grant.ok_or(DeviceError::NotLent(key))?;
        let theirs = [Span { address: (grant.address + offset) as usize, length: length as usize }];
        let call = if put { fetch::store } else { fetch::fetch };
        Ok(call(target.address.process, own, &theirs)?)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.own.word(at::MAGIC_AT).store(0, Ordering::Release);
    }
}

fn forbidden() -> io::Error {
    io::ErrorKind::PermissionDenied.into()
}

/// The number under which the owner of a segment knows this sender, which is written there if it is new.
fn register(segment: &Segment, address: Address) -> Option<u16> {
    let identity = u64::from(address.process) << 32 | u64::from(address.file);
    for number in 0..at::SENDERS {
        let place = at::SENDERS_AT + number * at::SENDER_BYTES;
        let claim = segment.word(place);
        if claim.compare_exchange(0, identity, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            segment.word(place + 8).store(address.nonce, Ordering::Relaxed);
            segment.word(place + 16).store(1, Ordering::Release);
            return Some(number as u16);
        }
    }
    None
}

fn known(segment: &Segment, number: u16) -> Option<Address> {
    let place = at::SENDERS_AT + (number as usize % at::SENDERS) * at::SENDER_BYTES;
    (segment.word(place + 16).load(Ordering::Acquire) == 1).then(|| {
        let identity = segment.word(place).load(Ordering::Relaxed);
        let nonce = segment.word(place + 8).load(Ordering::Relaxed);
        Address { process: (identity >> 32) as u32, file: identity as u32, nonce }
    })
}
