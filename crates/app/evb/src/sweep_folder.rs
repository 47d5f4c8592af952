//! A folder that keeps the records of a sweep, each from the moment at which it is there.
//!
//! - `resolved.toml` is the experiment. It is written first, and says which points belong to the folder.
//! - `records.jsonl` has a record on each line: in the order in which they ended while the sweep goes on, and in the order of
//!   the points once it has ended.
//!
//! Nothing that ends the program damages the folder. A line is written at once, so that at most the last one is torn; it is
//! dropped, and its point is done again. A file that changes otherwise is written beside the old one and then takes its
//! place in one step.

use crate::stored_sweep::{ANOTHER, FolderError, RECORDS, RESOLVED, StoredSweep};
use evb_experiment::Experiment;
use evb_record::{PointRecord, Record, RecordKind};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    marker::PhantomData,
    ops::Range,
    path::{Path, PathBuf},
};

/// A folder that takes the records of a sweep. No other process writes into it meanwhile.
pub struct SweepFolder<R = Record> {
    folder: PathBuf,
    experiment: String,
    /// Number of points that were there when it was opened, with those whose work did not come to its end.
    held: usize,
    /// The lines of the points in the file.
    lines: Vec<Option<Range<u64>>>,
    /// The file of the records; `None` before the first is written, and when one could not be written.
    file: Option<File>,
    /// Held to the end, by the folder itself: its files are replaced.
    _lock: Option<File>,
    records: PhantomData<fn(R)>,
}

impl<R: PointRecord> SweepFolder<R> {
    /// Opens a folder for the records of `experiment`, which are of one kind, and makes it if it is missing. Nothing in it is changed before
    /// [`begin`](Self::begin). The records of its points that are there come with it, by the index of their point. Points whose
    /// work did not come to its end are open again.
    ///
    /// # Errors
    /// The folder cannot be used, holds records of another kind or points of another experiment, or is in use by another process.
    pub fn open(
        folder: &Path,
        experiment: &Experiment,
        kind: RecordKind,
    ) -> Result<(Self, Vec<Option<R>>), FolderError> {
        fs::create_dir_all(folder).map_err(|error| FolderError::unwritable(folder, &error))?;
        let lock = lock(folder)?;
        let resolved = experiment.resolved();
        let (held, records, lines) = match StoredSweep::<R>::read(folder)? {
            Some(stored) => {
                let stored = stored.taken_by(experiment, kind)?;
                let held = stored.records.iter().flatten().count();
                let stored = stored.without_unfinished();
                (held, stored.records, stored.lines)
            }
            None => {
                check_unused(folder, &resolved)?;
                let count = experiment.plans().len();
                (0, vec![None; count], vec![None; count])
            }
        };
        let folder = folder.to_owned();
        Ok((Self { folder, experiment: resolved, held, lines, file: None, _lock: lock, records: PhantomData }, records))
    }

    /// Number of points that were there when it was opened, with those whose work did not come to its end.
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Makes the folder ready for [`keep`](Self::keep).
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(&mut self) -> Result<(), FolderError> {
        let path = self.folder.join(RESOLVED);
        let text = self.experiment.as_bytes();
        replace(&path, &mut |file| file.write_all(text)).map_err(|error| FolderError::unwritable(&path, &error))?;
        self.sort()?;
        let path = self.folder.join(RECORDS);
        let file = OpenOptions::new().append(true).create(true).open(&path);
        self.file = Some(file.map_err(|error| FolderError::unwritable(&path, &error))?);
        Ok(())
    }

    /// Writes the record of a point. It is in the file when this returns, and stays there if the program is killed.
    ///
    /// # Errors
    /// It cannot be written, or [`begin`](Self::begin) was not called. Nothing can be written from then on: a line would follow the
    /// torn one.
    pub fn keep(&mut self, point: usize, record: &R) -> Result<(), FolderError> {
        let path = self.folder.join(RECORDS);
        let failed = |error: &io::Error| FolderError::unwritable(&path, error);
        let mut line = serde_json::to_string(record).map_err(|error| failed(&error.into()))?;
        line.push('\n');
        let mut file = self.file.take().ok_or_else(|| failed(&io::ErrorKind::BrokenPipe.into()))?;
        let begin = file.seek(SeekFrom::End(0)).map_err(|error| failed(&error))?;
        file.write_all(line.as_bytes()).map_err(|error| failed(&error))?;
        self.file = Some(file);
        self.lines[point] = Some(begin..begin + line.len() as u64);
        Ok(())
    }

    /// Puts the records in the order of the points.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn finish(mut self) -> Result<(), FolderError> {
        self.file = None;
        self.sort()
    }

    /// Writes the lines of all points in their order, and nothing else that was in the file.
    fn sort(&mut self) -> Result<(), FolderError> {
        let path = self.folder.join(RECORDS);
        let mut at = 0;
        let mut moved = self.lines.clone();
        let copied = replace(&path, &mut |file| {
            for line in moved.iter_mut().flatten() {
                let mut old = File::open(&path)?;
                old.seek(SeekFrom::Start(line.start))?;
                let length = line.end - line.start;
                io::copy(&mut old.take(length), file)?;
                *line = at..at + length;
                at += length;
            }
            Ok(())
        });
        copied.map_err(|error| FolderError::unwritable(&path, &error))?;
        self.lines = moved;
        Ok(())
    }
}

/// Refuses a folder without records in which somebody keeps an experiment of the same name.
fn check_unused(folder: &Path, resolved: &str) -> Result<(), FolderError> {
    let path = folder.join(RESOLVED);
    match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(text) if text == resolved.as_bytes() => Ok(()),
        Err(error) => Err(FolderError::new(&path, error, ANOTHER)),
        Ok(_) => {
            Err(FolderError::new(&path, "it is there, with another experiment", "remove it, or choose another folder"))
        }
    }
}

/// Keeps other processes out of the folder. A file system without locks has none.
fn lock(folder: &Path) -> Result<Option<File>, FolderError> {
    let directory = File::open(folder).map_err(|error| FolderError::unwritable(folder, &error))?;
    match directory.try_lock() {
        Ok(()) => Ok(Some(directory)),
        Err(TryLockError::Error(_)) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            Err(FolderError::new(folder, "another evb writes into it", "wait for its end, or choose another folder"))
        }
    }
}

/// Writes a file beside the old one, which it then replaces in one step.
fn replace(path: &Path, write: &mut dyn FnMut(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = File::create(&new)?;
    write(&mut file)?;
    file.sync_all()?;
    fs::rename(&new, path)
}
