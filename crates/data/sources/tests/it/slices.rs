//! Hits cut out of the frames of boards, and put into slices.

use crate::{boards::digitiser, live::Listening, support::data_folder};
use bytes::Bytes;
use evb_core::{EventCounter, FirstCounter, Frequency, Span, Time};
use evb_sources::{
    ByteOrder, ClockField, CutHit, Encoding, Field, FrameEnd, FrameScanner, Framing, FrontEndLink, HitClock, HitCutter,
    HitFault, HitLayout, LiveItem, LiveSlicing, LiveSpec, Marker, SlicedHit, Slicer, SlicerItem, Slicing, SourceSpec,
    Tick, TimeField,
};
use proptest::prelude::*;
use std::{collections::BTreeMap, io::Write as _, sync::Arc};

const MHZ: u64 = 1_000_000_000;

const fn big(at: i32, bits: u8, shift: u8) -> Field {
    Field { at, bits, shift, order: ByteOrder::Big }
}

const fn part(field: Field, encoding: Encoding, tick: Tick) -> TimeField {
    TimeField { field, encoding, tick }
}

/// Frames of 8 bytes of head, hits of 4 bytes, and 1 byte at the end. The clock of the frame counts microseconds.
fn board(clock_bits: u8, clock: HitClock) -> Framing {
    let time = vec![part(big(0, 16, 0), Encoding::Plain, Tick::Length(Span(8000)))];
    Framing {
        end: FrameEnd::Length { field: big(4, 8, 0), unit: 1, adds: 0 },
        counter: None,
        clock: Some(ClockField { field: big(5, clock_bits, 0), frequency: Frequency(MHZ) }),
        source: None,
        checksum: None,
        hits: Some(Box::new(HitLayout { at: 8, size: 4, until: 1, time, clock })),
        ..digitiser()
    }
}

/// A frame with this clock, and hits with these times in ticks and these numbers.
fn frame(clock: u32, hits: &[(u16, u16)]) -> Vec<u8> {
    let mut frame = vec![0xef, 0xbe, 0xad, 0xde, 9 + 4 * hits.len() as u8];
    frame.extend(&clock.to_be_bytes()[1..]);
    hits.iter().for_each(|(time, number)| frame.extend([time.to_be_bytes(), number.to_be_bytes()].concat()));
    frame.push(0);
    frame
}

fn times(hits: &[CutHit]) -> Vec<Option<i64>> {
    hits.iter().map(|hit| hit.time).collect()
}

#[test]
fn hits_count_from_the_clock_of_their_frame() {
    let mut cutter = HitCutter::new(Arc::new(board(24, HitClock::Frame)), Span::from_micros(7));
    let bytes = Bytes::from(frame(1000, &[(0, 1), (125, 2)]));
    let hits = cutter.cut(&bytes, 0, Some(1000), None);
    assert_eq!(times(&hits), [Some(1_007_000), Some(1_008_000)]);
    assert_eq!(hits[1].bytes, [0, 125, 0, 2][..]);
    // Without a layout, the frame is a hit.
    let plain = Framing { hits: None, ..board(24, HitClock::Frame) };
    let hits = HitCutter::new(Arc::new(plain), Span::ZERO).cut(&bytes, 0, Some(1000), None);
    assert_eq!(hits, [CutHit { time: Some(1_000_000), is_whole: true, bytes: bytes.clone() }]);
    // A hit that is cut off, and a frame without room for any.
    let hits = cutter.cut(&bytes.slice(..14), 0, Some(1000), None);
    assert_eq!(hits.iter().map(|hit| (hit.is_whole, hit.bytes.len())).collect::<Vec<_>>(), [(true, 4), (false, 1)]);
    assert!(!cutter.cut(&bytes.slice(..8), 0, Some(1000), None)[0].is_whole);
}

