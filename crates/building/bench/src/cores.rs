//! The core-to-core time through memory.
//!
//! That time is the limit of every message layer that goes through memory. On virtual machines it depends on the
//! placement of the two cores by the host, and may change at any time. So it is measured before and after a series.

pub use evb_os::cores::{allowed, pin};
use evb_record::CoreToCore;
use std::{
    hint,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Instant,
};

/// Round trips that are timed together, and number of such measurements.
const ROUND_TRIPS: u64 = 500;
const BATCHES: usize = 101;
/// Words of a message of one cache line.
const WORDS: usize = 8;

/// Half round trips between two cores; `None` if this process may not use two cores, or cannot start threads.
#[must_use]
pub fn calibrate() -> Option<CoreToCore> {
    let cores = allowed();
    let (&first, &second) = (cores.first()?, cores.get(1)?);
    Some(CoreToCore { line_ns: half_round_trip(first, second, 0)?, message_ns: half_round_trip(first, second, WORDS)? })
}

/// A word and the payload before it, on separate cache lines. Each takes two lines, because of the prefetcher of
/// adjacent lines.
#[derive(Default)]
#[repr(align(128))]
struct Flag(AtomicU64);

#[derive(Default)]
#[repr(align(128))]
struct CacheLine([AtomicU64; WORDS]);

/// One direction.
#[derive(Default)]
struct CoreChannel {
    flag: Flag,
    payload: CacheLine,
}

impl CoreChannel {
    #[inline]
    fn send(&self, number: u64, words: usize) {
        self.payload.0[..words].iter().for_each(|word| word.store(number, Ordering::Relaxed));
        self.flag.0.store(number, Ordering::Release);
    }

    #[inline]
    fn wait_for(&self, number: u64, words: usize) {
        while self.flag.0.load(Ordering::Acquire) != number {}
        let whole = self.payload.0[..words].iter().all(|word| word.load(Ordering::Relaxed) == number);
        hint::black_box(whole);
    }
}

/// Median time of half a round trip in nanoseconds, with a payload of `words` words.
fn half_round_trip(first: u16, second: u16, words: usize) -> Option<f64> {
    let (there, back) = (&CoreChannel::default(), &CoreChannel::default());
    let total = ROUND_TRIPS * BATCHES as u64;
    let mut times = Vec::with_capacity(BATCHES);
    let (start, started) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let answer = move || {
            let _anywhere = pin(second);
            // Without the other thread there is nothing to answer.
            let numbers = 1..=started.recv().map_or(0, |()| total);
            numbers.for_each(|number| {
                there.wait_for(number, words);
                back.send(number, words);
            });
        };
        let times = &mut times;
        let ask = move || {
            let _it_waits = start.send(());
            let _anywhere = pin(first);
            for batch in 0..BATCHES as u64 {
                let start = Instant::now();
                for number in batch * ROUND_TRIPS + 1..=(batch + 1) * ROUND_TRIPS {
                    there.send(number, words);
                    back.wait_for(number, words);
                }
                times.push(start.elapsed().as_nanos() as f64 / (2 * ROUND_TRIPS) as f64);
            }
        };
        thread::Builder::new().spawn_scoped(scope, answer).ok()?;
        thread::Builder::new().spawn_scoped(scope, ask).ok().map(drop)
    })?;
    Some(evb_record::median(&times))
}
