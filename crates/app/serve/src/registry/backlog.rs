//! What is still to be written to the registry of runs.
//!
//! A full disk, another program that locks the database, or its deletion must not end a run: the run continues, the trouble
//! is shown, and what was not written is written when that is possible again.

use super::{Begun, Ended, RegistryError, RunRow};
use crate::{journal::Level, service_state::ServiceState, status::Problem};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

/// Time between two attempts.
const AGAIN: Duration = Duration::from_secs(1);
/// Most changes that wait. The oldest are dropped then, and the log says so.
const MOST_WAITING: usize = 256;

/// A change of the registry.
enum Change {
    Begin(Arc<Begun>),
    End(Arc<Begun>, Box<Ended>),
}

/// The changes that wait, the oldest first.
pub(crate) struct Backlog<'a> {
    shared: &'a ServiceState,
    waiting: VecDeque<Change>,
    next_try: Instant,
    problem: Option<Problem>,
}

impl<'a> Backlog<'a> {
    pub(crate) fn new(shared: &'a ServiceState) -> Self {
        Self { shared, waiting: VecDeque::new(), next_try: Instant::now(), problem: None }
    }

    /// The reason why changes wait, for people.
    pub(crate) const fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    /// Notes a run that has begun.
    pub(crate) fn begin(&mut self, begun: Arc<Begun>) {
        self.add(Change::Begin(begun));
    }

    /// Notes the end of a run.
    pub(crate) fn end(&mut self, begun: Arc<Begun>, end: Ended) {
        self.add(Change::End(begun, Box::new(end)));
    }