#[test]
fn a_narrow_clock_is_near_the_hits_before() {
    let mut cutter = HitCutter::new(Arc::new(board(8, HitClock::Frame)), Span::ZERO);
    let mut clock = |clock: u64, near| {
        let bytes = Bytes::from(frame(0, &[(0, 1)]));
        cutter.cut(&bytes, 0, Some(clock), near)[0].time.unwrap() / 1000
    };
    assert_eq!(clock(250, None), 250);
    assert_eq!(clock(3, Some(250_000)), 259, "it has wrapped");
    assert_eq!(clock(250, Some(259_000)), 250, "it came late");
    assert_eq!(clock(3, Some(1_000_000_000)), 1_000_000 - 1_000_000 % 256 + 3);
}

#[test]
fn the_own_clock_of_hits_is_near_that_of_their_frame() {
    let mut cutter = HitCutter::new(Arc::new(board(24, HitClock::Own)), Span::ZERO);
    // 2^16 ticks of 8 ns are 524.288 us.
    let bytes = Bytes::from(frame(0, &[(0, 1), (65_535, 2), (3, 3)]));
    let hits = cutter.cut(&bytes, 0, Some(5243), None);
    assert_eq!(times(&hits), [Some(5_242_880), Some(5_242_872), Some(5_242_904)]);
}

#[test]
fn parts_of_a_time_are_added_in_their_encodings() {
    let parts = vec![
        part(big(0, 5, 11), Encoding::Signed, Tick::Length(Span(102_400_000))),
        part(big(2, 12, 0), Encoding::Gray, Tick::Frequency(Frequency(40 * MHZ))),
    ];
    let layout = HitLayout { at: 8, size: 4, until: 1, time: parts, clock: HitClock::Frame };
    let framing = Framing { hits: Some(Box::new(layout)), ..board(24, HitClock::Frame) };
    let mut cutter = HitCutter::new(Arc::new(framing), Span::ZERO);
    // -1 x 102.4 us and 7 (100 in Gray code) x 25 ns; 2 x 102.4 us and 4095 (1000 0000 0000) x 25 ns.
    let bytes = Bytes::from(frame(0, &[(0xffff, 0xf004), (0x1000, 0x0800)]));
    let hits = cutter.cut(&bytes, 0, Some(1000), None);
    assert_eq!(times(&hits), [Some(1_000_000 - 102_400 + 175), Some(1_000_000 + 204_800 + 102_375)]);
}

/// The readout of VMM3a chips over UDP, as the guide to boards has it.
fn vmm(fec: Option<u64>) -> Framing {
    let clock = Tick::Frequency(Frequency(40 * MHZ));
    let marker = Marker {
        is: (big(4, 1, 7), 0),
        time: vec![
            part(big(0, 32, 0), Encoding::Plain, Tick::Length(Span(25_600_000))),
            part(big(4, 10, 0), Encoding::Plain, clock),
        ],
        chip: Some(big(4, 5, 2)),
        hit_chip: Some(big(0, 5, 6)),
    };
    let time = vec![
        part(big(0, 5, 11), Encoding::Signed, Tick::Length(Span(102_400_000))),
        part(big(2, 12, 0), Encoding::Gray, clock),
    ];
    Framing {
        magic: b"VM3".to_vec(),
        magic_at: 4,
        end: FrameEnd::Datagram,
        counter: Some(big(0, 32, 0)),
        clock: None,
        source: fec.map(|fec| (big(7, 8, 0), fec)),
        checksum: None,
        hits: Some(Box::new(HitLayout { at: 16, size: 6, until: 0, time, clock: HitClock::Marker(marker) })),
        ..digitiser()
    }
}

/// A word of a chip: a marker at this time in ticks.
fn vmm_marker(chip: u16, ticks: u64) -> Vec<u8> {
    [&((ticks >> 10) as u32).to_be_bytes()[..], &(chip << 10 | (ticks & 0x3ff) as u16).to_be_bytes()].concat()
}

/// A hit of a chip, by its offset in 4096 ticks and its bunch crossing.
fn vmm_hit(chip: u32, offset: i32, crossing: u32) -> Vec<u8> {
    let word = (offset as u32 & 0x1f) << 27 | chip << 22 | 0x155 << 12 | (crossing ^ crossing >> 1);
    [&word.to_be_bytes()[..], &0x8a5a_u16.to_be_bytes()].concat()
}

