//! The lines of a file of records.

use evb_record::PointRecord;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    ops::Range,
    path::Path,
};

/// Longest line in bytes. The record of a large network has some hundred bytes for each of its links.
const LONGEST: u64 = 1 << 30;

/// A record and its place in the file, in bytes.
pub(crate) struct Line<R> {
    pub(crate) record: R,
    pub(crate) place: Range<u64>,
}

/// The whole lines of a file; none if there is no file. What follows the last line feed is a line that was not written to its
/// end.
pub(crate) fn lines<R: PointRecord>(path: &Path) -> Result<Vec<Line<R>>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    let (mut reader, mut lines, mut begin, mut text) = (BufReader::new(file), Vec::new(), 0, Vec::new());
    loop {
        text.clear();
        let read =
            reader.by_ref().take(LONGEST).read_until(b'\n', &mut text).map_err(|error| error.to_string())? as u64;
        if text.last() != Some(&b'\n') {
            let is_long = read == LONGEST;
            return if is_long { Err(format!("line {}: too long for a record", lines.len() + 1)) } else { Ok(lines) };
        }
        let record = serde_json::from_slice(&text)
            .map_err(|error| format!("line {}: not a record of this kind: {error}", lines.len() + 1))?;
        lines.push(Line { record, place: begin..begin + read });
        begin += read;
    }
}
