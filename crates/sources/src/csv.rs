//! Plain CSV files of numbers: a header line, no quotes, lines of bounded length.

use crate::SourceError;
use std::{
    io::{BufRead, Read as _},
    path::PathBuf,
    str::FromStr,
};

/// Longest line in bytes.
const LONGEST_LINE: usize = 1024;

/// Longest part of a bad line that an error shows, in characters.
const SHOWN: usize = 60;

/// The lines of a CSV file, one at a time.
pub(crate) struct Lines<R> {
    path: PathBuf,
    reader: R,
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Reads and checks the header line.
    ///
    /// # Errors
    /// When the file cannot be read or the first line is not `header`.
    pub(crate) fn open(path: PathBuf, reader: R, header: &str) -> Result<Self, SourceError> {
        let mut lines = Self { path, reader, number: 0, line: Vec::new() };
        let found = lines.advance()? && lines.text().is_some_and(|text| text.trim_start_matches('\u{feff}') == header);
        if found { Ok(lines) } else { Err(lines.expected(&format!("the header line \"{header}\""))) }
    }

    /// Goes to the next line that is not blank; `false` at the end of the file.
    ///
    /// # Errors
    /// When the file cannot be read or the line is too long.
    pub(crate) fn advance(&mut self) -> Result<bool, SourceError> {
        loop {
            self.line.clear();
            self.number += 1;
            let mut limited = self.reader.by_ref().take(LONGEST_LINE as u64 + 1);
            let read = limited.read_until(b'\n', &mut self.line);
            read.map_err(|error| SourceError::Read { path: self.path.clone(), error })?;
            if self.line.len() > LONGEST_LINE {
                return Err(self.expected(&format!("a line of at most {LONGEST_LINE} bytes")));
            }
            if self.line.is_empty() || !self.line.trim_ascii().is_empty() {
                return Ok(!self.line.is_empty());
            }
        }
    }

    /// The fields of the current line, if there are exactly `N`.
    pub(crate) fn fields<const N: usize>(&self) -> Option<[&str; N]> {
        let mut fields = self.text()?.split(',');
        let mut found = [""; N];
        for field in &mut found {
            *field = fields.next()?.trim();
        }
        fields.next().is_none().then_some(found)
    }

    /// The number of the current line, counted from 1.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The error for the current line.
    pub(crate) fn expected(&self, expected: &str) -> SourceError {
        let found = String::from_utf8_lossy(&self.line).trim_end().chars().take(SHOWN).collect();
        SourceError::Line { path: self.path.clone(), line: self.number, found, expected: expected.to_owned() }
    }

    /// A field as a number.
    ///
    /// # Errors
    /// When the field is not such a number.
    pub(crate) fn number_in<T: FromStr>(&self, field: &str, expected: &str) -> Result<T, SourceError> {
        field.parse().map_err(|_| self.expected(expected))
    }

    fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.line).ok().map(str::trim_end)
    }
}
