//! Reading fragments by event.

use crate::support::{fed_file, options};
use bytes::BytesMut;
use evb_core::{ByteCount, EventId};
use evb_sources::{FedFault, Feed, ReadOutcome, Source, SourceError, SourceSpec, check_fragment, payload};
use std::path::Path;

#[test]
fn generated_fragments_are_filled_and_replace_what_was_there() {
    let spec = SourceSpec::Uniform { min: ByteCount(16), max: ByteCount(3000) };
    let options = options(Path::new(""), 2);
    let mut source = Source::open(&spec, &options).unwrap();
    assert_eq!(source.feed(), Feed::Endless);
    let mut buffer = BytesMut::from(&b"old"[..]);
    for event in (1..=100).map(EventId) {
        assert_eq!(source.read(event, &mut buffer).unwrap(), ReadOutcome::Good);
        assert!(payload::check(&buffer, options.seed, event, 2));
    }
    let again = buffer.clone();
    source.read(EventId(1), &mut buffer).unwrap();
    source.read(EventId(100), &mut buffer).unwrap();
    assert_eq!(buffer, again, "an event can be asked for again");
}

#[test]
fn events_that_a_trace_leaves_out_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), "event,source,bytes\n1,0,20\n3,0,30\n5,1,1\n").unwrap();
    let spec = SourceSpec::Trace { file: "t.csv".into(), source: None };
    let mut source = Source::open(&spec, &options(folder.path(), 0)).unwrap();
    assert_eq!(source.feed(), Feed::Finite { events: 5 });
    let mut buffer = BytesMut::new();
    let mut read = |event| (source.read(EventId(event), &mut buffer).unwrap(), buffer.len());
    assert_eq!(read(3), (ReadOutcome::Good, 30));
    assert_eq!(read(2), (ReadOutcome::Missing, 0));
    assert_eq!(read(5), (ReadOutcome::Missing, 0));
    assert_eq!(read(6), (ReadOutcome::Missing, 0));
}

#[test]
fn recorded_fragments_come_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = fed_file([1, 2, 3, 5]);
    let start_of_2 = file.windows(4).position(|w| w == [2, 0, 0, 0x51]).unwrap() - 4;
    file[start_of_2 + 3] ^= 1; // the bunch crossing
    std::fs::write(folder.path().join("fed.raw"), &file).unwrap();
    let spec = SourceSpec::CmsFed { file: "fed.raw".into(), source_id: None, refuse_damaged: false };
    let mut source = Source::open(&spec, &options(folder.path(), 0)).unwrap();
    assert_eq!(source.feed(), Feed::Finite { events: 5 });
    assert_eq!(source.recorded().map(|fed| fed.count(FedFault::Crc)), Some(1));
    let (mut buffer, mut all, mut outcomes) = (BytesMut::new(), Vec::new(), Vec::new());
    for event in (0..=6).map(EventId) {
        outcomes.push(source.read(event, &mut buffer).unwrap());
        assert_eq!(check_fragment(&buffer).is_ok(), outcomes.last() == Some(&ReadOutcome::Good));
        all.extend_from_slice(&buffer);
    }
    let (good, missing) = (ReadOutcome::Good, ReadOutcome::Missing);
    let bad = ReadOutcome::Corrupted(FedFault::Crc);
    assert_eq!(outcomes, [missing, good, bad, good, missing, good, missing]);
    assert!(all == file);
}

#[test]
fn a_recorded_fragment_above_the_limit_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = Vec::new();
    evb_sources::write_fragment(&mut file, crate::support::header(1), &[1; 200]);
    std::fs::write(folder.path().join("fed.raw"), &file).unwrap();
    let mut options = options(folder.path(), 0);
    options.max_fragment = 100;
    let mut source =
        Source::open(&SourceSpec::CmsFed { file: "fed.raw".into(), source_id: None, refuse_damaged: false }, &options)
            .unwrap();
    let mut buffer = BytesMut::new();
    assert_eq!(source.read(EventId(1), &mut buffer).unwrap(), ReadOutcome::Oversized { bytes: 216 });
    assert_eq!(buffer, file[..100]);
}

#[test]
fn live_sources_cannot_be_asked() {
    let spec = SourceSpec::Live(crate::live::udp(24).into());
    let mut source = Source::open(&spec, &options(Path::new(""), 0)).unwrap();
    assert_eq!(source.feed(), Feed::Live);
    assert!(matches!(source.read(EventId(1), &mut BytesMut::new()), Err(SourceError::Live)));
}

#[test]
fn paths_name_environment_variables() {
    // Cargo sets this one for every test it runs.
    let spec =
        SourceSpec::CmsFed { file: "${CARGO_MANIFEST_DIR}/no-such.raw".into(), source_id: None, refuse_damaged: false };
    let error = Source::open(&spec, &options(Path::new(""), 0)).unwrap_err().to_string();
    let wanted = format!("cannot open {}/no-such.raw: ", env!("CARGO_MANIFEST_DIR"));
    assert!(error.starts_with(&wanted), "{error}");
}
