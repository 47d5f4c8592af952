//! All code that touches libfabric's memory and functions; no other folder of the crate is excused from Rust's checks.
//!
//! # Invariants
//! 1. Declarations are those of the headers (crate `evb-libfabric-abi`, and [`library`]).
//! 2. An [`Endpoint`] owns its objects, which are closed once and in this order: endpoint, registrations, queue,
//!    address vector, domain, fabric; or none of them is closed, and their memory stays.
//! 3. An operation that was given to the provider is *busy* until its completion was read or the endpoint is closed.
//!    Memory and context of a busy operation stay in place, and only the provider uses them. A room that was offered to a
//!    peer is busy, too ([`rooms`]).
//! 4. Objects are not shared: an endpoint has its own domain, and `&mut` serialises its calls, as
//!    `FI_THREAD_DOMAIN` demands. Any thread may call.

mod endpoint;
mod info;
mod library;
mod memory;
mod objects;
mod rooms;
mod stale;
#[cfg(test)]
mod tests;

pub(crate) use endpoint::{BATCH, Completion, Endpoint, Posted};
pub use info::providers;
pub(crate) use library::PATH_VARIABLE;
pub(crate) use memory::Operation;
pub(crate) use rooms::RoomAddress;
