//! A sweep as it is stored in a folder.

use crate::{
    difference::first_difference,
    stored_lines::{Line, lines},
};
use evb_experiment::{Experiment, Plan};
use evb_node::VERSION;
use evb_record::{PointRecord, Record, RecordKind};
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
};

/// The file of the records.
pub(crate) const RECORDS: &str = "records.jsonl";
/// The file of the experiment.
pub(crate) const RESOLVED: &str = "resolved.toml";

/// The reason why a folder cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FolderError {
    /// The reason, with the path.
    pub message: String,
    /// Advice to the user.
    pub hint: String,
}

impl FolderError {
    pub(crate) fn new(path: &Path, message: impl std::fmt::Display, hint: impl Into<String>) -> Self {
        Self { message: format!("{}: {message}", path.display()), hint: hint.into() }
    }

    pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Self {
        let hint = "check the path, the free space and `ulimit -f`".to_owned();
        Self { message: format!("cannot write {}: {error}", path.display()), hint }
    }
}

pub(crate) const ANOTHER: &str = "choose another folder, or remove this one";

/// A sweep as it is stored. Reading it changes nothing, so that it may go on meanwhile.
pub struct StoredSweep<R = Record> {
    folder: PathBuf,
    /// The experiment of all points.
    pub experiment: Experiment,
    /// The record of each point, by its index in the sweep.
    pub records: Vec<Option<R>>,
    /// The lines of the records in the file.
    pub(crate) lines: Vec<Option<Range<u64>>>,
}

impl<R: PointRecord> StoredSweep<R> {
    /// Reads a folder; `None` if it has no records. A torn last line is not there.
    ///
    /// # Errors
    /// The folder cannot be read, or is not that of a sweep.
    pub fn read(folder: &Path) -> Result<Option<Self>, FolderError> {
        let path = folder.join(RECORDS);
        let found = lines(&path).map_err(|why| FolderError::new(&path, why, ANOTHER))?;
        if found.is_empty() {
            return Ok(None);
        }
        let experiment = read_experiment(folder)?;
        let count = experiment.plans().len();
        let mut stored =
            Self { folder: folder.to_owned(), experiment, records: vec![None; count], lines: vec![None; count] };
        stored.place(found)?;
        Ok(Some(stored))
    }

    /// The records of the points whose work came to its end, by the index of the point.
    pub fn finished(&self) -> impl Iterator<Item = (usize, &R)> {
        let there = (0..).zip(&self.records).filter_map(|(index, record)| Some((index, record.as_ref()?)));
        there.filter(|(_, record)| record.is_finished())
    }

    /// The kind of its records. Simulations and runs of one experiment are two sweeps.
    pub(crate) fn kind(&self) -> Option<RecordKind> {
        self.records.iter().flatten().map(PointRecord::kind).next()
    }

    /// What must be the same of two folders with parts of one sweep: the experiment, the kind of records, and the version of evb.
    pub(crate) fn description(&self) -> Value {
        let version = self.records.iter().flatten().map(PointRecord::version).next();
        let experiment = tree(&self.experiment.resolved());
        serde_json::json!({ "version of evb": version, "kind": self.kind(), "experiment": experiment })
    }

    /// A point in words.
    pub(crate) fn point(&self, index: usize) -> String {
        written(&self.experiment.plans()[index].sweep)
    }

    /// Leaves out the points whose work did not come to its end.
    pub(crate) fn without_unfinished(mut self) -> Self {
        for (record, line) in self.records.iter_mut().zip(&mut self.lines) {
            if record.as_ref().is_some_and(|record| !record.is_finished()) {
                (*record, *line) = (None, None);
            }
        }
        self
    }

