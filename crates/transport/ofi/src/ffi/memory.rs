//! Memory of operations, and their contexts: both stay in place until an operation is over.
//!
//! # Invariant
//! A [`Slab`] and a [`Context`] are raw allocations, so that no reference to them exists while the provider writes
//! there. Slices of an operation's memory are lent only while it is not busy.

#![allow(unsafe_code, reason = "raw allocations that the provider writes into")]

use bytes::Bytes;
use evb_libfabric_abi::Mr;
use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    ffi::c_void,
    slice,
};

/// Alignment of slabs: a page, the unit of registration.
const ALIGNMENT: usize = 4096;
/// Bytes at the start of a room in which each long message has its length, which is not 0.
const START_BYTES: usize = 16;

/// The number of an operation of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operation(pub(super) u32);

impl Operation {
    /// The operation as an index. Operations of an endpoint are counted from 0, and their numbers are reused.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// An operation with any number, for tests that do not pass it to an endpoint.
    #[cfg(test)]
    pub(crate) fn test(index: u32) -> Self {
        Self(index)
    }
}

/// The context of an operation for the provider: 8 private words (`struct fi_context2`), then the number of the
/// operation.
#[repr(C)]
pub(super) struct Context {
    scratch: [usize; 8],
    operation: u32,
}

impl Context {
    pub(super) fn allocate(operation: u32) -> *mut Context {
        Box::into_raw(Box::new(Self { scratch: [0; 8], operation }))
    }

    /// The operation of a completion.
    ///
    /// # Safety
    /// `context` must be null or one of [`allocate`](Context::allocate) that was not freed.
    pub(super) unsafe fn operation(context: *mut c_void) -> Option<Operation> {
        let context: *mut Context = context.cast();
        if context.is_null() {
            return None;
        }
        // SAFETY: as demanded; the provider writes to the scratch words only.
        Some(Operation(unsafe { (&raw const (*context).operation).read() }))
    }

    /// # Safety
    /// `context` must come from [`allocate`](Context::allocate), and must not be used again.
    pub(super) unsafe fn free(context: *mut Context) {
        // SAFETY: as demanded.
        drop(unsafe { Box::from_raw(context) });
    }
}

/// One allocation: the memory of equal operations, or of one room.
pub(crate) struct Slab {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: a slab owns its memory alone and says only where it is; access through the pointer needs its own justification.
unsafe impl Send for Slab {}
// SAFETY: as above.
unsafe impl Sync for Slab {}

impl Slab {
    /// Zeros, in pages that the system has found: the first events of a run would wait for each page.
    pub(super) fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).expect("slabs are far below the address space");
        // SAFETY: the size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        for page in (0..layout.size()).step_by(ALIGNMENT) {
            // SAFETY: the place is in the allocation. A volatile write is not left out.
            unsafe { start.add(page).write_volatile(0) };
        }
        Self { start, layout }
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.start, self.layout) }
    }
}

/// The owner of an operation's memory.
pub(crate) enum Memory {
    /// A slab of the endpoint.
    Slab,
    /// A message that may have other owners: it is only read.
    Shared(#[expect(dead_code, reason = "what is held is not looked at")] Bytes),
    /// A room for one long message.
    Room(Slab),
}

/// The state of an operation.
pub(super) struct Entry {
    pub(super) context: *mut Context,
    pub(super) start: *mut u8,
    pub(super) bytes: usize,
    pub(super) descriptor: *mut c_void,
    /// The registration of memory that is not in a slab.
    pub(super) registration: *mut Mr,
    pub(super) memory: Option<Memory>,
    pub(super) busy: bool,
    /// The operation whose memory was sent before this one's in the same message.
    pub(super) joined: Option<Operation>,
}

impl Entry {
    /// The content of the memory.
    pub(super) fn slice(&self) -> &[u8] {
        assert!(!self.busy && self.memory.is_some(), "the provider or a reader has this memory");
        // SAFETY: start and length are those of living memory, which the entry owns a part of, and the provider does not
        // have it.
        unsafe { slice::from_raw_parts(self.start, self.bytes) }
    }

    /// Clears the first bytes, so that [`has_start`](Self::has_start) sees what comes.
    pub(super) fn clear_start(&mut self) {
        let start = self.bytes.min(START_BYTES);
        self.slice_mut()[..start].fill(0);
    }

    /// Returns true if something was written into the first bytes since they were cleared. The provider may have the memory.
    pub(super) fn has_start(&self) -> bool {
        // SAFETY: start and length are those of living memory. What a peer's write changes meanwhile is one byte more or
        // less that is not 0.
        (0..self.bytes.min(START_BYTES)).any(|byte| unsafe { self.start.add(byte).read_volatile() } != 0)
    }

    /// The memory, for writing; not of shared messages.
    pub(super) fn slice_mut(&mut self) -> &mut [u8] {
        let is_own = matches!(self.memory, Some(Memory::Slab | Memory::Room(_)));
        assert!(!self.busy && is_own, "not memory to write to");
        // SAFETY: as above, parts of a slab do not overlap, and `&mut self` keeps others out.
        unsafe { slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}
