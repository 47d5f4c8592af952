//! Standard output. All output of the commands goes through here, and no write error is lost.
//!
//! A standard output that is closed at the start is not found. The runtime has then opened `/dev/null` in its place, for
//! reading and writing, and so do other programs that want no output, such as Python with `subprocess.DEVNULL`: the two
//! cannot be told apart, and an error would end commands whose output is discarded on purpose.

use crate::failure::Failure;
use std::{
    fmt,
    io::{self, ErrorKind, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The first error in writing to standard output.
static ERROR: Mutex<Option<io::Error>> = Mutex::new(None);

/// Standard output for tables and records. It drops everything after its first error.
pub(crate) struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        note(|| io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        note(|| io::stdout().flush())
    }
}

/// Prints a text. [`check`] returns its error.
pub(crate) fn print(text: fmt::Arguments<'_>) {
    let _kept_for_the_check = Output.write_fmt(text);
}

/// Lets a function print. [`check`] returns its error.
pub(crate) fn print_by(print: impl FnOnce() -> io::Result<()>) {
    let _kept_for_the_check = note(print);
}

/// Checks that all output was written. A reader that has gone, as in `evb check FILE | head`, is not an error.
///
/// # Errors
/// The first error of the system.
pub(crate) fn check() -> Result<(), Failure> {
    let _kept = Output.flush();
    match &*error() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::with_hint(
            format!("cannot write to standard output: {error}"),
            "the output is not complete: free some space, or write it to another place",
        )),
        _ => Ok(()),
    }
}

/// Writes unless an earlier write has failed, and keeps the error.
fn note<T>(write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut kept = error();
    if let Some(error) = &*kept {
        return Err(error.kind().into());
    }
    let result = write();
    if let Err(error) = &result
        && error.kind() != ErrorKind::Interrupted
    {
        *kept = Some(same(error));
    }
    result
}

/// A copy of an error, which cannot be cloned.
fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

fn error() -> MutexGuard<'static, Option<io::Error>> {
    ERROR.lock().unwrap_or_else(PoisonError::into_inner)
}
