//! Columns are what the reader gives event by event.

use evb_events::{Columns, Event, Found, Reader, read_columns, read_columns_behind};
use std::path::{Path, PathBuf};

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let folders = ["event-file", "version-1"].map(|name| folder.join(name));
    let files = folders.iter().flat_map(|folder| folder.read_dir().expect("the corpus")).flatten();
    files.map(|entry| entry.path()).collect()
}

/// The events whose heads are whole, in the order of their ids.
fn events(path: &Path) -> Vec<(Event, bool)> {
    let mut reader = Reader::open(path).expect("an event file");
    let found = reader.events().map(|found| found.expect("it can be read"));
    let mut events: Vec<_> = found
        .filter_map(|found| match found {
            Found::Event(event) => Some((event, false)),
            Found::Damaged { event, .. } => Some((event, true)),
            Found::Lost(_) => None,
        })
        .collect();
    events.sort_by_key(|(event, _)| event.id);
    events
}

fn payloads(columns: &Columns) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    columns
        .visit_payloads(0..columns.source.len(), |_, payload| payloads.push(payload.to_vec()))
        .expect("it can be read");
    payloads
}

#[test]
fn columns_have_every_whole_event_of_the_corpus() {
    let mut damaged = 0;
    for path in corpus() {
        let Ok(read) = read_columns(&[&path]) else { continue };
        let (columns, events) = (read.events, events(&path));
        assert_eq!(columns.event, events.iter().map(|(event, _)| event.id.0).collect::<Vec<_>>(), "{}", path.display());
        let mut fragments: Vec<_> = events.iter().map(|(event, _)| event.fragments.clone()).collect();
        fragments.iter_mut().for_each(|fragments| fragments.sort_by_key(|fragment| fragment.source));
        let ends = fragments.iter().scan(0, |end, fragments| {
            *end += fragments.len() as u64;
            Some(*end)
        });
        assert_eq!(columns.fragments_end, ends.collect::<Vec<_>>());
        let fragments = fragments.concat();
        assert_eq!(columns.source, fragments.iter().map(|fragment| fragment.source.0).collect::<Vec<_>>());
        assert_eq!(columns.status, fragments.iter().map(|fragment| fragment.status as u8).collect::<Vec<_>>());
        assert_eq!(payloads(&columns), fragments.iter().map(|fragment| fragment.bytes.to_vec()).collect::<Vec<_>>());
        let changed = columns.changed(0..columns.source.len()).expect("it can be read");
        assert_eq!(!changed.is_empty(), events.iter().any(|(_, is_damaged)| *is_damaged), "{}", path.display());
        damaged += changed.len();
    }
    assert!(damaged > 0);
}

#[test]
fn of_copies_one_is_kept() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/event-file/valid.evb");
    let (once, mut twice) =
        (read_columns(&[&path]).expect("it is valid"), read_columns(&[&path, &path]).expect("it is valid"));
    twice.events.files.pop();
    assert_eq!(once.events, twice.events);
    assert_eq!((once.duplicates, twice.duplicates), (0, once.events.event.len() as u64));
}

#[test]
fn payloads_come_in_the_order_that_is_asked_for() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/event-file/valid.evb");
    let columns = read_columns(&[path]).expect("it is valid").events;
    let (all, last) = (payloads(&columns), columns.source.len() - 1);
    let mut found = Vec::new();
    columns
        .visit_payloads([last, 0, last], |fragment, payload| found.push((fragment, payload.to_vec())))
        .expect("it can be read");
    let expected = [last, 0, last].map(|fragment| (fragment, all[fragment].clone()));
    assert_eq!(found, expected);
}

#[test]
fn a_file_that_grows_is_read_on() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/event-file/valid.evb");
    let (whole, _) = read_columns_behind(&[(&path, 0)]).expect("it is valid");
    let bytes = std::fs::read(&path).expect("the corpus");
    let folder = tempfile::tempdir().expect("a folder");
    let growing = folder.path().join("growing.evb");
    let (mut found, mut offset) = (Vec::new(), 0);
    // At each length: within a head, a payload, the index.
    let head = read_columns(&[&path]).expect("it is valid").events.offset[0] as usize / 2;
    for length in head..=bytes.len() {
        std::fs::write(&growing, &bytes[..length]).expect("there is room");
        let Ok((columns, ends)) = read_columns_behind(&[(&growing, offset)]) else { continue };
        found.extend(columns.event);
        offset = ends[0];
    }
    assert_eq!(found, whole.event);
    assert!(!found.is_empty());
}
