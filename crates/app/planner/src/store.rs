//! The simulations of a search, kept in a folder, so that a search can go on.

use crate::{PlannerError, trial::Trial};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

/// Name of the file of simulations.
pub const TRIALS: &str = "simulations.jsonl";

/// The simulations that are known. Each is in the file as soon as it has ended.
#[derive(Default)]
pub struct Store {
    known: BTreeMap<String, Trial>,
    file: Option<(PathBuf, File)>,
}

impl Store {
    /// The simulations of a folder. A torn last line is cut off.
    ///
    /// # Errors
    /// The folder cannot be read or written, or a line is not that of a simulation.
    pub fn open(folder: &Path) -> Result<Self, PlannerError> {
        let path = folder.join(TRIALS);
        fs::create_dir_all(folder).map_err(|error| PlannerError::unwritable(folder, &error))?;
        let text = if path.exists() { fs::read_to_string(&path) } else { Ok(String::new()) };
        let text = text.map_err(|error| PlannerError::file(&path, error, "choose another folder"))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut known = BTreeMap::new();
        for (number, line) in (1..).zip(text[..whole].lines()) {
            let trial: Trial = serde_json::from_str(line).map_err(|error| {
                PlannerError::file(
                    &path,
                    format!("line {number}: {error}"),
                    "choose another folder, or remove the line",
                )
            })?;
            known.insert(trial.key.clone(), trial);
        }
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.and_then(|file| file.set_len(whole as u64).map(|()| file));
        let file = file.map_err(|error| PlannerError::unwritable(&path, &error))?;
        Ok(Self { known, file: Some((path, file)) })
    }

    /// Number of simulations that are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// True if none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Trial> {
        self.known.get(key)
    }

    pub(crate) fn keep(&mut self, trial: Trial) -> Result<(), PlannerError> {
        if let Some((path, file)) = &mut self.file {
            let line = serde_json::to_string(&trial).unwrap_or_default() + "\n";
            file.write_all(line.as_bytes()).map_err(|error| PlannerError::unwritable(path, &error))?;
        }
        self.known.insert(trial.key.clone(), trial);
        Ok(())
    }
}
