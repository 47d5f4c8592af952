//! What a file of EUDAQ contains: its producers, for those who look for their names.

use super::{EudaqEvent, EudaqProducer, EudaqReader};
use crate::{SourceError, path::resolve};
use serde::Serialize;
use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

/// Most producers that are told apart.
const MOST_PRODUCERS: usize = 1024;

/// The producers of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EudaqContents {
    /// The producers, in the order in which they first occur.
    pub producers: Vec<EudaqSummary>,
    /// The reason why the file cannot be read to its end.
    pub error: Option<String>,
}

/// The events of a producer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EudaqSummary {
    /// The producer.
    pub producer: EudaqProducer,
    /// Number of its events, and their bytes.
    pub events: u64,
    /// Bytes of all its events.
    pub bytes: u64,
    /// First and last event number of the data collector.
    pub numbers: (u32, u32),
    /// First and last mark.
    pub marks: Option<(u32, u32)>,
}

impl EudaqContents {
    /// Reads a file to its end.
    ///
    /// # Errors
    /// If it cannot be opened. What is wrong in it is in [`error`](Self::error).
    pub fn of_file(file: &Path, data_directory: &Path) -> Result<Self, SourceError> {
        let path = resolve(file, data_directory)?;
        match File::open(&path) {
            Ok(file) => Ok(Self::read(BufReader::new(file))),
            Err(error) => Err(SourceError::Open { path, error }),
        }
    }

    /// Reads a file to its end.
    pub fn read(input: impl BufRead) -> Self {
        let mut contents = Self::default();
        let mut reader = EudaqReader::of_all(input);
        loop {
            match reader.next(|event| contents.add(event)) {
                Ok(true) => {}
                Ok(false) => return contents,
                Err(error) => {
                    contents.error = Some(error.to_string());
                    return contents;
                }
            }
        }
    }

    fn add(&mut self, EudaqEvent { producer, number, mark, length, .. }: EudaqEvent) {
        let known = self.producers.iter().position(|known| known.producer == producer);
        let place = known.unwrap_or(self.producers.len());
        if place >= MOST_PRODUCERS {
            return;
        }
        if known.is_none() {
            self.producers.push(EudaqSummary { producer, events: 0, bytes: 0, numbers: (number, number), marks: None });
        }
        let summary = &mut self.producers[place];
        summary.events += 1;
        summary.bytes += length;
        summary.numbers.1 = number;
        summary.marks = mark.map(|mark| (summary.marks.map_or(mark, |(first, _)| first), mark)).or(summary.marks);
    }
}
