//! Simulations.

use crate::{error::not_simulated, experiment::Experiment, report::json, signals::Signals};
use evb::SimulationProgress;
use pyo3::prelude::*;
use std::{num::NonZeroUsize, thread};

/// Simulates a point of the sweep. Returns the record as JSON. `progress` is called several times a second with the
/// simulated seconds, the events that ended, and the part of the work that is done, from 0 to 1.
#[pyfunction]
#[pyo3(signature = (experiment, point=0, threads=None, progress=None))]
pub(crate) fn simulate(
    py: Python<'_>,
    experiment: &Bound<'_, Experiment>,
    point: usize,
    threads: Option<NonZeroUsize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let plan = experiment.get().plan(point)?;
    let cores = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = threads.unwrap_or_else(cores);
    py.detach(|| {
        let mut signals = Signals::new();
        let result = evb::simulate(plan, threads, None, &mut |now| {
            !signals.stop(|py| progress.as_ref().map_or(Ok(()), |progress| show(py, progress, now)))
        });
        let record = signals.finish(result.map_err(|error| not_simulated(&error)))?;
        json(&record)
    })
}

fn show(py: Python<'_>, progress: &Py<PyAny>, now: &SimulationProgress) -> PyResult<()> {
    progress.call1(py, (now.seconds, now.ended, now.part)).map(drop)
}
