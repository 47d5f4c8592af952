//! The fuzz targets on their committed corpora. To find more, point a fuzzer at the functions of `evb_sources::fuzz`.

use crate::{
    eudaq::{version_1, version_2},
    framing::{encoded, frame, with_header_byte},
    support::{Random, fed_file},
};
use evb_sources::{Frame, fuzz};
use std::path::{Path, PathBuf};

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 6] = [
    ("frame", fuzz::fuzz_frame),
    ("board-frame", fuzz::fuzz_board_frame),
    ("eudaq", fuzz::fuzz_eudaq),
    ("fed", fuzz::fuzz_fed),
    ("trace-csv", fuzz::fuzz_trace_csv),
    ("size-model", fuzz::fuzz_size_model),
];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name)
}

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(folder(name)).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name} has a corpus");
    paths.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn no_file_of_a_corpus_breaks_its_parser() {
    for (name, target) in TARGETS {
        for (path, bytes) in corpus(name) {
            println!("{}", path.display());
            target(&bytes);
        }
    }
}

#[test]
fn no_mutation_of_a_corpus_breaks_its_parser() {
    let seed = 42;
    println!("seed {seed}");
    let mut random = Random(seed);
    for (name, target) in TARGETS {
        for (path, bytes) in corpus(name) {
            println!("{}", path.display());
            for _ in 0..200 {
                target(&mutated(bytes.clone(), &mut random));
            }
        }
    }
}

/// A few bytes changed, cut out or repeated.
fn mutated(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    for _ in 0..=random.below(4) {
        let place = |random: &mut Random, bytes: &[u8]| random.below(bytes.len() as u64 + 1) as usize;
        let (a, b) = (place(random, &bytes), place(random, &bytes));
        let (from, to) = (a.min(b), a.max(b));
        match random.below(4) {
            0 => drop(bytes.drain(from..to.min(from + 16))),
            1 => bytes.extend_from_within(from..to),
            _ if from < bytes.len() => bytes[from] = random.below(256) as u8,
            _ => bytes.push(random.below(256) as u8),
        }
    }
    bytes
}

/// Writes the binary part of the corpora; run it with `--ignored` after the formats have changed.
#[test]
#[ignore = "writes the corpora"]
fn write_the_corpora() {
    let good = encoded(&frame(7, b"payload"));
    let end = encoded(&Frame { end_of_run: true, ..frame(8, b"") });
    let frames = [
        ("empty", vec![]),
        ("one", good.clone()),
        ("three", [&good[..], &good, &end].concat()),
        ("cut-off", good[..35].to_vec()),
        ("damaged-payload", [&good[..34], b"X", &good[35..]].concat()),
        ("damaged-header", [&good[..9], b"X", &good[10..]].concat()),
        ("garbage", b"GET / HTTP/1.1\r\nHost: an.example.org\r\n\r\n".to_vec()),
        ("oversized", [&with_header_byte(good.clone(), 17, 0xff)[..], &good].concat()),
        ("largest-length", with_header_byte(with_header_byte(good.clone(), 19, 0xff), 18, 0xff)),
        ("other-version", with_header_byte(good.clone(), 4, 2)),
        ("unknown-flag", with_header_byte(good, 5, 0x10)),
    ];
    let fed = fed_file(1..=8);
    let with = |at: usize| [&fed[..at], &[fed[at] ^ 0x40], &fed[at + 1..]].concat();
    let feds = [
        ("empty", vec![]),
        ("good", fed.clone()),
        ("one", fed_file([5])),
        ("first-header", with(7)),
        ("first-source-id", with(1)),
        ("payload", with(fed.len() / 2)),
        ("last-trailer", with(fed.len() - 1)),
        ("cut-off", fed[..fed.len() - 8].to_vec()),
        ("odd-size", fed[..fed.len() - 3].to_vec()),
        ("wrapped-ids", fed_file([0xff_fffe, 0xff_ffff, 0, 1])),
        ("wrong-order", fed_file([5, 6, 6, 5, 9, 5000])),
        ("trailers-only", 0xa000_0002_0000_0000_u64.to_le_bytes().repeat(64)),
        ("headers-only", 0x5100_0001_1bf3_4970_u64.to_le_bytes().repeat(64)),
    ];
    let of = |producer: u8, file: Vec<u8>| [vec![producer], file].concat();
    let cut = |mut file: Vec<u8>| {
        file.truncate(file.len() - 9);
        file
    };
    let eudaqs = [
        ("version-1", of(0, version_1())),
        ("version-1-cut-off", of(1, cut(version_1()))),
        ("version-2", of(2, version_2())),
        ("version-2-device", of(6, version_2())),
        ("version-2-whole", of(3, cut(version_2()))),
        ("both-versions", of(0, [version_2(), version_1()].concat())),
    ];
    for (name, bytes) in eudaqs {
        std::fs::write(folder("eudaq").join(name), bytes).unwrap();
    }
    for (name, bytes) in frames {
        std::fs::write(folder("frame").join(name), bytes).unwrap();
    }
    for (name, bytes) in feds {
        std::fs::write(folder("fed").join(name), bytes).unwrap();
    }
}
