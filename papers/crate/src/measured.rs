//! Measurements of hardware from the folder of a paper.

use crate::{PaperError, papers};
use evb_record::HardwareMeasurement;

/// All measurements of a paper.
pub(crate) struct Measured {
    slug: &'static str,
    all: Vec<HardwareMeasurement>,
}

impl Measured {
    /// The measurements of a paper.
    pub(crate) fn of(slug: &'static str) -> Result<Self, PaperError> {
        let wrong = |reason: String| PaperError::Measured { slug, reason };
        let paper = papers().iter().find(|paper| paper.slug == slug);
        let file = paper.and_then(|paper| paper.folder.get_file("measured.jsonl"));
        let text = file.and_then(|file| file.contents_utf8()).ok_or_else(|| wrong("it is not there".into()))?;
        let all = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        Ok(Self { slug, all: all.map_err(|error| wrong(error.to_string()))? })
    }

    /// The measurement of this name.
    pub(crate) fn get(&self, bench: &str, what: &str) -> Result<&HardwareMeasurement, PaperError> {
        let found = self.all.iter().find(|one| one.bench == bench && one.what == what);
        found.ok_or_else(|| PaperError::Measured { slug: self.slug, reason: format!("no {bench}, {what}") })
    }
}
