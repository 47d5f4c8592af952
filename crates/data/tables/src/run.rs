//! What the table says of the run, and the names of its sources.

use crate::TableError;
use arrow_array::{ArrayRef, StringArray};
use evb_core::SourceId;
use evb_events::{Metadata, Reader};
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::Arc,
};

/// The metadata of the files, which are of one run; `None` if those of all files are damaged.
///
/// # Errors
/// [`TableError::Read`], and [`TableError::Runs`].
pub(crate) fn metadata<P: AsRef<Path>>(paths: &[P]) -> Result<Option<Metadata>, TableError> {
    let mut first: Option<(&Path, Metadata)> = None;
    for path in paths.iter().map(AsRef::as_ref) {
        let reader = Reader::open(path)?;
        match (&first, reader.metadata()) {
            (None, Some(metadata)) => first = Some((path, metadata.clone())),
            (Some((name, metadata)), Some(other)) if run(metadata) != run(other) => {
                return Err(TableError::Runs { first: name.to_path_buf(), other: path.to_path_buf() });
            }
            _ => {}
        }
    }
    Ok(first.map(|(_, metadata)| metadata))
}

/// What tells two runs apart.
fn run(metadata: &Metadata) -> (&str, u64, u64) {
    (&metadata.experiment, metadata.run, metadata.start)
}

/// What the table says of the run, by name.
pub(crate) fn described(metadata: &Metadata) -> HashMap<String, String> {
    let pairs = [
        ("evb.run", metadata.run.to_string()),
        ("evb.seed", metadata.seed.to_string()),
        ("evb.version", metadata.version.clone()),
        ("evb.start", metadata.start.to_string()),
        ("evb.run_type", metadata.run_type.clone()),
        ("evb.comment", metadata.comment.clone()),
        ("evb.clock", metadata.clock.clone()),
        ("evb.experiment", metadata.experiment.clone()),
        ("evb.text", metadata.text.clone()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The names of the sources. Several sources may have one name; each name is in the list once.
pub(crate) struct SourceNames {
    pub(crate) names: ArrayRef,
    /// Place of the name in the list, by source.
    places: Vec<i32>,
}

impl SourceNames {
    pub(crate) fn new(sources: &[String]) -> Self {
        let (mut names, mut known) = (Vec::new(), BTreeMap::new());
        let place = |name| {
            *known.entry(name).or_insert_with(|| {
                names.push(name);
                names.len() as i32 - 1
            })
        };
        let places = sources.iter().map(String::as_str).map(place).collect();
        Self { names: Arc::new(StringArray::from_iter_values(names)), places }
    }

    /// Place of the name of a source in the list; `None` if the source has no name.
    pub(crate) fn place(&self, source: SourceId) -> Option<i32> {
        self.places.get(usize::from(source.0)).copied()
    }
}
