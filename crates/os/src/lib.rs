//! The operating system as evb uses it: memory shared by processes, cores and the binding of threads to them, limits of a
//! process and its use of memory, timers, libraries that are compiled at first use, and tests that need tools.

pub mod compiled;
pub mod cores;
pub mod limits;
#[cfg(target_os = "linux")]
pub mod memory;
pub mod timers;
pub mod tools;
pub mod usage;
