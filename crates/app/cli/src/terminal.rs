//! Properties of the terminal of standard output: width and colours.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use std::{
    borrow::Cow,
    io::{self, IsTerminal as _, Read as _, Write as _},
};

/// Largest number of columns of a table, however wide the terminal is.
const WIDEST: usize = 1000;
/// Beginnings of lines that are verdicts, with their colours.
const VERDICTS: [(&str, AnsiColor); 3] =
    [("good: ", AnsiColor::Green), ("not good: ", AnsiColor::Red), ("cannot tell: ", AnsiColor::Yellow)];
/// Ends of table rows that are verdicts, with their colours.
const ENDS: [(&str, AnsiColor); 6] = [
    ("! slower", AnsiColor::Red),
    ("! missing", AnsiColor::Red),
    ("! not good", AnsiColor::Red),
    ("OUTSIDE", AnsiColor::Red),
    ("cannot tell", AnsiColor::Yellow),
    ("faster", AnsiColor::Green),
];

/// Columns for tables: those of a wide terminal, [`NARROW`](evb_report::NARROW) ones everywhere else.
pub(crate) fn width() -> usize {
    let columns = terminal_size::terminal_size_of(std::io::stdout()).map_or(0, |(width, _)| usize::from(width.0));
    columns.clamp(evb_report::NARROW, WIDEST)
}

/// Asks a question, and returns true if somebody at a terminal says yes.
pub(crate) fn agrees(question: &str) -> bool {
    let (mut stdin, mut stderr) = (io::stdin(), io::stderr());
    if !(stdin.is_terminal() && stderr.is_terminal()) {
        return false;
    }
    let mut answer = [0; 64];
    let _question = write!(stderr, "evb: {question} [y/N] ");
    let read = stdin.read(&mut answer).unwrap_or(0);
    answer[..read].trim_ascii().eq_ignore_ascii_case(b"y")
}

/// The text without characters that command a terminal: comments come from other people.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_command = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(is_command) {
        return text.into();
    }
    text.chars().map(|letter| if is_command(letter) { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

/// Writes a text to standard output. Verdicts are coloured on a terminal with colours, unless `NO_COLOR` is set.
pub(crate) fn show(text: &str) {
    let text = &*harmless(text);
    match AutoStream::choice(&std::io::stdout()) {
        ColorChoice::Never => print!("{text}"),
        _ => print!("{}", text.split_inclusive('\n').map(coloured).collect::<String>()),
    }
}

/// Writes a text of the program itself to standard output, with its colours if the terminal has colours.
pub(crate) fn show_styled(text: &str) {
    match AutoStream::choice(&std::io::stdout()) {
        ColorChoice::Never => print!("{}", anstream::adapter::strip_str(text)),
        _ => print!("{}", text.split_inclusive('\n').map(coloured).collect::<String>()),
    }
}

fn coloured(line: &str) -> String {
    let (text, end) = line.split_at(line.trim_end().len());
    let verdict = VERDICTS.iter().find(|(begin, _)| text.starts_with(begin)).map(|&(_, colour)| (0, colour));
    let last =
        || ENDS.iter().find(|(word, _)| text.ends_with(word)).map(|&(word, colour)| (text.len() - word.len(), colour));
    let Some((from, colour)) = verdict.or_else(last) else { return line.to_owned() };
    let style = Style::new().fg_color(Some(colour.into()));
    format!("{}{style}{}{style:#}{end}", &text[..from], &text[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_command_the_terminal() {
        assert_eq!(harmless("1 \u{1b}[31mred\u{7}\u{9b}2J\tend\n"), "1 \u{fffd}[31mred\u{fffd}\u{fffd}2J\tend\n");
        assert!(matches!(harmless("good: all\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn verdicts_have_colours_and_nothing_else_has() {
        assert_eq!(coloured("good: all 3 events\n"), "\u{1b}[32mgood: all 3 events\u{1b}[0m\n");
        assert_eq!(coloured("not good: 1 slower"), "\u{1b}[31mnot good: 1 slower\u{1b}[0m");
        assert_eq!(coloured("cannot tell: rate not judged"), "\u{1b}[33mcannot tell: rate not judged\u{1b}[0m");
        assert_eq!(coloured(" 2  -71 %  cannot tell  \n"), " 2  -71 %  \u{1b}[33mcannot tell\u{1b}[0m  \n");
        for plain in ["no good: 3\n", " good: 3", "seen from 3 %\n", "\n", ""] {
            assert_eq!(coloured(plain), plain);
        }
    }
}
