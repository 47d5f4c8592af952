//! Limits that the system sets to a process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGXFSZ;
use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
};

/// Raises the limit of open files of this process and its children to the largest value that the system allows. Many
/// shells set a lower limit for the sake of programs that cannot count further than 1024.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, a run that needs more says so.
    let _as_it_was = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Makes the limit of `ulimit -f` an error of the writer, like a full disk. The signal that comes with it would end the
/// process in the middle of a record.
///
/// # Errors
/// The signal cannot be taken over.
pub fn survive_the_file_size_limit() -> io::Result<()> {
    let unused = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGXFSZ, unused).map(drop)
}
