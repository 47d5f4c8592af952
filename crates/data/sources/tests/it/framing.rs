//! Frames: encoding, parsing however the stream is cut, and rejection by kind.

use bytes::Bytes;
use evb_core::checksum;
use evb_sources::{Frame, FrameError, FrameParser, HEADER_SIZE, decode_datagram, encode};
use proptest::prelude::*;

pub(crate) fn frame(counter: u64, payload: &[u8]) -> Frame {
    let payload = Bytes::copy_from_slice(payload);
    Frame { source: 3, counter, end_of_run: false, resynchronised: false, good: true, mark: None, payload }
}

pub(crate) fn encoded(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(frame, &mut bytes);
    bytes
}

/// Changes a header byte and makes the header's checksum right again.
pub(crate) fn with_header_byte(mut bytes: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    bytes[at] = value;
    let check = checksum(&bytes[..28]);
    bytes[28..32].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// The example of docs/reference/front-end-framing.md.
#[test]
fn the_layout_is_as_documented() {
    let header = [
        0x65, 0x76, 0x62, 0x46, 1, 0, 3, 0, 7, 0, 0, 0, 0, 0, 0, 0, // magic to counter
        3, 0, 0, 0, 0xb7, 0x3f, 0x4b, 0x36, 0, 0, 0, 0, 0x31, 0x5e, 0xc2, 0x48, // length to header checksum
    ];
    assert_eq!(encoded(&frame(7, b"abc")), [&header[..], b"abc"].concat());
    let counter = encoded(&Frame { resynchronised: true, ..frame(0x0102_0304_0506_0708, b"") });
    assert_eq!(counter[4..16], [1, 2, 3, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn every_flag_survives() {
    for bits in 0..16_u8 {
        let payload: &[u8] = if bits & 1 != 0 { b"" } else { b"payload" };
        let frame = Frame {
            end_of_run: bits & 1 != 0,
            resynchronised: bits & 2 != 0,
            good: bits & 4 != 0,
            mark: (bits & 8 != 0).then_some(0x0a0b_0c0d),
            ..frame(1, payload)
        };
        assert_eq!(decode_datagram(&encoded(&frame), 100), Ok(frame));
    }
}

#[test]
fn invalid_frames_are_counted_by_kind() {
    let good = encoded(&frame(7, b"payload"));
    let error = |bytes: &[u8]| decode_datagram(bytes, 7).unwrap_err();
    assert!(matches!(error(b"GET / HTTP/1.1\r\nHost: an.example.org\r\n"), FrameError::Magic { .. }));
    assert_eq!(error(&with_header_byte(good.clone(), 4, 9)), FrameError::Version { found: 9 });
    assert_eq!(error(&with_header_byte(good.clone(), 5, 16)), FrameError::Field, "an unknown flag");
    assert_eq!(error(&with_header_byte(good.clone(), 5, 1)), FrameError::Field, "an end of run with a payload");
    assert_eq!(error(&with_header_byte(good.clone(), 27, 1)), FrameError::Field, "a mark without its flag");
    assert_eq!(error(&with_header_byte(good.clone(), 16, 8)), FrameError::Oversized { bytes: 8, limit: 7 });
    assert_eq!(error(&good[..38]), FrameError::DatagramSize { found: 38, wanted: 39 });
    assert_eq!(error(&[&good[..], b"x"].concat()), FrameError::DatagramSize { found: 40, wanted: 39 });
    assert_eq!(error(&good[..31]), FrameError::DatagramSize { found: 31, wanted: 32 });
    assert_eq!(error(&[]), FrameError::DatagramSize { found: 0, wanted: 32 });
}

#[test]
fn every_flipped_bit_is_seen() {
    let good = encoded(&frame(7, b"payload"));
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        match decode_datagram(&bytes, 100) {
            Ok(found) => assert!(!found.good && bit / 8 >= HEADER_SIZE, "bit {bit}"),
            Err(_) => assert!(bit / 8 < HEADER_SIZE, "bit {bit}"),
        }
    }
}

#[test]
fn a_damaged_payload_keeps_its_place_in_the_stream() {
    let mut stream = encoded(&frame(1, b"first"));
    stream[HEADER_SIZE] ^= 1;
    stream.extend(encoded(&frame(2, b"second")));
    let mut parser = FrameParser::new(100);
    parser.push(&stream);
    let first = parser.pop().unwrap().unwrap();
    assert_eq!((first.counter, first.good), (1, false));
    assert_eq!(parser.pop(), Ok(Some(frame(2, b"second"))));
    assert!(parser.is_at_boundary());
}

#[test]
fn an_oversized_frame_is_skipped() {
    for piece in [1, 7, 50, 1000] {
        let mut stream = encoded(&frame(1, &[1; 101]));
        stream.extend(encoded(&frame(2, b"next")));
        let mut parser = FrameParser::new(100);
        let mut found = Vec::new();
        for piece in stream.chunks(piece) {
            parser.push(piece);
            found.extend(std::iter::from_fn(|| parser.pop().transpose()));
        }
        assert_eq!(found, [Err(FrameError::Oversized { bytes: 101, limit: 100 }), Ok(frame(2, b"next"))]);
    }
}

#[test]
fn garbage_ends_a_stream_at_once_and_for_good() {
    let mut parser = FrameParser::new(100);
    parser.push(b"GET");
    assert_eq!(parser.pop(), Ok(None));
    parser.push(b" ");
    let error = parser.pop().unwrap_err();
    assert!(error.ends_stream());
    parser.push(&encoded(&frame(1, b"")));
    assert_eq!(parser.pop(), Err(error));
}

prop_compose! {
    fn any_frame()(
        source: u16,
        counter: u64,
        flags in 0_u8..8,
        mark: Option<u32>,
        payload in prop::collection::vec(any::<u8>(), 0..200),
    ) -> Frame {
        let end_of_run = flags & 1 != 0;
        let payload = if end_of_run { Bytes::new() } else { payload.into() };
        Frame { source, counter, end_of_run, resynchronised: flags & 2 != 0, good: flags & 4 != 0, mark, payload }
    }
}

proptest! {
    #[test]
    fn frames_survive_any_cutting(
        frames in prop::collection::vec(any_frame(), 0..20),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let stream: Vec<u8> = frames.iter().flat_map(encoded).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let mut parser = FrameParser::new(200);
        let mut found = Vec::new();
        for cut in cuts.windows(2) {
            parser.push(&stream[cut[0]..cut[1]]);
            while let Some(frame) = parser.pop().unwrap() {
                found.push(frame);
            }
        }
        prop_assert!(parser.is_at_boundary());
        prop_assert_eq!(found, frames);
    }
}
