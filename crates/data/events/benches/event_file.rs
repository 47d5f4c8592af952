//! Speed of checksums, writing to a file in the temporary folder, and verification, for events of two 2 KiB fragments.
//!
//! The files stay in the page cache: this measures the program and the kernel's copy, not the disk.

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use evb_core::checksum;
use evb_core::{EventId, SourceId};
use evb_events::{FragmentRef, Metadata, Status, Writer, WriterOptions, verify};
use std::{hint::black_box, path::Path};
use tempfile::tempdir;

const EVENTS: u64 = 4096;
const FRAGMENT_BYTES: usize = 2048;

fn write(directory: &Path, payload: &Bytes) {
    let mut writer = Writer::create(WriterOptions {
        directory: directory.to_path_buf(),
        name: "bench".into(),
        builder: 0,
        compresses: false,
        max_file_bytes: u64::MAX,
        metadata: Metadata::default(),
    })
    .expect("a writable folder");
    let sum = checksum(payload);
    let fragment = |source| FragmentRef::new(SourceId(source), Status::Good, sum, payload);
    let fragments = [fragment(0), fragment(1)];
    for id in 1..=EVENTS {
        writer.append(EventId(id), black_box(&fragments)).expect("room on the disk");
    }
    writer.finish().expect("room on the disk");
}

fn benches(criterion: &mut Criterion) {
    let payload: Bytes = (0..FRAGMENT_BYTES).map(|i| (i * 7) as u8).collect();
    let mut group = criterion.benchmark_group("event_file");
    group.throughput(Throughput::Bytes(FRAGMENT_BYTES as u64));
    group.bench_function("checksum_2KiB", |bencher| bencher.iter(|| checksum(black_box(&payload))));

    group.throughput(Throughput::Bytes(2 * EVENTS * FRAGMENT_BYTES as u64));
    group.sample_size(20);
    let folder = || tempdir().expect("a temporary folder");
    group.bench_function("append_4096_events", |bencher| {
        let routine = |directory: tempfile::TempDir| {
            write(directory.path(), &payload);
            directory
        };
        bencher.iter_batched(folder, routine, BatchSize::PerIteration);
    });

    let directory = folder();
    write(directory.path(), &payload);
    let path = directory.path().join("bench-b0-0000.evb");
    group.bench_function("verify_4096_events", |bencher| {
        bencher.iter(|| assert!(verify(&[&path]).expect("a readable file").is_intact()));
    });
    group.finish();
}

criterion_group!(event_file, benches);
criterion_main!(event_file);
