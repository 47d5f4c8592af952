//! Reasons why a plan cannot be simulated.

use evb_fabric::NetworkError;
use evb_sources::SourceError;

/// The reason why a plan cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The network makes no sense.
    #[error("network: {0}")]
    Network(#[from] NetworkError),
    /// A source of fragments makes no sense, or cannot be read.
    #[error("{0}")]
    Source(#[from] SourceError),
    /// The trace cannot be written.
    #[error("cannot write the trace: {0}")]
    Trace(#[source] std::io::Error),
}

impl SimulateError {
    /// A hint what to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Network(error) => Some(error.hint()),
            Self::Source(SourceError::Live) => {
                Some("a live front end has no sizes to simulate: give a generated source, such as --set readout.source.type=fixed".into())
            }
            Self::Source(_) => None,
            Self::Trace(_) => Some("check the path and the free space".into()),
        }
    }
}
