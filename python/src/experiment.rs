//! Experiment files.

use crate::error::invalid;
use evb::{FolderError, MemoryBound, NodeMemory, Plan, SweepFolder, largest, surprises};
use evb_record::{Record, RecordKind};
use pyo3::prelude::*;
use std::path::Path;

/// An experiment file, checked and resolved.
#[pyclass(frozen, module = "evb._native")]
pub(crate) struct Experiment {
    experiment: evb::Experiment,
}

#[pymethods]
impl Experiment {
    /// Reads a file. Each of `changes` is a text `key.path=value`.
    #[staticmethod]
    fn load(py: Python<'_>, file: &str, changes: Vec<String>) -> PyResult<Self> {
        Self::checked(py, evb::Experiment::load(file, &changes))
    }

    /// Reads a text. Relative folders start from the folder in `name`.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str, name: &str, changes: Vec<String>) -> PyResult<Self> {
        Self::checked(py, evb::Experiment::parse(text, name, &changes))
    }

    /// The name of the experiment.
    #[getter]
    fn name(&self) -> &str {
        self.experiment.plans().first().map_or("", |plan| &plan.name)
    }

    /// What each point of the sweep sets: a list of pairs of key and value. One empty list without a sweep.
    #[getter]
    fn points(&self) -> Vec<Vec<(String, String)>> {
        self.experiment.plans().iter().map(|plan| plan.sweep.clone()).collect()
    }

    /// The experiment as a file with every default filled in; of one point if there is a number.
    #[pyo3(signature = (point=None))]
    fn resolved(&self, point: Option<usize>) -> Option<String> {
        match point {
            None => Some(self.experiment.resolved()),
            Some(point) => self.experiment.resolved_at(point),
        }
    }

    /// The most memory that each kind of node may need: name, number of nodes, bytes of one.
    fn memory(&self) -> Vec<(&'static str, u16, u64)> {
        largest(self.experiment.plans()).map(|(plan, bound)| memory(plan, &bound)).unwrap_or_default()
    }

    /// What could surprise.
    fn notes(&self) -> Vec<String> {
        surprises(self.experiment.plans())
    }
}

impl Experiment {
    fn checked(py: Python<'_>, experiment: Result<evb::Experiment, evb::Diagnostics>) -> PyResult<Self> {
        let experiment = experiment.map_err(|diagnostics| invalid(py, &diagnostics))?;
        Ok(Self { experiment })
    }

    /// The plan of a point of the sweep.
    pub(crate) fn plan(&self, point: usize) -> PyResult<&Plan> {
        let plan = self.experiment.plans().get(point);
        plan.ok_or_else(|| pyo3::exceptions::PyIndexError::new_err(format!("the sweep has no point {point}")))
    }

    /// The folder for the records of the simulated sweep, and those that are there.
    pub(crate) fn open_folder(&self, folder: &Path) -> Result<(SweepFolder, Vec<Option<Record>>), FolderError> {
        SweepFolder::open(folder, &self.experiment, RecordKind::Simulation)
    }

    /// The resolved text of a point of the sweep.
    pub(crate) fn text(&self, point: usize) -> String {
        self.experiment.resolved_at(point).unwrap_or_default()
    }
}

fn memory(plan: &Plan, bound: &MemoryBound) -> Vec<(&'static str, u16, u64)> {
    let all = |NodeMemory { events, transport }: NodeMemory| events.saturating_add(transport);
    vec![
        ("event manager", 1, all(bound.event_manager)),
        ("readout unit", plan.building.readout_units, all(bound.readout_unit)),
        ("builder unit", plan.building.builder_units, all(bound.builder_unit)),
    ]
}

/// The JSON Schema of experiment files.
#[pyfunction]
pub(crate) fn schema() -> String {
    evb::json_schema()
}
