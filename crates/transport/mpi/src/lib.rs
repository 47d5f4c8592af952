//! The transport and the message layer over MPI.
//!
//! [`Mpi::init`] starts MPI. [`Mpi::endpoints`] gives the nodes on this rank a [`Transport`], and [`Mpi::layers`] a
//! [`MessageLayer`]. [`launched`] tells whether a launcher started this process.
//!
//! MPI is found at run time. A small shim in C is compiled on first use by the `mpicc` of the installed MPI; the
//! environment variable `EVB_MPICC` names one that is not found by itself. So one binary works with every MPI, and
//! without one.
//!
//! # Properties of MPI
//! - *A job lives and dies as a whole.* When a process is killed, the launcher ends all others; no node outlives the
//!   loss of a rank. A node that leaves in order is reported to its peers, as in every transport.
//! - *An error of MPI ends the job,* which is the default of MPI.
//! - *There is no wait with a time limit.* A node that waits polls: some times in a row, then it yields to others, then
//!   it sleeps for longer and longer, at most for a millisecond.
//! - *Progress needs calls.* MPI moves messages only while this process calls it. That includes flushed messages, and
//!   the goodbye of an endpoint that was dropped. All calls of endpoints and layers make progress, and so does the end
//!   of MPI. A process that does something else for a long time must call [`Mpi::progress`].
//!
//! [`Transport`]: evb_transport::Transport
//! [`MessageLayer`]: evb_transport::MessageLayer

mod broadcast;
mod factory;
mod ffi;
mod kind;
mod layer;
mod library;
mod link;
mod session;
mod shares;
mod transport;
mod waiting;

pub use layer::Layer;
pub use library::MpiError;
pub use session::{Mpi, launched};
pub use transport::Endpoint;

use evb_transport::DEFAULT_MAX_BODY;

/// The threads that use MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One at a time: the thread that starts MPI, until it [passes the turn on](Mpi::pass_on). Values of this crate
    /// panic when a thread without the turn uses or drops them. It is faster, as MPI is asked for no locks
    /// (`MPI_THREAD_SINGLE`). The process may have threads that do not use MPI: an MPI that knows of one thread only
    /// cannot tell.
    One,
    /// Any thread: a lock is held around each call (`MPI_THREAD_SERIALIZED`).
    Many,
}

/// Options of endpoints and layers, equal on all ranks.
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
