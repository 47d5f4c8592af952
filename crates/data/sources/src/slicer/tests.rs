use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

/// Slices of a millisecond with an overlap of 100 us, a sort depth of 2 ms and a latency of 50 ms.
fn slicing(from_ns: Option<u64>) -> LiveSlicing {
    let slicing = Slicing { length: Span::from_millis(1), overlap: Span::from_micros(100), from_ns };
    LiveSlicing { slicing, offset: Span::ZERO, sort_depth: Span::from_millis(2), latency: Span::from_millis(50) }
}

/// A slicer, and all that it has handed out. Hits are known by their serial numbers.
struct Bench {
    slicer: Slicer,
    slices: BTreeMap<u64, Vec<(i64, u32)>>,
    apart: BTreeMap<u32, HitFault>,
    serial: u32,
    times: Vec<i64>,
}

impl Bench {
    fn new(slicing: LiveSlicing) -> Self {
        let slicer = Slicer::new(&slicing, 1 << 16, false);
        Self { slicer, slices: BTreeMap::new(), apart: BTreeMap::new(), serial: 0, times: Vec::new() }
    }

    /// A frame with a hit at each of these times in nanoseconds, which comes at this time in milliseconds.
    fn frame(&mut self, times: &[i64], arrived_ms: u64) {
        self.slicer.begin_frame();
        for &time in times {
            let bytes = Bytes::copy_from_slice(&self.serial.to_le_bytes());
            self.slicer.push(SlicedHit { time, bytes }, Time(arrived_ms * 1000 * MS));
            self.serial += 1;
            self.times.push(time);
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(item) = self.slicer.pop() {
            match item {
                SlicerItem::Slice { number, bytes, is_whole } => {
                    let expected = self.slices.last_key_value().map(|(last, _)| last + 1);
                    assert!(is_whole && expected.is_none_or(|expected| number == expected), "{number} {expected:?}");
                    self.slices.insert(number, hits(&bytes));
                }
                SlicerItem::Apart { bytes, reason, .. } => {
                    for (_, serial) in hits(&bytes) {
                        assert!(self.apart.insert(serial, reason).is_none(), "apart once");
                    }
                }
            }
        }
    }

    fn finish(&mut self) {
        self.slicer.finish();
        self.drain();
    }

    /// Every hit is apart, or in all slices that hold its time and in no other.
    fn check(&self) {
        let mut places: BTreeMap<(i64, u32), Vec<u64>> = BTreeMap::new();
        for (slice, hits) in &self.slices {
            hits.iter().for_each(|hit| places.entry(*hit).or_default().push(*slice));
        }
        for (serial, time) in (0..).zip(&self.times) {
            let holds = |slice: u64| {
                let window = slicing(None).slicing.window(evb_core::EventId(slice));
                u64::try_from(*time).is_ok_and(|time| window.contains(&time))
            };
            let found = places.remove(&(*time, serial)).unwrap_or_default();
            let near = (*time / MS as i64).max(0) as u64;
            let expected: Vec<_> = (near.max(1)..=near + 1).filter(|slice| holds(*slice)).collect();
            match self.apart.get(&serial) {
                Some(_) => assert!(found.is_empty(), "hit {serial} at {time} is apart and in {found:?}"),
                None => assert_eq!(found, expected, "hit {serial} at {time}"),
            }
        }
        let sorted = |hits: &Vec<(i64, u32)>| hits.is_sorted_by_key(|(time, _)| *time);
        assert!(self.slices.values().all(sorted));
    }
}

fn hits(bytes: &[u8]) -> Vec<(i64, u32)> {
    let hit = |hit: &[u8]| {
        let (time, serial) = hit.split_at(8);
        (i64::from_le_bytes(time.try_into().unwrap()), u32::from_le_bytes(serial.try_into().unwrap()))
    };
    bytes.chunks(12).map(hit).collect()
}

const fn ms(time: i64) -> i64 {
    time * MS as i64
}

#[test]
fn slices_are_handed_out_behind_the_sort_depth_empty_or_not() {
    let mut bench = Bench::new(slicing(None));
    bench.frame(&[ms(10)], 0);
    bench.frame(&[ms(11), ms(16)], 0);
    assert!(bench.slices.is_empty(), "nothing is believed before the third frame");
    bench.frame(&[ms(15), ms(20)], 0);
    // 20 ms minus the sort depth is 18 ms; slice 17 ends at 17.1 ms.
    assert_eq!(bench.slices.keys().copied().collect::<Vec<_>>(), (8..=17).collect::<Vec<_>>());
    bench.finish();
    assert_eq!(bench.slices.len(), 21 - 7);
    assert_eq!(bench.slices[&10], [(ms(10), 0)], "in the overlap");
    assert_eq!(bench.slices[&11], [(ms(10), 0), (ms(11), 1)]);
    assert!(bench.slices[&13].is_empty() && bench.apart.is_empty());
    bench.check();
}

#[test]
fn a_hit_is_late_when_a_slice_of_it_is_over() {
    let mut bench = Bench::new(slicing(None));
    (0..40).for_each(|time| bench.frame(&[ms(time)], 0));
    bench.frame(&[ms(39) - 3_100_000, ms(37) + 1], 0);
    bench.finish();
    assert_eq!(bench.apart, [(40, HitFault::Late)].into());
    bench.check();
}

#[test]
fn a_leap_is_believed_when_other_frames_confirm_it() {
    let day = 86_400_000;
    let mut bench = Bench::new(slicing(None));
    (0..20).for_each(|time| bench.frame(&[ms(time)], 0));
    // A corrupt frame with many hits, and a hit with a wrong bit: what goes on as before refutes both.
    bench.frame(&[ms(day), ms(day) + 1, ms(day) + 2], 0);
    (20..30).for_each(|time| bench.frame(&[ms(time), ms(time + 100_000)], 0));
    assert_eq!(bench.apart.len(), 3 + 9, "the last one is still in doubt");
    assert!(bench.apart.values().all(|reason| *reason == HitFault::OutOfSequence));
    // A pause of five seconds.
    let before = bench.slices.len();
    bench.frame(&[ms(5000)], 0);
    bench.frame(&[ms(5001)], 0);
    assert_eq!(bench.slices.len(), before);
    bench.frame(&[ms(5002)], 0);
    assert_eq!(*bench.slices.last_key_value().unwrap().0, 4999);
    // The next such pause is believed at once.
    bench.frame(&[ms(9000)], 0);
    assert_eq!(*bench.slices.last_key_value().unwrap().0, 8997);
    bench.finish();
    assert_eq!(bench.apart.len(), 13);
    bench.check();
}

#[test]
fn a_leap_beyond_all_measure_is_never_believed() {
    let mut bench = Bench::new(slicing(Some(0)));
    (0..20).for_each(|time| bench.frame(&[ms(time)], 0));
    (0..20).for_each(|time| bench.frame(&[i64::MAX / 2 + time], 0));
    bench.finish();
    assert_eq!((bench.apart.len(), bench.slices.len()), (20, 20));
    bench.check();
}

#[test]
fn a_wrong_first_time_does_not_set_the_beginning() {
    for wrong in [ms(3), ms(86_400_000)] {
        let mut bench = Bench::new(slicing(None));
        bench.frame(&[wrong], 0);
        (100_000..100_020).for_each(|time| bench.frame(&[ms(time)], 0));
        bench.finish();
        assert_eq!(bench.apart, [(0, HitFault::OutOfSequence)].into(), "{wrong}");
        assert_eq!(*bench.slices.first_key_value().unwrap().0, 99_998);
        bench.check();
    }
}

#[test]
fn few_and_rare_hits_are_believed() {
    // Two hits in all.
    let mut bench = Bench::new(slicing(None));
    bench.frame(&[ms(7)], 0);
    bench.frame(&[ms(9)], 0);
    bench.finish();
    assert!(bench.apart.is_empty());
    bench.check();
    // A hit in ten seconds.
    let mut bench = Bench::new(slicing(None));
    (1..30).for_each(|time| bench.frame(&[ms(time * 10_000)], 0));
    bench.finish();
    assert!(bench.apart.is_empty(), "{:?}", bench.apart);
    bench.check();
}

#[test]
fn known_slices_begin_with_the_first_one() {
    let mut bench = Bench::new(slicing(Some(5 * MS)));
    bench.frame(&[ms(8), ms(4), ms(12)], 0);
    bench.finish();
    assert_eq!(bench.slices.keys().copied().collect::<Vec<_>>(), (1..=8).collect::<Vec<_>>());
    assert_eq!(bench.apart, [(1, HitFault::Early)].into());
}

#[test]
fn a_silent_source_follows_the_host() {
    let mut bench = Bench::new(slicing(None));
    bench.slicer.be_silent(Time(0));
    assert!(!bench.slicer.waits(), "never heard");
    // Deliveries take 7 ms and 5 ms.
    bench.frame(&[ms(100)], 107);
    bench.frame(&[ms(101), ms(102)], 107);
    bench.slicer.be_silent(Time(120 * 1000 * MS));
    bench.drain();
    assert!(bench.slices.is_empty() && bench.slicer.waits(), "there may be a third frame");
    bench.slicer.be_silent(Time(160 * 1000 * MS));
    bench.drain();
    // 160 ms minus 5 ms and 50 ms is 105 ms, which the third frame may have been at.
    assert_eq!(*bench.slices.last_key_value().unwrap().0, 104);
    bench.slicer.be_silent(Time(10_055 * 1000 * MS));
    bench.drain();
    assert!((9_998..=9_999).contains(bench.slices.last_key_value().unwrap().0), "the clocks may drift");
    // It goes on. What came from the silence is late.
    bench.frame(&[ms(10_010), ms(9_000)], 10_056);
    bench.finish();
    assert_eq!(bench.apart, [(4, HitFault::Late)].into());
    bench.check();
    // Behind the end there are no slices, whatever the time is.
    let count = bench.slices.len();
    bench.slicer.be_silent(Time(20_000 * 1000 * MS));
    bench.drain();
    assert!(bench.slices.len() == count && !bench.slicer.waits());
}

#[test]
fn an_abandoned_slice_leaves_each_hit_once() {
    let mut bench = Bench::new(slicing(None));
    // In the overlaps of slices that are complete, and that are not.
    (0..10).for_each(|time| bench.frame(&[ms(time) + 50_000], 0));
    let complete = bench.slices.len() as u32;
    bench.slicer.abandon();
    bench.drain();
    // The first one behind is in a slice that is complete, and in one that is not.
    assert_eq!(bench.apart.keys().copied().collect::<Vec<_>>(), (complete + 1..10).collect::<Vec<_>>());
    assert!(bench.apart.values().all(|reason| *reason == HitFault::Unplaced));
}

#[test]
fn a_slice_above_the_largest_fragment_is_cut_between_hits() {
    let mut slicer = Slicer::new(&slicing(Some(0)), 30, false);
    slicer.begin_frame();
    (0..5_u32).for_each(|serial| {
        slicer.push(
            SlicedHit { time: 500_000 - i64::from(serial), bytes: serial.to_le_bytes().to_vec().into() },
            Time(0),
        );
    });
    slicer.finish();
    let Some(SlicerItem::Slice { number: 1, bytes, is_whole: false }) = slicer.pop() else { panic!() };
    let mut all = hits(&bytes);
    while let Some(SlicerItem::Apart { number: 1, bytes, reason: HitFault::Oversized }) = slicer.pop() {
        all.extend(hits(&bytes));
    }
    assert_eq!(all.iter().map(|(_, serial)| *serial).collect::<Vec<_>>(), [4, 3, 2, 1, 0]);
}

#[test]
fn memory_is_bounded_by_handing_out_slices_early() {
    let mut slicing = slicing(Some(0));
    slicing.sort_depth = Span::from_secs(3600);
    let mut slicer = Slicer::new(&slicing, 1 << 20, false);
    let hit = Bytes::from(vec![0; 1 << 16]);
    let mut slices = 0;
    for time in 0..4000 {
        slicer.begin_frame();
        slicer.push(SlicedHit { time: ms(time), bytes: hit.clone() }, Time(0));
        while let Some(SlicerItem::Slice { .. }) = slicer.pop() {
            slices += 1;
        }
        assert!(slicer.open_bytes <= MOST_OPEN && slicer.open.len() <= 1100);
    }
    assert!(slices > 2900, "{slices}");
}

#[test]
fn whole_frames_have_their_lengths_before_them() {
    let mut slicer = Slicer::new(&slicing(Some(0)), 100, true);
    slicer.push(SlicedHit { time: 3, bytes: Bytes::from_static(b"frame") }, Time(0));
    slicer.finish();
    let Some(SlicerItem::Slice { bytes, .. }) = slicer.pop() else { panic!() };
    assert_eq!(bytes, [&3_i64.to_le_bytes()[..], &5_u32.to_le_bytes(), b"frame"].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Hits in any order, with leaps back and forth: each is in all slices that hold its time, or apart.
    #[test]
    fn every_hit_is_in_its_slices_or_apart(
        steps in proptest::collection::vec((-4000_i64..8000, 0_u8..40, 0_u64..20), 1..200),
        known in any::<bool>(),
        silences in any::<u16>(),
    ) {
        let mut bench = Bench::new(slicing(known.then_some(0)));
        let (mut time, mut host) = (ms(50), 0);
        for (n, (step, kind, wait)) in steps.into_iter().enumerate() {
            host += wait;
            time += step * 500;
            let hit = match kind {
                0 => time + ms(20_000),
                1 => time - ms(20_000),
                2 => { time += ms(1500); time }
                _ => time,
            };
            bench.frame(&[hit, time + 7], host);
            if silences & (1 << (n % 16)) != 0 {
                bench.slicer.be_silent(Time(host * 1000 * MS));
                bench.drain();
            }
        }
        bench.finish();
        bench.check();
    }
}
