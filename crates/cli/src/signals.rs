//! Ctrl-C and SIGTERM.

use crate::{
    failure::Failure,
    progress::{clear, say},
};
use evb_node::limits::MORE_THREADS;
use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// A flag that the first Ctrl-C sets, which asks the work to end well; the second ends the program at once. `meanwhile`
/// says what happens in between.
pub(crate) fn stop_on_signals(meanwhile: &'static str) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            clear();
            process::exit(130);
        }
        say(&format!("stopping, {meanwhile}; once more to leave at once"));
    };
    listen(handler)?;
    Ok(stop)
}

/// A flag that Ctrl-C and SIGTERM set, for a node that waits for its run. Once the run has begun nobody looks at it: run
/// control tells a node when to stop, also when Ctrl-C reaches the whole group.
pub(crate) fn stop_waiting_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    listen(move || flag.store(true, Ordering::Relaxed))?;
    Ok(stop)
}

/// Lets signals pass by: a node is told by run control when to stop, also when Ctrl-C reaches the whole group.
pub(crate) fn leave_signals_to_run_control() -> Result<(), Failure> {
    listen(|| {})
}

/// Calls `handler` at each signal, in a thread of its own.
fn listen(handler: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    ctrlc::set_handler(handler).map_err(|error| match error {
        ctrlc::Error::System(error) => Failure::with_hint(format!("cannot listen to signals: {error}"), MORE_THREADS),
        error => Failure::new(error),
    })
}
