//! The errors of the library.

use evb_bench::FitError;
use evb_experiment::Diagnostics;
use evb_paper::PaperError;
use evb_sim::SimulateError;

/// An error of a benchmark that is simulated, of a network fit, or of the reproduction of a paper.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The experiment or its network is not valid.
    #[error(transparent)]
    Experiment(#[from] Box<Diagnostics>),
    /// The simulation of a plan failed.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// A paper cannot be reported.
    #[error(transparent)]
    Paper(#[from] PaperError),
    /// There is no paper with this slug.
    #[error("there is no paper {0}")]
    NoPaper(String),
    /// The measurements give no network.
    #[error("no network fits: {0}")]
    NoFit(#[from] FitError),
    /// None of the measurements can be simulated, so the quality of the fit is unknown.
    #[error("no network fits: nothing that was measured could be simulated")]
    NothingSimulated,
    /// The caller has stopped the work.
    #[error("stopped")]
    Stopped,
}

impl From<Diagnostics> for Error {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Experiment(Box::new(diagnostics))
    }
}

impl Error {
    /// Advice to the user, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Simulate(error) => error.hint(),
            Self::NoPaper(_) => {
                let known: Vec<_> = evb_paper::papers().iter().map(|paper| paper.slug).collect();
                Some(format!("one of: {}", known.join(", ")))
            }
            _ => None,
        }
    }
}
