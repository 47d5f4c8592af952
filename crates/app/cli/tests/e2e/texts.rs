//! The texts that people read: help, the summary of a run, and what is said of event files.

use crate::support::Lab;

const TWO_BY_ONE: &str = r#"
name = "texts"
[trigger]
type = "free-running"
events = 100
[readout]
units = 2
source = { type = "fixed", size = "100 B" }
[builder]
units = 1
"#;

#[test]
fn help_texts() {
    let lab = Lab::new();
    let commands: [&[&str]; 14] = [
        &[],
        &["run"],
        &["simulate"],
        &["paper"],
        &["bench"],
        &["compare"],
        &["node"],
        &["feed"],
        &["sources", "try"],
        &["check"],
        &["events"],
        &["events", "verify"],
        &["events", "show"],
        &["events", "export"],
    ];
    for command in commands {
        let outcome = lab.evb(command).args(&["--help"]).run();
        assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{outcome}");
        snapshot(&[&["help"], command].concat().join("_"), &outcome.stdout);
    }
    let version = lab.evb(&["--version"]).run();
    let (plain, with_commit) =
        (format!("evb {}\n", env!("CARGO_PKG_VERSION")), format!("evb {} (", env!("CARGO_PKG_VERSION")));
    // A release build says its commit.
    assert!(version.stdout == plain || version.stdout.starts_with(&with_commit), "{}", version.stdout);
}

/// A good run and a bad one, as a table.
#[test]
fn the_summary_of_a_run() {
    let lab = Lab::with(TWO_BY_ONE);
    let outcome = lab.evb(&["run", "experiment.toml"]).run();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{outcome}");
    snapshot("summary_of_a_good_run", &steady(&outcome.stdout));

    let fault = "\n[[fault]]\nnode = \"ru0\"\naction = \"corrupt\"\none_in = 30\n";
    let lab = Lab::with(&format!("{TWO_BY_ONE}{fault}"));
    let outcome = lab.evb(&["run", "experiment.toml", "--quiet"]).run();
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(1), ""), "{outcome}");
    snapshot("summary_of_a_bad_run", &steady(&outcome.stdout));
}

#[test]
fn messages_about_event_files() {
    let lab = Lab::with(TWO_BY_ONE);
    assert_eq!(lab.evb(&["run", "experiment.toml", "-q"]).run().code(), Some(0));
    let files = lab.stored_files();
    for command in ["verify", "show"] {
        let outcome = lab.evb(&["events", command]).paths(&files).run();
        assert_eq!(outcome.code(), Some(0), "{outcome}");
        let text = outcome.stdout.replace(lab.path("").to_str().unwrap(), "FOLDER/");
        snapshot(&format!("events_{command}"), &steady(&text));
    }
}

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// The text without what differs from run to run: times, rates, run numbers and the widths that follow from them.
fn steady(text: &str) -> String {
    let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let lines = text.lines().map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let mut steady: Vec<String> = Vec::new();
        for (n, word) in words.iter().enumerate() {
            let unit = words.get(n + 1).copied().unwrap_or("").trim_end_matches([',', ':']);
            let is_size = n > 0 && words[n - 1] == "bytes";
            steady.push(if is_size { "#".into() } else { steady_word(word, unit) });
        }
        steady.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn steady_word(word: &str, unit: &str) -> String {
    let is_number = word.parse::<f64>().is_ok();
    // File sizes follow the length of the resolved experiment.
    let varies =
        unit.ends_with("Hz") || unit.ends_with("B/s") || ["s", "us", "kB", "bytes", "questions"].contains(&unit);
    match word.trim_end_matches([',', ':']) {
        _ if is_number && varies => "#".into(),
        bare if bare.ends_with("Hz") || bare.ends_with("B/s") => word.trim_start_matches(['k', 'M', 'G']).into(),
        bare if bare.chars().all(|c| "─═".contains(c)) && !bare.is_empty() => "─".into(),
        bare if bare.ends_with('Z') && bare.contains('T') => "TIME".into(),
        _ => word.into(),
    }
}
