//! The operating system as evb uses it: memory shared by processes, cores and the binding of threads to them, limits of a
//! process, and libraries that are compiled at first use.

pub mod compiled;
pub mod cores;
pub mod limits;
#[cfg(target_os = "linux")]
pub mod memory;
