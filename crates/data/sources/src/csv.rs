//! CSV files of numbers as written by hand: a header line, then one row per line. Spaces around fields, quotes, commas
//! at the end, empty lines and lines that begin with `#` are ignored. Lines have a bounded length.

use crate::SourceError;
use std::{
    io::{BufRead, Read as _},
    path::PathBuf,
    str::FromStr,
};

/// Longest line in bytes.
const LONGEST_LINE: usize = 1024;

/// The byte order mark, which editors write at the beginning of a UTF-8 file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

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
    /// If the file cannot be read or the first line is not `header`.
    pub(crate) fn open(path: PathBuf, reader: R, header: &str) -> Result<Self, SourceError> {
        let mut lines = Self { path, reader, number: 0, line: Vec::new() };
        let found = lines.advance()? && lines.is_header(header);
        if found { Ok(lines) } else { Err(lines.expected(&format!("the header line \"{header}\""))) }
    }

    /// Goes to the next line that is neither blank nor a comment; returns false at the end of the file.
    ///
    /// # Errors
    /// If the file cannot be read or the line is too long.
    pub(crate) fn advance(&mut self) -> Result<bool, SourceError> {
        loop {
            self.line.clear();
            self.number += 1;
            let mut limited = self.reader.by_ref().take(LONGEST_LINE as u64 + 1);
            let read = limited.read_until(b'\n', &mut self.line);
            let read = read.map_err(|error| SourceError::Read { path: self.path.clone(), error })?;
            if self.line.len() > LONGEST_LINE {
                return Err(self.expected(&format!("a line of at most {LONGEST_LINE} bytes")));
            }
            if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
                self.line.drain(..BYTE_ORDER_MARK.len());
            }
            let is_row = !matches!(self.line.trim_ascii().first(), None | Some(b'#'));
            if is_row || read == 0 {
                return Ok(is_row);
            }
        }
    }

    /// The fields of the current line, if there are exactly `N`.
    pub(crate) fn fields<const N: usize>(&self) -> Option<[&str; N]> {
        let mut fields = self.all_fields()?;
        let mut found = [""; N];
        for field in &mut found {
            *field = fields.next()?;
        }
        fields.all(str::is_empty).then_some(found)
    }

    fn is_header(&self, header: &str) -> bool {
        let Some(mut fields) = self.all_fields() else { return false };
        let named = header.split(',').all(|name| fields.next().is_some_and(|field| field.eq_ignore_ascii_case(name)));
        named && fields.all(str::is_empty)
    }

    /// The fields of the current line without spaces and quotes. Numbers contain no comma, so quotes protect nothing.
    fn all_fields(&self) -> Option<impl Iterator<Item = &str>> {
        Some(self.text()?.split(',').map(unquoted))
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
    /// If the field is not such a number.
    pub(crate) fn number_in<T: FromStr>(&self, field: &str, expected: &str) -> Result<T, SourceError> {
        field.parse().map_err(|_| self.expected(expected))
    }

    fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.line).ok().map(str::trim_end)
    }
}

fn unquoted(field: &str) -> &str {
    let field = field.trim();
    let inside = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.map_or(field, str::trim)
}
