//! Limits that the system sets to a process.

use crate::failure::Failure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGXFSZ;
use std::sync::{Arc, atomic::AtomicBool};

/// Raises the limit of open files of this process and its children to the largest value that the system allows. Many
/// shells set a lower limit for the sake of programs that cannot count further than 1024.
pub(crate) fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, a run that needs more says so.
    let _as_it_was = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Makes the limit of `ulimit -f` an error of the writer, like a full disk. The signal that comes with it would end the
/// process in the middle of a record.
pub(crate) fn survive_the_file_size_limit() -> Result<(), Failure> {
    let nobody_looks = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGXFSZ, nobody_looks).map(drop).map_err(Failure::new)
}