#[test]
fn hits_count_from_the_last_marker_of_their_chip() {
    let mut cutter = HitCutter::new(Arc::new(vmm(None)), Span::ZERO);
    let mut cut = |counter: u64, words: &[Vec<u8>]| {
        let packet = [b"0000VM3 00000000".to_vec(), words.concat()].concat();
        times(&cutter.cut(&packet.into(), counter, None, None))
    };
    let (first, second) = (4096 + 5, 1 << 35);
    let words = [
        vmm_hit(1, 0, 7),
        vmm_marker(1, first),
        vmm_hit(1, 2, 7),
        vmm_hit(3, 0, 0),
        vmm_marker(3, second),
        vmm_hit(3, -1, 4095),
        vmm_hit(1, 15, 0),
    ];
    let at = |ticks: u64| Some(ticks as i64 * 25);
    let expected = [None, at(first + 8192 + 7), None, at(second - 1), at(first + 15 * 4096)];
    assert_eq!(cut(70, &words), expected);
    assert_eq!(cut(71, &words[2..3]), [at(first + 8192 + 7)], "the marker of the packet before");
    assert_eq!(cut(73, &words[2..3]), [None], "a packet is missing, and a marker perhaps with it");
}

/// The slices of what a scanner makes of these pieces.
fn sliced(pieces: &[&[u8]]) -> (BTreeMap<u64, Bytes>, Vec<(Bytes, HitFault)>) {
    let framing = Arc::new(board(24, HitClock::Frame));
    let slicing = Slicing { length: Span::from_millis(1), overlap: Span::from_micros(50), from_ns: None };
    let slicing =
        LiveSlicing { slicing, offset: Span::ZERO, sort_depth: Span::from_millis(2), latency: Span::from_secs(1) };
    let mut scanner = FrameScanner::new(framing.clone(), 1000);
    let (mut cutter, mut slicer) = (HitCutter::new(framing, Span::ZERO), Slicer::new(&slicing, 1 << 20, false));
    let (mut slices, mut apart) = (BTreeMap::new(), Vec::new());
    for (n, piece) in pieces.iter().enumerate() {
        scanner.push(piece);
        while let Some(frame) = scanner.pop().unwrap() {
            slicer.begin_frame();
            for hit in cutter.cut(&frame.bytes, frame.counter, frame.clock, slicer.reference()) {
                slicer.push(SlicedHit { time: hit.time.unwrap(), bytes: hit.bytes }, Time(n as u64));
            }
            let mut take = |slicer: &mut Slicer| {
                while let Some(item) = slicer.pop() {
                    match item {
                        SlicerItem::Slice { number, bytes, .. } => assert!(slices.insert(number, bytes).is_none()),
                        SlicerItem::Apart { bytes, reason, .. } => apart.push((bytes, reason)),
                    }
                }
            };
            take(&mut slicer);
        }
    }
    slicer.finish();
    while let Some(item) = slicer.pop() {
        match item {
            SlicerItem::Slice { number, bytes, .. } => assert!(slices.insert(number, bytes).is_none()),
            SlicerItem::Apart { bytes, reason, .. } => apart.push((bytes, reason)),
        }
    }
    (slices, apart)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any cut of the bytes gives the same slices, and no hit is lost.
    #[test]
    fn any_cut_of_the_bytes_gives_the_same_slices(
        steps in proptest::collection::vec((-3000_i32..5000, 0_u16..5), 3..100),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..50),
    ) {
        let (mut clock, mut number, mut bytes) = (1_000_000_u32, 0, Vec::new());
        for (step, count) in steps {
            clock = clock.saturating_add_signed(step);
            let hits: Vec<_> = (0..count).map(|hit| (hit * 999, number + hit)).collect();
            number += count;
            bytes.extend(frame(clock, &hits));
        }
        let whole = sliced(&[&bytes]);
        let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len())).chain([0, bytes.len()]).collect();
        places.sort_unstable();
        let pieces: Vec<_> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(&sliced(&pieces), &whole);
        let in_slices = whole.0.values().flat_map(|bytes| bytes.chunks(12).map(|hit| u16::from_be_bytes([hit[10], hit[11]])));
        let apart = whole.1.iter().map(|(hit, _)| u16::from_be_bytes([hit[10], hit[11]]));
        let mut found: Vec<_> = in_slices.chain(apart).collect();
        found.sort_unstable();
        found.dedup();
        prop_assert_eq!(found, (0..number).collect::<Vec<_>>());
    }
}

