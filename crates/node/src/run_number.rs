//! The number of a run: the time at which it begins, in milliseconds since 1970.
//!
//! Files of a run are named after it, so no two runs that store in one folder may have the same. A run takes its number by
//! making a file of that name in the folder. It keeps the file to the end of the millisecond, after which nobody can want
//! the number any more.

use evb_experiment::{Keep, Plan};
use std::{
    fs::{self, OpenOptions},
    io::ErrorKind,
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Milliseconds that others may be before us. Where they are more, or the folder cannot be written, the number is not
/// known to be free; a builder then refuses to write a file that is there.
const MOST_TRIES: u32 = 10_000;
/// Time between two looks at the clock.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

/// The number of a new run. No other run that stores in the same folder, seen from this machine, has it.
pub(crate) fn run_number(plan: &Plan) -> u64 {
    if plan.storage.keep == Keep::None || fs::create_dir_all(&plan.storage.directory).is_err() {
        return now();
    }
    let found = (0..MOST_TRIES).find_map(|_| {
        let number = now();
        let taken = take(number, &place(&plan.storage.directory, &plan.name, number));
        wait_for_the_end_of(number);
        taken.then_some(number)
    });
    found.unwrap_or_else(now)
}

fn place(folder: &Path, name: &str, number: u64) -> PathBuf {
    folder.join(format!("{name}-{number}.run"))
}

/// Takes a number while its millisecond lasts; false when somebody has it, or the time is over. Another error is for the
/// builders to tell.
fn take(number: u64, mark: &Path) -> bool {
    match OpenOptions::new().write(true).create_new(true).open(mark) {
        Ok(_) => {
            // Whoever took it before has removed his file by then.
            let in_time = now() == number;
            wait_for_the_end_of(number);
            let _somebody_was_faster = fs::remove_file(mark);
            in_time
        }
        Err(error) => error.kind() != ErrorKind::AlreadyExists,
    }
}

fn wait_for_the_end_of(millisecond: u64) {
    while now() == millisecond {
        thread::sleep(LOOK_AGAIN);
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_number_is_taken_once_in_its_time_and_never_later() {
        let folder = tempfile::tempdir().unwrap();
        let number = now() + 1;
        let mark = place(folder.path(), "x", number);
        fs::write(&mark, "").unwrap();
        assert!(!take(number, &mark), "somebody has it");
        fs::remove_file(&mark).unwrap();
        wait_for_the_end_of(number - 1);
        wait_for_the_end_of(number);
        assert!(!take(number, &mark), "its time is over");
        assert!(!mark.exists());
    }

    #[test]
    fn many_at_once_get_different_numbers_and_leave_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let take_one = || loop {
            let number = now();
            if take(number, &place(folder.path(), "x", number)) {
                return number;
            }
        };
        let numbers: BTreeSet<u64> = thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(take_one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!((numbers.len(), fs::read_dir(folder.path()).unwrap().count()), (16, 0));
    }
}
