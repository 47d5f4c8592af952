//! The transport over libfabric (OFI).

pub mod error;
mod ffi;
pub use error::OfiError;
pub use ffi::providers;
