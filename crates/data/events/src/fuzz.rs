//! Entry point for fuzzing: reads any bytes as an event file in every possible way.

use crate::{
    Found, Reader, Verification,
    compressed::{Blocks, is_compressed},
    verify::check_file,
};
use std::io::{Cursor, Read, Seek};

/// Reads `bytes` as an event file.
///
/// # Panics
/// If the reader contradicts itself: that is a bug, whatever the bytes are.
pub fn fuzz_read(bytes: &[u8]) {
    let mut source = Cursor::new(bytes);
    match is_compressed(&mut source).expect("reading from memory never fails") {
        true => read(Blocks::new(source).expect("reading from memory never fails")),
        false => read(source),
    }
}

fn read(source: impl Read + Seek) {
    let Ok(mut reader) = Reader::new(source, "bytes") else { return };
    let found: Vec<_> = reader.events().map(|found| found.expect("reading from memory never fails")).collect();
    let mut verification = Verification::default();
    check_file(&mut reader, &mut verification, &mut |_| {}).expect("reading from memory never fails");

    let whole = found.iter().filter_map(whole_event).filter(|event| !event.is_apart()).count() as u64;
    assert_eq!(whole, verification.events, "two walks through the same bytes differ");
    assert!(verification.payload_bytes <= reader.bytes(), "more payload than there are bytes");
    for event in found.iter().filter_map(whole_event) {
        let again = reader.find(event.id).expect("reading from memory never fails");
        assert!(again.is_some(), "event {} is there, but not found", event.id);
    }
}

fn whole_event(found: &Found) -> Option<&crate::Event> {
    match found {
        Found::Event(event) => Some(event),
        _ => None,
    }
}
