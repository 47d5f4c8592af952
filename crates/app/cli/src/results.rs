//! Folders of sweeps: their records, and the tables and plots. They are made from the records, so they can be made again at any time.

use crate::{
    commands::compare::percent,
    failure::Failure,
    folder::{unwritable, write_table},
    terminal::agrees,
};
use clap::Args;
use evb::{Experiment, Plan, Record, SweepFolder, Until};
use evb_record::{PointRecord, RecordKind, Twin};
use evb_report::Plot;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The options of the folder of a sweep.
#[derive(Args, Clone)]
pub(crate) struct FolderArgs {
    /// Write records, tables as CSV and Parquet, and plots as SVG into this folder: each record as soon as its point has ended, the
    /// others at the end
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the folder of --out: only the points whose records are not there
    #[arg(long, requires = "out")]
    pub(crate) resume: bool,
}

/// The folder of a sweep, if there is one, and the records of the points that are there.
pub(crate) type OpenFolder<R> = (Option<SweepFolder<R>>, Vec<Option<R>>);

impl FolderArgs {
    /// The folder for records of a kind, if there is one, and the records of the points that are there. Records are not overwritten,
    /// and are taken for this sweep only if somebody says so.
    pub(crate) fn open<R: PointRecord>(
        &self,
        experiment: &Experiment,
        kind: RecordKind,
    ) -> Result<OpenFolder<R>, Failure> {
        let Some(path) = &self.out else { return Ok((None, vec![None; experiment.plans().len()])) };
        let (mut folder, known) = SweepFolder::open(path, experiment, kind)?;
        let (held, all) = (known.iter().flatten().count(), known.len());
        if folder.held() > 0 && !self.resume {
            let holds = format!("{} holds the records of {held} of {all} points of this experiment", path.display());
            if !agrees(&format!("{holds}. Go on with it?")) {
                return Err(Failure::with_hint(holds, "go on with `--resume`, or choose another folder"));
            }
        }
        folder.begin()?;
        Ok((Some(folder), known))
    }
}

/// The option that ends replicates.
#[derive(Args)]
pub(crate) struct UntilArgs {
    /// Leave out further seeds of a combination of swept keys, after three, when the 95 % interval of the mean event rate is less
    /// than this to either side
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    until: Option<f64>,
}

impl UntilArgs {
    pub(crate) fn of(&self, plans: &[Plan]) -> Option<Until> {
        self.until.map(|part| Until::new(plans, part))
    }
}

/// The options of plots.
#[derive(Args, Default)]
pub(crate) struct PlotArgs {
    /// Draw the plots against this swept key; by default a size, or else the first one with numbers
    #[arg(long = "x", value_name = "KEY")]
    axis: Option<String>,
}

impl PlotArgs {
    /// Refuses a key that cannot be an axis, before the work is done.
    pub(crate) fn check(&self, plans: &[Plan]) -> Result<(), Failure> {
        let Some(key) = self.axis.as_deref() else { return Ok(()) };
        let values = |key: &str| -> Vec<&str> {
            let swept = plans.iter().flat_map(|plan| &plan.sweep);
            swept.filter(|(swept, _)| swept == key).map(|(_, value)| value.as_str()).collect()
        };
        if evb_report::is_axis(key, &values(key)) {
            return Ok(());
        }
        let mut axes: Vec<_> = plans.iter().flat_map(|plan| &plan.sweep).map(|(key, _)| key.as_str()).collect();
        axes.sort_unstable();
        axes.dedup();
        axes.retain(|key| evb_report::is_axis(key, &values(key)));
        let hint = match axes.is_empty() {
            true => "no swept key has numbers: leave out --x".to_owned(),
            false => format!("one of: {}", axes.join(", ")),
        };
        Err(Failure::with_hint(format!("--x {key}: not a swept key with several numbers of one unit"), hint))
    }
}

/// Writes all tables and plots into a folder.
pub(crate) fn write_results(folder: &Path, records: &[Record], how: &PlotArgs) -> Result<(), Failure> {
    write_table(folder, "points", &evb_report::csv(records))?;
    write_table(folder, "links", &evb_report::links_csv(records))?;
    if let Some(groups) = evb_report::groups_csv(records) {
        write_table(folder, "groups", &groups)?;
    }
    let plots = match &how.axis {
        Some(key) => evb_report::plots_along(records, key),
        None => evb_report::plots(records),
    };
    write_plots(folder, plots)
}

/// The same of runs beside their simulation.
pub(crate) fn write_twins(folder: &Path, twins: &[Twin], how: &PlotArgs) -> Result<(), Failure> {
    write_table(folder, "points", &evb_report::twin_csv(twins))?;
    let plots = match &how.axis {
        Some(key) => evb_report::twin_plots_along(twins, key),
        None => evb_report::twin_plots(twins),
    };
    write_plots(folder, plots)
}

fn write_plots(folder: &Path, plots: Vec<Plot>) -> Result<(), Failure> {
    for plot in plots {
        let path = folder.join(format!("{}.svg", plot.name));
        fs::write(&path, plot.svg).map_err(|error| unwritable(&path, &error))?;
    }
    Ok(())
}
