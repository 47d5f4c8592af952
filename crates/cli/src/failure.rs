//! Why a command could not do its work, and how that is shown.

use evb_experiment::Diagnostics;
use evb_node::{NodeError, RunError};
use std::io;

/// What ends a command with exit status 2.
pub(crate) enum Failure {
    /// The experiment file is not good.
    Experiment(Box<Diagnostics>),
    /// Anything else: what is wrong, and what to do.
    Other { message: String, hint: Option<String> },
}

impl Failure {
    pub(crate) fn new(message: impl ToString) -> Self {
        Self::Other { message: message.to_string(), hint: None }
    }

    pub(crate) fn with_hint(message: impl ToString, hint: impl ToString) -> Self {
        Self::Other { message: message.to_string(), hint: Some(hint.to_string()) }
    }

    /// Writes the failure to standard error.
    pub(crate) fn print(self) {
        match self {
            Self::Experiment(diagnostics) => eprintln!("{:?}", miette::Report::new(*diagnostics)),
            Self::Other { message, hint } => {
                eprintln!("error: {message}");
                if let Some(hint) = hint {
                    eprintln!("hint: {hint}");
                }
            }
        }
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Experiment(Box::new(diagnostics))
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        Self::Other { message: error.message, hint: error.hint }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        error.error.into()
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(error)
    }
}
