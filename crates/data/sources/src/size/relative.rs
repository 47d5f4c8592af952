//! The size model of a large experiment. All sources of an event share one relative event size. Every source has its
//! own mean size as a function of it, and fluctuates by itself.

use crate::{SourceError, csv::Lines, draw::LogNormal};
use std::{io::BufRead, path::PathBuf};

const HEADER: &str = "FED,offset,slope,square,rms";
const ROW: &str = "FED,offset,slope,square,rms: a FED id from 0 and four numbers, rms not below 0";

/// One row of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    /// Mean size in bytes at a relative event size of 0.
    pub(crate) offset: f64,
    /// Bytes per relative event size.
    pub(crate) slope: f64,
    /// Bytes per relative event size squared.
    pub(crate) square: f64,
    /// Relative rms of the source's own fluctuation, log-normal.
    pub(crate) rms: f64,
}

/// The size model of one source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relative {
    row: Row,
    event_size: LogNormal,
    own: LogNormal,
}

impl Relative {
    pub(crate) fn new(row: Row, event_size: LogNormal, own_key: u64) -> Self {
        Self { row, event_size, own: LogNormal::new(own_key, 1.0, row.rms) }
    }

    /// (offset + slope x + square x^2) times the source's own fluctuation, in bytes.
    pub(crate) fn size(&self, event: u64) -> f64 {
        let x = self.event_size.draw(event);
        (self.row.offset + x * (self.row.slope + x * self.row.square)) * self.own.draw(event)
    }
}

/// Reads the row of `fed`, or the `unit`-th row (from 0) if none is named. Every row is checked.
///
/// # Errors
/// If the file cannot be read, a line is bad, or the row does not exist.
pub(crate) fn read_model(path: PathBuf, reader: impl BufRead, fed: Option<u64>, unit: u16) -> Result<Row, SourceError> {
    let mut lines = Lines::open(path.clone(), reader, HEADER)?;
    let (mut chosen, mut rows) = (None, 0_u64);
    while lines.advance()? {
        let (id, row) = parse_row(&lines)?;
        let wanted = fed.map_or(rows == u64::from(unit), |fed| id == fed);
        if wanted && chosen.replace(row).is_some() {
            return Err(lines.expected(&format!("one row for FED {id}, this is the second")));
        }
        rows += 1;
    }
    chosen.ok_or_else(|| {
        let by_index = || format!("readout unit {unit}: it has {rows} rows, counted from 0");
        SourceError::NoRow { path, wanted: fed.map_or_else(by_index, |fed| format!("FED {fed}")) }
    })
}

fn parse_row<R: BufRead>(lines: &Lines<R>) -> Result<(u64, Row), SourceError> {
    let [fed, offset, slope, square, rms] = lines.fields().ok_or_else(|| lines.expected(ROW))?;
    let number = |field: &str| {
        let value = lines.number_in::<f64>(field, ROW)?;
        if value.is_finite() { Ok(value) } else { Err(lines.expected(ROW)) }
    };
    let row = Row { offset: number(offset)?, slope: number(slope)?, square: number(square)?, rms: number(rms)? };
    if row.rms < 0.0 {
        return Err(lines.expected(ROW));
    }
    Ok((lines.number_in(fed, ROW)?, row))
}
