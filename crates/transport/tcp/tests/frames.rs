//! The committed corpus of the frame reader as a plain test, and random streams.

use evb_transport::HEAD_BYTES;
use evb_transport_tcp::{FrameHeader, fuzz_frames};
use proptest::prelude::*;
use std::{fs, path::Path};

#[test]
fn the_corpus_is_read_without_a_fault() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/frames");
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), fuzz_frames(&fs::read(&path).unwrap()))
        })
        .collect();
    found.sort();
    let expected = [
        ("after-goodbye", 1),
        ("cut-in-body", 1),
        ("cut-in-header", 1),
        ("empty", 0),
        ("garbage", 0),
        ("heartbeats", 2),
        ("huge-length", 0),
        ("large-body", 2),
        ("sequence-gap", 1),
        ("small-bodies", 6),
        ("too-large", 0),
    ];
    assert_eq!(found, expected.map(|(name, count)| (name.to_string(), count)));
}

fn frame(header: FrameHeader, sequence: u32, fill: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.encode(sequence, &mut bytes);
    if let FrameHeader::Message { body, .. } = header {
        bytes.resize(bytes.len() + body, fill);
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_read_without_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz_frames(&bytes);
    }

    #[test]
    fn right_streams_give_all_their_messages(
        lengths in prop::collection::vec(prop_oneof![0..600_usize, 65_000..66_500_usize], 0..8),
        flip in prop::option::of((any::<prop::sample::Index>(), 0..8_u8)),
    ) {
        let mut bytes = Vec::new();
        for (sequence, &body) in lengths.iter().enumerate() {
            if body % 7 == 0 {
                bytes.extend(frame(FrameHeader::Heartbeat, sequence as u32, 0));
            }
            bytes.extend(frame(FrameHeader::Message { head: [1; HEAD_BYTES], body }, sequence as u32, sequence as u8));
        }
        prop_assert_eq!(fuzz_frames(&bytes), lengths.len());
        if let Some((place, bit)) = flip.filter(|_| !bytes.is_empty()) {
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
            fuzz_frames(&bytes);
        }
    }
}