/// What a source with these slices makes of its data.
fn run(link: FrontEndLink, framing: Framing, slicing: Slicing) -> (Vec<(u64, Bytes)>, BTreeMap<HitFault, u64>) {
    let slices =
        LiveSlicing { slicing, offset: Span::ZERO, sort_depth: Span::from_millis(1), latency: Span::from_secs(1) };
    let counter = EventCounter { bits: 64, first: FirstCounter::Known(1) };
    let spec =
        LiveSpec { link, counter, framing: Some(framing), slices: Some(slices), control: None, shared: Vec::new() };
    let SourceSpec::Live(spec) = SourceSpec::Live(spec.into()).sliced(slicing) else { panic!() };
    let live = Listening::start(&spec, 1 << 20);
    let (mut fragments, mut apart) = (Vec::new(), BTreeMap::new());
    loop {
        match live.next() {
            LiveItem::Fragment { counter, bytes, good: true, .. } => fragments.push((counter, bytes)),
            LiveItem::Apart { reason, .. } => *apart.entry(reason).or_default() += 1,
            LiveItem::EndOfRun { counter, .. } => {
                assert_eq!(counter, fragments.last().map(|(number, _)| *number));
                return (fragments, apart);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_file_of_frames_is_sliced_to_its_end() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for clock in 0..10_u16 {
        file.write_all(&frame(5_000_000 + u32::from(clock) * 400, &[(0, clock), (1, clock)])).unwrap();
    }
    let slicing = Slicing { length: Span::from_millis(1), overlap: Span::ZERO, from_ns: Some(4_999_000_000) };
    let (fragments, apart) = run(FrontEndLink::File(file.path().into()), board(24, HitClock::Frame), slicing);
    let counts: Vec<_> = fragments.iter().map(|(number, bytes)| (*number, bytes.len() / 12)).collect();
    assert_eq!(counts, [(1, 0), (2, 6), (3, 4), (4, 6), (5, 4)]);
    assert!(apart.is_empty());
}

/// All hits of captured VMM3a chips, sliced by time: those behind a marker are in their slices, the others are apart.
#[test]
fn the_hits_of_captured_chips_are_sliced() {
    let Some(folder) = data_folder() else { return };
    let slicing = Slicing { length: Span::from_micros(100), overlap: Span::ZERO, from_ns: None };
    let of = |name: &str, fec| {
        let link = FrontEndLink::Capture { file: folder.join("public").join(name), port: Some(6006), paced: false };
        let (fragments, apart) = run(link, vmm(Some(fec)), slicing);
        let numbers: Vec<_> = fragments.iter().map(|(number, _)| *number).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
        for (number, bytes) in &fragments {
            let (hits, rest) = bytes.as_chunks::<14>();
            let time = |hit: &[u8; 14]| u64::from_le_bytes(*hit.first_chunk().unwrap());
            assert!(rest.is_empty() && hits.is_sorted_by_key(time));
            assert!(hits.iter().all(|hit| time(hit) / 100_000 + 1 == *number));
        }
        let hits: usize = fragments.iter().map(|(_, bytes)| bytes.len() / 14).sum();
        (hits as u64, apart.get(&HitFault::OutOfStep).copied().unwrap_or(0), apart.len(), fragments.len())
    };
    if !folder.join("public/vmm-example.pcapng").is_file() {
        println!("skipped: no capture of VMM3a chips in {}", folder.display());
        return;
    }
    for (name, fecs, all) in [("vmm-example.pcapng", &[16, 32][..], 149_180), ("vmm-example_pad.pcapng", &[32], 4115)] {
        let found: Vec<_> = fecs.iter().map(|fec| of(name, *fec)).collect();
        println!("{name}: hits in slices, behind no marker, reasons, slices: {found:?}");
        assert_eq!(found.iter().map(|(hits, apart, ..)| hits + apart).sum::<u64>(), all, "{name}");
        assert!(found.iter().all(|(.., reasons, _)| *reasons <= 1), "{name}: {found:?}");
    }
}
