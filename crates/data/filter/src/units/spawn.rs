//! The start of a process that does not outlive its builder, however that ends.
//!
//! # Invariant
//! The new process makes three system calls before it runs its program, and touches no memory of the other threads.

#![allow(unsafe_code, reason = "sets an attribute of a process before it runs its program")]

use rustix::{
    fd::BorrowedFd,
    io::{Errno, FdFlags, fcntl_setfd},
    process::{Signal, getpid, getppid, set_parent_process_death_signal},
};
use std::{
    io,
    os::{fd::AsRawFd, unix::process::CommandExt},
    process::{Child, Command},
};

/// Starts a process that is killed when the calling thread ends: the thread that keeps the process, which ends it before
/// it ends itself. A process that hangs would not notice the end of its input. The process has `inherited` under the same
/// number, and no other process that starts meanwhile has it.
pub(crate) fn spawn(command: &mut Command, inherited: Option<BorrowedFd<'_>>) -> io::Result<Child> {
    let (builder, inherited) = (getpid(), inherited.map(|file| file.as_raw_fd()));
    let bind = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if let Some(file) = inherited {
            // SAFETY: the caller has borrowed it until the process has started.
            fcntl_setfd(unsafe { BorrowedFd::borrow_raw(file) }, FdFlags::empty())?;
        }
        // A builder that is gone already sends no signal.
        if getppid() == Some(builder) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: `bind` makes system calls only. It neither allocates nor takes a lock.
    unsafe { command.pre_exec(bind) }.spawn()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::process::ExitStatusExt, thread};

    #[test]
    fn a_process_ends_with_the_thread_that_keeps_it() {
        let keeper = thread::spawn(|| spawn(Command::new("sleep").arg("1000"), None).expect("it starts"));
        let mut child = keeper.join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    }
}
