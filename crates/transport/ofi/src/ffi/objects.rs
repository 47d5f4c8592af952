//! The objects of an endpoint, and their closing.

#![allow(unsafe_code, reason = "handles that the library gives out")]

use super::memory::{Context, Entry, Slab};
use evb_libfabric_abi::*;
use std::{
    ffi::c_void,
    mem, ptr,
    sync::{Mutex, PoisonError},
};

/// The objects that are closed with an endpoint: each object is open or null.
pub(super) struct Objects {
    pub(super) fabric: *mut Fabric,
    pub(super) domain: *mut Domain,
    pub(super) vector: *mut Av,
    pub(super) queue: *mut Cq,
    pub(super) endpoint: *mut Ep,
    pub(super) entries: Vec<Entry>,
    pub(super) slabs: Vec<Slab>,
    /// The registrations of slabs.
    pub(super) registrations: Vec<*mut Mr>,
}

// SAFETY: invariant 4 of the folder: objects belong to one endpoint alone and may be used by any thread, one at a time.
unsafe impl Send for Objects {}

/// Endpoints of this process that share mappings: the number in use, and the objects of those that are not any more.
struct Parted {
    in_use: usize,
    parted: Vec<Objects>,
}

static PARTED: Mutex<Parted> = Mutex::new(Parted { in_use: 0, parted: Vec::new() });

impl Objects {
    pub(super) fn none() -> Self {
        Self {
            fabric: ptr::null_mut(),
            domain: ptr::null_mut(),
            vector: ptr::null_mut(),
            queue: ptr::null_mut(),
            endpoint: ptr::null_mut(),
            entries: Vec::new(),
            slabs: Vec::new(),
            registrations: Vec::new(),
        }
    }

    /// Counts an endpoint that shares mappings with others of this process.
    pub(super) fn share() {
        PARTED.lock().unwrap_or_else(PoisonError::into_inner).in_use += 1;
    }

    /// Closes all objects, at once or, if the provider shares mappings, with the last endpoint of this process.
    ///
    /// The provider `shm` lets endpoints of one process use each other's own mapping of their memory. A close removes
    /// that mapping while the others may still write there (seen with libfabric 1.17). Between processes each endpoint
    /// has its own mapping.
    pub(super) fn part(self, shares: bool) {
        if !shares {
            return drop(self);
        }
        let mut all = PARTED.lock().unwrap_or_else(PoisonError::into_inner);
        all.parted.push(self);
        all.in_use -= 1;
        if all.in_use == 0 {
            all.parted.clear();
        }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // SAFETY: invariant 2 of the folder: each is open or null, and closed once. Their first field is the `Fid`.
        let closed = unsafe { close(self.endpoint.cast()) };
        if !closed {
            // The provider may still use the memory: better lost than changed under somebody else.
            mem::take(&mut self.slabs).into_iter().for_each(mem::forget);
            mem::take(&mut self.entries).into_iter().for_each(mem::forget);
            return;
        }
        let entries = mem::take(&mut self.entries);
        entries.iter().map(|entry| entry.registration).for_each(close_registration);
        self.registrations.drain(..).for_each(close_registration);
        // SAFETY: as above. The contexts are not used after the endpoint.
        unsafe {
            close(self.queue.cast());
            close(self.vector.cast());
            close(self.domain.cast());
            close(self.fabric.cast());
            entries.into_iter().for_each(|entry| Context::free(entry.context));
        }
    }
}

/// Closes an object; null is none. Returns false if the provider fails to close it.
///
/// # Safety
/// `fid` must be null or open, and is not used after this.
unsafe fn close(fid: *mut Fid) -> bool {
    // SAFETY: as demanded.
    fid.is_null() || unsafe { ((*(*fid).ops).close)(fid) } == 0
}

pub(super) fn close_registration(registration: *mut Mr) {
    // SAFETY: callers take the registration out of where it was, or drop that.
    unsafe { close(registration.cast()) };
}

pub(super) fn descriptor(registration: *mut Mr) -> *mut c_void {
    // SAFETY: an open registration or null.
    unsafe { registration.as_ref() }.map_or(ptr::null_mut(), |registration| registration.mem_desc)
}
