//! A sweep as an array job of a cluster: each task simulates a part of the points into a folder of its own.
//!
//! The folder of the sweep has
//!
//! - `resolved.toml`, the experiment, which the tasks read: the file that it came from may change meanwhile,
//! - `submit.sh`, the batch script, and `job.json`, what was submitted,
//! - for each part the folder `part-N` and what its task printed, `part-N.log`,
//!
//! and once the parts are collected all that [`SweepFolder`] writes. What the cluster says about its tasks decides nothing: a part
//! is there when its records are.

use crate::{
    merging::merge,
    shard::Shard,
    slurm::script,
    stored_sweep::{FolderError, RESOLVED, StoredSweep},
    sweep_folder::SweepFolder,
};
use evb_experiment::Experiment;
use evb_record::{Record, RecordKind};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

/// The file of what was submitted.
const JOB: &str = "job.json";
/// The file of the batch script.
const SCRIPT: &str = "submit.sh";
/// Number of parts if none is given.
const PARTS: NonZeroUsize = NonZeroUsize::new(10).expect("ten is not zero");

/// A sweep that is simulated by the tasks of an array job.
pub struct ArrayJob {
    folder: PathBuf,
    experiment: Experiment,
    submitted: Submitted,
}

/// What was submitted.
#[derive(Serialize, Deserialize)]
struct Submitted {
    /// Number of parts, and so of tasks.
    parts: NonZeroUsize,
    /// The job, as the batch system names it; `None` before it was submitted.
    job: Option<String>,
}

/// A part of a sweep with missing points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPart {
    /// The part.
    pub part: Shard,
    /// Number of missing points.
    pub missing: usize,
    /// Number of all its points.
    pub points: usize,
    /// The file with what its task has printed.
    pub log: PathBuf,
}

impl ArrayJob {
    /// Makes a folder ready for the parts of a sweep: by default ten, or as many as there are points. If it has parts of this
    /// sweep already, they are gone on with.
    ///
    /// # Errors
    /// There are more parts than points, or another number than before; the folder cannot be used, has the points of another
    /// experiment, or all points of this one.
    pub fn prepare(folder: &Path, experiment: Experiment, parts: Option<NonZeroUsize>) -> Result<Self, FolderError> {
        let points = experiment.plans().len();
        if let Some(parts) = parts.filter(|parts| parts.get() > points) {
            let message = format!("{parts} parts are more than the {points} points of the sweep");
            return Err(FolderError { message, hint: format!("choose at most {points} parts") });
        }
        let (mut stored, _) = SweepFolder::<Record>::open(folder, &experiment, RecordKind::Simulation)?;
        if stored.held() > 0 {
            let hint = "`evb sweep draw` shows them; for new ones choose another folder";
            return Err(FolderError::new(folder, "it holds records of this sweep already", hint));
        }
        let before = read_submitted(folder)?.filter(|before| before.job.is_some());
        if let (Some(before), Some(parts)) = (&before, parts)
            && before.parts != parts
        {
            let message = format!("it has a sweep in {} parts, and not in {parts}", before.parts);
            return Err(FolderError::new(folder, message, "leave out the number of parts, or choose another folder"));
        }
        let absolute = absolute(folder)?;
        stored.begin()?;
        let usual = || NonZeroUsize::new(points).map_or(PARTS, |points| points.min(PARTS));
        let submitted = before.unwrap_or_else(|| Submitted { parts: parts.unwrap_or_else(usual), job: None });
        Ok(Self { folder: absolute, experiment, submitted })
    }

    /// Reads what was submitted from its folder.
    ///
    /// # Errors
    /// The folder cannot be read, or is not that of a submitted sweep.
    pub fn read(folder: &Path) -> Result<Self, FolderError> {
        let hint = "give the folder of `evb sweep submit --out`";
        let submitted =
            read_submitted(folder)?.ok_or_else(|| FolderError::new(folder, "no sweep was submitted here", hint))?;
        let path = folder.join(RESOLVED);
        let text = fs::read_to_string(&path).map_err(|error| FolderError::new(&path, error, hint))?;
        let experiment = Experiment::parse(&text, &path.to_string_lossy(), &[])
            .map_err(|error| FolderError::new(&path, error, "it was written by another version, or changed"))?;
        Ok(Self { folder: folder.to_owned(), experiment, submitted })
    }

    /// The job, as the batch system names it, if it was submitted.
    pub fn job(&self) -> Option<&str> {
        self.submitted.job.as_deref()
    }

