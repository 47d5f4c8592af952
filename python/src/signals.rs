//! Ctrl-C while the library works without the lock of the interpreter.

use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Longest time until Ctrl-C is noticed.
const PATIENCE: Duration = Duration::from_millis(50);

/// Asks Python for signals from time to time.
pub(crate) struct Signals {
    asked: Instant,
    raised: Option<PyErr>,
}

impl Signals {
    pub(crate) fn new() -> Self {
        Self { asked: Instant::now(), raised: None }
    }

    /// True if a signal has raised an exception. `with_python` is called as often as signals are asked for, and may raise
    /// one as well.
    pub(crate) fn stop(&mut self, with_python: impl FnOnce(Python<'_>) -> PyResult<()>) -> bool {
        if self.raised.is_none() && self.asked.elapsed() >= PATIENCE {
            self.raised = Python::attach(|py| py.check_signals().and_then(|()| with_python(py))).err();
            self.asked = Instant::now();
        }
        self.raised.is_some()
    }

    /// The result, unless an exception was raised.
    pub(crate) fn finish<T>(self, result: PyResult<T>) -> PyResult<T> {
        self.raised.map_or(result, Err)
    }
}
