//! Everything of a domain behind one lock: endpoints, queues, counters, address vectors and lent memory.

use crate::{
    engine::{Engine, Finished},
    queue::{Counter, Queue},
};
use evb_libfabric_abi::{
    CqEntry, CqError, FI_ADDR_UNSPEC, FI_EAGAIN, FI_EHOSTUNREACH, FI_EINVAL, FI_EMSGSIZE, FI_ENOAV, FI_ENOCQ,
    FI_ENOKEY, FI_ENOSYS, FI_READ, FI_RECV, FI_RMA, FI_SEND, FI_WRITE,
};
use evb_velo_device::{Address, DeviceError, Envelope, Grant, Peer, Span};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A domain.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Remote memory is named by its address, not by an offset.
    pub(crate) absolute: bool,
    /// The provider chooses the keys.
    pub(crate) own_keys: bool,
}

/// What the lock protects. Objects are numbers of these lists, and never reused.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) endpoints: Vec<Option<Endpoint>>,
    pub(crate) queues: Vec<Option<Queue>>,
    pub(crate) counters: Vec<Option<Counter>>,
    pub(crate) vectors: Vec<Option<Vec<Option<Address>>>>,
    /// No more than [`GRANTS`](evb_velo_device::GRANTS).
    pub(crate) grants: Vec<Grant>,
    pub(crate) next_key: u64,
}

/// An endpoint and what is bound to it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) engine: Engine,
    pub(crate) send_queue: Option<usize>,
    pub(crate) receive_queue: Option<usize>,
    pub(crate) send_selective: bool,
    pub(crate) receive_selective: bool,
    pub(crate) send_flags: u64,
    pub(crate) receive_flags: u64,
    pub(crate) vector: Option<usize>,
    /// What the endpoint does: sends, receives.
    pub(crate) directions: u64,
    /// Receives are limited to the source that they name.
    pub(crate) directed: bool,
    pub(crate) counters: Vec<(usize, u64)>,
    pub(crate) peers: Vec<Option<Peer>>,
}

/// An operation of the sending side.
#[derive(Debug)]
pub(crate) struct Send<'a> {
    pub(crate) to: u64,
    pub(crate) envelope: Envelope,
    pub(crate) spans: &'a [Span],
    pub(crate) finished: Finished,
}

/// Puts a new object into a list; its number.
pub(crate) fn put<T>(list: &mut Vec<Option<T>>, object: T) -> usize {
    list.push(Some(object));
    list.len() - 1
}

