//! What is drawn from records, which come and go as JSON.

use crate::error::failure;
use evb_record::{Outcome, Planning, Record, Twin};
use pyo3::prelude::*;
use serde::{Serialize, de::DeserializeOwned};

pub(crate) fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| failure(error, None::<&str>))
}

/// A record, and what it is a record of in errors.
fn parsed<T: DeserializeOwned>(text: &str, of: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| failure(format!("this is no record of {of}: {error}"), None::<&str>))
}

pub(crate) fn record(text: &str) -> PyResult<Record> {
    parsed(text, "a run or a simulation")
}

fn records(texts: &[String]) -> PyResult<Vec<Record>> {
    texts.iter().map(|text| record(text)).collect()
}

fn planning(text: &str) -> PyResult<Planning> {
    parsed(text, "a plan")
}

fn twin(text: &str) -> PyResult<Twin> {
    parsed(text, "runs beside their simulation")
}

fn twins(texts: &[String]) -> PyResult<Vec<Twin>> {
    texts.iter().map(|text| twin(text)).collect()
}

/// The summary of a plan, as `evb plan` prints it.
#[pyfunction]
pub(crate) fn plan_summary(text: &str, width: usize) -> PyResult<String> {
    Ok(evb_report::plan_summary(&planning(text)?, width))
}

/// What a plan hangs on, as `evb explain` prints it.
#[pyfunction]
pub(crate) fn plan_explanation(text: &str, width: usize) -> PyResult<String> {
    Ok(evb_report::plan_explanation(&planning(text)?, width))
}

/// The pictures of a plan: name, and SVG.
#[pyfunction]
pub(crate) fn plan_plots(text: &str) -> PyResult<Vec<(String, String)>> {
    let files = evb_report::plan_files(&planning(text)?).into_iter();
    Ok(files.filter_map(|(name, text)| Some((name.strip_suffix(".svg")?.to_owned(), text))).collect())
}

/// The summary of a run, as `evb run` prints it.
#[pyfunction]
pub(crate) fn run_summary(text: &str, width: usize) -> PyResult<String> {
    Ok(evb_report::run_summary(&record(text)?, width))
}

/// The summary of a simulation, as `evb simulate` prints it.
#[pyfunction]
pub(crate) fn simulation_summary(text: &str, width: usize) -> PyResult<String> {
    Ok(evb_report::simulation_summary(&record(text)?, width))
}

/// The table of the points of a sweep, as `evb simulate` prints it.
#[pyfunction]
pub(crate) fn sweep_table(texts: Vec<String>, width: usize) -> PyResult<String> {
    Ok(evb_report::sweep_table(&records(&texts)?, width))
}

/// The outcome of a run or a simulation: `good`, `not good` or `cannot tell`.
#[pyfunction]
pub(crate) fn outcome(text: &str) -> PyResult<&'static str> {
    Ok(match record(text)?.outcome() {
        Outcome::Good => "good",
        Outcome::NotGood => "not good",
        Outcome::CannotTell => "cannot tell",
    })
}

/// What limits a run or a simulation, in words.
#[pyfunction]
pub(crate) fn explanation(text: &str, width: usize) -> PyResult<String> {
    Ok(evb_report::explanation(&record(text)?, width))
}

/// What limits a run or a simulation, as a JSON list.
#[pyfunction]
pub(crate) fn explain(text: &str) -> PyResult<String> {
    json(&evb_report::explain(&record(text)?))
}

/// The rows of a comparison of records, as a JSON list, and their table.
#[pyfunction]
pub(crate) fn compare_records(
    old: Vec<String>,
    new: Vec<String>,
    tolerance: f64,
    width: usize,
) -> PyResult<(String, String)> {
    let rows = evb_report::compare_runs(&records(&old)?, &records(&new)?, tolerance);
    Ok((json(&rows)?, evb_report::run_comparison_table(&rows, width)))
}

/// The plots of records: name, and SVG.
#[pyfunction]
pub(crate) fn plots(texts: Vec<String>) -> PyResult<Vec<(String, String)>> {
    let plots = evb_report::plots(&records(&texts)?);
    Ok(plots.into_iter().map(|plot| (plot.name, plot.svg)).collect())
}

/// The summary of runs beside their simulation, as `evb twin` prints it.
#[pyfunction]
pub(crate) fn twin_summary(text: &str, width: usize) -> PyResult<String> {
    Ok(evb_report::twin_summary(&twin(text)?, width))
}

/// The table of several points of them, as `evb twin` prints it.
#[pyfunction]
pub(crate) fn twin_table(texts: Vec<String>, width: usize) -> PyResult<String> {
    Ok(evb_report::twin_table(&twins(&texts)?, width))
}

/// The plots of a sweep of them: name, and SVG.
#[pyfunction]
pub(crate) fn twin_plots(texts: Vec<String>) -> PyResult<Vec<(String, String)>> {
    let plots = evb_report::twin_plots(&twins(&texts)?);
    Ok(plots.into_iter().map(|plot| (plot.name, plot.svg)).collect())
}

/// The worst verdict of a point: `agree`, `differ` or `not comparable`.
#[pyfunction]
pub(crate) fn twin_verdict(text: &str) -> PyResult<&'static str> {
    Ok(twin(text)?.worst().name())
}
