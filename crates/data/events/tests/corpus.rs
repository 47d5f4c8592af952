//! The seeds of the fuzz target, which also run as a plain test, and which pin the format byte by byte.

mod common;

use common::closed_file;
use std::{env, fs, path::PathBuf};

/// Every seed by name, made from one valid file.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let valid = closed_file(3);
    let first = valid.windows(4).position(|window| window == b"\xE5EVT").expect("an event");
    let index = valid.windows(4).position(|window| window == b"\xE5IDX").expect("an index");
    let with = |at: usize, patch: &[u8]| {
        let mut bytes = valid.clone();
        bytes[at..at + patch.len()].copy_from_slice(patch);
        bytes
    };
    // A length that lies, under a right checksum: a record of 1 GiB with two fragments.
    let mut long = with(first + 16, &(1_u64 << 30).to_le_bytes());
    let head = evb_core::checksum(&long[first + 8..first + 64]);
    long[first + 4..first + 8].copy_from_slice(&head.to_le_bytes());
    vec![
        ("empty.evb", Vec::new()),
        ("no-events.evb", closed_file(0)),
        ("header-cut.evb", valid[..20].to_vec()),
        ("truncated.evb", valid[..index - 9].to_vec()),
        ("unclosed.evb", valid[..index].to_vec()),
        ("index-cut.evb", valid[..index + 40].to_vec()),
        ("payload-flipped.evb", with(first + 64, &[!valid[first + 64]])),
        ("trailer-flipped.evb", with(first + 64 + 24 + 8, &[!valid[first + 64 + 24 + 8]])),
        ("head-flipped.evb", with(first + 8, &[!valid[first + 8]])),
        ("header-flipped.evb", with(9, &[0xff])),
        ("magic-flipped.evb", with(0, b"X")),
        ("index-flipped.evb", with(index + 33, &[0xff])),
        ("footer-flipped.evb", with(valid.len() - 1, &[0xff])),
        ("lying-record-length.evb", long),
        ("lying-index-count.evb", with(index + 8, &[0xff; 8])),
        ("lying-fragment-count.evb", with(first + 28, &[0xff; 2])),
        ("lying-metadata-length.evb", with(12, &[0xff; 4])),
        ("valid.evb", valid),
    ]
}

/// Set `EVB_BLESS=1` to write the seeds anew after the format was changed on purpose.
#[test]
fn the_corpus_is_what_this_version_writes_and_reads_without_a_panic() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/event-file");
    for (name, bytes) in seeds() {
        let path = folder.join(name);
        if env::var_os("EVB_BLESS").is_some() {
            fs::write(&path, &bytes).expect("a writable corpus");
        }
        let committed = fs::read(&path).unwrap_or_default();
        assert!(committed == bytes, "{name} differs: the format has changed");
    }
    // Whatever fuzzing has added to the seeds runs too.
    for entry in fs::read_dir(folder).expect("a corpus") {
        evb_events::fuzz_read(&fs::read(entry.expect("an entry").path()).expect("a seed"));
    }
}

#[test]
fn no_prefix_and_no_flipped_bit_of_a_file_upsets_the_reader() {
    let valid = closed_file(3);
    (0..valid.len()).for_each(|length| evb_events::fuzz_read(&valid[..length]));
    for bit in 0..valid.len() * 8 {
        let mut bytes = valid.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        evb_events::fuzz_read(&bytes);
    }
}
