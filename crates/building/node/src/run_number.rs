//! Run numbers: 1, 2, 3 and so on, and never the same one twice in a data directory.
//!
//! The directory holds the number of its latest run in a file, which is locked while a run takes the next number. Runs
//! that begin at the same time, on one machine or on several that share the directory, thus get different numbers.

use evb_experiment::{Keep, Plan};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    path::Path,
};

/// The file with the number of the latest run.
const FILE: &str = "run-number";

/// The numbers of the runs of a session.
#[derive(Debug, Default)]
pub(crate) struct RunNumbers {
    /// Number of runs that stored nothing; their numbers are separate.
    unstored: u64,
    /// The number of every run, chosen by the caller.
    fixed: Option<u64>,
    /// Numbers up to this one are taken.
    latest: u64,
}

impl RunNumbers {
    /// The same number for each run.
    pub(crate) fn fixed(number: u64) -> Self {
        Self { fixed: Some(number), ..Self::default() }
    }

    /// Takes no number up to this one any more.
    pub(crate) fn number_beyond(&mut self, latest: u64) {
        self.latest = self.latest.max(latest);
    }

    /// The number of the next run.
    pub(crate) fn next(&mut self, plan: &Plan) -> u64 {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let stored = match plan.storage.keep {
            Keep::None => None,
            // The builders report a directory that cannot be written.
            Keep::All | Keep::OneIn(_) => take(&plan.storage.directory, self.latest).ok(),
        };
        stored.unwrap_or_else(|| {
            self.unstored = self.unstored.max(self.latest) + 1;
            self.unstored
        })
    }
}

/// Takes the next number of a directory, which is created if it is missing. The number is beyond `beyond`.
fn take(directory: &Path, beyond: u64) -> io::Result<u64> {
    fs::create_dir_all(directory)?;
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(directory.join(FILE))?;
    file.lock()?;
    let number = latest(&mut file, directory)?.max(beyond).saturating_add(1);
    file.rewind()?;
    file.set_len(0)?;
    writeln!(file, "{number}")?;
    file.sync_data()?;
    Ok(number)
}

/// The latest number: that in the file or that of an event file, whichever is larger. No number is taken twice even if
/// the file was removed or truncated.
fn latest(file: &mut File, directory: &Path) -> io::Result<u64> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let noted = text.trim().parse().unwrap_or(0);
    match noted {
        0 => Ok(fs::read_dir(directory)?
            .flatten()
            .filter_map(|entry| number_of(&entry.file_name().to_string_lossy()))
            .max()
            .unwrap_or(0)),
        noted => Ok(noted),
    }
}

/// The run number in the name of an event file, as in `NAME-12-b0.evb`.
fn number_of(name: &str) -> Option<u64> {
    let (front, _builder) = name.rsplit_once("-b")?;
    front.rsplit_once('-')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, thread};

    #[test]
    fn numbers_count_on_and_many_at_once_get_different_ones() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!((take(folder.path(), 0).unwrap(), take(folder.path(), 0).unwrap()), (1, 2));
        let numbers: BTreeSet<u64> = thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| take(folder.path(), 0).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(numbers.into_iter().eq(3..19));
        assert_eq!(take(folder.path(), 30).unwrap(), 31);
        assert_eq!(take(folder.path(), 7).unwrap(), 32);
    }

    #[test]
    fn event_files_keep_their_numbers_when_the_file_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a-b-7-b0.evb", "a-12-b1-2.evb", "other-99.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(take(folder.path(), 0).unwrap(), 13);
        fs::write(folder.path().join(FILE), "no number").unwrap();
        assert_eq!(take(folder.path(), 0).unwrap(), 13);
    }
}