    fn add(&mut self, change: Change) {
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.pop_front();
            self.shared.log(Level::Error, None, None, "the registry of runs cannot be written: a change is lost");
        }
        self.waiting.push_back(change);
        if self.problem.is_none() {
            self.write();
        }
    }

    /// Looks after the registry when it is time for it.
    pub(crate) fn look_after(&mut self) {
        if self.next_try <= Instant::now() {
            self.write();
        }
    }

    /// Writes what waits, and makes the file anew if it was deleted.
    fn write(&mut self) {
        self.next_try = Instant::now() + AGAIN;
        let restored = self.shared.with_registry(|registry| registry.restore());
        if matches!(restored, Ok(true)) {
            self.shared.log(Level::Warning, None, None, "the registry of runs was deleted, and is written again");
        }
        let mut outcome = restored.map(drop);
        while outcome.is_ok()
            && let Some(change) = self.waiting.front()
        {
            outcome = match self.apply(change) {
                Ok(row) => {
                    row.into_iter().for_each(|row| self.shared.tell_run(row));
                    self.waiting.pop_front();
                    Ok(())
                }
                // It will not be possible later either.
                Err(error) if error.is_permanent() => {
                    self.shared.log(Level::Error, None, None, error.to_string());
                    self.waiting.pop_front();
                    Ok(())
                }
                Err(error) => Err(error),
            };
        }
        self.show(outcome.err());
    }

    /// Makes one change; returns the run as it is then.
    fn apply(&self, change: &Change) -> Result<Option<RunRow>, RegistryError> {
        self.shared.with_registry(|registry| {
            let number = match change {
                Change::Begin(begun) => {
                    registry.begin(begun)?;
                    begun.number
                }
                Change::End(begun, end) => {
                    if !registry.end(begun.number, end)? {
                        registry.begin(begun)?;
                        registry.end(begun.number, end)?;
                    }
                    begun.number
                }
            };
            Ok(registry.list(Some(number.saturating_add(1)), 1)?.pop())
        })
    }

    /// Shows the trouble, or its end.
    fn show(&mut self, error: Option<RegistryError>) {
        let Some(error) = error else {
            if self.problem.take().is_some() {
                self.shared.log(Level::Info, None, None, "the registry of runs is written again");
            }
            return;
        };
        // The programs that hold it up are named once: looking for them takes time.
        if self.problem.as_ref().is_some_and(|problem| problem.message.starts_with(&error.to_string())) {
            return;
        }
        let message = error.with_holders().to_string();
        self.shared.log(Level::Error, None, None, message.as_str());
        let hint = "runs continue; what is missing is written as soon as the registry can be written";
        self.problem = Some(Problem::new(message, hint));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{
        Registry,
        tests::{begun, ended},
    };
    use rusqlite::Connection;
    use std::path::Path;

    /// A service with a registry in this file.
    fn state(path: &Path) -> ServiceState {
        let registry = Registry::create(path).unwrap();
        registry.be_brief().unwrap();
        ServiceState::new(registry, None).0
    }

    /// The states of all runs, the latest first, as another program reads them.
    fn states(path: &Path) -> Vec<(u64, String)> {
        let runs = Registry::open(path).unwrap().list(None, 100).unwrap();
        runs.into_iter().map(|run| (run.number, run.state)).collect()
    }

    /// Does something with a run before and after the trouble, which must be shown, and must end when it is over.
    fn check(path: &Path, trouble: impl FnOnce(&ServiceState), end_it: impl FnOnce(&ServiceState)) {
        let state = state(path);
        let mut backlog = Backlog::new(&state);
        backlog.begin(Arc::new(begun(1)));
        backlog.end(Arc::new(begun(1)), ended());
        backlog.begin(Arc::new(begun(2)));
        assert!(backlog.problem().is_none());
        trouble(&state);
        backlog.end(Arc::new(begun(2)), ended());
        backlog.begin(Arc::new(begun(3)));
        assert!(
            backlog.problem().is_some_and(|problem| problem.message.contains("runs.db")),
            "{:?}",
            backlog.problem()
        );
        end_it(&state);
        backlog.write();
        assert!(backlog.problem().is_none(), "{:?}", backlog.problem());
        let expected = [(3, "running"), (2, "stopped"), (1, "stopped")];
        assert_eq!(states(path), expected.map(|(number, state)| (number, state.to_owned())));
    }

    #[test]
    fn what_a_lock_held_up_is_written_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let other = std::cell::OnceCell::new();
        let lock = |_: &ServiceState| {
            let connection = other.get_or_init(|| Connection::open(&path).unwrap());
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        };
        check(&path, lock, |_| other.get().unwrap().execute_batch("ROLLBACK").unwrap());
    }

    #[test]
    fn what_a_full_disk_held_up_is_written_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let limit = |pages: u32| {
            move |state: &ServiceState| {
                let set = |registry: &mut Registry| {
                    registry.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
                };
                state.with_registry(set).unwrap();
            }
        };
        check(&path, limit(1), limit(1 << 20));
    }

    /// The runs of a deleted file are written to a new one, whether its log was deleted with it or not.
    #[test]
    fn a_deleted_file_is_written_again() {
        for ends in [&[""][..], &["", "-wal", "-shm"]] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("runs.db");
            let state = state(&path);
            let mut backlog = Backlog::new(&state);
            backlog.begin(Arc::new(begun(1)));
            backlog.end(Arc::new(begun(1)), ended());
            backlog.begin(Arc::new(begun(2)));
            for end in ends {
                std::fs::remove_file(format!("{}{end}", path.display())).unwrap();
            }
            backlog.write();
            assert_eq!(states(&path), [(2, "running".to_owned()), (1, "stopped".to_owned())], "{ends:?}");
            backlog.end(Arc::new(begun(2)), ended());
            assert_eq!(states(&path)[0].1, "stopped", "{ends:?}");
        }
    }

    /// A run that another registry does not have is noted there as a whole.
    #[test]
    fn a_replaced_file_gets_the_present_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let state = state(&path);
        let mut backlog = Backlog::new(&state);
        backlog.begin(Arc::new(begun(5)));
        let other = folder.path().join("other.db");
        drop(Registry::create(&other).unwrap());
        std::fs::rename(&other, &path).unwrap();
        for end in ["-wal", "-shm"] {
            std::fs::remove_file(format!("{}{end}", path.display())).unwrap();
        }
        backlog.end(Arc::new(begun(5)), ended());
        backlog.write();
        assert_eq!(states(&path), [(5, "stopped".to_owned())]);
    }

    #[test]
    fn a_run_whose_number_is_taken_holds_nothing_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.db");
        let state = state(&path);
        let mut backlog = Backlog::new(&state);
        [1, 1, 2].into_iter().for_each(|number| backlog.begin(Arc::new(begun(number))));
        assert!(backlog.problem().is_none() && states(&path).len() == 2);
    }
}
