//! Ctrl-C and SIGTERM.

use crate::{
    failure::Failure,
    progress::{clear, say},
};
use evb::limits::MORE_THREADS;
use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

/// A flag that the first Ctrl-C sets, which asks the work to end well. The second Ctrl-C ends the program at once.
/// `meanwhile` is the text for the time in between.
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

/// Counter of the signals that ask a run to end. The first stops the trigger and lets the run drain; the second stores
/// the fragments of open events; the third ends the program at once.
#[derive(Clone)]
pub(crate) struct Signals(Arc<AtomicU32>);

impl Signals {
    /// Begins to count Ctrl-C and SIGTERM.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let signals = Self(Arc::default());
        let count = signals.0.clone();
        listen(move || match count.fetch_add(1, Ordering::Relaxed) {
            0 => say("stopping, the run drains; once more to store what is there"),
            1 => say("stopping, open events are stored as they are; once more to leave at once"),
            _ => {
                clear();
                process::exit(130);
            }
        })?;
        Ok(signals)
    }

    /// Ignores signals. Run control tells a node when to stop, also when Ctrl-C reaches the whole group.
    pub(crate) fn ignore() -> Result<Self, Failure> {
        listen(|| {})?;
        Ok(Self(Arc::default()))
    }

    /// The number of signals.
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// True if there was a signal.
    pub(crate) fn any(&self) -> bool {
        self.count() > 0
    }
}

/// A flag that Ctrl-C and SIGTERM set, for a node that waits for its run. A running node ignores it: run control tells
/// the node when to stop, also when Ctrl-C reaches the whole group.
pub(crate) fn stop_waiting_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    listen(move || flag.store(true, Ordering::Relaxed))?;
    Ok(stop)
}

/// Calls `handler` at each signal, in its own thread.
fn listen(handler: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    ctrlc::set_handler(handler).map_err(|error| match error {
        ctrlc::Error::System(error) => Failure::with_hint(format!("cannot listen to signals: {error}"), MORE_THREADS),
        error => Failure::new(error),
    })
}
