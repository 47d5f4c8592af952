//! The errors of the library as exceptions of Python.

use evb::{Diagnostics, FolderError, OnlySimulated, ProblemText, RunError, SimulateError};
use miette::{GraphicalReportHandler, GraphicalTheme};
use pyo3::{PyErr, Python, create_exception, exceptions::PyException, prelude::*, types::PyTuple};
use std::fmt::Display;

create_exception!(evb, EvbError, PyException, "What evb could not do, and the way out.");
create_exception!(
    evb,
    ExperimentError,
    EvbError,
    "The experiment is not valid. `problems` has each problem with its file, line, column and hint."
);

/// An exception with a message and, in a second line, a hint.
pub(crate) fn failure(message: impl Display, hint: Option<impl Display>) -> PyErr {
    match hint {
        Some(hint) => EvbError::new_err(format!("{message}\nhint: {hint}")),
        None => EvbError::new_err(message.to_string()),
    }
}

/// The exception of an experiment that is not valid: its arguments are the text with the places marked, and the problems.
pub(crate) fn invalid(py: Python<'_>, diagnostics: &Diagnostics) -> PyErr {
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor());
    if handler.render_report(&mut text, diagnostics).is_err() {
        text = diagnostics.to_string();
    }
    match problems(py, diagnostics) {
        Ok(problems) => ExperimentError::new_err((text, problems)),
        Err(error) => error,
    }
}

/// The problems as tuples: message, hint, file, line, column. The last three are none where there is no place.
fn problems(py: Python<'_>, diagnostics: &Diagnostics) -> PyResult<Py<PyTuple>> {
    let problem = |ProblemText { message, hint, place }: ProblemText<'_>| {
        (message, hint, place.map(|place| place.file), place.map(|place| place.line), place.map(|place| place.column))
            .into_pyobject(py)
    };
    let problems = diagnostics.problems().map(problem).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, problems)?.unbind())
}

pub(crate) fn not_simulated(error: &SimulateError) -> PyErr {
    failure(error, error.hint())
}

pub(crate) fn not_run(error: RunError) -> PyErr {
    failure(error.error.message, error.error.hint)
}

pub(crate) fn only_simulated(error: &OnlySimulated) -> PyErr {
    failure(error, Some(error.hint()))
}

pub(crate) fn folder_failure(error: FolderError) -> PyErr {
    failure(error.message, Some(error.hint))
}
