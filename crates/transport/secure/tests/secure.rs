//! The committed corpus of the handshake and of sealed records as a plain test, and random bytes.

use evb_transport_secure::{fuzz_opener, fuzz_strangers};
use proptest::prelude::*;
use std::{fs, path::Path};

#[test]
fn the_corpus_is_refused_and_opens_nothing_that_was_not_sealed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/secure");
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        fuzz_strangers(&bytes);
        names.push((path.file_name().unwrap().to_string_lossy().into_owned(), fuzz_opener(&bytes)));
    }
    names.sort();
    let opened = |wanted: &str| names.iter().find(|(name, _)| name == wanted).expect("a seed").1;
    assert_eq!(names.len(), 10);
    let all = opened("untouched");
    assert_eq!((opened("first-length-short"), opened("first-tag")), (0, 0));
    assert!(opened("late-byte") > 0 && opened("late-byte") < all);
}

proptest! {
    #[test]
    fn any_bytes_are_refused_and_open_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz_strangers(&bytes);
        fuzz_opener(&bytes);
    }
}