    /// Gives each line to its point. Points with the same values are the same, and take their lines in turn.
    fn place(&mut self, lines: Vec<Line<R>>) -> Result<(), FolderError> {
        let mut open: BTreeMap<BTreeMap<String, String>, VecDeque<usize>> = BTreeMap::new();
        for (index, plan) in self.experiment.plans().iter().enumerate() {
            open.entry(values(plan)).or_default().push_back(index);
        }
        let path = self.folder.join(RECORDS);
        for (number, Line { record, place }) in (1..).zip(lines) {
            let index = open.get_mut(record.sweep()).and_then(VecDeque::pop_front).ok_or_else(|| {
                let what = format!("line {number}: {} is no open point of {RESOLVED} beside it", point(record.sweep()));
                FolderError::new(&path, what, "choose another folder, or remove the line")
            })?;
            self.records[index] = Some(record);
            self.lines[index] = Some(place);
        }
        Ok(())
    }

    /// The same records as points of `experiment`, which may have more points. They must be of this kind.
    pub(crate) fn taken_by(self, experiment: &Experiment, kind: RecordKind) -> Result<Self, FolderError> {
        let another = |why: String| {
            FolderError::new(&self.folder, format!("it holds the points of another experiment: {why}"), ANOTHER)
        };
        let kinds = [self.kind(), Some(kind)].map(|kind| serde_json::json!({ "kind": kind }));
        if let Some(told) = first_difference(("it", &kinds[0]), ("this one", &kinds[1])) {
            return Err(another(told));
        }
        if let Some(record) = self.records.iter().flatten().find(|record| record.version() != VERSION) {
            return Err(another(format!("they are of evb {}, and this is evb {VERSION}", record.version())));
        }
        let count = experiment.plans().len();
        let (mut records, mut lines) = (vec![None; count], vec![None; count]);
        for (index, record) in self.records.iter().enumerate().filter(|(_, record)| record.is_some()) {
            let plan = &self.experiment.plans()[index];
            let same = |&at: &usize| records[at].is_none() && experiment.plans()[at] == *plan;
            let at = (0..count).find(same).ok_or_else(|| another(self.difference(index, experiment)))?;
            (records[at], lines[at]) = (record.clone(), self.lines[index].clone());
        }
        Ok(Self { folder: self.folder, experiment: experiment.clone(), records, lines })
    }

    /// The reason why a point is none of `experiment`.
    fn difference(&self, index: usize, experiment: &Experiment) -> String {
        let plan = &self.experiment.plans()[index];
        let there = self.experiment.resolved_at(index).map(|text| tree(&text));
        let same_values = experiment.plans().iter().position(|other| values(other) == values(plan));
        let here = same_values.and_then(|at| experiment.resolved_at(at)).map(|text| tree(&text));
        let told = there.zip(here).and_then(|(there, here)| first_difference(("it", &there), ("this one", &here)));
        told.unwrap_or_else(|| format!("this one has no point {}", written(&plan.sweep)))
    }
}

/// The tree of a resolved experiment.
fn tree(text: &str) -> Value {
    toml::from_str(text).unwrap_or_default()
}

fn read_experiment(folder: &Path) -> Result<Experiment, FolderError> {
    let path = folder.join(RESOLVED);
    let text = fs::read_to_string(&path).map_err(|error| {
        let why = format!("{error}; it must say what {RECORDS} beside it are the points of");
        FolderError::new(&path, why, "choose a folder that `evb simulate --out` has written, or another one")
    })?;
    Experiment::parse(&text, RESOLVED, &[])
        .map_err(|error| FolderError::new(&path, error, "it was written by another version, or changed"))
}

/// The swept keys and values of a plan, as its record has them.
fn values(plan: &Plan) -> BTreeMap<String, String> {
    plan.sweep.iter().cloned().collect()
}

/// A point in words.
fn point(sweep: &BTreeMap<String, String>) -> String {
    written(&sweep.iter().map(|(key, value)| (key.clone(), value.clone())).collect::<Vec<_>>())
}

fn written(sweep: &[(String, String)]) -> String {
    let pairs: Vec<_> = sweep.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if pairs.is_empty() { "the only point".to_owned() } else { pairs.join(" ") }
}
