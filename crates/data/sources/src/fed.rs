//! Recorded fragments of CMS front-end drivers (FEDs): little-endian 64-bit words, a header word, a trailer word.
//!
//! Header: bits 63-60 = 0x5, 59-56 event type, 55-32 level-1 id, 31-20 bunch crossing, 19-8 source id, 7-4 format
//! version. Trailer: bits 63-60 = 0xA, 55-32 length in words, 31-16 CRC-16, the rest status.

mod file;
mod format;
mod number;
mod walk;
mod window;

pub use file::{FedFile, FilePadding};
pub use format::{FedError, FedHeader, check_fragment, write_fragment};
pub use walk::{FedEntry, FedFault, FedFileError, walk};

pub(crate) use format::{Crc16, HEADER_TAG, TRAILER_TAG, Trailer, WORD, tag, word_at};
