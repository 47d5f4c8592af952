//! Reasons why a plan cannot be simulated.

use evb_fabric::NetworkError;
use evb_filter::NotSimulated;
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
    /// Filters select events by what a simulation does not have.
    #[error("{0}")]
    Filter(#[from] NotSimulated),
    /// Packets of several networks have no common trace.
    #[error("two stages have a network for each event builder, and no common trace")]
    TraceOfStages,
    /// Control messages have a separate transport, and the network has none for them.
    #[error("control messages of {0} have a separate transport, but their network is shared")]
    Control(String),
    /// Only the work of one event builder has costs.
    #[error("`network.cpu` describes the work of an event builder of one stage, and this is {0}")]
    NoCosts(&'static str),
    /// A barrel shifter needs interfaces that send its slots.
    #[error("messages go through memory (`network.cpu.messages`), where no interface sends the slots of this shaping")]
    SlotsInMemory,
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
            Self::Filter(NotSimulated::Bytes(step)) => Some(format!(
                "say how much it accepts, such as --set filter.step.{step}.accept=0.1"
            )),
            Self::Filter(NotSimulated::Program) => Some(
                "say how much it accepts and how long it takes, such as --set filter.accept=0.1 --set filter.time=\"1 ms\"".into(),
            ),
            Self::TraceOfStages => Some("leave out the trace, or `[first_stage]`".into()),
            Self::Control(_) => Some(
                "describe the control network, too: --set 'network.control={ type = \"separate\", delay = \"50 us\", rate = \"1 Gbit/s\" }'".into(),
            ),
            Self::NoCosts(_) => Some("leave out `network.cpu`; `network.host` has the costs of messages".into()),
            Self::SlotsInMemory => Some("describe the network between the nodes, and set network.cpu.messages to \"network\"".into()),
            Self::Trace(_) => Some("check the path and the free space".into()),
        }
    }
}
