//! Metadata in every event file about its run.

use crate::{WriteError, layout::MAX_METADATA_BYTES};
use serde::{Deserialize, Serialize};

/// The run that a file belongs to. It is stored as one JSON object with these names. Readers ignore unknown names and
/// use the default for absent ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// Number of the run.
    pub run: u64,
    /// Seed of its random streams.
    pub seed: u64,
    /// Version of evb that wrote the file.
    pub version: String,
    /// Start of the run by the clock of the host, in nanoseconds since 1970-01-01 UTC; 0 if it is not known.
    pub start: u64,
    /// Type of the run, as its operator named it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run_type: String,
    /// Comment of the operator at the start of the run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comment: String,
    /// The clock of the times in the file, in words.
    pub clock: String,
    /// Index of the readout unit, in a file of fragments that were set apart; `None` in a file of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readout: Option<u16>,
    /// Index of the builder unit that wrote the file, counted from 0. Filled in by the writer.
    pub builder: u16,
    /// Number of the file among those of its builder, counted from 0. Filled in by the writer.
    pub file: u32,
    /// Name of the stream of the events; empty for the default stream.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stream: String,
    /// The events are copies of events in other streams.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub copies: bool,
    /// Name of the experiment.
    pub experiment: String,
    /// Description of each source, by source index.
    pub sources: Vec<String>,
    /// The full text of the resolved experiment.
    pub text: String,
}

impl Metadata {
    pub(crate) fn to_json(&self) -> Result<Vec<u8>, WriteError> {
        let json = serde_json::to_vec(self).expect("plain strings and numbers always become JSON");
        match json.len() {
            bytes if bytes > MAX_METADATA_BYTES => Err(WriteError::MetadataTooLarge { bytes }),
            _ => Ok(json),
        }
    }

    pub(crate) fn from_json(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }
}
