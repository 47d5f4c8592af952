//! The failure of a command, and its output on standard error.

use evb::{
    Diagnostics, FolderError, NodeError, OnlySimulated, RunError, SimulateError, SlurmError, SourceError,
    bench::BenchError,
};
use std::{fmt::Display, io};

/// A failure that ends a command with exit status 2.
pub(crate) enum Failure {
    /// The experiment file is invalid.
    Experiment(Box<Diagnostics>),
    /// Any other failure: the error, and the way out.
    Other { message: String, hint: Option<String> },
}

impl Failure {
    pub(crate) fn new(message: impl ToString) -> Self {
        Self::Other { message: message.to_string(), hint: None }
    }

    pub(crate) fn with_hint(message: impl ToString, hint: impl ToString) -> Self {
        Self::Other { message: message.to_string(), hint: Some(hint.to_string()) }
    }

    /// The same failure with its place before its text.
    pub(crate) fn within(self, place: impl Display) -> Self {
        match self {
            Self::Other { message, hint } => Self::Other { message: format!("{place}: {message}"), hint },
            experiment => experiment,
        }
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

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Experiment(diagnostics) => diagnostics.fmt(f),
            Self::Other { message, .. } => f.write_str(message),
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

impl From<OnlySimulated> for Failure {
    fn from(reason: OnlySimulated) -> Self {
        Self::with_hint(reason, reason.hint())
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        Self::Other { message: error.to_string(), hint: error.hint().map(str::to_owned) }
    }
}

impl From<evb::Error> for Failure {
    fn from(error: evb::Error) -> Self {
        match error {
            evb::Error::Experiment(diagnostics) => Self::Experiment(diagnostics),
            error => Self::Other { message: error.to_string(), hint: error.hint() },
        }
    }
}

impl From<SimulateError> for Failure {
    fn from(error: SimulateError) -> Self {
        let hint = match &error {
            SimulateError::Source(error) => source_hint(error),
            error => error.hint(),
        };
        Self::Other { message: error.to_string(), hint }
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        Self::with_hint(error.message, error.hint)
    }
}

impl From<SlurmError> for Failure {
    fn from(error: SlurmError) -> Self {
        Self::with_hint(error.message, error.hint)
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self::Other { message: error.to_string(), hint: source_hint(&error) }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(error)
    }
}

/// The way out of an error of a source, in the words of this command.
fn source_hint(error: &SourceError) -> Option<String> {
    match error {
        SourceError::Variable { name, .. } => Some(format!(
            "set it, as in `{name}=/path/to/data evb simulate FILE`, or give another folder with `--set data.directory=/path/to/data`"
        )),
        SourceError::Open { .. } => Some(
            "data files are looked for in the experiment's data.directory; `--set data.directory=/path/to/data` changes it"
                .into(),
        ),
        SourceError::Live => Some(
            "a live front end has no sizes to simulate: in the file, give its readout unit a generated source, such as { type = \"fixed\", size = \"2 kB\" }"
                .into(),
        ),
        _ => None,
    }
}
