//! Errors, with enough data to tell the user where the fault is and how to correct it.

use crate::layout;
use evb_core::EventId;
use std::{io, path::PathBuf};

/// The reason why events could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file with this name exists; event files are never overwritten.
    #[error("{} exists already and is not overwritten", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full, or the system reports another error. Events stored before stay valid.
    #[error("cannot store {needed} bytes in {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Bytes that were needed and could not be stored.
        needed: u64,
        /// Events appended earlier that are not stored either.
        lost: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// After an earlier error the file could not be truncated to its last whole event. Readers skip the torn bytes, but
    /// nothing more is written to the file.
    #[error("{} ends in a torn event since an earlier error", path.display())]
    Torn {
        /// The file.
        path: PathBuf,
    },
    /// The event is above [`MAX_EVENT_BYTES`](crate::MAX_EVENT_BYTES) or has more than
    /// [`MAX_FRAGMENTS`](crate::MAX_FRAGMENTS) fragments.
    #[error(
        "event {event} with {fragments} fragments and {bytes} bytes is above the limit of {} fragments or {} bytes",
        layout::MAX_FRAGMENTS,
        layout::MAX_EVENT_BYTES
    )]
    TooLarge {
        /// The event.
        event: EventId,
        /// Its number of fragments.
        fragments: usize,
        /// Bytes that it would take in the file.
        bytes: u64,
    },
    /// The metadata are above [`MAX_METADATA_BYTES`](crate::MAX_METADATA_BYTES).
    #[error("metadata of {bytes} bytes are above the limit of {} bytes", layout::MAX_METADATA_BYTES)]
    MetadataTooLarge {
        /// Their length in bytes.
        bytes: usize,
    },
    /// The name cannot be part of a file name.
    #[error("{name:?} cannot be part of a file name: it must not be empty or hold a path separator")]
    Name {
        /// The name as given.
        name: String,
    },
}

/// The reason why a file could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// An error of the system.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file does not begin as an event file, and no event was found near its start.
    #[error("{} is not an event file", path.display())]
    NotAnEventFile {
        /// The file.
        path: PathBuf,
    },
    /// The file has a format version that this program does not know.
    #[error(
        "{} has format version {found}, and this program reads versions {} to {}",
        path.display(),
        layout::OLDEST_VERSION,
        layout::FORMAT_VERSION
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

/// The reason why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// An event file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file with this name exists; exports never overwrite.
    #[error("{} exists already and is not overwritten", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The output could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The caller's own output could not be written.
    #[error("cannot write the table: {0}")]
    Table(io::Error),
}
