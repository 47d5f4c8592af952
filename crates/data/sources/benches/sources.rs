//! Speed of what every fragment passes through: payload, sizes, checksums, framing and the walk of recorded files.

use crc::{CRC_16_IBM_3740, Crc};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use evb_core::checksum;
use evb_core::{ByteCount, EventId};
use evb_sources::{
    ByteOrder, ChecksumKind, ClockField, FedHeader, Field, Frame, FrameChecksum, FrameEnd, FrameParser, FrameScanner,
    Framing, OpenOptions, SizeModel, Source, SourceSpec, check_fragment, encode, payload, walk, write_fragment,
};
use std::{hint::black_box, io::Cursor, path::PathBuf, sync::Arc, time::Duration};

const SIZE: usize = 2048;

fn options() -> OpenOptions {
    OpenOptions { data_directory: PathBuf::new(), unit: 3, seed: 1, max_fragment: 1 << 20 }
}

fn payloads(c: &mut Criterion) {
    let mut group = c.benchmark_group("payload");
    for size in [SIZE, 1 << 17] {
        group.throughput(Throughput::Bytes(size as u64));
        let mut bytes = vec![0; size];
        group.bench_function(format!("fill {size}"), |b| {
            b.iter(|| payload::fill(black_box(&mut bytes), 1, black_box(EventId(7)), 3));
        });
        group.bench_function(format!("check {size}"), |b| {
            b.iter(|| assert!(payload::check(black_box(&bytes), 1, black_box(EventId(7)), 3)));
        });
        group.bench_function(format!("crc-32c {size}"), |b| b.iter(|| checksum(black_box(&bytes))));
    }
    group.finish();
}

fn sizes(c: &mut Criterion) {
    let size = ByteCount(SIZE as u64);
    let trace = tempfile::NamedTempFile::new().expect("a temporary file");
    let rows: String = (1..100_000).map(|event| format!("{event},3,{}\n", event % 4000)).collect();
    std::fs::write(&trace, format!("event,source,bytes\n{rows}")).expect("a temporary file");
    let model = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(&model, "FED,offset,slope,square,rms\n9,418,2109,10,0.215\n").expect("a temporary file");
    let specs = [
        ("fixed", SourceSpec::Fixed { size }),
        ("uniform", SourceSpec::Uniform { min: ByteCount(100), max: size }),
        ("log-normal", SourceSpec::LogNormal { mean: size, rms: size }),
        ("trace", SourceSpec::Trace { file: trace.path().into(), source: None }),
        (
            "size model",
            SourceSpec::SizeModel {
                file: model.path().into(),
                fed: Some(9),
                event_size_mean: 1.0,
                event_size_rms: 0.3,
            },
        ),
    ];
    let mut group = c.benchmark_group("size");
    for (name, spec) in specs {
        let mut sizes = SizeModel::open(&spec, &options()).expect("a good model");
        let mut event = 0;
        group.bench_function(name, |b| {
            b.iter(|| {
                event = event % 99_999 + 1;
                black_box(sizes.size(black_box(EventId(event))))
            });
        });
    }
    group.finish();
}

fn sources(c: &mut Criterion) {
    let mut group = c.benchmark_group("source");
    group.throughput(Throughput::Bytes(SIZE as u64));
    let spec = SourceSpec::Fixed { size: ByteCount(SIZE as u64) };
    let mut source = Source::open(&spec, &options()).expect("a good source");
    let mut buffer = bytes::BytesMut::new();
    let mut event = EventId(0);
    group.bench_function("read fixed 2048", |b| {
        b.iter(|| {
            event = event.next();
            source.read(event, &mut buffer).expect("a generated source does not fail")
        });
    });
    group.bench_function("read fixed 2048, new buffer", |b| {
        b.iter(|| {
            event = event.next();
            let mut buffer = bytes::BytesMut::with_capacity(SIZE);
            source.read(event, &mut buffer).expect("a generated source does not fail");
            buffer.freeze()
        });
    });
    group.finish();
}

