//! The parts of a sweep that several machines have simulated, as one.

use crate::{
    difference::first_difference,
    stored_sweep::{FolderError, StoredSweep},
    sweep_folder::SweepFolder,
};
use evb_record::{Record, RecordKind};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Most missing points that are named.
const MOST_NAMED: usize = 10;

/// Joins the folders of the parts of a sweep in a new folder. A point may be in several of them if they agree about it; the time
/// that its simulation took may differ. With `partial` points may be missing.
///
/// # Errors
/// A folder cannot be used, has another experiment than the first, or another record of a point; points are missing; or the new
/// folder has records.
pub fn merge(parts: &[PathBuf], out: &Path, partial: bool) -> Result<(), FolderError> {
    let mut whole: Option<Whole> = None;
    for folder in parts {
        let part = StoredSweep::read(folder)?.ok_or_else(|| {
            FolderError::new(folder, "there are no records", "give the folders of `evb simulate --out`")
        })?;
        match &mut whole {
            Some(whole) => whole.add(folder, part)?,
            None => whole = Some(Whole::new(folder, part)),
        }
    }
    let whole =
        whole.ok_or_else(|| FolderError::new(out, "there is nothing to merge", "give the folders of the parts"))?;
    whole.check_missing(partial)?;
    whole.write(out)
}

/// The points so far.
struct Whole {
    first: PathBuf,
    sweep: StoredSweep,
    /// The record of each point, and the folder that it is from.
    points: Vec<Option<(PathBuf, Record)>>,
}

impl Whole {
    fn new(folder: &Path, sweep: StoredSweep) -> Self {
        let mut points = vec![None; sweep.records.len()];
        for (index, record) in sweep.finished() {
            points[index] = Some((folder.to_owned(), record.clone()));
        }
        Self { first: folder.to_owned(), sweep, points }
    }

    fn add(&mut self, folder: &Path, part: StoredSweep) -> Result<(), FolderError> {
        let (there, here) = (self.first.display().to_string(), folder.display().to_string());
        let [one, other] = [&self.sweep, &part].map(StoredSweep::description);
        if let Some(difference) = first_difference((&there, &one), (&here, &other)) {
            let what = format!("it is of another experiment: {difference}");
            return Err(FolderError::new(folder, what, "merge the parts of one sweep, made by one version of evb"));
        }
        for (index, record) in part.finished() {
            match &self.points[index] {
                None => self.points[index] = Some((folder.to_owned(), record.clone())),
                Some((from, known)) => same(from, known, folder, record, &self.sweep.point(index))?,
            }
        }
        Ok(())
    }

    fn check_missing(&self, partial: bool) -> Result<(), FolderError> {
        let is_missing = |index: &usize| self.points[*index].is_none();
        let missing: Vec<_> = (0..self.points.len()).filter(is_missing).collect();
        if missing.is_empty() || partial {
            return Ok(());
        }
        let named: Vec<_> = missing.iter().take(MOST_NAMED).map(|&index| self.sweep.point(index)).collect();
        let more = missing.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let (count, all) = (missing.len(), self.points.len());
        let message = format!("{count} of {all} points are missing: {}{more}", named.join("; "));
        Err(FolderError { message, hint: "give the other parts, too, or accept it with `--partial`".into() })
    }

    fn write(self, out: &Path) -> Result<(), FolderError> {
        let kind = self.sweep.kind().unwrap_or(RecordKind::Simulation);
        let (mut folder, _) = SweepFolder::open(out, &self.sweep.experiment, kind)?;
        if folder.held() > 0 {
            return Err(FolderError::new(out, "there are records", "choose another folder"));
        }
        folder.begin()?;
        for (index, (_, record)) in (0..).zip(self.points).filter_map(|(index, point)| Some((index, point?))) {
            folder.keep(index, &record)?;
        }
        folder.finish()
    }
}

/// Refuses two records of a point that differ in more than the time that they took.
fn same(from: &Path, known: &Record, folder: &Path, record: &Record, point: &str) -> Result<(), FolderError> {
    let [known, record] = [known, record].map(timeless);
    let (there, here) = (from.display().to_string(), folder.display().to_string());
    let Some(difference) = first_difference((&there, &known), (&here, &record)) else { return Ok(()) };
    let what = format!("{point} is there with other results: {difference}");
    Err(FolderError::new(folder, what, "simulate the point again: one plan and one version of evb give one result"))
}

/// A record without the time that its simulation took.
fn timeless(record: &Record) -> Value {
    let mut record = record.clone();
    record.simulation.iter_mut().for_each(|simulation| simulation.wall_seconds = 0.0);
    serde_json::to_value(record).unwrap_or_default()
}
