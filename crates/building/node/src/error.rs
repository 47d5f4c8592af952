//! The errors of nodes and of runs.

use serde::{Deserialize, Serialize};

/// The error of a node that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct NodeError {
    /// The error, with place and value.
    pub message: String,
    /// Advice to the user, if there is any.
    pub hint: Option<String>,
}

impl NodeError {
    pub(crate) fn new(message: impl ToString) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    /// The user has stopped the run before it began.
    pub(crate) fn stopped() -> Self {
        Self::new("stopped before the run began")
    }

    /// The error and its advice, in one line.
    pub(crate) fn with_hint(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} ({hint})", self.message),
            None => self.message.clone(),
        }
    }

    /// The same error, with the name of its node if it does not say it.
    pub(crate) fn of(self, name: &str) -> Self {
        match self.message.contains(name) {
            true => self,
            false => Self { message: format!("{name}: {}", self.message), ..self },
        }
    }

    pub(crate) fn hint(self, hint: impl ToString) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }
}

/// An error that kept a run from beginning.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct RunError {
    /// The error of the first node that failed, or of run control itself.
    pub error: NodeError,
}

impl From<NodeError> for RunError {
    fn from(error: NodeError) -> Self {
        Self { error }
    }
}
