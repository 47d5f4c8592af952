//! The code of a user that decides about events: a program or a shared library. It runs in a separate process, so that
//! it cannot harm a builder.

use crate::{
    library,
    program::{ProgramError, begin, serve},
};
use serde::{Deserialize, Serialize};
use std::{
    env,
    io::{self, stdin, stdout},
    path::{Path, PathBuf},
    process::Command,
};

/// Subcommand of `evb` that runs a shared library.
const COMMAND: &str = "filter-unit";

/// The code that decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A program and its arguments.
    Program(Vec<String>),
    /// A shared library with the functions of `filters/c/evb_filter.h`.
    Library(PathBuf),
}

impl Code {
    /// The file with the code; none for a program that the system finds by its name.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Program(program) => program.first().map(Path::new).filter(|path| path.components().count() > 1),
            Self::Library(path) => Some(path),
        }
    }

    /// The name for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Program(program) => program.first().cloned().unwrap_or_default(),
            Self::Library(path) => path.display().to_string(),
        }
    }

    /// The command that starts the process, and its name for people.
    pub(crate) fn command(&self) -> io::Result<(Command, String)> {
        match self {
            Self::Program(program) => {
                let name = program.first().cloned().unwrap_or_default();
                let mut command = Command::new(&name);
                command.args(program.iter().skip(1));
                Ok((command, name))
            }
            Self::Library(path) => {
                let mut command = Command::new(env::current_exe()?);
                command.arg(COMMAND).arg(path);
                Ok((command, path.display().to_string()))
            }
        }
    }
}

/// The reason why a library cannot decide.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The file is not what it should be, or lacks a function of the header.
    #[error("{} cannot be used as a filter: {reason}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// `evb_filter_open` has returned a null pointer.
    #[error("{}: evb_filter_open has failed", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// The code has failed, or the connection to the builder is broken.
    #[error("{0}")]
    Ended(String),
}

impl CodeError {
    /// The error of a file that cannot be used.
    pub(crate) fn load(path: &Path, reason: impl ToString) -> Self {
        Self::Load { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// The stream of an event by the value of `evb_filter_decide`; `None` if the event is rejected. An invalid stream is left to
/// the builder, which knows its streams.
pub(crate) fn stream(decision: i32) -> Option<u16> {
    (decision >= 0).then(|| u16::try_from(decision).unwrap_or(u16::MAX))
}

/// Decides with a shared library about the events on standard input, until that ends.
///
/// # Errors
/// [`CodeError`] if the library cannot be used, or the connection to the builder breaks.
pub fn serve_library(path: &Path) -> Result<(), CodeError> {
    let ended = |error: ProgramError| CodeError::Ended(format!("{}: {error}", path.display()));
    let library = library::load(path)?;
    let (mut input, mut output) = (stdin().lock(), stdout().lock());
    let Some((hello, memory)) = begin(&mut input).map_err(ended)? else { return Ok(()) };
    let mut filter = library.open(&hello).ok_or_else(|| CodeError::Open { path: path.to_owned() })?;
    serve(&mut input, &mut output, memory.as_ref(), &mut |event| Ok(filter.decide(event))).map_err(ended)
}
