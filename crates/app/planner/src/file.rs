//! Reading of the planner's files.

use crate::PlannerError;
use serde::de::DeserializeOwned;
use std::{fs, path::Path};

/// Longest file in bytes.
const LONGEST: u64 = 1 << 20;

pub(crate) fn read_text(path: &Path) -> Result<String, PlannerError> {
    let advice = "give the path of a file in TOML";
    let failed = |error: std::io::Error| PlannerError::file(path, format!("cannot be read: {error}"), advice);
    if fs::metadata(path).map_err(failed)?.len() > LONGEST {
        return Err(PlannerError::file(path, "has more than 1 MiB", advice));
    }
    fs::read_to_string(path).map_err(failed)
}

pub(crate) fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<T, PlannerError> {
    let parsed = toml::from_str(&read_text(path)?);
    parsed.map_err(|error| PlannerError::file(path, error.to_string().trim_end(), "docs/guides/plan.md lists all keys"))
}
