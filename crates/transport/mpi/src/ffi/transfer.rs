//! Transfers: bytes under way and their MPI requests. The [module above](super) states the invariants.

#![allow(unsafe_code, reason = "buffers that MPI reads and writes while a request is active")]

use super::{Calls, Comm, MOST_BYTES, Route, Shim, Status, lock};
use bytes::Bytes;
use std::mem::ManuallyDrop;

/// Attempts to end a receive that is not wanted any more.
const CANCEL_TRIES: usize = 100;

/// The bytes of a send.
enum Outgoing {
    /// A buffer for reuse.
    Buffer(Vec<u8>),
    /// The body of a message.
    #[expect(dead_code, reason = "it is held for its bytes")]
    Body(Bytes),
}

/// Outgoing bytes.
pub(crate) struct Sending {
    shim: &'static Shim,
    /// The request; `None` when it is over.
    request: Option<u64>,
    outgoing: ManuallyDrop<Outgoing>,
}

impl Sending {
    /// Starts to send the content of the buffer. If MPI needs the buffer any longer, it is taken, and an empty one is
    /// left.
    #[inline]
    pub(crate) fn buffer(shim: &'static Shim, route: Route, buffer: &mut Vec<u8>) -> Option<Self> {
        let request = start_send(shim, route, buffer)?;
        let outgoing = ManuallyDrop::new(Outgoing::Buffer(std::mem::take(buffer)));
        Some(Self { shim, request: Some(request), outgoing })
    }

    /// Starts to send a body in place. Returns `None` if it has left already.
    pub(crate) fn body(shim: &'static Shim, route: Route, body: Bytes) -> Option<Self> {
        let request = start_send(shim, route, &body)?;
        Some(Self { shim, request: Some(request), outgoing: ManuallyDrop::new(Outgoing::Body(body)) })
    }

    /// Starts a broadcast of the first rank of `comm`, as that rank.
    pub(crate) fn broadcast(shim: &'static Shim, comm: Comm, mut bytes: Vec<u8>) -> Self {
        let request = start_broadcast(shim, comm, &mut bytes);
        Self { shim, request, outgoing: ManuallyDrop::new(Outgoing::Buffer(bytes)) }
    }

    /// Returns true if the send is over.
    pub(crate) fn poll(&mut self) -> bool {
        if let Some(request) = &mut self.request
            && self.shim.test(request).is_some()
        {
            self.request = None;
        }
        self.request.is_none()
    }

    /// The buffer, for reuse.
    pub(crate) fn into_buffer(mut self) -> Option<Vec<u8>> {
        if self.request.is_some() {
            return None;
        }
        // A buffer without bytes replaces what is taken: it is freed as any other.
        match std::mem::replace(&mut *self.outgoing, Outgoing::Body(Bytes::new())) {
            Outgoing::Buffer(buffer) => Some(buffer),
            Outgoing::Body(_) => None,
        }
    }

    /// Keeps the bytes until they have left, after the end of the endpoint.
    pub(crate) fn linger(self) {
        let shim = self.shim;
        lock(&shim.lingering).0.push(self);
    }

    /// Leaves the bytes to MPI for good: they will not be taken any more.
    pub(crate) fn abandon(self) {
        drop(self);
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.request.is_none() {
            // SAFETY: MPI has said that it needs the bytes no more, and they were not taken out.
            unsafe { ManuallyDrop::drop(&mut self.outgoing) };
        }
    }
}

/// Starts to send. A request that is not over yet must be given the owner of the bytes.
#[inline]
fn start_send(shim: &Shim, route: Route, bytes: &[u8]) -> Option<u64> {
    assert!(bytes.len() <= MOST_BYTES && route.rank >= 0);
    let (address, length, mut request) = (bytes.as_ptr().cast(), bytes.len() as i32, 0);
    // SAFETY: alone and while MPI runs. If the request is active after that, both callers move the owner of the bytes into
    // the value that owns the request; moving a `Vec` or `Bytes` leaves the bytes where they are.
    let call =
        |calls: &Calls| unsafe { (calls.send)(address, length, route.rank, route.tag, route.comm.0, &mut request) };
    (shim.call(call) == Some(0)).then_some(request)
}

