//! The registry of runs: a database in one file, beside the event files.
//!
//! A run is noted when it starts, and again when it ends. A run that the program did not see end is `interrupted`: the
//! next start of the service says so.

mod backlog;
mod export;
mod holders;
mod parquet;
mod run;

pub(crate) use backlog::Backlog;
pub use export::csv;
pub use parquet::parquet;
pub use run::{Begun, Ended, NodeOfRun, RunDetails, RunRow};

use evb_record::Outcome;
use holders::{holders, open_in};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, params};
use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

/// Longest wait for another program that writes to the registry.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same while runs continue: the thread that waits drives them, and tries again later.
const SHORT_PATIENCE: Duration = Duration::from_millis(50);
/// Layout of the tables. It is raised when it changes, and older ones are then brought up to date.
const LAYOUT: i64 = 1;

const TABLES: &str = "
    CREATE TABLE runs (
        number          INTEGER PRIMARY KEY,
        type            TEXT NOT NULL,
        experiment      TEXT NOT NULL,
        comment         TEXT NOT NULL,
        stop_comment    TEXT NOT NULL DEFAULT '',
        state           TEXT NOT NULL,
        started         REAL NOT NULL,
        ended           REAL,
        events          INTEGER NOT NULL DEFAULT 0,
        event_rate_hz   REAL NOT NULL DEFAULT 0,
        bytes           INTEGER NOT NULL DEFAULT 0,
        good            INTEGER,
        host            TEXT NOT NULL,
        version         TEXT NOT NULL,
        seed            INTEGER NOT NULL,
        experiment_text TEXT NOT NULL,
        nodes           TEXT NOT NULL,
        record          TEXT
    ) STRICT;
    PRAGMA user_version = 1;
";

/// The columns of [`RunRow`], in the order of its fields. The verdict is that of the record; runs without a record, and
/// records of earlier versions, have `good` alone.
const COLUMNS: &str = "number, type, experiment, comment, stop_comment, state, started, ended, events, event_rate_hz, \
                       bytes, good, COALESCE(record ->> '$.verdict', CASE good WHEN 1 THEN 'good' WHEN 0 THEN 'not_good' END), host, version";

/// An error of the registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The database cannot be read or written.
    #[error("the registry of runs {path}: {source}")]
    Database {
        /// The file.
        path: String,
        /// The reason.
        source: rusqlite::Error,
    },
    /// Another program has locked the database.
    #[error("the registry of runs {path} is locked by another program{}", open_in(.holders))]
    Locked {
        /// The file.
        path: String,
        /// The other programs that have the file open, if they were looked for.
        holders: Vec<String>,
    },
    /// A later version of evb wrote it.
    #[error("the registry of runs {path} has layout {found}, and this version of evb knows {LAYOUT}")]
    Layout {
        /// The file.
        path: String,
        /// Its layout.
        found: i64,
    },
    /// The file was deleted, and cannot be written again.
    #[error("the registry of runs {path} was deleted, and cannot be written again: {source}")]
    Deleted {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
}

impl RegistryError {
    /// Names the programs that have a locked file open, as far as this user can see them.
    #[must_use]
    pub(crate) fn with_holders(self) -> Self {
        match self {
            Self::Locked { path, .. } => Self::Locked { holders: holders(Path::new(&path)), path },
            error => error,
        }
    }

    /// Returns true if the same change is refused at any time, such as a run whose number is taken.
    pub(crate) fn is_permanent(&self) -> bool {
        matches!(self, Self::Database { source, .. }
            if source.sqlite_error_code() == Some(ErrorCode::ConstraintViolation))
    }
}

/// The registry of runs.
pub struct Registry {
    connection: Connection,
    path: String,
    /// Device and number of the file.
    file: Option<(u64, u64)>,
}

impl Registry {
    /// Opens the registry in this file for writing; makes it and its folder if there is none.
    ///
    /// # Errors
    /// The file is not a registry, or cannot be written.
    pub fn create(path: &Path) -> Result<Self, RegistryError> {
        if let Some(folder) = path.parent() {
            // Opening the file tells the error.
            let _error = std::fs::create_dir_all(folder);
        }
        let registry = Self::open_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        registry.prepare().map_err(|source| registry.error(source))?;
        registry.check()?;
        Ok(registry)
    }