    /// Number of parts.
    pub const fn parts(&self) -> usize {
        self.submitted.parts.get()
    }

    /// The experiment of the sweep.
    pub const fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// True if the folder has the records of all points: the parts were collected.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn is_collected(&self) -> Result<bool, FolderError> {
        let stored = StoredSweep::<Record>::read(&self.folder)?;
        Ok(stored.is_some_and(|stored| stored.finished().count() == self.experiment.plans().len()))
    }

    /// The parts with missing points.
    ///
    /// # Errors
    /// The folder of a part cannot be read, or is of another experiment or version.
    pub fn open_parts(&self) -> Result<Vec<OpenPart>, FolderError> {
        let open = |part| self.open_part(part).transpose();
        Shard::all(self.parts()).filter_map(open).collect()
    }

    fn open_part(&self, part: Shard) -> Result<Option<OpenPart>, FolderError> {
        let folder = self.folder_of(part);
        let points: Vec<usize> = (0..self.experiment.plans().len()).filter(|&point| part.has(point)).collect();
        let there: Vec<usize> = match StoredSweep::<Record>::read(&folder)? {
            Some(stored) => {
                stored.taken_by(&self.experiment, RecordKind::Simulation)?.finished().map(|(index, _)| index).collect()
            }
            None => Vec::new(),
        };
        let missing = points.iter().filter(|point| !there.contains(point)).count();
        let log = self.folder.join(format!("part-{}.log", part.number()));
        Ok((missing > 0).then_some(OpenPart { part, missing, points: points.len(), log }))
    }

    fn folder_of(&self, part: Shard) -> PathBuf {
        self.folder.join(format!("part-{}", part.number()))
    }

    /// Writes the batch script for these parts, whose tasks start `program`, an `evb`. Returns its path. From
    /// then on the parts can be collected, even if somebody else submits the script.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_script(&self, program: &Path, open: &[OpenPart]) -> Result<PathBuf, FolderError> {
        let path = self.folder.join(SCRIPT);
        let name = self.experiment.plans().first().map_or("sweep", |plan| &plan.name);
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
        let name = name.replace(|letter| !is_plain(letter), "-");
        let tasks: Vec<_> = open.iter().map(|open| open.part.number().to_string()).collect();
        let text = script(&self.folder, program, &name, self.parts(), &tasks.join(","));
        fs::write(&path, text).map_err(|error| FolderError::unwritable(&path, &error))?;
        self.write_submitted()?;
        Ok(path)
    }

    /// Notes the job that was submitted, as the batch system names it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&mut self, job: &str) -> Result<(), FolderError> {
        self.submitted.job = Some(job.to_owned());
        self.write_submitted()
    }

    fn write_submitted(&self) -> Result<(), FolderError> {
        let path = self.folder.join(JOB);
        let text = serde_json::to_string(&self.submitted).unwrap_or_default() + "\n";
        fs::write(&path, text).map_err(|error| FolderError::unwritable(&path, &error))
    }

    /// Joins the parts in the folder of the sweep, as [`merge`] does.
    ///
    /// # Errors
    /// Those of [`merge`].
    pub fn collect(&self) -> Result<(), FolderError> {
        let folders: Vec<_> = Shard::all(self.parts()).map(|part| self.folder_of(part)).collect();
        merge(&folders, &self.folder, false)
    }
}

fn read_submitted(folder: &Path) -> Result<Option<Submitted>, FolderError> {
    let path = folder.join(JOB);
    if !path.exists() {
        return Ok(None);
    }
    let hint = "it was written by another version, or changed";
    let text = fs::read(&path).map_err(|error| FolderError::new(&path, error, hint))?;
    serde_json::from_slice(&text).map(Some).map_err(|error| FolderError::new(&path, error, hint))
}

/// The path for tasks, which may begin in another folder. A batch script can name it.
fn absolute(folder: &Path) -> Result<PathBuf, FolderError> {
    let path = std::path::absolute(folder).map_err(|error| FolderError::unwritable(folder, &error))?;
    let is_plain = |text: &str| !text.contains(|letter: char| letter.is_control() || ['"', '\\'].contains(&letter));
    match path.to_str().is_some_and(is_plain) {
        true => Ok(path),
        false => Err(FolderError::new(
            folder,
            "a batch script cannot name this folder",
            "choose one without quotes, backslashes and control characters",
        )),
    }
}