fn start_broadcast(shim: &Shim, comm: Comm, bytes: &mut [u8]) -> Option<u64> {
    assert!(bytes.len() <= MOST_BYTES);
    let (address, length) = (bytes.as_mut_ptr().cast(), bytes.len() as i32);
    // SAFETY: alone and while MPI runs; both callers put the buffer with the request, and moving it leaves the bytes there.
    shim.call(|calls| unsafe { (calls.broadcast)(address, length, comm.0) })
}

/// The sender of the bytes of a [`Receiving`].
#[derive(Clone, Copy, Debug)]
enum From {
    Route(Route),
    Broadcast(Comm),
}

/// A buffer for incoming bytes.
pub(crate) struct Receiving {
    shim: &'static Shim,
    from: From,
    /// The request; `None` when it is over.
    request: Option<u64>,
    /// The result.
    pub(crate) status: Status,
    room: ManuallyDrop<Vec<u8>>,
}

impl Receiving {
    /// Starts to receive at most as many bytes as `room` has.
    pub(crate) fn start(shim: &'static Shim, route: Route, room: Vec<u8>) -> Self {
        Self::post(shim, From::Route(route), room)
    }

    /// Takes part in a broadcast of the first rank of `comm`, of exactly as many bytes as `room` has.
    pub(crate) fn broadcast(shim: &'static Shim, comm: Comm, room: Vec<u8>) -> Self {
        Self::post(shim, From::Broadcast(comm), room)
    }

    fn post(shim: &'static Shim, from: From, room: Vec<u8>) -> Self {
        let room = ManuallyDrop::new(room);
        let mut receiving = Self { shim, from, request: None, status: Status::default(), room };
        receiving.again();
        receiving
    }

    /// Repeats a receive that is over.
    #[inline]
    pub(crate) fn again(&mut self) {
        assert!(self.request.is_none() && self.room.len() <= MOST_BYTES);
        self.request = match self.from {
            From::Broadcast(comm) => start_broadcast(self.shim, comm, &mut self.room),
            From::Route(Route { comm, rank, tag }) => {
                let (address, length) = (self.room.as_mut_ptr().cast(), self.room.len() as i32);
                // SAFETY: alone and while MPI runs. The room is given out only when the request is over, and moving it
                // leaves its bytes where they are.
                self.shim.call(|calls| unsafe { (calls.receive)(address, length, rank, tag, comm.0) })
            }
        };
    }

    /// Returns true if something has arrived.
    #[inline]
    pub(crate) fn poll(&mut self) -> bool {
        if let Some(request) = &mut self.request
            && let Some(status) = self.shim.test(request)
        {
            (self.request, self.status) = (None, status);
        }
        self.request.is_none()
    }

    /// The received bytes; empty before the end of the receive.
    pub(crate) fn bytes(&self) -> &[u8] {
        match (self.request, self.from) {
            (Some(_), _) => &[],
            (None, From::Route(_)) => &self.room[..self.status.length as usize],
            (None, From::Broadcast(_)) => &self.room,
        }
    }

    /// The buffer, and the number of received bytes at its start.
    pub(crate) fn into_room(mut self) -> Option<(Vec<u8>, usize)> {
        self.request.is_none().then(|| (std::mem::take(&mut *self.room), self.status.length as usize))
    }

    /// Keeps the buffer to the end, for bytes that may still arrive.
    pub(crate) fn linger(self) {
        let shim = self.shim;
        lock(&shim.lingering).1.push(self);
    }

    /// Ends the receive without a message. If one is being taken from the wire, the buffer is never freed.
    pub(crate) fn cancel(mut self) {
        if let (Some(request), From::Route(_)) = (&mut self.request, self.from) {
            // SAFETY: alone and while MPI runs; the request is active.
            self.shim.call(|calls| unsafe { (calls.cancel)(request) });
            let _ended = (0..CANCEL_TRIES).any(|_| self.poll());
        }
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        if self.request.is_none() {
            // SAFETY: MPI has said that it writes no more, and what was taken out has left an empty `Vec`.
            unsafe { ManuallyDrop::drop(&mut self.room) };
        }
    }
}
