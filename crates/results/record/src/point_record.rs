//! What the records of the points of a sweep have in common.

use crate::{FindingKind, Record, RecordKind, Twin};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;

/// The record of a point of a sweep.
pub trait PointRecord: Clone + Serialize + DeserializeOwned {
    /// The kind of work.
    fn kind(&self) -> RecordKind;

    /// Version of evb.
    fn version(&self) -> &str;

    /// The swept keys and their values; empty without a sweep.
    fn sweep(&self) -> &BTreeMap<String, String>;

    /// Whether the work came to its end. The point of a record that did not is done again.
    fn is_finished(&self) -> bool;
}

impl PointRecord for Record {
    fn kind(&self) -> RecordKind {
        self.kind
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn sweep(&self) -> &BTreeMap<String, String> {
        &self.sweep
    }

    /// The record of a simulation that was stopped before its end depends on when that was.
    fn is_finished(&self) -> bool {
        self.findings.iter().all(|finding| finding.kind != FindingKind::Interrupted)
    }
}

impl PointRecord for Twin {
    fn kind(&self) -> RecordKind {
        self.kind
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn sweep(&self) -> &BTreeMap<String, String> {
        &self.sweep
    }

    /// Runs that could not be compared say nothing.
    fn is_finished(&self) -> bool {
        self.is_comparable()
    }
}
