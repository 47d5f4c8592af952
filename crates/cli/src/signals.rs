//! Ctrl-C and SIGTERM.

use crate::{
    failure::Failure,
    progress::{clear, say},
};
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
    ctrlc::set_handler(handler).map_err(Failure::new)?;
    Ok(stop)
}

/// Lets signals pass by: a node is told by run control when to stop, also when Ctrl-C reaches the whole group.
pub(crate) fn leave_signals_to_run_control() -> Result<(), Failure> {
    ctrlc::set_handler(|| {}).map_err(Failure::new)
}
