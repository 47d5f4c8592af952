//! Compressed event files: the bytes of an event file in blocks, each of them compressed and checked by itself.
//!
//! Everything else works on the event file as it is without compression: offsets, index and recovery are those of that
//! file. A block holds what the writer hands to the kernel at once, so that a crash costs what was not handed over, as
//! without compression. A block that changed is read as zeros, and costs its own events only.

mod reader;
mod sink;

pub use reader::EventFile;
#[cfg(feature = "fuzz")]
pub(crate) use reader::{Blocks, is_compressed};
pub(crate) use sink::CompressedSink;

#[cfg(test)]
mod tests;
