//! The reader of the reference page, run as it is written there, on files of this version.

mod common;

use common::{Sample, sample};
use evb_events::Status;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What the reader of the page has read, in a form that is easy to compare.
const PRINT: &str = r#"
import sys
metadata, events = read(sys.argv[1])
print(json.dumps([metadata["run"], metadata["start"], metadata["run_type"], metadata["comment"]]))
for event in events:
    fragments = [[f["source"], f["status"], f["counter"], f["mark"], f["payload"].hex()] for f in event["fragments"]]
    print(json.dumps([event["event"], event["complete"], event["time"], fragments]))
"#;

/// The Python program on the page.
fn program() -> String {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/event-file.md");
    let page = fs::read_to_string(page).expect("the reference page");
    let (_, from) = page.split_once("```python\n").expect("a program on the page");
    let (program, _) = from.split_once("```").expect("its end");
    program.to_owned()
}

/// The line of an event.
fn line(Sample { id, fragments }: &Sample) -> String {
    let complete = fragments.iter().all(|fragment| fragment.1 == Status::Good);
    let text = |value: Option<u64>| value.map_or("null".to_owned(), |value| value.to_string());
    let fragment = |(source, status, bytes): &(u16, Status, Vec<u8>)| {
        let (counter, mark) = (common::counter(*id, *source), common::mark(*id, *source));
        let payload: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (counter, mark) = (text(counter), text(mark.map(|mark| mark.value().into())));
        format!("[{source}, {}, {counter}, {mark}, \"{payload}\"]", *status as u8)
    };
    let fragments = fragments.iter().map(fragment).collect::<Vec<_>>().join(", ");
    format!("[{id}, {complete}, {}, [{fragments}]]", common::triggered(*id).unwrap_or(0))
}

/// Runs the program on a file; `None` without Python.
fn run(program: &str, file: &Path) -> Option<String> {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let program_file = folder.path().join("reader.py");
    fs::write(&program_file, program).unwrap();
    let output = Command::new("python3").arg(program_file).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_reader_on_the_page_reads_every_event() {
    let folder = tempfile::tempdir().unwrap();
    let events: Vec<_> = (1..=20).map(sample).collect();
    let (files, _) = common::write(folder.path(), 0, u64::MAX, &events);
    let Some(text) = run(&(program() + PRINT), &files[0]) else { return };
    let mut lines = text.lines();
    let run = r#"[42, 1700000000000000000, "physics", "lights, \"camera\""]"#;
    assert_eq!(lines.next(), Some(run));
    assert_eq!(lines.collect::<Vec<_>>(), events.iter().map(line).collect::<Vec<_>>());
}

#[test]
fn the_reader_on_the_page_reads_files_of_version_1() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/version-1/valid.evb");
    let print = "import sys\nfor event in read(sys.argv[1])[1]: print(event)\n";
    let Some(text) = run(&(program() + print), &file) else { return };
    let first = "{'event': 1, 'complete': True, 'fragments': [{'source': 0, 'status': 0, 'payload': b'\\x1f !\"'}, ";
    assert!(text.lines().count() == 3 && text.starts_with(first), "{text}");
}