    /// Opens a registry for reading.
    ///
    /// # Errors
    /// The file is missing or not a registry.
    pub fn open(path: &Path) -> Result<Self, RegistryError> {
        let registry = Self::open_with(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        registry.check()?;
        Ok(registry)
    }

    fn open_with(path: &Path, flags: OpenFlags) -> Result<Self, RegistryError> {
        let name = path.display().to_string();
        match Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX) {
            Ok(connection) => Ok(Self { connection, path: name, file: identity(path) }),
            Err(source) => Err(RegistryError::Database { path: name, source }),
        }
    }

    fn prepare(&self) -> rusqlite::Result<()> {
        self.connection.busy_timeout(PATIENCE)?;
        self.connection.pragma_update(None, "journal_mode", "WAL")?;
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        match self.layout()? {
            0 => self.connection.execute_batch(&format!("BEGIN; {TABLES} COMMIT;")),
            _ => Ok(()),
        }
    }

    fn layout(&self) -> rusqlite::Result<i64> {
        self.connection.query_row("PRAGMA user_version", [], |row| row.get(0))
    }

    fn check(&self) -> Result<(), RegistryError> {
        match self.layout().map_err(|source| self.error(source))? {
            LAYOUT => Ok(()),
            found => Err(RegistryError::Layout { path: self.path.clone(), found }),
        }
    }

