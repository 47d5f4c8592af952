//! The errors of the planner.

use evb_experiment::Diagnostics;
use std::{fmt::Display, io, path::Path};

/// The reason why no network can be searched.
#[derive(Debug, thiserror::Error)]
pub enum PlannerError {
    /// The experiment, or the experiment with a network of the parts, is not valid.
    #[error(transparent)]
    Experiment(#[from] Box<Diagnostics>),
    /// A file cannot be read or written, or asks for what cannot be planned.
    #[error("{message}")]
    File {
        /// The path and the reason.
        message: String,
        /// Advice to the user.
        hint: String,
    },
    /// The caller has stopped the search.
    #[error("stopped")]
    Stopped,
}

impl PlannerError {
    pub(crate) fn file(path: &Path, message: impl Display, hint: impl Into<String>) -> Self {
        Self::File { message: format!("{}: {message}", path.display()), hint: hint.into() }
    }

    pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::file(path, format!("cannot be written: {error}"), "check the path and the free space")
    }

    /// Advice to the user, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::File { hint, .. } => Some(hint),
            Self::Experiment(_) | Self::Stopped => None,
        }
    }
}

impl From<Diagnostics> for PlannerError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Experiment(Box::new(diagnostics))
    }
}
