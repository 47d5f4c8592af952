//! The code of a user that decides about events: a program, a shared library, or a WebAssembly module. Each runs in a
//! process of its own, so that it can harm no builder.

use crate::{
    Hello, library,
    program::{ProgramError, begin, serve},
    wire::EventBytes,
};
use serde::{Deserialize, Serialize};
use std::{
    env,
    io::{self, stdin, stdout},
    path::{Path, PathBuf},
    process::Command,
};

/// Subcommand of `evb` that runs a shared library or a module.
const COMMAND: &str = "filter-unit";

/// The code that decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A program and its arguments.
    Program(Vec<String>),
    /// A shared library with the functions of `filters/c/evb_filter.h`.
    Library(PathBuf),
    /// A WebAssembly module with the same functions.
    Module(PathBuf),
}

impl Code {
    /// True if this build of evb runs WebAssembly modules.
    pub const HAS_MODULES: bool = cfg!(feature = "wasm");

    /// The file with the code; none for a program that the system finds by its name.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Program(program) => program.first().map(Path::new).filter(|path| path.components().count() > 1),
            Self::Library(path) | Self::Module(path) => Some(path),
        }
    }

    /// The name for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Program(program) => program.first().cloned().unwrap_or_default(),
            Self::Library(path) | Self::Module(path) => path.display().to_string(),
        }
    }

    /// The command that starts the process, and its name for people.
    pub(crate) fn command(&self) -> io::Result<(Command, String)> {
        let unit = |options: &[&str], path: &Path| {
            let mut command = Command::new(env::current_exe()?);
            command.arg(COMMAND).args(options).arg(path);
            Ok((command, path.display().to_string()))
        };
        match self {
            Self::Program(program) => {
                let name = program.first().cloned().unwrap_or_default();
                let mut command = Command::new(&name);
                command.args(program.iter().skip(1));
                Ok((command, name))
            }
            Self::Library(path) => unit(&[], path),
            Self::Module(path) => unit(&["--module"], path),
        }
    }
}

/// The reason why a library or a module cannot decide.
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
    /// This build of evb runs no WebAssembly modules.
    #[error("{} is no filter for this evb, which was built without WebAssembly", path.display())]
    NoModules {
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

/// Code that is loaded. Its filter opens with the first message of the builder.
pub(crate) trait Loaded {
    type Open: Decider;
    /// Opens the filter; none if its function has returned a null pointer.
    fn open(self, hello: &Hello) -> Result<Option<Self::Open>, ProgramError>;
}

/// A filter that is open.
pub(crate) trait Decider {
    /// The stream of an event; none if it is rejected.
    fn decide(&mut self, event: &EventBytes<'_>) -> Result<Option<u16>, ProgramError>;
    /// Closes the filter.
    fn close(self) -> Result<(), ProgramError>;
}

/// The stream of an event by the value of `evb_filter_decide`; none if the event is rejected. A value that is no stream
/// is left to the builder, which knows them.
pub(crate) fn stream(decision: i32) -> Option<u16> {
    (decision >= 0).then(|| u16::try_from(decision).unwrap_or(u16::MAX))
}

/// Decides with a shared library about the events on standard input, until that ends.
///
/// # Errors
/// [`CodeError`] if the library cannot be used, or the connection to the builder breaks.
pub fn serve_library(path: &Path) -> Result<(), CodeError> {
    serve_code(path, library::load(path)?)
}

/// Decides with a WebAssembly module about the events on standard input, until that ends.
///
/// # Errors
/// [`CodeError`] if the module cannot be used or fails, if the connection to the builder breaks, or if this evb was
/// built without modules.
pub fn serve_module(path: &Path) -> Result<(), CodeError> {
    #[cfg(feature = "wasm")]
    return serve_code(path, crate::module::load(path)?);
    #[cfg(not(feature = "wasm"))]
    return Err(CodeError::NoModules { path: path.to_owned() });
}

fn serve_code(path: &Path, code: impl Loaded) -> Result<(), CodeError> {
    let ended = |error: ProgramError| CodeError::Ended(format!("{}: {error}", path.display()));
    let (mut input, mut output) = (stdin().lock(), stdout().lock());
    let Some((hello, memory)) = begin(&mut input).map_err(ended)? else { return Ok(()) };
    let opened = code.open(&hello).map_err(ended)?;
    let mut filter = opened.ok_or_else(|| CodeError::Open { path: path.to_owned() })?;
    serve(&mut input, &mut output, memory.as_ref(), &mut |event| filter.decide(event)).map_err(ended)?;
    filter.close().map_err(ended)
}
