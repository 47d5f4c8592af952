use super::{CompressedSink, EventFile};
use crate::{layout::MAX_BLOCK_BYTES, sink::Sink, sink::write_all};
use std::{
    fs::OpenOptions,
    io::{IoSlice, Read, Seek, SeekFrom},
    path::Path,
};

fn sink(path: &Path) -> CompressedSink {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
    CompressedSink::new(file).unwrap()
}

fn contents(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    EventFile::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn put(sink: &mut CompressedSink, bytes: &[u8]) {
    let mut written = 0;
    let (first, second) = bytes.split_at(bytes.len() / 3);
    write_all(sink, &mut [first, second].map(IoSlice::new), &mut written).unwrap();
    assert_eq!(written, bytes.len() as u64);
}

#[test]
fn a_file_can_be_made_shorter_at_any_byte_and_goes_on_there() {
    let folder = tempfile::tempdir().unwrap();
    let whole: Vec<u8> = (0..60).collect();
    for length in 0..=whole.len() {
        let path = folder.path().join(length.to_string());
        let mut sink = sink(&path);
        whole.chunks(20).for_each(|block| put(&mut sink, block));
        sink.truncate(length as u64).unwrap();
        assert_eq!(contents(&path), whole[..length]);
        put(&mut sink, b"more");
        assert_eq!(contents(&path), [&whole[..length], b"more"].concat());
    }
}

/// Bytes that compression makes longer, and more of them than a block holds.
#[test]
fn noise_of_several_blocks_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let noise: Vec<u8> = (0..2 * MAX_BLOCK_BYTES + 1000).map(|_| noise()).collect();
    let path = folder.path().join("noise");
    put(&mut sink(&path), &noise);
    assert!(contents(&path) == noise);
    let mut file = EventFile::open(&path).unwrap();
    let mut bytes = [0; 9];
    for at in [0, MAX_BLOCK_BYTES - 20_000, 2 * MAX_BLOCK_BYTES, 77] {
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, noise[at..at + 9]);
    }
}
