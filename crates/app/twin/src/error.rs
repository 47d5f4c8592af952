//! Reasons why there is no fit or no comparison.

use evb::SimulateError;
use evb_experiment::Diagnostics;

/// The reason why there is no fit or no comparison.
#[derive(Debug, thiserror::Error)]
pub enum TwinError {
    /// An experiment of the fit is not valid for this transport.
    #[error("{0}")]
    Experiment(#[from] Diagnostics),
    /// An experiment cannot be simulated.
    #[error("{0}")]
    Simulate(#[from] SimulateError),
    /// A run of the fit built no events.
    #[error("the run {0:?} built no events")]
    NoEvents(String),
    /// The network has no costs of the work of nodes.
    #[error("the network has no `cpu` table: the work of nodes takes no time in it")]
    NoCosts,
    /// Triggers do not come as fast as builders take them, so that there is no full rate.
    #[error(
        "there is no load without a full rate, and the triggers of this experiment do not come as fast as they are taken"
    )]
    NoFullRate,
    /// The costs are those of another transport.
    #[error("the costs were fitted to {fitted}, and this experiment runs over {asked}")]
    OtherTransport {
        /// The transport of the fit.
        fitted: String,
        /// The transport of the experiment.
        asked: String,
    },
}

impl TwinError {
    /// A hint what to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Experiment(_) | Self::Simulate(_) => None,
            Self::NoEvents(_) => Some("run it by hand with `evb run experiments/two-by-two.toml`".into()),
            Self::NoCosts => Some("fit them with `evb twin --fit FILE`, and give that file with --network".into()),
            Self::NoFullRate => Some("leave out --load, or write type = \"free-running\" in [trigger]".into()),
            Self::OtherTransport { asked, .. } => {
                Some(format!("fit them to this one: `evb twin --fit FILE --transport {asked}`"))
            }
        }
    }
}
