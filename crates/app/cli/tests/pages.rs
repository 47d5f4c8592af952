//! The commands on the pages are ones that this program takes: their options exist, and their experiments resolve.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What ends a command in a line of the shell.
const ENDS: [&str; 5] = ["|", ">", ">>", "&&", "&"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().expect("the repository")
}

/// A mistake that a page makes on purpose, to show what evb says.
const MISTAKE: &str = "network.presets=fast-ethernet";

/// The README and all pages, but not those that are made from the program, nor those for developers, which have names to be
/// filled in.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    for folder in ["docs/start", "docs/guides"] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder of pages");
        let files = entries.map(|entry| entry.expect("an entry").path());
        pages.extend(files.filter(|file| file.extension().is_some_and(|ending| ending == "md")));
    }
    pages.sort();
    pages
}

/// The lines of the shell on a page, with those that are continued as one.
fn lines(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().expect("a block"));
    blocks.flat_map(|block| block.replace("\\\n", " ").lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The arguments of `evb` in a line that begins with it.
fn arguments(line: &str) -> Option<Vec<String>> {
    let rest = line.trim_start().strip_prefix("evb ")?;
    let words = words(rest);
    let end = words.iter().position(|word| ENDS.contains(&word.as_str())).unwrap_or(words.len());
    Some(words[..end].to_vec())
}

/// The words of a line, with quotes as in the shell, and without a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

fn evb(arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evb"));
    let output = command.args(arguments).current_dir(root()).stdin(Stdio::null()).output().expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}

/// Help is shown if everything before the question for it is known.
fn is_known(arguments: &[String]) -> Result<(), String> {
    let own: Vec<_> = arguments.iter().map(String::as_str).take_while(|argument| *argument != "--").collect();
    evb(&[&own[..], &["--help"]].concat())
}

/// Checks the experiment of a command, if it comes with evb, with what the command sets.
fn resolves(arguments: &[String]) -> Result<(), String> {
    let is_shipped = |argument: &&String| argument.ends_with(".toml") && root().join(argument).is_file();
    let takes_experiments = ["run", "simulate", "serve", "check"].contains(&arguments[0].as_str());
    let Some(file) = arguments.iter().find(is_shipped).filter(|_| takes_experiments) else { return Ok(()) };
    let set = arguments.windows(2).filter(|pair| pair[0] == "--set").flatten().map(String::as_str);
    evb(&["check", file].into_iter().chain(set).collect::<Vec<_>>())
}

#[test]
fn the_commands_on_the_pages_are_those_of_the_program() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for arguments in lines(&text).iter().filter_map(|line| arguments(line)) {
            count += 1;
            let command = format!("{}: evb {}", page.display(), arguments.join(" "));
            match is_known(&arguments).and_then(|()| resolves(&arguments)) {
                Ok(()) if command.ends_with(MISTAKE) => wrong.push(format!("{command}\nis no mistake any more")),
                Err(said) if !command.ends_with(MISTAKE) => wrong.push(format!("{command}\n{said}")),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 80, "only {count} commands were found");
}

#[test]
fn words_are_those_of_the_shell() {
    let line = "evb run a.toml --set 'x={y=\"1 s\"}' --set trigger.rate=\"3 Hz\"   # a comment";
    let expected = ["run", "a.toml", "--set", "x={y=\"1 s\"}", "--set", "trigger.rate=3 Hz"];
    assert_eq!(arguments(line).expect("a command"), expected);
    assert_eq!(arguments("evb run --json a.toml | evb explain -").expect("a command"), ["run", "--json", "a.toml"]);
    assert_eq!(arguments("cargo run"), None);
}
