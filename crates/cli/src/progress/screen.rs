//! Standard error as a terminal on which lines of progress leave nothing behind.
//!
//! By itself, a line of progress is filled up to the end of its row, so that the next one begins a new row. What the terminal shows of
//! Ctrl-C goes to the next row then, and the row above stays for good. Here rows end where their text does, with room for that.

use indicatif::TermLike;
use std::{
    io::{self, Write},
    sync::Mutex,
};

/// Columns that are left free at the end of a row: `^C` and the cursor.
const FREE: u16 = 3;
/// Columns of a terminal that does not tell.
const COLUMNS: u16 = 80;

/// What is written to the terminal, gathered until it is flushed.
#[derive(Debug, Default)]
pub(super) struct Screen(Mutex<Gathered>);

#[derive(Debug, Default)]
struct Gathered {
    text: String,
    /// What comes next is in a row of its own.
    ends_row: bool,
}

/// Columns that a line of progress may have.
pub(super) fn columns() -> u16 {
    terminal_size::terminal_size_of(io::stderr()).map_or(COLUMNS, |(width, _)| width.0).saturating_sub(FREE).max(1)
}

impl Screen {
    /// Adds something that moves the cursor, or a text in the row where that is.
    fn write(&self, text: &str) -> io::Result<()> {
        let mut gathered = self.0.lock().expect("nobody panics with it");
        gathered.text.push_str(text);
        gathered.ends_row = false;
        Ok(())
    }

    /// Moves the cursor by so many rows or columns; no number would mean one.
    fn go(&self, count: usize, direction: char) -> io::Result<()> {
        if count > 0 { self.write(&format!("\x1b[{count}{direction}")) } else { Ok(()) }
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        columns()
    }

    fn move_cursor_up(&self, count: usize) -> io::Result<()> {
        self.go(count, 'A')
    }

    fn move_cursor_down(&self, count: usize) -> io::Result<()> {
        self.go(count, 'B')
    }

    fn move_cursor_right(&self, count: usize) -> io::Result<()> {
        self.go(count, 'C')
    }

    fn move_cursor_left(&self, count: usize) -> io::Result<()> {
        self.go(count, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write(text)?;
        self.write("\n")
    }

    /// A text of spaces alone is what would fill a row.
    fn write_str(&self, text: &str) -> io::Result<()> {
        let mut gathered = self.0.lock().expect("nobody panics with it");
        let fills = text.bytes().all(|byte| byte == b' ');
        if !fills && gathered.ends_row {
            gathered.text.push_str("\r\n");
        }
        gathered.text.push_str(if fills { "" } else { text });
        gathered.ends_row = fills;
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        let gathered = std::mem::take(&mut *self.0.lock().expect("nobody panics with it"));
        io::stderr().write_all(gathered.text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_where_their_text_does() {
        let screen = Screen::default();
        for text in ["one", "     ", "two", "  "] {
            screen.write_str(text).unwrap();
        }
        screen.move_cursor_up(1).unwrap();
        screen.move_cursor_up(0).unwrap();
        screen.clear_line().unwrap();
        screen.write_str("three").unwrap();
        assert_eq!(screen.0.lock().unwrap().text, "one\r\ntwo\x1b[1A\r\x1b[2Kthree");
    }
}
