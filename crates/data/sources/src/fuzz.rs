//! Entry points for fuzzing: the parsers of this crate must neither panic nor hang on any bytes.
//!
//! Each function also checks invariants that hold for all bytes. The corpora under `tests/corpus` run as tests.

use crate::{
    ByteOrder, ChecksumKind, EudaqProducer, EudaqReader, FedEntry, Field, FrameChecksum, FrameEnd, FrameError,
    FrameParser, FrameScanner, Framing, HEADER_SIZE, check_fragment, decode_datagram, encode,
    size::{read_model, read_trace},
    walk,
};
use std::{collections::BTreeSet, io::Cursor, path::PathBuf, sync::Arc};

const LIMIT: u32 = 4096;

/// Frames of a stream and of a datagram: every accepted frame encodes to the same bytes again.
///
/// # Panics
/// If the parser is wrong.
pub fn fuzz_frame(bytes: &[u8]) {
    let whole = parse_stream(bytes, bytes.len().max(1));
    assert_eq!(whole, parse_stream(bytes, 1), "the cutting of the stream must not matter");
    if let Ok(frame) = decode_datagram(bytes, LIMIT)
        && frame.good
    {
        let mut again = Vec::new();
        encode(&frame, &mut again);
        assert_eq!(again, bytes);
    }
}

/// Frames of a described board, of which the first byte chooses the framing: every byte is in a frame, was passed over, or
/// is left.
///
/// # Panics
/// If the scanner is wrong.
pub fn fuzz_board_frame(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let little = |at, bits| Field::new(at, bits, ByteOrder::Little);
    let checksum = FrameChecksum { kind: ChecksumKind::Xor(8), at: -1, from: 0, to: -1, order: ByteOrder::Little };
    let end = match choice & 3 {
        0 => FrameEnd::Size(9),
        1 => FrameEnd::Marker(vec![1, 2]),
        _ => FrameEnd::Length { field: little(2, 16), unit: 1 + u32::from(choice & 1), adds: 3 },
    };
    let framing = Framing {
        magic: if choice & 4 == 0 { vec![0xab, 0xcd] } else { Vec::new() },
        magic_at: 0,
        end,
        counter: Some(little(4, 32)),
        clock: None,
        mark: None,
        source: Some((little(-2, 8), 1)),
        damaged: None,
        checksum: (choice & 8 == 0).then_some(checksum),
        stream_header: 0,
        across_datagrams: false,
        hits: None,
    };
    let mut scanner = FrameScanner::new(Arc::new(framing), LIMIT);
    scanner.push(bytes);
    let mut accounted = 0;
    loop {
        match scanner.settle() {
            Ok(Some(frame)) => accounted += frame.bytes.len(),
            Ok(None) => break,
            Err(FrameError::Skipped { bytes }) => accounted += bytes as usize,
            Err(FrameError::Oversized { .. }) => {}
            Err(_) => return,
        }
    }
    assert_eq!(accounted + scanner.unfinished().len(), bytes.len());
}

/// A file of EUDAQ, of which the first byte chooses the producer: its events are stretches of the file, one behind the other.
///
/// # Panics
/// If the reader is wrong.
pub fn fuzz_eudaq(bytes: &[u8]) {
    let Some((&choice, file)) = bytes.split_first() else { return };
    let name = ["NI", "TLU", "PlaneRawDataEvent", "TriggerIDSyncOnline"][usize::from(choice & 3)].to_owned();
    let producer = EudaqProducer { name, device: (choice & 4 != 0).then_some(1) };
    let mut reader = EudaqReader::new(Cursor::new(file), producer, LIMIT);
    let mut end = 0;
    let mut check = |event: crate::EudaqEvent| {
        let stretch = event.offset as usize..(event.offset + event.length) as usize;
        assert!(stretch.start >= end && file[stretch.clone()].starts_with(&event.bytes));
        assert_eq!(event.bytes.len() as u64, event.length.min(LIMIT.into()));
        end = stretch.end;
    };
    while matches!(reader.next(&mut check), Ok(true)) {}
}

/// Fragments of a recorded file: good and bad together are the file.
///
/// # Panics
/// If the search is wrong.
pub fn fuzz_fed(bytes: &[u8]) {
    let checked = check_fragment(bytes);
    match walk(Cursor::new(bytes)) {
        Ok(entries) => check_entries(&entries, bytes),
        Err(_) => assert!(checked.is_err(), "a good fragment is a good file"),
    }
}

/// A trace of sizes.
pub fn fuzz_trace_csv(bytes: &[u8]) {
    if let Ok(mut trace) = read_trace(PathBuf::from("trace"), bytes, 1, LIMIT) {
        let last = trace.last_event();
        assert!((last.saturating_sub(100)..=last).filter_map(|event| trace.size(event)).all(|size| size <= LIMIT));
    }
}

/// A size model.
pub fn fuzz_size_model(bytes: &[u8]) {
    if let Ok(row) = read_model(PathBuf::from("model"), bytes, None, 1) {
        assert!(row.rms >= 0.0);
    }
}

/// The frames of a stream cut into pieces of `size`, and the error that ends it.
fn parse_stream(bytes: &[u8], size: usize) -> Vec<Result<crate::Frame, crate::FrameError>> {
    let mut parser = FrameParser::new(LIMIT);
    let mut results = Vec::new();
    for piece in bytes.chunks(size) {
        parser.push(piece);
        while let Some(result) = parser.pop().transpose() {
            let ends = result.as_ref().is_err_and(|error| error.ends_stream());
            results.push(result);
            if ends {
                return results;
            }
        }
    }
    let popped: usize = results.iter().flatten().map(|frame| HEADER_SIZE + frame.payload.len()).sum();
    assert!(popped <= bytes.len());
    results
}

fn check_entries(entries: &[FedEntry], bytes: &[u8]) {
    let mut at = 0;
    let mut events = BTreeSet::new();
    for entry in entries {
        assert_eq!(entry.offset, at, "no byte lies between fragments");
        assert!(entry.event.is_none_or(|event| events.insert(event)), "an event has one fragment");
        let fragment = &bytes[at as usize..][..entry.length as usize];
        assert!(entry.fault.is_some() || check_fragment(fragment).is_ok(), "a good fragment is good");
        at += u64::from(entry.length);
    }
    assert_eq!(at, bytes.len() as u64, "no byte lies behind the fragments");
}
