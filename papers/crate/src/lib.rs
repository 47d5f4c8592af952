//! Published values of papers, and their reproduction from simulations.
//!
//! The folder `papers/<slug>/` of a paper holds its published values (`published.toml`), experiment files, measurements
//! of hardware if there are any (`measured.jsonl`), and a README. This crate defines which number of which experiment
//! reproduces which item. [`Paper::report`] makes a [`PaperReport`] of the records of all experiments of a paper;
//! nothing is simulated here.

mod class;
mod finding;
mod fit;
mod item;
mod measured;
mod papers;
mod parameter;
mod published;
mod report_builder;
mod results;
mod sensitivity;

use evb_experiment::{Diagnostics, Experiment};
use evb_record::{PaperItem, PaperReport, Sensitivity};
use include_dir::Dir;
pub use parameter::Parameter;
use published::Published;
use report_builder::ReportBuilder;
pub use results::Results;

/// One paper.
pub struct Paper {
    /// The name of its folder.
    pub slug: &'static str,
    /// The files of its folder, as they were at compile time.
    folder: Dir<'static>,
    reproduce: fn(&Results, &mut ReportBuilder) -> Result<(), PaperError>,
}

/// The reason why a paper cannot be reported. All but a missing experiment are errors in its folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaperError {
    /// Invalid published values.
    #[error("papers/{slug}/published.toml: {reason}")]
    Published {
        /// The paper.
        slug: &'static str,
        /// The reason.
        reason: String,
    },
    /// The records do not have the point.
    #[error("no record of {experiment} {point}")]
    NoRecord {
        /// The experiment.
        experiment: String,
        /// The point of its sweep.
        point: String,
    },
    /// An item was computed that is not published, or computed twice.
    #[error("{name} is not in published.toml, or is there already")]
    Unknown {
        /// The item, table column or figure.
        name: String,
    },
    /// A measurement of hardware is missing or invalid.
    #[error("papers/{slug}/measured.jsonl: {reason}")]
    Measured {
        /// The paper.
        slug: &'static str,
        /// The reason.
        reason: String,
    },
    /// The stored results are invalid, or of other items.
    #[error("papers/{slug}/expected.jsonl: {reason}")]
    Stored {
        /// The paper.
        slug: &'static str,
        /// The reason.
        reason: String,
    },
    /// The stored sensitivity is invalid.
    #[error("papers/{slug}/sensitivity.jsonl: {reason}")]
    Sensitivity {
        /// The paper.
        slug: &'static str,
        /// The reason.
        reason: String,
    },
    /// A published item was not computed, or one that is not modelled was.
    #[error("{name} is published, but nothing was computed for it; or it is not modelled, and something was")]
    Missing {
        /// The item, table column or figure.
        name: String,
    },
}

/// All papers, in the order of their slugs.
pub fn papers() -> &'static [Paper] {
    papers::ALL
}

impl Paper {
    /// The experiments of the paper, by the stems of their file names. Each of `overrides` is a text `key.path=value`.
    ///
    /// # Errors
    /// An override does not fit one of the experiments.
    pub fn experiments(&self, overrides: &[String]) -> Result<Vec<(String, Experiment)>, Diagnostics> {
        self.experiments_of(overrides, |_| true)
    }

    /// The experiments whose names are wanted, as all of them.
    ///
    /// # Errors
    /// An override does not fit one of the experiments.
    pub fn experiments_of(
        &self,
        overrides: &[String],
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<(String, Experiment)>, Diagnostics> {
        let files = self.folder.files();
        let mut experiments = Vec::new();
        for file in files {
            let path = file.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let is_experiment = path.extension().is_some_and(|extension| extension == "toml") && stem != "published";
            let is_experiment = is_experiment && is_wanted(&stem);
            if let Some(text) = file.contents_utf8().filter(|_| is_experiment) {
                let name = format!("papers/{}/{}", self.slug, path.display());
                experiments.push((stem, Experiment::parse(text, &name, overrides)?));
            }
        }
        Ok(experiments)
    }

    /// Checks the published values, before the simulations.
    ///
    /// # Errors
    /// A published value is invalid.
    pub fn check(&self) -> Result<(), PaperError> {
        self.published().map(drop)
    }

    /// The report, from the records of all experiments.
    ///
    /// # Errors
    /// A record is missing, or the folder of the paper is invalid.
    pub fn report(&self, results: &Results, version: &str) -> Result<PaperReport, PaperError> {
        let mut report = ReportBuilder::new(self.slug, self.published()?, results.seed(), version);
        (self.reproduce)(results, &mut report)?;
        report.finish(&self.stored_sensitivity()?)
    }

    /// The report of the results in the folder of the paper, without tables and figures.
    ///
    /// # Errors
    /// The folder is invalid, or its results are not of its published values.
    pub fn stored_report(&self) -> Result<PaperReport, PaperError> {
        let published = self.published()?;
        let wrong = |reason: String| PaperError::Stored { slug: self.slug, reason };
        let text = self.text("expected.jsonl").ok_or_else(|| wrong("it is not there".into()))?;
        let parse = |line| serde_json::from_str(line).map_err(|error| wrong(error.to_string()));
        let items = text.lines().map(parse).collect::<Result<Vec<PaperItem>, _>>()?;
        let names = published.items.iter().map(|item| &item.name);
        if !names.eq(items.iter().map(|item| &item.item)) {
            return Err(wrong("published.toml has other items: `UPDATE_PAPERS=1 cargo xtask papers`".into()));
        }
        Ok(PaperReport {
            slug: self.slug.to_owned(),
            findings: finding::findings(&published, &items),
            title: published.title,
            year: published.year,
            items,
            tables: Vec::new(),
            figures: Vec::new(),
        })
    }

    /// The parameters of the experiments.
    ///
    /// # Errors
    /// A published value is invalid.
    pub fn parameters(&self) -> Result<Vec<Parameter>, PaperError> {
        Ok(self.published()?.parameters)
    }

    /// The sensitivity in the folder of the paper, from which the classes follow; empty if there is none yet.
    ///
    /// # Errors
    /// A line is not a record.
    pub fn stored_sensitivity(&self) -> Result<Vec<Sensitivity>, PaperError> {
        let wrong = |reason: String| PaperError::Sensitivity { slug: self.slug, reason };
        let text = self.text("sensitivity.jsonl").unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).map_err(|error| wrong(error.to_string()))).collect()
    }

    fn published(&self) -> Result<Published, PaperError> {
        let wrong = |reason: String| PaperError::Published { slug: self.slug, reason };
        let text = self.text("published.toml").ok_or_else(|| wrong("it is not there".into()))?;
        Published::parse(text).map_err(wrong)
    }

    /// The text of a file in the folder.
    fn text(&self, file: &str) -> Option<&'static str> {
        self.folder.get_file(file)?.contents_utf8()
    }
}
