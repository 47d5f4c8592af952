//! The transports of one machine: [`in_process`] moves messages by reference between the threads of one process, and
//! [`Shm`] between processes through shared memory.

pub mod in_process;
#[cfg(target_os = "linux")]
mod shm;
#[cfg(target_os = "linux")]
mod sync;

#[cfg(target_os = "linux")]
pub use shm::{BindError, Shm, ShmOptions};
