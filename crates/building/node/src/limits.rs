//! Limits of the system on a process, with advice for each.

use crate::error::NodeError;
use evb_experiment::{Keep, Plan};
use rustix::{
    io::Errno,
    process::{Resource, getrlimit},
};
use std::{
    fs, io,
    thread::{self, ScopedJoinHandle},
};

/// Number of files that any process of a run has open in addition to those counted: its standard streams, and the files
/// for listening, waiting and waking.
const OWN_FILES: u64 = 5;
/// Number of files that a node opens in addition to those of its peers and those that it has when it knows the plan: for
/// waiting and waking, and those that peers pass on while they connect.
const NODE_FILES: u64 = 11;
/// Number of files that a node has when it knows the plan, if the system does not say it.
const FIRST_FILES: u64 = OWN_FILES;

/// Advice if the system has no more threads or processes.
pub const MORE_THREADS: &str = "the system has no more threads or processes: raise the limit (`ulimit -u`, or the limit \
                                of the container or service), or use fewer (`--set run.workers=N`)";
/// Advice if a process may not open more files.
pub const MORE_FILES: &str = "raise the limit of open files (`ulimit -n N`), as administrator above `ulimit -Hn`";

/// Checks that a process may open the files of all nodes of a plan, which are its threads.
pub(crate) fn check_for_threads(plan: &Plan) -> Result<(), NodeError> {
    let stored = if plan.storage.keep == Keep::None { 0 } else { u64::from(plan.building.builder_units) };
    check("this run", OWN_FILES + stored + u64::from(plan.building.builder_units) * filter_files(plan))
}

/// Checks that run control may have a connection to each node, in both directions.
pub(crate) fn check_for_run_control(plan: &Plan) -> Result<(), NodeError> {
    check("run control", OWN_FILES + 2 * u64::from(plan.building.nodes()))
}

/// Checks that a node may have a connection to each of its peers.
pub(crate) fn check_for_node(plan: &Plan, name: &str) -> Result<(), NodeError> {
    let transports = 1 + u64::from(plan.control.is_some());
    check(name, open_files() + NODE_FILES + filter_files(plan) + transports * u64::from(plan.building.nodes() - 1))
}

/// Number of files that a builder has open for its filter units: two pipes of each, and its memory; and the place where
/// others join.
fn filter_files(plan: &Plan) -> u64 {
    plan.filter.units.as_ref().map_or(0, |units| 3 * u64::from(units.units) + u64::from(units.listen.is_some()))
}

/// Number of files that this process has open, those that it has inherited included.
fn open_files() -> u64 {
    // The folder itself is open while it is read.
    fs::read_dir("/proc/self/fd").map_or(FIRST_FILES, |files| files.count() as u64 - 1)
}

fn check(who: &str, needed: u64) -> Result<(), NodeError> {
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < needed => {
            Err(NodeError::new(format!("{who} needs {needed} open files or more, and may have {limit}"))
                .hint(MORE_FILES))
        }
        _ => Ok(()),
    }
}

/// The error of the system about `what`, with advice if a limit is reached.
pub(crate) fn error(what: &str, error: &io::Error) -> NodeError {
    let base = NodeError::new(format!("{what}: {error}"));
    match hint(error) {
        Some(hint) => base.hint(hint),
        None => base,
    }
}

/// Advice if the error means that a limit is reached.
pub(crate) fn hint(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Some(MORE_FILES),
        Errno::AGAIN => Some(MORE_THREADS),
        _ => None,
    }
}

/// Starts a thread.
pub(crate) fn spawn<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<thread::JoinHandle<T>, NodeError> {
    thread::Builder::new().spawn(run).map_err(|why| error("cannot start a thread", &why))
}

/// Starts a thread in a scope.
pub(crate) fn spawn_in<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, NodeError> {
    thread::Builder::new().spawn_scoped(scope, run).map_err(|why| error("cannot start a thread", &why))
}
