//! The transport and the message layer over MPI.
//!
//! [`Mpi::init`] starts MPI; [`Mpi::endpoints`] gives the nodes that are placed on this rank a [`Transport`], and
//! [`Mpi::layers`] a [`MessageLayer`]. [`launched`] tells whether a launcher started this process.
//!
//! MPI is found at run time: a shim of some lines of C is compiled at first use by the `mpicc` of the MPI that is there,
//! which `EVB_MPICC` names if it is not found by itself. So one binary works with every MPI, and without one.
//!
//! # What MPI is, and what follows
//! - *A job lives and dies as a whole.* When a process is killed, the launcher ends all others; no node outlives the loss
//!   of a rank. A node that leaves in order is reported to its peers, as in every transport.
//! - *An error of MPI ends the job,* which is the default of MPI.
//! - *There is no wait with a time limit.* A node that waits looks again and again: some times in a row, then it gives way
//!   to others, then it sleeps for longer and longer, at most for a millisecond.
//! - *Nothing moves by itself.* MPI moves messages while this process calls it. That is so for what was flushed, too, and
//!   for the goodbye of an endpoint that was dropped: all calls of endpoints and layers do it, the end of MPI does it, and
//!   who does something else for long calls [`Mpi::progress`].
//!
//! [`Transport`]: evb_transport::Transport
//! [`MessageLayer`]: evb_transport::MessageLayer

mod broadcast;
mod ffi;
mod kind;
mod layer;
mod library;
mod link;
mod registered;
mod session;
mod shares;
mod transport;
mod waiting;

pub use layer::Layer;
pub use library::MpiError;
pub use session::{Mpi, launched};
pub use transport::Endpoint;

use evb_transport::DEFAULT_MAX_BODY;

/// Which threads use MPI. The fewer, the faster: some MPIs leave out their own locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// The one that starts it, and the process has no other (`MPI_THREAD_SINGLE`).
    Only,
    /// The one that starts it (`MPI_THREAD_FUNNELED`). As with `Only`, what belongs to MPI panics when another thread uses
    /// or drops it.
    One,
    /// Any, in turns: a lock is held around each call (`MPI_THREAD_SERIALIZED`).
    Many,
}

/// What endpoints and layers are told, on all ranks alike.
#[derive(Clone, Debug)]
pub struct MpiOptions {
    /// Longest body or message in bytes, below 2 GiB.
    pub max_body: usize,
}

impl Default for MpiOptions {
    fn default() -> Self {
        Self { max_body: DEFAULT_MAX_BODY }
    }
}
