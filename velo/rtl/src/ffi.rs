//! The foreign calls, and a safe value around them: the only unsafe code of the crate.
//!
//! # Invariants
//! - **The signatures below are those of `sim/evb_velo.cpp`,** and so are the layouts of [`Inputs`] and [`Outputs`],
//!   whose sizes both sides check. The opened library was compiled from the sources in this binary: a hash of them is
//!   in its name, and no other user can write it. It is never closed.
//! - **Calls do not overlap:** only a [`Verilated`] has the pointer, and its calls take it exclusively. Clusters share
//!   nothing, so several may be used at once, and one may go from thread to thread.
//! - **There are as many inputs and outputs as nodes:** [`step`](Hardware::step) checks that.

#![allow(unsafe_code, reason = "calls into the compiled hardware")]

use crate::{
    RtlError,
    hardware::{Hardware, Inputs, Outputs},
};
use libloading::Library;
use std::{ffi::c_void, mem::ManuallyDrop, path::Path, ptr::NonNull};

const _: () = assert!(size_of::<Inputs>() == 32 && size_of::<Outputs>() == 24);

type Create = unsafe extern "C" fn(u32) -> *mut c_void;
type Step = unsafe extern "C" fn(*mut c_void, *const Inputs, *mut Outputs);
type Destroy = unsafe extern "C" fn(*mut c_void);

/// A cluster simulated by Verilator.
pub(crate) struct Verilated {
    cluster: NonNull<c_void>,
    nodes: usize,
    step: Step,
    destroy: Destroy,
}

// SAFETY: models of Verilator belong to no thread; see the invariants.
unsafe impl Send for Verilated {}

impl Verilated {
    /// A cluster of `nodes` nodes after its reset, from a [library](crate::library) for them.
    pub(crate) fn open(file: &Path, nodes: usize) -> Result<Self, RtlError> {
        // SAFETY: opening runs the initialisers of a C++ library that was made of the sources in this binary.
        let library = ManuallyDrop::new(unsafe { Library::new(file) }?);
        // SAFETY: the three functions are there with these signatures, and the library is never closed.
        let (create, step, destroy) = unsafe {
            (
                *library.get::<Create>("evb_velo_create")?,
                *library.get::<Step>("evb_velo_step")?,
                *library.get::<Destroy>("evb_velo_destroy")?,
            )
        };
        // SAFETY: it takes any number.
        let cluster = NonNull::new(unsafe { create(nodes as u32) }).ok_or(RtlError::Nodes { nodes })?;
        Ok(Self { cluster, nodes, step, destroy })
    }
}

impl Hardware for Verilated {
    fn step(&mut self, inputs: &[Inputs], outputs: &mut [Outputs]) {
        assert!(inputs.len() == self.nodes && outputs.len() == self.nodes, "inputs and outputs of each node");
        // SAFETY: the cluster is there until this is dropped, and there are inputs and outputs for each of its nodes.
        unsafe { (self.step)(self.cluster.as_ptr(), inputs.as_ptr(), outputs.as_mut_ptr()) }
    }
}

impl Drop for Verilated {
    fn drop(&mut self) {
        // SAFETY: it was created once, and nothing uses it any more.
        unsafe { (self.destroy)(self.cluster.as_ptr()) }
    }
}
