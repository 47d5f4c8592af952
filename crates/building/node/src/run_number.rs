//! Run numbers: 1, 2, 3 and so on, and never the same one twice in a data directory.
//!
//! The directory holds the number of its latest run in a file, which is locked while a run takes the next number. The names
//! of the event files say which numbers are taken, too, so the file may be lost, set back or damaged. Runs
//! that begin at the same time, on one machine or on several that share the directory, thus get different numbers.

use evb_experiment::{Keep, Plan};
use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
};

/// The file with the number of the latest run.
const FILE: &str = "run-number";
/// More bytes than that file has.
const LONGEST: u64 = 32;
/// The largest run number: databases and other programs hold 63 bits.
const LARGEST: u64 = i64::MAX as u64;

/// The numbers of the runs of a session.
#[derive(Debug, Default)]
pub(crate) struct RunNumbers {
    /// Number of runs that stored nothing; their numbers are separate.
    unstored: u64,
    /// The number of every run, chosen by the caller.
    fixed: Option<u64>,
    /// Numbers up to this one are taken.
    latest: u64,
    /// The number of the next run in this data directory, where it was asked for before the run; none for a run that stores nothing.
    reserved: Option<(Option<PathBuf>, u64)>,
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

    /// The number that the next run of this plan will have.
    pub(crate) fn reserve(&mut self, plan: &Plan) -> u64 {
        let number = self.next(plan);
        self.reserved = Some((directory(plan).map(Path::to_owned), number));
        number
    }

    /// The number of the next run.
    pub(crate) fn next(&mut self, plan: &Plan) -> u64 {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        if let Some((place, number)) = self.reserved.take()
            && place.as_deref() == directory(plan)
            && number > self.latest
        {
            return number;
        }
        // The builders report a directory that cannot be written.
        let stored = directory(plan).and_then(|directory| take(directory, self.latest).ok());
        stored.unwrap_or_else(|| {
            self.unstored = self.unstored.max(self.latest) + 1;
            self.unstored
        })
    }
}

/// Returns true if a file is that of the latest run number in a data directory: it has its name, and a number in it.
pub fn is_run_number(path: &Path) -> bool {
    let mut text = String::new();
    let mut read = || fs::File::open(path)?.take(LONGEST).read_to_string(&mut text);
    path.file_name().is_some_and(|name| name == FILE) && read().is_ok() && text.trim().parse::<u64>().is_ok()
}

/// Where the runs of a plan are stored; `None` if they are not.
fn directory(plan: &Plan) -> Option<&Path> {
    (plan.storage.keep != Keep::None).then_some(plan.storage.directory.as_path())
}

/// Takes the next number of a directory, which is created if it is missing. The number is beyond `beyond`.
fn take(directory: &Path, beyond: u64) -> io::Result<u64> {
    fs::create_dir_all(directory)?;
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(directory.join(FILE))?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let number = free(text.trim().parse().unwrap_or(0), beyond, &taken(directory)?);
    file.rewind()?;
    file.set_len(0)?;
    writeln!(file, "{number}")?;
    file.sync_data()?;
    Ok(number)
}

/// The next number that no event file has: after the noted one if that is possible, else after those of the files, else the
/// first free one.
fn free(noted: u64, beyond: u64, taken: &BTreeSet<u64>) -> u64 {
    let of_files = taken.last().copied().unwrap_or(0).max(beyond);
    let after = |number: u64| number.checked_add(1).filter(|next| *next <= LARGEST);
    let next = after(noted.max(of_files)).or_else(|| after(of_files));
    next.or_else(|| (1..=LARGEST).find(|number| !taken.contains(number))).unwrap_or(LARGEST)
}

/// The run numbers of the event files in a directory.
fn taken(directory: &Path) -> io::Result<BTreeSet<u64>> {
    let entries = fs::read_dir(directory)?.flatten();
    Ok(entries.filter_map(|entry| number_of(&entry.file_name().to_string_lossy())).collect())
}

/// The run number in the name of an event file, as in `NAME-12-b0.evb`.
fn number_of(name: &str) -> Option<u64> {
    let (front, _builder) = name.rsplit_once("-b")?;
    front.rsplit_once('-')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

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
    fn the_file_is_known_by_its_name_and_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        assert!(!is_run_number(&file), "it is not there");
        take(folder.path(), 0).unwrap();
        assert!(is_run_number(&file));
        let other = folder.path().join("run-number.evb");
        fs::copy(&file, &other).unwrap();
        assert!(!is_run_number(&other), "another name");
        fs::write(&file, b"EVB\0\xff").unwrap();
        assert!(!is_run_number(&file), "another content");
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
    #[test]
    fn a_number_that_was_set_back_or_is_impossible_costs_no_run() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a-3-b0-0000.evb", "a-5-b0-0000.evb"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        for (noted, next) in [("1", 6), ("18446744073709551615", 6), ("9223372036854775807", 6), ("41", 42)] {
            fs::write(folder.path().join(FILE), noted).unwrap();
            assert_eq!(take(folder.path(), 0).unwrap(), next, "after {noted}");
            assert_eq!(take(folder.path(), 0).unwrap(), next + 1, "after {noted}");
        }
        fs::write(folder.path().join("a-9223372036854775807-b0-0000.evb"), "").unwrap();
        assert_eq!(take(folder.path(), 0).unwrap(), 1);
    }
}
