//! Sizes from a list: a CSV trace, or the lengths of recorded fragments.

use crate::{SourceError, csv::Lines};
use std::{io::BufRead, path::PathBuf};

const HEADER: &str = "event,source,bytes";
const ROW: &str = "event,source,bytes: an event from 1, a source from 0 and a size in bytes";

/// Most rows of one source that are held in memory, at 16 bytes each.
const MAX_ROWS: usize = 1 << 24;

/// The sizes of one source, sorted by event.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    sizes: Box<[(u64, u32)]>,
    last_event: u64,
    /// Position of the next event, if events are requested in order.
    next: usize,
}

impl Trace {
    /// A trace of sizes that are sorted by event.
    pub(crate) fn new(sizes: Box<[(u64, u32)]>, last_event: u64) -> Self {
        debug_assert!(sizes.is_sorted_by(|a, b| a.0 < b.0));
        Self { sizes, last_event, next: 0 }
    }

    /// The size for `event`, if there is one.
    pub(crate) fn size(&mut self, event: u64) -> Option<u32> {
        if self.sizes.get(self.next).is_none_or(|&(found, _)| found != event) {
            self.next = self.sizes.binary_search_by_key(&event, |&(found, _)| found).ok()?;
        }
        let (_, bytes) = self.sizes[self.next];
        self.next += 1;
        Some(bytes)
    }

    /// The last event of any source.
    pub(crate) const fn last_event(&self) -> u64 {
        self.last_event
    }
}

struct Row {
    event: u64,
    bytes: u32,
    line: u32,
}

/// Reads the sizes of `source`; rows may come in any order, and every row is checked.
///
/// # Errors
/// If the file cannot be read, a line is bad, a size is above `limit`, an event occurs twice, or the source has no row
/// or too many.
pub(crate) fn read_trace(path: PathBuf, reader: impl BufRead, source: u64, limit: u32) -> Result<Trace, SourceError> {
    let mut lines = Lines::open(path.clone(), reader, HEADER)?;
    let (mut rows, mut last_event) = (Vec::new(), 0);
    while lines.advance()? {
        let (event, of, bytes) = parse_row(&lines, limit)?;
        last_event = last_event.max(event);
        if of != source {
            continue;
        }
        if rows.len() == MAX_ROWS {
            return Err(SourceError::TooManyRows { path, limit: MAX_ROWS });
        }
        // A line number that does not fit is wrong in an error message only.
        rows.push(Row { event, bytes, line: lines.number() as u32 });
    }
    if rows.is_empty() {
        return Err(SourceError::NoRow { path, wanted: format!("source {source}") });
    }
    rows.sort_by_key(|row| row.event);
    refuse_duplicates(&path, &rows, source)?;
    Ok(Trace::new(rows.into_iter().map(|row| (row.event, row.bytes)).collect(), last_event))
}

fn parse_row<R: BufRead>(lines: &Lines<R>, limit: u32) -> Result<(u64, u64, u32), SourceError> {
    let [event, source, bytes] = lines.fields().ok_or_else(|| lines.expected(ROW))?;
    let event = lines.number_in(event, ROW)?;
    let (source, bytes) = (lines.number_in(source, ROW)?, lines.number_in::<u64>(bytes, ROW)?);
    if event == 0 {
        return Err(lines.expected(ROW));
    }
    match u32::try_from(bytes) {
        Ok(bytes) if bytes <= limit => Ok((event, source, bytes)),
        _ => Err(lines.expected(&format!("at most {limit} bytes, the largest fragment"))),
    }
}

fn refuse_duplicates(path: &std::path::Path, rows: &[Row], source_id: u64) -> Result<(), SourceError> {
    let Some(pair) = rows.windows(2).find(|pair| pair[0].event == pair[1].event) else {
        return Ok(());
    };
    let (first, line) = (u64::from(pair[0].line), u64::from(pair[1].line));
    Err(SourceError::Duplicate { path: path.to_owned(), line, first, event: pair[1].event, source_id })
}
