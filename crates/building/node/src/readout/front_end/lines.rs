//! The lines between run control and a front end: docs/reference/front-end-control.md.

use evb_sources::Setting;
use serde_json::json;
use std::collections::BTreeMap;

/// Longest line in bytes, its end included.
pub(super) const LONGEST_LINE: usize = 4096;
/// The first line of both sides. The number is the version.
pub(super) const GREETING: &str = "evb-front-end 1";
/// Most characters of a text of a front end, or of the type of a run, that are kept.
pub(super) const LONGEST_TEXT: usize = 256;

/// The line of an order, without its end.
pub(super) fn order(id: u64, name: &str, arguments: Option<&str>) -> String {
    match arguments {
        Some(arguments) => format!("{id} {name} {arguments}"),
        None => format!("{id} {name}"),
    }
}

/// The arguments of `configure`.
pub(super) fn settings(settings: &BTreeMap<String, Setting>) -> String {
    json!(settings).to_string()
}

/// The arguments of `start` and `next`.
pub(super) fn run(number: u64, run_type: &str) -> String {
    let run_type: String = run_type.chars().take(LONGEST_TEXT).collect();
    json!({ "run": number, "type": run_type }).to_string()
}

/// A line of a front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Its first line.
    Greeting,
    /// It has done what the order with this number asks.
    Done(u64),
    /// It cannot do it, for this reason.
    Refused(u64, String),
    Busy,
    Ready,
    Problem(String),
}

/// What a line says, without its end.
///
/// # Errors
/// The reason why it is none of the protocol.
pub(super) fn parse(line: &[u8]) -> Result<Said, String> {
    let unknown =
        || format!("sent a line that run control does not know: \"{}\"", line[..line.len().min(40)].escape_ascii());
    let text = str::from_utf8(line).map_err(|_| unknown())?;
    let text = text.strip_suffix('\r').unwrap_or(text);
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    match (first, rest) {
        _ if text == GREETING => Ok(Said::Greeting),
        ("evb-front-end", version) => {
            Err(format!("speaks version {} of the lines, and this evb version 1", harmless(version)))
        }
        ("busy", "") => Ok(Said::Busy),
        ("ready", "") => Ok(Said::Ready),
        ("problem", what) => Ok(Said::Problem(harmless(what))),
        (id, answer) => {
            let is_number = !id.is_empty() && id.bytes().all(|digit| digit.is_ascii_digit());
            let id = id.parse().ok().filter(|_| is_number).ok_or_else(unknown)?;
            match answer.split_once(' ').unwrap_or((answer, "")) {
                ("ok", "") => Ok(Said::Done(id)),
                ("error", why) => Ok(Said::Refused(id, harmless(why))),
                _ => Err(unknown()),
            }
        }
    }
}

/// The text without characters and sequences that command a terminal, cut to [`LONGEST_TEXT`].
fn harmless(text: &str) -> String {
    let (mut kept, mut letters) = (String::new(), text.chars().peekable());
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' && letters.next_if_eq(&'[').is_some() {
            // A control sequence ends with its first letter.
            let _parameters = letters.by_ref().find(|one| ('\u{40}'..='\u{7e}').contains(one));
        } else if !letter.is_control() {
            kept.push(letter);
        }
    }
    kept.trim().chars().take(LONGEST_TEXT).collect()
}

/// Cuts what arrives into lines.
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<u8>);

impl Lines {
    /// Takes bytes, and passes each whole line without its end on.
    ///
    /// # Errors
    /// A line is too long. Nothing can follow it.
    pub(super) fn take(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) -> Result<(), String> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.0.len() + piece.len() > LONGEST_LINE {
                return Err(format!("sent a line of more than {LONGEST_LINE} bytes"));
            }
            self.0.extend_from_slice(piece);
            if let Some(whole) = self.0.strip_suffix(b"\n") {
                line(whole);
                self.0.clear();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_lines_with_json() {
        let given = [
            ("gain".to_owned(), Setting::Text("high\n\"".into())),
            ("on".to_owned(), Setting::Flag(true)),
            ("threshold".to_owned(), Setting::Integer(12)),
            ("u".to_owned(), Setting::Number(0.5)),
        ];
        assert_eq!(
            order(1, "configure", Some(&settings(&given.into()))),
            r#"1 configure {"gain":"high\n\"","on":true,"threshold":12,"u":0.5}"#
        );
        assert_eq!(order(2, "start", Some(&run(17, "physics"))), r#"2 start {"run":17,"type":"physics"}"#);
        assert_eq!(order(3, "stop", None), "3 stop");
        let longest = "\u{1}".repeat(5000);
        assert!(order(u64::MAX, "start", Some(&run(u64::MAX, &longest))).len() < LONGEST_LINE);
    }

    #[test]
    fn what_front_ends_say() {
        for (line, said) in [
            ("evb-front-end 1", Said::Greeting),
            ("evb-front-end 1\r", Said::Greeting),
            ("7 ok", Said::Done(7)),
            ("7 error no clock", Said::Refused(7, "no clock".into())),
            ("7 error", Said::Refused(7, String::new())),
            ("busy", Said::Busy),
            ("ready", Said::Ready),
            ("problem \u{1b}[31mhot\u{1b}[0m \u{7}board\u{9b}", Said::Problem("hot board".into())),
        ] {
            assert_eq!(parse(line.as_bytes()), Ok(said), "{line:?}");
        }
        for line in [
            "",
            " ",
            "ok",
            "+7 ok",
            "-1 ok",
            "7",
            "7 okay",
            "7 ok x",
            "99999999999999999999 ok",
            "busy now",
            "GET / HTTP/1.1",
        ] {
            assert!(parse(line.as_bytes()).is_err(), "{line:?}");
        }
        assert!(parse(b"7 error \xff").is_err());
        assert!(parse(b"evb-front-end 2").is_err_and(|why| why.contains("version 2")));
        assert_eq!(
            parse(format!("problem {}", "é".repeat(2000)).as_bytes()),
            Ok(Said::Problem("é".repeat(LONGEST_TEXT)))
        );
    }

    /// Lines are the same however their bytes arrive.
    #[test]
    fn lines_come_in_pieces_and_are_bounded() {
        let sent = [b"1 ok\n\nbusy\n".as_slice(), &vec![b'x'; LONGEST_LINE - 1], b"\n"].concat();
        for size in [1, 2, 3, 7, 4096, 8192] {
            let (mut lines, mut got) = (Lines::default(), Vec::new());
            for piece in sent.chunks(size) {
                assert_eq!(lines.take(piece, |line| got.push(line.len())), Ok(()));
            }
            assert_eq!(got, [4, 0, 4, LONGEST_LINE - 1]);
            assert!(lines.take(&vec![0; LONGEST_LINE + 1], |_| {}).is_err());
        }
    }
}
