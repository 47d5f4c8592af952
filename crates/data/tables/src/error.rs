//! Errors, with enough data to tell the user where the fault is and how to correct it.

use evb_events::ReadError;
use std::{error::Error, io, path::PathBuf};

/// The reason why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// An event file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file with this name exists; exports never overwrite.
    #[error("{} exists already and is not overwritten", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The files are of different runs, whose events have the same numbers.
    #[error("{} is of another run than {}", other.display(), first.display())]
    Runs {
        /// The first file.
        first: PathBuf,
        /// The first file of another run.
        other: PathBuf,
    },
    /// The table could not be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: Box<dyn Error + Send + Sync>,
    },
    /// A table that could not be finished could not be removed either.
    #[error("{error}; and {} is not complete and cannot be removed: {source}", path.display())]
    Remove {
        /// Why it could not be finished.
        error: Box<TableError>,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl TableError {
    /// How to correct it, where the error itself does not say.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Runs { .. } => Some("events of two runs have the same numbers: export each run to a file of its own"),
            Self::Exists { .. } => Some("give another name with `--output FILE`"),
            _ => None,
        }
    }
}