impl Shared {
    pub(crate) fn new(absolute: bool, own_keys: bool) -> Self {
        Self { state: Mutex::default(), absolute, own_keys }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(crate) fn endpoint(&mut self, number: usize) -> Result<&mut Endpoint, isize> {
        self.endpoints.get_mut(number).and_then(Option::as_mut).ok_or(-FI_EINVAL)
    }

    /// Lets all endpoints make progress, and hands out what has finished.
    #[inline]
    pub(crate) fn progress(&mut self) {
        for number in 0..self.endpoints.len() {
            let Some(endpoint) = &mut self.endpoints[number] else { continue };
            if endpoint.engine.is_idle() {
                continue;
            }
            let queue = endpoint.receive_queue.and_then(|queue| self.queues[queue].as_ref());
            if !queue.is_some_and(Queue::is_full) {
                endpoint.engine.progress();
            }
            self.hand_out(number);
        }
    }

    /// Moves finished operations of an endpoint to its queues and counters.
    #[inline]
    pub(crate) fn hand_out(&mut self, number: usize) {
        let Some(endpoint) = &mut self.endpoints[number] else { return };
        if endpoint.engine.finished.is_empty() {
            return;
        }
        let mut finished = std::mem::take(&mut endpoint.engine.finished);
        finished.iter().for_each(|done| self.finish(number, done));
        finished.clear();
        if let Some(endpoint) = &mut self.endpoints[number] {
            endpoint.engine.finished = finished;
        }
    }

    /// Tells the queue and the counters of an endpoint that an operation has finished.
    #[inline]
    fn finish(&mut self, number: usize, done: &Finished) {
        let Some(endpoint) = &self.endpoints[number] else { return };
        if !done.wanted && done.error == 0 && endpoint.counters.is_empty() {
            return;
        }
        let receives = done.entry.flags & FI_RECV != 0 || done.entry.flags & (FI_RMA | FI_READ | FI_WRITE) == FI_RMA;
        let queue = if receives { endpoint.receive_queue } else { endpoint.send_queue };
        for &(counter, flags) in &endpoint.counters {
            if let (Some(counter), true) = (&mut self.counters[counter], done.entry.flags & flags != 0) {
                *(if done.error == 0 { &mut counter.value } else { &mut counter.errors }) += 1;
            }
        }
        let Some(queue) = queue.and_then(|queue| self.queues[queue].as_mut()) else { return };
        if done.error != 0 {
            queue.errors.push_back(failure(done));
        } else if done.wanted {
            queue.entries.push_back((done.entry, done.source));
        }
    }

    /// The peer with this number in the address vector of an endpoint.
    #[inline]
    fn peer(&mut self, number: usize, to: u64) -> Result<Peer, isize> {
        let endpoint = self.endpoints.get_mut(number).and_then(Option::as_mut).ok_or(-FI_EINVAL)?;
        if let Some(&Some(peer)) = endpoint.peers.get(to as usize) {
            return Ok(peer);
        }
        let vector = endpoint.vector.and_then(|vector| self.vectors[vector].as_ref()).ok_or(-FI_EINVAL)?;
        let address = vector.get(to as usize).copied().flatten().ok_or(-FI_EINVAL)?;
        let peer = endpoint.engine.lane.connect(address).map_err(|_| -FI_EHOSTUNREACH)?;
        endpoint.peers.resize(endpoint.peers.len().max(to as usize + 1), None);
        endpoint.peers[to as usize] = Some(peer);
        Ok(peer)
    }

    /// An endpoint that may begin an operation: there is room for its entry.
    fn sender(&mut self, number: usize) -> Result<&mut Endpoint, isize> {
        let endpoint = self.endpoints.get_mut(number).and_then(Option::as_mut).ok_or(-FI_EINVAL)?;
        let queue = endpoint.send_queue.and_then(|queue| self.queues[queue].as_ref());
        if queue.is_some_and(Queue::is_full) { Err(-FI_EAGAIN) } else { Ok(endpoint) }
    }

    /// Sends a message. A full mailbox makes progress here first, since a program may only send.
    pub(crate) fn send(&mut self, number: usize, send: &Send<'_>) -> Result<(), isize> {
        let peer = self.peer(number, send.to)?;
        let endpoint = self.sender(number)?;
        match endpoint.engine.lane.send(peer, &send.envelope, send.spans) {
            Ok(Some(note)) => endpoint.engine.under_way(note, send.finished),
            Ok(None) => self.finish(number, &send.finished),
            Err(DeviceError::Full) => {
                let gone = !endpoint.engine.lane.is_alive(peer);
                self.progress();
                return Err(if gone { -FI_EHOSTUNREACH } else { -FI_EAGAIN });
            }
            Err(DeviceError::TooLong { .. }) => return Err(-FI_EMSGSIZE),
            Err(_) => return Err(-FI_EHOSTUNREACH),
        }
        Ok(())
    }

    /// Reads or writes lent memory of a peer.
    pub(crate) fn remote(
        &mut self,
        number: usize,
        absolute: bool,
        send: &Send<'_>,
        place: u64,
        key: u64,
    ) -> Result<(), isize> {
        let peer = self.peer(number, send.to)?;
        let put = send.finished.entry.flags & FI_WRITE != 0;
        let endpoint = self.sender(number)?;
        let device = endpoint.engine.lane.memory().ok_or(-FI_ENOSYS)?;
        match device.remote(peer, put, send.spans, key, place, absolute) {
            Ok(()) => {}
            Err(DeviceError::NotLent(_)) => return Err(-FI_ENOKEY),
            Err(_) => return Err(-FI_EHOSTUNREACH),
        }
        self.finish(number, &send.finished);
        Ok(())
    }

    /// Address of a source that a receive is limited to.
    #[inline]
    pub(crate) fn source(&self, number: usize, from: u64) -> Option<Address> {
        if from == FI_ADDR_UNSPEC {
            return None;
        }
        let endpoint = self.endpoints.get(number)?.as_ref()?;
        let vector = endpoint.vector.filter(|_| endpoint.directed)?;
        self.vectors[vector].as_ref()?.get(from as usize).copied().flatten()
    }

    /// Removes an address from a vector, and from what its endpoints know.
    pub(crate) fn forget(&mut self, vector: usize, number: usize) {
        let place = self.vectors[vector].as_mut().and_then(|addresses| addresses.get_mut(number));
        let Some(address) = place.and_then(Option::take) else { return };
        for endpoint in self.endpoints.iter_mut().flatten().filter(|endpoint| endpoint.vector == Some(vector)) {
            if let Some(peer) = endpoint.peers.get_mut(number) {
                *peer = None;
            }
            endpoint.engine.forget(address, number as u64);
        }
        self.number_sources(vector);
    }

    /// Tells the endpoints of a vector the numbers of its addresses.
    pub(crate) fn number_sources(&mut self, vector: usize) {
        let Some(addresses) = &self.vectors[vector] else { return };
        for endpoint in self.endpoints.iter_mut().flatten().filter(|endpoint| endpoint.vector == Some(vector)) {
            for (number, address) in addresses.iter().enumerate() {
                if let Some(address) = address {
                    endpoint.engine.number(*address, number as u64);
                }
            }
        }
    }
}

/// The error of a queue.
fn failure(done: &Finished) -> CqError {
    let CqEntry { op_context, flags, len, buf, data, tag } = done.entry;
    let (err, olen) = (done.error as i32, done.excess);
    CqError { op_context, flags, len, buf, data, tag, olen, err, prov_errno: err, ..CqError::default() }
}

/// Returns true if an operation that asked for nothing special gets an entry in its queue.
pub(crate) fn wanted(selective: bool, flags: u64) -> bool {
    !selective || flags & evb_libfabric_abi::FI_COMPLETION != 0
}

/// Why an endpoint cannot be enabled, if so: it needs a vector, and a queue or a counter for each direction.
pub(crate) fn enable(endpoint: &Endpoint) -> Result<(), isize> {
    if endpoint.vector.is_none() {
        return Err(-FI_ENOAV);
    }
    let counted = endpoint.counters.iter().fold(0, |all, (_, flags)| all | flags);
    let lacks = |direction, queue: Option<usize>| endpoint.directions & direction & !counted != 0 && queue.is_none();
    let lacks = lacks(FI_SEND, endpoint.send_queue) || lacks(FI_RECV, endpoint.receive_queue);
    if lacks { Err(-FI_ENOCQ) } else { Ok(()) }
}

/// Flags of an endpoint's binding to a queue.
pub(crate) fn bind_queue(endpoint: &mut Endpoint, queue: usize, flags: u64) {
    let selective = flags & evb_libfabric_abi::FI_SELECTIVE_COMPLETION != 0;
    if flags & FI_SEND != 0 {
        (endpoint.send_queue, endpoint.send_selective) = (Some(queue), selective);
    }
    if flags & FI_RECV != 0 {
        (endpoint.receive_queue, endpoint.receive_selective) = (Some(queue), selective);
    }
}
