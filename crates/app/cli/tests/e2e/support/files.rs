//! What is in the event files, read with the library and compared with what the sources must have sent.

use evb_events::{Event, Found, Reader, Status};
use evb_sources::payload;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The event files of a folder, in order of their names.
pub(crate) fn stored_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = files_of(folder);
    files.retain(|path| !is_apart(path));
    files
}

/// The files of fragments that belong to no event, in order of their names.
pub(crate) fn apart_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = files_of(folder);
    files.retain(|path| is_apart(path));
    files
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "evb"));
    files.sort();
    files
}

fn is_apart(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".apart.evb")
}

/// All events of some files.
pub(crate) struct Stored {
    pub(crate) events: Vec<Event>,
    /// Bytes after the last whole event of files that were cut off.
    pub(crate) tail_bytes: u64,
}

/// Reads whole files, every one of which may end within an event, but must have no other damage.
pub(crate) fn read_all(files: &[PathBuf]) -> Stored {
    let mut stored = Stored { events: Vec::new(), tail_bytes: 0 };
    for file in files {
        let mut reader = Reader::open(file).unwrap_or_else(|error| panic!("{error}"));
        for found in reader.events() {
            match found.unwrap_or_else(|error| panic!("{error}")) {
                Found::Event(event) => stored.events.push(event),
                Found::Lost(range) if range.tail => stored.tail_bytes += range.length,
                other => panic!("{}: {other:?}", file.display()),
            }
        }
    }
    stored
}

/// Whether an event that is `complete`, or one that is not, is in these files, which may be in the middle of being written.
pub(crate) fn holds_event(files: &[PathBuf], complete: bool) -> bool {
    let mut readers = files.iter().filter_map(|file| Reader::open(file).ok());
    readers.any(|mut reader| {
        reader.events().any(|found| matches!(found, Ok(Found::Event(event)) if event.complete == complete))
    })
}

/// The events of these files that have this id.
pub(crate) fn find_stored(stored: &Stored, id: u64) -> Vec<&Event> {
    stored.events.iter().filter(|event| event.id.0 == id).collect()
}

impl Stored {
    /// How often each event is stored.
    pub(crate) fn copies(&self) -> BTreeMap<u64, usize> {
        let mut copies = BTreeMap::new();
        for event in &self.events {
            *copies.entry(event.id.0).or_default() += 1;
        }
        copies
    }

    /// Every event has `sources` fragments, each from its source, and each good one is what the generator makes for
    /// that event and source, and nothing else.
    pub(crate) fn check_generated(&self, seed: u64, sources: u16) {
        self.check_generated_of(seed, |_| (0..sources).collect());
    }

    /// Checks the same for events of which each has its own sources.
    pub(crate) fn check_generated_of(&self, seed: u64, sources: impl Fn(u64) -> Vec<u16>) {
        for event in &self.events {
            let from: Vec<_> = event.fragments.iter().map(|fragment| fragment.source.0).collect();
            assert_eq!(from, sources(event.id.0), "event {}", event.id);
            for fragment in event.fragments.iter().filter(|fragment| fragment.status == Status::Good) {
                let source = fragment.source.0;
                let right = payload::check(&fragment.bytes, seed, event.id, source);
                assert!(right, "event {} source {source} holds the bytes of something else", event.id);
            }
            let all_good = event.fragments.iter().all(|fragment| fragment.status == Status::Good);
            assert_eq!(event.complete, all_good, "event {}", event.id);
        }
    }
}

/// Whether this user may mount a disk for one command.
pub(crate) fn can_mount(lab: &super::Lab) -> bool {
    let try_it = "mkdir try && mount -t tmpfs none try";
    let status = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", try_it])
        .current_dir(lab.path("."))
        .stderr(std::process::Stdio::null())
        .status();
    let can = status.is_ok_and(|status| status.success());
    if !can {
        eprintln!("skipped: this user cannot mount a small disk");
    }
    can
}
