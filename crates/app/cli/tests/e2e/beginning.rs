//! What is there before the first run: templates, and what editors, shells and manuals read.

use crate::support::Lab;
use std::fs;

const TEMPLATES: [&str; 5] = ["my-first-board", "test-beam", "event-builder", "network-study", "benchmark"];

#[test]
fn a_new_file_is_good_and_never_written_over() {
    for template in TEMPLATES {
        let lab = Lab::new();
        let file = format!("{template}.toml");
        assert_eq!(lab.evb(&["new", template]).run().code(), Some(0));
        assert_eq!(lab.evb(&["check", &file]).run().code(), Some(0), "{template}");
        let text = fs::read_to_string(lab.path(&file)).unwrap();
        assert!(text.contains(&format!(" {file}")) && !text.contains("experiments/own"), "{text}");
        lab.write(&file, "mine");
        let refused = lab.evb(&["new", template]).run();
        assert_eq!(refused.code(), Some(2));
        assert!(refused.stderr.contains("a file that exists is not written over"), "{refused}");
        assert_eq!(fs::read_to_string(lab.path(&file)).unwrap(), "mine");
    }
}

#[test]
fn shells_manuals_and_editors_have_their_files() {
    let lab = Lab::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = lab.evb(&["completions", shell]).run().stdout;
        assert!(script.contains("simulate") && script.contains("processes"), "{shell}: {script}");
    }
    assert_eq!(lab.evb(&["man", "manual"]).run().code(), Some(0));
    let page = fs::read_to_string(lab.path("manual/evb-sources-try.1")).unwrap();
    assert!(page.contains("\\-\\-frames"), "{page}");
    let schema: serde_json::Value = serde_json::from_str(&lab.evb(&["schema"]).run().stdout).unwrap();
    assert_eq!(schema["properties"]["name"]["type"], "string");
}
