//! The pages of `docs/start` that say what to type: their files and commands, as they stand there.

use crate::support::{Lab, free_tcp_port, is_there, shipped};
use evb::Experiment;
use std::fs;

/// The parts of a page between its fences.
#[derive(Default)]
struct Page {
    /// Files, by the name in their first line.
    files: Vec<(String, String)>,
    /// What is typed, in order.
    commands: String,
    /// Lines that must come in this order.
    output: Vec<String>,
}

impl Page {
    fn new(text: &str) -> Self {
        let mut page = Self::default();
        for block in text.split("\n```").skip(1).step_by(2) {
            let (kind, content) = block.split_once('\n').expect("the language of a block");
            match kind {
                "sh" => page.commands += &format!("{content}\n"),
                "text" => page.output.extend(content.lines().filter(|line| *line != "...").map(str::to_owned)),
                _ => {
                    let name = content.strip_prefix("# ").and_then(|first| first.split_once(':')).expect("a name").0;
                    page.files.push((name.to_owned(), content.to_owned()));
                }
            }
        }
        page
    }
}

#[test]
fn the_first_board_does_what_its_page_says() {
    if !["bash", "python3"].into_iter().all(is_there) {
        eprintln!("skipped: no bash or no python3");
        return;
    }
    let text = fs::read_to_string(shipped("../docs/start/my-first-board.md")).expect("the page");
    let page = ["9301", "9302"].into_iter().fold(text, |text, port| text.replace(port, &free_tcp_port().to_string()));
    let page = Page::new(&page);
    let lab = Lab::new();
    for (name, content) in &page.files {
        lab.write(name, content);
    }
    // The name of the script is that of the command.
    let script = format!("exec 2>&1; PATH=\"${{0%/*}}:$PATH\"\n{}", page.commands);
    let outcome = lab.evb(&[]).under(&["bash", "-c", &script]).run();
    let mut lines = outcome.stdout.lines();
    for line in &page.output {
        assert!(
            lines.any(|said| said.trim_end() == line.trim_end()),
            "not said, or not in this order: {line:?}\n{outcome}"
        );
    }
}

/// `experiments/own-boards.toml` has the boards of the page: their frames, their addresses, the trigger and the builders.
#[test]
fn the_experiment_of_own_boards_is_that_of_the_page() {
    let page = Page::new(&fs::read_to_string(shipped("../docs/start/my-first-board.md")).expect("the page"));
    let (_, of_page) = page.files.iter().find(|(name, _)| name == "boards.toml").expect("the experiment of the page");
    let shipped = fs::read_to_string(shipped("own-boards.toml")).expect("the experiment");
    let plan = |text: &str| {
        let experiment = Experiment::parse(text, "boards.toml", &[]).unwrap_or_else(|error| panic!("{error:?}"));
        experiment.plans()[0].clone()
    };
    let (page, shipped) = (plan(of_page), plan(&shipped));
    assert!(page.sources.len() == 2 && page.sources.iter().all(|source| source.live().is_some()));
    assert_eq!((&page.sources, &page.building.trigger), (&shipped.sources, &shipped.building.trigger));
    assert_eq!(page.building.builder_units, shipped.building.builder_units);
}
