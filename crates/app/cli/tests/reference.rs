//! The command-line page is what `evb --help` and the help of every subcommand say.

use std::{
    fmt::Write as _,
    fs,
    process::{Command, Stdio},
};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/command-line.md");
const TITLE: &str = "<!-- Made from the help of the command; do not edit. -->\n\n# The command line\n";

/// What `evb PATH.. --help` prints, lines of at most 100 characters.
fn help(path: &[String]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evb"));
    command.args(path).arg("--help").env("COLUMNS", "100").stdin(Stdio::null());
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "evb {path:?} --help: {output:?}");
    let text = String::from_utf8(output.stdout).expect("help is text");
    text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The subcommands that a help text lists.
fn subcommands(help: &str) -> impl Iterator<Item = String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let entries = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = entries.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned)
}

/// Appends the command and all below it.
fn describe(path: &[String], page: &mut String) {
    let help = help(path);
    let name = ["evb"].into_iter().chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    write!(page, "\n## `{name}`\n\n```text\n{help}```\n").expect("writing to a text");
    for subcommand in subcommands(&help) {
        describe(&[path, &[subcommand]].concat(), page);
    }
}

/// With UPDATE_DOCS set, the test writes the page instead.
#[test]
fn the_command_line_page_is_current() {
    let mut page = TITLE.to_owned();
    describe(&[], &mut page);
    assert!(page.contains("## `evb events verify`"), "subcommands of subcommands are there");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PAGE, &page).expect("writing the page");
    }
    let written = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(written == page, "{PAGE} is old: run this test with UPDATE_DOCS=1");
}
