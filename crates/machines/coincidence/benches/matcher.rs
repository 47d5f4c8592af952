//! Speed of the matching: hits of ten sources at 100 kHz, and the search for one offset. One element is one hit.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use evb_coincidence::{ClockOffset, ClockSettings, Coincidence, Matcher, Outcome, Rule, Sink};
use evb_core::{NodeId, Span, Time, stream};
use rand_xoshiro::rand_core::Rng;
use std::hint::black_box;

/// Hits of a source in one turn, as many as in a message.
const BATCH: usize = 256;

#[derive(Default)]
struct Counted(u64);

impl Sink for Counted {
    fn outcome(&mut self, _source: usize, _serial: u64, outcome: Outcome) {
        self.0 += u64::from(matches!(outcome, Outcome::Event(_)));
    }
}

fn settings(rule: Rule, sources: usize, offset: ClockOffset) -> Coincidence {
    let clock =
        ClockSettings { tick_fs: 8_000_000, offset, sort_depth: Span::from_micros(1), ..ClockSettings::default() };
    Coincidence { rule, sources: vec![clock; sources], patience: Span::from_secs(5) }
}

/// Ticks at about 100 kHz, with jitter; the same hits for each source.
fn hits(count: usize) -> Vec<u64> {
    let mut random = stream(1, NodeId(0), 0);
    let mut at = 1_u64 << 40;
    let mut next = || {
        at += 1 + random.next_u64() % 2500;
        at
    };
    (0..count).map(|_| next()).collect()
}

fn matching(c: &mut Criterion) {
    let mut group = c.benchmark_group("coincidence");
    let (ticks, window) = (hits(100 * BATCH), Span(32_000));
    let known = ClockOffset::Known { seconds: 0, picoseconds: 0 };
    for sources in [2, 10, 100] {
        group.throughput(Throughput::Elements((sources * ticks.len()) as u64));
        let rules = [
            ("trigger, known", Rule::Trigger { source: 0, window }, known),
            ("trigger, found", Rule::Trigger { source: 0, window }, ClockOffset::Find),
            ("several, known", Rule::Several { sources: 2, window }, known),
        ];
        for (name, rule, offset) in rules {
            let settings = settings(rule, sources, offset);
            group.bench_function(format!("{name}, {sources} sources"), |b| {
                b.iter_batched(
                    || Matcher::new(&settings),
                    |mut matcher| {
                        let mut counted = Counted::default();
                        for (turn, batch) in ticks.chunks(BATCH).enumerate() {
                            for source in 0..sources {
                                matcher.push(source, (turn * BATCH + 1) as u64, batch);
                            }
                            matcher.advance(Time::ZERO, &mut counted);
                        }
                        assert!(black_box(counted.0) as usize > ticks.len() * sources * 9 / 10);
                        matcher
                    },
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(benches, matching);
criterion_main!(benches);
