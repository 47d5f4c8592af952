//! The folder of a sweep, the same as that of `evb simulate --out`.

use crate::{
    error::{failure, folder_failure},
    experiment::Experiment,
    report::{json, record},
};
use evb_record::Record;
use pyo3::prelude::*;
use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A folder that takes the records of a sweep as JSON, until `finish`. No other process writes into it meanwhile.
#[pyclass(frozen, module = "evb._native")]
pub(crate) struct SweepFolder {
    folder: Mutex<Option<evb::SweepFolder>>,
}

#[pymethods]
impl SweepFolder {
    /// Opens a folder for the points of an experiment, and makes it if it is missing. Returns it, and the records that are there
    /// by their points.
    #[staticmethod]
    fn open(folder: PathBuf, experiment: &Bound<'_, Experiment>) -> PyResult<(Self, Vec<Option<String>>)> {
        let (mut folder, known) = experiment.get().open_folder(&folder).map_err(folder_failure)?;
        folder.begin().map_err(folder_failure)?;
        let text = |record: Option<Record>| record.as_ref().map(json).transpose();
        let known = known.into_iter().map(text).collect::<PyResult<_>>()?;
        Ok((Self { folder: Mutex::new(Some(folder)) }, known))
    }

    /// Stores the record of a point.
    fn keep(&self, point: usize, text: &str) -> PyResult<()> {
        let record = record(text)?;
        match self.folder().as_mut() {
            Some(folder) => folder.keep(point, &record).map_err(folder_failure),
            None => Err(failure("the folder is closed", None::<&str>)),
        }
    }

    /// Puts the records in the order of the points, and lets others write.
    fn finish(&self) -> PyResult<()> {
        let folder = self.folder().take();
        folder.map_or(Ok(()), |folder| folder.finish().map_err(folder_failure))
    }
}

impl SweepFolder {
    /// A failure leaves the folder as usable as the last line.
    fn folder(&self) -> MutexGuard<'_, Option<evb::SweepFolder>> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