    fn error(&self, source: rusqlite::Error) -> RegistryError {
        let path = self.path.clone();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                RegistryError::Locked { path, holders: Vec::new() }
            }
            _ => RegistryError::Database { path, source },
        }
    }

    /// Waits only shortly for other programs from now on.
    ///
    /// # Errors
    /// The database is broken.
    pub(crate) fn be_brief(&self) -> Result<(), RegistryError> {
        self.connection.busy_timeout(SHORT_PATIENCE).map_err(|source| self.error(source))
    }

    /// Opens the registry again if its file was deleted or replaced. The runs of a deleted file are still there, and are
    /// written again. Returns true if that was done.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn restore(&mut self) -> Result<bool, RegistryError> {
        let path = PathBuf::from(&self.path);
        let present = identity(&path);
        if present.is_some() && present == self.file {
            return Ok(false);
        }
        if present.is_none() {
            self.write_again(&path)?;
        }
        let again = Self::create(&path)?;
        again.be_brief()?;
        *self = again;
        Ok(true)
    }

    /// Writes all runs to a new file in the place of the deleted one.
    fn write_again(&mut self, path: &Path) -> Result<(), RegistryError> {
        let failed = |source| RegistryError::Deleted { path: path.display().to_string(), source };
        let [new, log, index] = [".new", "-wal", "-shm"].map(|end| format!("{}{end}", self.path));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let _earlier_attempt = fs::remove_file(&new);
        self.connection.execute("VACUUM INTO ?1", [&new]).map_err(|source| self.error(source))?;
        fs::rename(&new, path).map_err(failed)?;
        // The log and the index of the deleted file do not fit the new one.
        self.connection = Connection::open_in_memory().map_err(|source| self.error(source))?;
        for file in [log, index] {
            let _missing = fs::remove_file(file);
        }
        Ok(())
    }

    /// Marks runs without a recorded end as interrupted. Returns their number.
    ///
    /// # Errors
    /// The registry cannot be written.
    pub fn close_interrupted(&self) -> Result<usize, RegistryError> {
        let changed =
            self.connection.execute("UPDATE runs SET state = 'interrupted', good = 0 WHERE state = 'running'", []);
        changed.map_err(|source| self.error(source))
    }

    /// The latest number of a run; 0 if there is none.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub fn latest(&self) -> Result<u64, RegistryError> {
        let latest = self.connection.query_row("SELECT COALESCE(MAX(number), 0) FROM runs", [], |row| row.get(0));
        latest.map_err(|source| self.error(source))
    }

    /// Notes a run that starts.
    ///
    /// # Errors
    /// The registry cannot be written, or has a run with this number.
    pub fn begin(&self, run: &Begun) -> Result<(), RegistryError> {
        let done = self.connection.execute(
            "INSERT INTO runs (number, type, experiment, comment, state, started, host, version, seed, experiment_text, nodes)
             VALUES (?1, ?2, ?3, ?4, 'running', ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                run.number,
                run.run_type,
                run.experiment,
                run.comment,
                run.started,
                run.host,
                run.version,
                run.seed as i64,
                run.experiment_text,
                serde_json::to_string(&run.nodes).unwrap_or_default(),
            ],
        );
        done.map(drop).map_err(|source| self.error(source))
    }

    /// Notes the end of a run. Returns false if the run does not exist.
    ///
    /// # Errors
    /// The registry cannot be written.
    pub fn end(&self, number: u64, end: &Ended) -> Result<bool, RegistryError> {
        let record = &end.record;
        let bytes: u64 = record.builders.iter().map(|builder| builder.bytes).sum();
        let done = self.connection.execute(
            "UPDATE runs SET state = ?2, ended = ?3, events = ?4, event_rate_hz = ?5, bytes = ?6, good = ?7,
             stop_comment = ?8, record = ?9 WHERE number = ?1",
            params![
                number,
                end.state,
                end.ended,
                record.events.built + record.events.incomplete + record.events.rejected,
                record.event_rate_hz,
                bytes,
                record.good,
                end.comment,
                serde_json::to_string(record).unwrap_or_default(),
            ],
        );
        done.map(|changed| changed > 0).map_err(|source| self.error(source))
    }

    /// Changes the comment of a run. Returns false if the run does not exist.
    ///
    /// # Errors
    /// The registry cannot be written.
    pub fn comment(&self, number: u64, comment: &str) -> Result<bool, RegistryError> {
        let Ok(number) = i64::try_from(number) else { return Ok(false) };
        let done = self.connection.execute("UPDATE runs SET comment = ?2 WHERE number = ?1", params![number, comment]);
        done.map(|changed| changed > 0).map_err(|source| self.error(source))
    }

    /// The runs before this number, the latest first, at most `limit`.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub fn list(&self, before: Option<u64>, limit: u32) -> Result<Vec<RunRow>, RegistryError> {
        let rows = || {
            let query = format!("SELECT {COLUMNS} FROM runs WHERE number < ?1 ORDER BY number DESC LIMIT ?2");
            let mut query = self.connection.prepare(&query)?;
            let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
            query.query_map(params![before, limit], row)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        rows().map_err(|source| self.error(source))
    }

    /// All that is known about a run; `None` if the run does not exist.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub fn show(&self, number: u64) -> Result<Option<RunDetails>, RegistryError> {
        let Ok(number) = i64::try_from(number) else { return Ok(None) };
        let query = format!("SELECT {COLUMNS}, seed, experiment_text, nodes, record FROM runs WHERE number = ?1");
        let found = self.connection.query_row(&query, params![number], |found| {
            let text = |column: &str| found.get::<_, Option<String>>(column).map(Option::unwrap_or_default);
            Ok(RunDetails {
                row: row(found)?,
                seed: found.get::<_, i64>("seed")? as u64,
                experiment_text: text("experiment_text")?,
                nodes: serde_json::from_str(&text("nodes")?).unwrap_or_default(),
                record: serde_json::from_str(&text("record")?).ok(),
            })
        });
        found.optional().map_err(|source| self.error(source))
    }
}

/// Device and number of a file; `None` if it does not exist.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn row(found: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        number: found.get(0)?,
        run_type: found.get(1)?,
        experiment: found.get(2)?,
        comment: found.get(3)?,
        stop_comment: found.get(4)?,
        state: found.get(5)?,
        started: found.get(6)?,
        ended: found.get(7)?,
        events: found.get(8)?,
        event_rate_hz: found.get(9)?,
        bytes: found.get(10)?,
        good: found.get(11)?,
        verdict: found.get::<_, Option<String>>(12)?.as_deref().and_then(Outcome::from_key),
        host: found.get(13)?,
        version: found.get(14)?,
    })
}

#[cfg(test)]
mod tests;