fn fed(c: &mut Criterion) {
    let mut file = Vec::new();
    for level1_id in 1..=4000_u32 {
        let mut payload = vec![0; (level1_id as usize * 8) % 1000];
        payload::fill(&mut payload, 1, EventId(u64::from(level1_id)), 0);
        write_fragment(&mut file, FedHeader { level1_id, source_id: 841, ..FedHeader::default() }, &payload);
    }
    let mut one = Vec::new();
    write_fragment(&mut one, FedHeader::default(), &vec![7; SIZE - 16]);
    let mut group = c.benchmark_group("fed");
    group.throughput(Throughput::Bytes(file.len() as u64));
    group.bench_function("walk 500 B", |b| b.iter(|| walk(Cursor::new(black_box(&file))).expect("a good file")));
    group.throughput(Throughput::Bytes(SIZE as u64));
    group.bench_function("check 2048", |b| b.iter(|| check_fragment(black_box(&one)).expect("a good fragment")));
    group.finish();
}

/// Frames of 100 bytes: evb's own, and those of a described board with a CRC-16.
fn small_frames(c: &mut Criterion) {
    const FRAMES: usize = 600;
    let mut group = c.benchmark_group("frames of 100 B");
    group.throughput(Throughput::Elements(FRAMES as u64));
    let (source, counter, payload) = (3, 1, vec![1; 100 - evb_sources::HEADER_SIZE]);
    let (end_of_run, resynchronised, good) = (false, false, true);
    let frame = Frame { source, counter, end_of_run, resynchronised, good, mark: None, payload };
    let mut stream = Vec::new();
    (0..FRAMES).for_each(|_| encode(&frame, &mut stream));
    let mut parser = FrameParser::new(1 << 20);
    group.bench_function("own", |b| {
        b.iter(|| {
            parser.push(black_box(&stream));
            while let Some(frame) = parser.pop().expect("good frames") {
                black_box(frame);
            }
        });
    });
    let field = |at, bits| Field::new(at, bits, ByteOrder::Little);
    let kind: ChecksumKind = "crc-16/ibm-3740".parse().expect("a kind");
    let framing = Framing {
        magic: vec![0xef, 0xbe, 0xad, 0xde],
        magic_at: 0,
        end: FrameEnd::Length { field: field(4, 16), unit: 4, adds: 0 },
        counter: Some(field(8, 32)),
        clock: Some(ClockField { field: field(12, 48), frequency: evb_core::Frequency(125_000_000_000) }),
        mark: None,
        source: None,
        damaged: None,
        checksum: Some(FrameChecksum { kind, at: -2, from: 0, to: -2, order: ByteOrder::Little }),
        stream_header: 0,
        across_datagrams: false,
        hits: None,
    };
    let mut frame = vec![0xef, 0xbe, 0xad, 0xde, 25, 0];
    frame.resize(98, 7);
    let crc = Crc::<u16>::new(&CRC_16_IBM_3740).checksum(&frame);
    frame.extend(crc.to_le_bytes());
    let stream = frame.repeat(FRAMES);
    let mut scanner = FrameScanner::new(Arc::new(framing), 1 << 20);
    group.bench_function("described", |b| {
        b.iter(|| {
            scanner.push(black_box(&stream));
            while let Some(frame) = scanner.pop().expect("good frames") {
                assert!(frame.good);
                black_box(frame);
            }
        });
    });
    group.finish();
}

fn framing(c: &mut Criterion) {
    let frame = Frame {
        source: 3,
        counter: 1,
        end_of_run: false,
        resynchronised: false,
        good: true,
        mark: None,
        payload: vec![1; SIZE],
    };
    let mut stream = Vec::new();
    (0..30).for_each(|_| encode(&frame, &mut stream));
    let mut group = c.benchmark_group("framing");
    group.throughput(Throughput::Bytes(stream.len() as u64));
    let mut parser = FrameParser::new(1 << 20);
    group.bench_function("parse 30 x 2048", |b| {
        b.iter(|| {
            parser.push(black_box(&stream));
            while let Some(frame) = parser.pop().expect("good frames") {
                black_box(frame);
            }
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = payloads, sizes, sources, fed, framing, small_frames
}
criterion_main!(benches);
