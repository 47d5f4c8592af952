//! Operations of an endpoint: those given to the provider, and their completions.

#![allow(unsafe_code, reason = "memory that the provider reads and writes during an operation")]

use super::{BATCH, Completion, Endpoint, Posted};
use crate::ffi::memory::{Context, Memory, Operation};
use evb_libfabric_abi::*;
use std::{ffi::c_void, mem, os::fd::BorrowedFd};

impl Endpoint {
    /// The memory of an operation that is not busy.
    #[inline]
    pub(crate) fn memory(&self, operation: Operation) -> &[u8] {
        self.objects.entries[operation.0 as usize].slice()
    }

    /// The memory of an operation that is not busy; not of a shared message.
    #[inline]
    pub(crate) fn memory_mut(&mut self, operation: Operation) -> &mut [u8] {
        self.objects.entries[operation.0 as usize].slice_mut()
    }

    /// The operation with this number, if there is one.
    pub(crate) fn operation(&self, number: u32) -> Option<Operation> {
        ((number as usize) < self.objects.entries.len()).then_some(Operation(number))
    }

    /// Returns true if the provider, or a peer by it, has the operation's memory.
    pub(crate) fn is_busy(&self, operation: Operation) -> bool {
        self.objects.entries[operation.0 as usize].busy
    }

    /// Bytes of an operation's memory.
    pub(crate) fn bytes(&self, operation: Operation) -> usize {
        self.objects.entries[operation.0 as usize].bytes
    }

    /// Receives a message whose tag equals this one in all bits but those of `ignore`.
    #[inline]
    pub(crate) fn receive(&mut self, operation: Operation, tag: u64, ignore: u64) -> Posted {
        let entry = &mut self.objects.entries[operation.0 as usize];
        let is_own = matches!(entry.memory, Some(Memory::Slab | Memory::Room(_)));
        assert!(!entry.busy && is_own, "not memory to write to");
        // SAFETY: the endpoint is open; memory and context stay until the completion (invariant 3).
        let result = unsafe {
            let receive = (*(*self.objects.endpoint).tagged).recv;
            let (start, context) = (entry.start.cast(), entry.context.cast());
            receive(self.objects.endpoint, start, entry.bytes, entry.descriptor, FI_ADDR_UNSPEC, tag, ignore, context)
        };
        entry.busy = result == 0;
        posted(result)
    }

    /// Sends the first `bytes` bytes of an operation's memory.
    #[inline]
    pub(crate) fn send(&mut self, operation: Operation, bytes: usize, to: u64, tag: u64) -> Posted {
        let entry = &mut self.objects.entries[operation.0 as usize];
        assert!(!entry.busy && bytes <= entry.bytes, "not memory to send");
        // SAFETY: as for `receive`.
        let result = unsafe {
            let send = (*(*self.objects.endpoint).tagged).send;
            send(self.objects.endpoint, entry.start.cast(), bytes, entry.descriptor, to, tag, entry.context.cast())
        };
        entry.busy = result == 0;
        posted(result)
    }

    /// Sends a copy of at most [`Limits::inject_bytes`]; there is no completion.
    #[inline]
    pub(crate) fn inject(&mut self, bytes: &[u8], to: u64, tag: u64) -> Posted {
        // SAFETY: the endpoint is open; the provider has copied the bytes when this returns.
        posted(unsafe {
            let inject = (*(*self.objects.endpoint).tagged).inject;
            inject(self.objects.endpoint, bytes.as_ptr().cast(), bytes.len(), to, tag)
        })
    }

    /// Asks the provider to return a receive without a message; its completion is an error.
    pub(crate) fn cancel(&mut self, operation: Operation) {
        let entry = &self.objects.entries[operation.0 as usize];
        if entry.busy {
            // SAFETY: the endpoint is open. A context that it does not have any more changes nothing.
            unsafe {
                ((*(*self.objects.endpoint).ops).cancel)(&raw mut (*self.objects.endpoint).fid, entry.context.cast())
            };
        }
    }

    /// Lets the provider work and reads a batch of completions. Returns their number, for
    /// [`completion`](Self::completion).
    #[inline]
    pub(crate) fn poll(&mut self) -> usize {
        // SAFETY: the queue is open and the batch has this room, in this format.
        let count =
            unsafe { ((*(*self.objects.queue).ops).read)(self.objects.queue, self.batch.as_mut_ptr().cast(), BATCH) };
        self.read = count.max(0) as usize;
        self.failed = count == -FI_EAVAIL;
        self.read
    }

    /// One of the completions that the last poll read.
    #[inline]
    pub(crate) fn completion(&mut self, index: usize) -> Completion {
        assert!(index < self.read, "not read");
        let CqEntry { op_context, flags, tag, len, data, .. } = self.batch[index];
        if flags & FI_REMOTE_WRITE != 0 {
            return Completion { operation: self.written(data), tag: 0, bytes: 0, error: None };
        }
        let operation = self.finish(op_context as *mut c_void);
        Completion { operation, tag, bytes: len, error: None }
    }

    /// A failed operation, if any. To be called when [`poll`](Endpoint::poll) returns 0.
    #[inline]
    pub(crate) fn failure(&mut self) -> Option<Completion> {
        if mem::take(&mut self.failed) { self.read_failure() } else { None }
    }

    #[cold]
    fn read_failure(&mut self) -> Option<Completion> {
        // SAFETY: zeros are an entry that asks for no further data; the queue is open.
        let (result, error) = unsafe {
            let mut room = CqErrorRoom::default();
            let result = ((*(*self.objects.queue).ops).readerr)(self.objects.queue, (&raw mut room).cast(), 0);
            (result, room.error)
        };
        if result <= 0 {
            return None;
        }
        let operation = self.finish(error.op_context as *mut c_void);
        Some(Completion { operation, tag: error.tag, bytes: 0, error: Some(error.err) })
    }

    #[inline]
    fn finish(&mut self, context: *mut c_void) -> Option<Operation> {
        // SAFETY: the provider gives back the contexts that it was given; contexts live as long as this endpoint.
        let operation = unsafe { Context::operation(context) }?;
        let entry = &mut self.objects.entries[operation.0 as usize];
        entry.busy = false;
        if let Some(joined) = entry.joined {
            self.objects.entries[joined.0 as usize].busy = false;
        }
        Some(operation)
    }

    /// The queue's file if the thread may sleep on it.
    pub(crate) fn may_sleep(&mut self) -> Option<BorrowedFd<'_>> {
        let file = self.wait_fd?;
        // SAFETY: fabric and queue are open.
        let result = unsafe {
            let mut fid = &raw mut (*self.objects.queue).fid;
            ((*(*self.objects.fabric).ops).trywait)(self.objects.fabric, &raw mut fid, 1)
        };
        // SAFETY: the file is the queue's, which is closed with this endpoint.
        (result == 0).then(|| unsafe { BorrowedFd::borrow_raw(file) })
    }

    /// Returns true if the queue has a file to sleep on.
    pub(crate) fn has_file(&self) -> bool {
        self.wait_fd.is_some()
    }
}

#[inline]
pub(in crate::ffi) fn posted(result: isize) -> Posted {
    match -result {
        0 => Posted::Yes,
        // Of `shm`: it has as many receives as it can.
        FI_EAGAIN | FI_ENOMEM => Posted::Again,
        error => Posted::Failed(error as i32),
    }
}
