//! Standard error as a terminal on which lines of progress leave nothing behind.
//!
//! A line of progress is usually filled up to the end of its row, so that the next one begins a new row. The echo of
//! Ctrl-C then goes to the next row, and the row above stays for good. Here rows end with their text, with room for the
//! echo.

use indicatif::TermLike;
use std::{
    io::{self, Write},
    sync::Mutex,
};

/// Columns that are left free at the end of a row: `^C` and the cursor.
const FREE: u16 = 3;
/// Columns of a terminal of unknown width.
const COLUMNS: u16 = 80;

/// Text for the terminal, gathered until it is flushed.
#[derive(Debug, Default)]
pub(super) struct Screen(Mutex<Gathered>);

#[derive(Debug, Default)]
struct Gathered {
    text: String,
    /// The next text goes into its own row.
    ends_row: bool,
}

/// Columns that a line of progress may have.
pub(super) fn columns() -> u16 {
    terminal_size::terminal_size_of(io::stderr()).map_or(COLUMNS, |(width, _)| width.0).saturating_sub(FREE).max(1)
}

impl Screen {
    /// Adds a movement of the cursor, or a text in its row.
    fn write(&self, text: &str) -> io::Result<()> {
        let mut gathered = self.0.lock().expect("no thread panics while it holds the lock");
        gathered.text.push_str(text);
        gathered.ends_row = false;
        Ok(())
    }

    /// Moves the cursor by `count` rows or columns. A terminal takes a count of 0 for 1, so that is left out.
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

    /// Adds a text. A text of spaces alone would fill a row, and is left out.
    fn write_str(&self, text: &str) -> io::Result<()> {
        let mut gathered = self.0.lock().expect("no thread panics while it holds the lock");
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
        let gathered = std::mem::take(&mut *self.0.lock().expect("no thread panics while it holds the lock"));
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
