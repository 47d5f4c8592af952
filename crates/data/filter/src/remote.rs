//! Filter units on other machines than their builder: the handshake that opens a connection, and the side of the machine
//! that runs the program.

mod agent;
pub(crate) mod handshake;
mod relay;

pub use agent::{JoinError, JoinFilters, join_builders};
