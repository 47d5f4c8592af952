//! Errors of opening and reading a source.

use crate::{fed::FedFileError, hits::HitsError};
use std::{io, path::PathBuf};

/// The reason why a source cannot be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A path names an environment variable that is not set.
    #[error("the environment variable {name} in {path:?} is not set")]
    Variable {
        /// The variable.
        name: String,
        /// The path as written.
        path: String,
    },
    /// A path has `${` without `}`, or no name between them.
    #[error("{path:?} has \"${{\" without a name and \"}}\": write ${{NAME}}")]
    Braces {
        /// The path as written.
        path: String,
    },
    /// A file cannot be opened.
    #[error("cannot open {}: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A line of a CSV file differs from the expected form.
    #[error("{}:{line}: found {found:?}, expected {expected}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The start of the line.
        found: String,
        /// The expected content.
        expected: String,
    },
    /// A trace gives the same event and source twice.
    #[error("{}:{line}: event {event} of source {source_id} was given already in line {first}", path.display())]
    Duplicate {
        /// The file.
        path: PathBuf,
        /// The later line.
        line: u64,
        /// The earlier line.
        first: u64,
        /// The event.
        event: u64,
        /// The source.
        source_id: u64,
    },
    /// A CSV file has no row for this readout unit.
    #[error("{} has no row for {wanted}", path.display())]
    NoRow {
        /// The file.
        path: PathBuf,
        /// The requested row.
        wanted: String,
    },
    /// A CSV file has more rows for this readout unit than are held in memory.
    #[error("{} has more than {limit} rows for one source", path.display())]
    TooManyRows {
        /// The file.
        path: PathBuf,
        /// The largest number of rows.
        limit: usize,
    },
    /// A parameter outside of the model's range.
    #[error("{name} is {value}, but must be {expected}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// The expected value.
        expected: String,
    },
    /// A file of recorded fragments cannot be used.
    #[error("{}: {error}", path.display())]
    Fed {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: FedFileError,
    },
    /// A file of hits cannot be used.
    #[error("{}: {error}", path.display())]
    Hits {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: HitsError,
    },
    /// A live source cannot be asked for a size or an event.
    #[error("a live source sends by itself and cannot be asked for an event")]
    Live,
    /// The address of a live source cannot be bound.
    #[error("cannot listen on {address:?}: {error}")]
    Listen {
        /// The address as written.
        address: String,
        /// The error of the system.
        error: io::Error,
    },
}
